"""Diagnostics of a few bodies on one rank: the sums of `diagnostics`, bit by bit, without arrays.

Each call of NumPy takes as long as tens of operations on numbers of Python.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.parallel.sums import LARGEST_EXPONENT, bits_of, parts_of

MOST_FEW = 6
"""Bodies up to which this takes less time."""

LARGEST = 2.0**LARGEST_EXPONENT
"""Number below which no sum of a few leaves the range of float64."""

Term = tuple[float, ...]


def sums_of_few(own: Bodies, potential: NDArray[np.float64]) -> list[float] | None:
    """Return the sums of what all bodies add, or None if one may not be finite.

    They are, with their bits, those of `hybrid_nbody.parallel.sums.reproducible_sum` over
    `hybrid_nbody.nbody.diagnostics.terms_of`; parameters as there.
    """
    arrays = (own.mass, own.position, own.velocity, potential)
    terms = [_terms(*body) for body in zip(*(array.tolist() for array in arrays), strict=True)]
    if not sum(sum(map(abs, term)) for term in terms) < LARGEST:  # also where one is NaN
        return None
    bits = bits_of(len(terms))
    return [_sum(column, bits) for column in zip(*terms, strict=True)]


def _terms(mass: float, position: Sequence[float], velocity: Sequence[float], phi: float) -> Term:
    """Return what a body adds to the sums."""
    x, y, z = position
    u, v, w = velocity
    half = 0.5 * mass
    energies = (half * (u * u + v * v + w * w), half * phi)
    momenta = (mass * x, mass * y, mass * z, mass * u, mass * v, mass * w)
    angular = (mass * (y * w - z * v), mass * (z * u - x * w), mass * (x * v - y * u))
    return (mass, *energies, *momenta, *angular)


def _sum(terms: Sequence[float], bits: int) -> float:
    """Return the sum of terms, each cut into two integers."""
    if not any(terms):  # along an axis in which nothing moves
        return 0.0
    exponent = min(bits - math.frexp(max(map(abs, terms)))[1], LARGEST_EXPONENT)
    scale = math.ldexp(1.0, exponent)
    finer = 2.0**bits
    high = 0
    low = 0
    for term in terms:
        scaled = term * scale
        whole = round(scaled)
        high += whole
        low += round((scaled - whole) * finer)
    return math.ldexp(float(high), -exponent) + math.ldexp(float(low), -exponent - bits)


def radii_of_few(own: Bodies, center: Sequence[float], percents: Sequence[int]) -> list[float]:
    """Return radii about a centre that hold parts of the mass of all bodies, which have some.

    They are those of `hybrid_nbody.parallel.sums.reproducible_quantiles`.
    """
    mass = own.mass.tolist()
    exponent = bits_of(len(mass)) - math.frexp(max(mass))[1]
    radius = [_distance(place, center) for place in own.position.tolist()]
    weights = [round(math.ldexp(weight, exponent)) for weight in mass]
    outwards = sorted(zip(radius, weights, strict=True))
    within = list(accumulate(weight for _, weight in outwards))
    wanted = parts_of(within[-1], percents)
    return [outwards[bisect_left(within, part)][0] for part in wanted]


def _distance(place: Sequence[float], center: Sequence[float]) -> float:
    x = place[0] - center[0]
    y = place[1] - center[1]
    z = place[2] - center[2]
    return math.sqrt(x * x + y * y + z * z)
