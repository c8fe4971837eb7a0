"""Bodies of arrays that a person gives, and the model that starts from them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.precision_range import check_range
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.running.start import built
from hybrid_nbody.simulation.model import Model


def checked_bodies(positions: ArrayLike, velocities: ArrayLike, masses: ArrayLike) -> Bodies:
    """Return bodies of given arrays."""
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
    return Bodies(position, velocity, mass)


def model_of(config: Any, communicator: Communicator, initial: Bodies | None) -> Model:
    """Return the model that starts from given bodies, or from those of a configuration.

    Parameters
    ----------
    config : ModelConfig
        Of bodies, if there are any given.
    communicator : Communicator
        Every rank calls together.
    initial : Bodies, optional
        On the root; what other ranks pass is not used.

    Raises
    ------
    InputError
        On every rank, if the precision of the force cannot hold the bodies.
    """
    communicator.only_on_root(
        lambda: None if initial is None else check_range(initial, config.gravity)
    )
    model: Model = built(config, communicator, initial=initial).model
    return model
