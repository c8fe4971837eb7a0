"""Bodies of arrays that a person gives."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies


def checked_bodies(
    positions: ArrayLike,
    velocities: ArrayLike,
    masses: ArrayLike,
    ids: NDArray[np.int64] | None = None,
) -> Bodies:
    """Return bodies of given arrays; without `ids` they are counted."""
    mass = np.array(masses, float)
    position = np.array(positions, float)
    velocity = np.array(velocities, float)
    wanted = (mass.size, 3)
    if mass.ndim != 1 or not mass.size:
        raise InputError(f"masses: must be an (N,) array, N at least 1 (got {mass.shape})")
    for name, array in {"positions": position, "velocities": velocity, "masses": mass}.items():
        if array is not mass and array.shape != wanted:
            raise InputError(f"{name}: must be a {wanted} array (got {array.shape})")
        if not np.isfinite(array).all():
            raise InputError(f"{name}: every number must be finite")
    counted = np.arange(mass.size, dtype=np.int64) if ids is None else ids
    return Bodies(position, velocity, mass, counted)
