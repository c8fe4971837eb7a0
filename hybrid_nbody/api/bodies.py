"""Bodies of arrays that a person gives."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.api.checks import check_finite, check_masses, in_row, numbers_of
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies


def checked_bodies(
    positions: ArrayLike,
    velocities: ArrayLike,
    masses: ArrayLike,
    ids: NDArray[np.int64] | None = None,
) -> Bodies:
    """Return bodies of given arrays; without `ids` they are counted.

    Raises
    ------
    InputError
        If shapes do not fit, a number is not finite, or a mass is negative.
    """
    mass = numbers_of("masses", masses)
    position = numbers_of("positions", positions)
    velocity = numbers_of("velocities", velocities)
    wanted = (mass.size, 3)
    if mass.ndim != 1 or not mass.size:
        raise InputError(f"masses: must be an (N,) array, N at least 1 (got {mass.shape})")
    for name, array in {"positions": position, "velocities": velocity, "masses": mass}.items():
        if array is not mass and array.shape != wanted:
            raise InputError(f"{name}: must be a {wanted} array (got {array.shape})")
        check_finite(name, array, in_row)
    check_masses(mass, in_row)
    counted = np.arange(mass.size, dtype=np.int64) if ids is None else ids
    return Bodies(position, velocity, mass, counted)
