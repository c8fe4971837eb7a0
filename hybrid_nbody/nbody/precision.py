"""The three precisions of the pair force, and the chunks in which sources are summed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHUNK = 256
"""Most sources in a chunk: they are stored about one origin and summed in the working type; chunks
are added up in float64."""


@dataclass(frozen=True)
class Precision:
    """The types in which a pair force is computed.

    Attributes
    ----------
    name : str
        As in ``gravity.precision``.
    stored : type
        Type of a source's stored offset from the origin of its chunk.
    working : type
        Type of the arithmetic of an interaction.
    local : bool
        Whether a chunk's origin is one of its bodies, which are then sorted in space
        (`hybrid_nbody.nbody.sources`): the rounding of a stored offset is relative to its
        length. Otherwise the origin is that of the coordinates.
    """

    name: str
    stored: type
    working: type
    local: bool


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision("single", np.float32, np.float32, local=True),
        Precision("mixed", np.float64, np.float32, local=False),
        Precision("double", np.float64, np.float64, local=False),
    )
}


def common_mass(masses: NDArray[np.float64]) -> float | None:
    """Return the mass of all bodies by which a sum is multiplied last, or None if masses differ.

    In the units of the kernels (`hybrid_nbody.nbody.kernels.units`) such a mass is about 1: the
    weights 1 / r^3 that remain are as far within the range of float32 as m / r^3.

    Parameters
    ----------
    masses : (N,) array of float64
        Of all bodies.
    """
    mass = float(masses.max(initial=0.0))
    return mass if mass > 0 and (masses == mass).all() else None


def excludes_self(heaviest: float, eps2: np.floating) -> bool:
    """Return whether a body must be left out of its own sum.

    Its acceleration by itself is its distance, zero, times the weight m / eps^3, which must be
    finite in the working type.

    Parameters
    ----------
    heaviest : float
        Largest mass of all bodies, in units of the kernels.
    eps2 : float of the working type
        Softening length squared, in the same units.
    """
    real = type(eps2)
    with np.errstate(divide="ignore", over="ignore"):
        inverse = real(1) / np.sqrt(eps2)
        weight = real(2) * real(max(heaviest, 1.0)) * inverse * inverse * inverse
    return not np.isfinite(weight)


def chunk_capacity(number: int) -> int:
    """Return the most chunks of `number` sources: full ones, and as many that end early."""
    return 2 * -(-number // CHUNK)
