"""What diagnostics measure, as the kernels of all devices see it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.sums import Terms, Weights

MANY = 1 << 16
"""Bodies of all ranks from which each rank's device measures its own, and of a rank from which all
of its threads move them."""

TERMS = 12
"""Sums to which each body adds: see `hybrid_nbody.nbody.diagnostics.terms_of`."""


class MeasuredBodies(NamedTuple):
    """A rank's n bodies on its device, in float64.

    Attributes
    ----------
    position, velocity : (n, 3) array
    mass : (n,) array
    potential : (n,) array
        In units of velocity squared.
    """

    position: Array
    velocity: Array
    mass: Array
    potential: Array


def factors_of(exponent: int) -> tuple[float, float]:
    """Return two numbers whose product is two to the power of an exponent, each in range."""
    half = exponent // 2
    return 2.0**half, 2.0 ** (exponent - half)


class Measures(Terms, Protocol):
    """What a rank knows of its bodies: the terms of sums, `TERMS` of each body."""

    def about(self, centre: Sequence[float]) -> Weights:
        """Return the distances of the bodies from a centre, weighted by their masses."""


class Measuring(Protocol):
    """What measures bodies on a device."""

    def of(self, bodies: MeasuredBodies) -> Measures:
        """Return the measures of some bodies."""
