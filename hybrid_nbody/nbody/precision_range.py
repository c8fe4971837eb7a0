"""What single and mixed precision can hold of some bodies: refusals and warnings."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.config import Gravity
from hybrid_nbody.nbody.kernels.units import typical_distance
from hybrid_nbody.nbody.sources import spatial_order

CLOSEST = 1e-12
"""Shortest softening, or distance of two bodies without it, in typical distances of bodies: m / r^3
of closer ones exceeds the range of float32."""

SOFTEST = 1e20
"""Longest softening in typical distances of bodies: forces of longer ones vanish in float32."""

FAINTEST = 1e-37
"""Least contribution m / r^3 in the units of the kernels: smaller ones vanish in float32."""

TOLERANCE = 1e-3
"""Relative error of the force between two bodies from which on there is a warning."""

ROUNDING = 2.0**-24
"""Largest relative rounding error of a stored offset in single precision."""

MOST_EXAMINED = 1 << 22
"""Bodies among which close ones are looked for."""

DOUBLE = "take gravity.precision: double"


class Neighbours(NamedTuple):
    """Bodies beside each other on the curve along which they are summed in single precision.

    Attributes
    ----------
    distance : (n - 1,) array of float64
        From each body to the next.
    offset : (n,) array of float64
        From each body to the origin of its chunk.
    """

    distance: NDArray[np.float64]
    offset: NDArray[np.float64]


def check_range(bodies: Bodies, gravity: Gravity) -> None:
    """Refuse bodies that the precision of their force cannot hold.

    Raises
    ------
    InputError
        If lengths or masses are too far apart.
    """
    if gravity.precision == "double":
        return
    for fault in _faults(bodies, gravity):
        raise InputError(f"gravity.precision: {gravity.precision} cannot hold {fault}; {DOUBLE}")


def warnings_of(bodies: Bodies, gravity: Gravity) -> list[str]:
    """Return what a person is warned of before bodies are computed in single precision."""
    if gravity.precision != "single" or len(bodies) < 2:
        return []
    found = []
    if gravity.softening == 0:
        found.append(
            "gravity.precision: single without softening gets close pairs wrong; take mixed, or a "
            "gravity.softening"
        )
    error = pair_error(bodies, gravity.softening)
    if error > TOLERANCE:
        found.append(
            f"single precision gets the force between the closest bodies wrong by about {error:.0%}"
            f" (softening {gravity.softening:g}); take gravity.precision: mixed, or a larger "
            "gravity.softening"
        )
    return found


def pair_error(bodies: Bodies, softening: float) -> float:
    """Return about how wrong single precision gets the force between the closest bodies.

    That is the rounding of their stored offsets, relative to their softened distance; at most 1.
    With softening, bodies are taken to meet some time, at a typical place.
    """
    near = _neighbours(bodies.position)
    rounding = ROUNDING * np.maximum(near.offset[1:], near.offset[:-1])
    softened = np.hypot(near.distance, softening)
    apart = softened > 0
    errors = rounding[apart] / softened[apart]
    error = float(errors.max(initial=0.0))
    if softening > 0:
        error = max(error, ROUNDING * float(np.median(near.offset)) / softening)
    return min(error, 1.0)


def _faults(bodies: Bodies, gravity: Gravity) -> Iterator[str]:
    """Yield what float32 cannot hold, in words."""
    typical = typical_distance(bodies.position)
    softening = gravity.softening
    if typical > 0 and 0 < softening < CLOSEST * typical:
        yield (
            f"a gravity.softening of {softening:g} beside distances of about {typical:.1e} "
            f"(at least {CLOSEST:g} of them)"
        )
    if typical > 0 and softening > SOFTEST * typical:
        yield (
            f"a gravity.softening of {softening:g} beside distances of about {typical:.1e} "
            f"(at most {SOFTEST:g} of them)"
        )
    if typical > 0 and softening == 0:
        yield from _too_close(bodies, typical)
    yield from _too_faint(bodies, max(typical, softening))


def _too_close(bodies: Bodies, typical: float) -> Iterator[str]:
    """Yield what is wrong if two bodies are too close; those at one place are found later."""
    distance = _neighbours(bodies.position).distance
    closest = float(distance[distance > 0].min(initial=np.inf))
    if closest < CLOSEST * typical:
        yield (
            f"two bodies {closest:.1e} apart beside distances of about {typical:.1e} "
            f"(at least {CLOSEST:g} of them, without softening)"
        )


def _too_faint(bodies: Bodies, length: float) -> Iterator[str]:
    """Yield what is wrong if the lightest body has no force on the farthest one."""
    masses = bodies.mass[bodies.mass > 0]
    if not len(masses) or length <= 0:
        return
    extent = float(np.ptp(bodies.position, axis=0).max())
    heaviest = float(masses.max())
    lightest = float(masses.min())
    far = min(length / extent, 1.0) if extent > 0 else 1.0
    if lightest / heaviest * far**3 < FAINTEST:
        yield (
            f"masses from {lightest:.1e} to {heaviest:.1e} with typical distances of {length:.1e} "
            f"in an extent of {extent:.1e}"
        )


@np.errstate(over="ignore", invalid="ignore")  # the guard reports what is too large
def _neighbours(position: NDArray[np.float64]) -> Neighbours:
    """Return distances along the curve, and from the origins of the chunks."""
    position = position[:MOST_EXAMINED]
    order = spatial_order(position)
    path = position[order.bodies]
    starts = order.starts[: order.chunks]
    ends = order.starts[1 : order.chunks + 1]
    origins = np.repeat(path[(starts + ends) // 2], ends - starts, axis=0)
    offset = np.linalg.norm(path - origins, axis=1)
    return Neighbours(np.linalg.norm(np.diff(path, axis=0), axis=1), offset)
