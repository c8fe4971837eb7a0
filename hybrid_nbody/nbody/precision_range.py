"""What single and mixed precision can hold of some bodies: refusals and warnings."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.config import Gravity
from hybrid_nbody.nbody.kernels.units import typical_distance
from hybrid_nbody.nbody.rounding import ForceErrors, Path, force_errors
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

MEDIAN_ERROR = 1e-6
MOST_ERROR = 1e-5
"""Errors of half of the accelerations, and of one in a hundred, relative to their rms, from which
on there is a warning."""

CLOSE = 6e-6
"""Rounding of a stored offset, relative to the distance of the next body, that one body in a
hundred has to exceed for errors of forces to be estimated at all, which takes 0.1 s."""

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
    path : Path
        The bodies in this order.
    """

    distance: NDArray[np.float64]
    offset: NDArray[np.float64]
    path: Path


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
    near = _neighbours(bodies)
    error = _pair_error(near, gravity.softening)
    if error > TOLERANCE:
        found.append(
            f"single precision gets the force between the closest bodies wrong by about {error:.1%}"
            f" (softening {gravity.softening:g}); take gravity.precision: mixed, or a larger "
            "gravity.softening"
        )
    if _is_close(near):
        found += _errors_in_words(force_errors(near.path, gravity.softening))
    return found


def _errors_in_words(errors: ForceErrors) -> list[str]:
    """Return the warning of errors that are too large."""
    if errors.median <= MEDIAN_ERROR and errors.most <= MOST_ERROR:
        return []
    return [
        "single precision gets half of the accelerations wrong by more than "
        f"{errors.median:.1e} of their rms, one in a hundred by more than {errors.most:.1e}: "
        "bodies lie in tight groups far apart, or on a thin line; take gravity.precision: mixed"
    ]


def _is_close(near: Neighbours) -> bool:
    """Return whether bodies are so close, for their distance from an origin, that it may matter."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = ROUNDING * near.offset[1:] / near.distance
    return bool(np.count_nonzero(ratio > CLOSE) > len(ratio) / 100)


def pair_error(bodies: Bodies, softening: float) -> float:
    """Return about how wrong single precision gets the force between the closest bodies.

    That is the rounding of their stored offsets, relative to their softened distance; at most 1.
    With softening, bodies are taken to meet some time, at a typical place.
    """
    return _pair_error(_neighbours(bodies), softening)


def _pair_error(near: Neighbours, softening: float) -> float:
    """Return the same of bodies whose neighbours are known."""
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
    distance = _neighbours(bodies).distance
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
def _neighbours(bodies: Bodies) -> Neighbours:
    """Return distances along the curve, and from the origins of the chunks."""
    position = bodies.position[:MOST_EXAMINED]
    order = spatial_order(position)
    path = position[order.bodies]
    starts = order.starts[: order.chunks]
    ends = order.starts[1 : order.chunks + 1]
    origins = np.repeat(path[(starts + ends) // 2], ends - starts, axis=0)
    offset = np.linalg.norm(path - origins, axis=1)
    distance = np.linalg.norm(np.diff(path, axis=0), axis=1)
    return Neighbours(distance, offset, Path(path, origins, bodies.mass[order.bodies]))
