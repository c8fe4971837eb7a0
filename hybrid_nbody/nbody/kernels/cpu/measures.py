"""What diagnostics need of many bodies, by threads; see `hybrid_nbody.nbody.kernels.measured`.

The numbers are those of `hybrid_nbody.nbody.diagnostics.terms_of`, with their bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.nbody.kernels.cpu.compilers import compiled_with_threads, linked
from hybrid_nbody.nbody.kernels.measured import TERMS, MeasuredBodies, factors_of
from hybrid_nbody.parallel.sums import INTERVALS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PITCH = 16
"""Numbers from one thread's terms to the next one's: whole lines of the cache."""


class Measuring:
    """Measures bodies by the threads that a backend has given to Numba."""

    def __init__(self, backend: Backend) -> None:
        backend.use()

    def of(self, bodies: MeasuredBodies) -> "BodyMeasures":
        """Return the measures of some bodies."""
        return BodyMeasures(bodies)


class BodyMeasures:
    """Measures of this rank's bodies.

    Parameters
    ----------
    bodies : MeasuredBodies
    """

    def __init__(self, bodies: MeasuredBodies) -> None:
        self.bodies = bodies

    def largest(self) -> Floats:
        """Return the largest magnitude of the terms of each sum; infinity for NaN."""
        blocks = get_num_threads()
        terms = np.empty((blocks, PITCH))
        found = np.zeros((blocks, PITCH))
        find_largest(blocks, tuple(self.bodies), terms, found)
        largest: Floats = found[:, :TERMS].max(axis=0)
        return largest

    def parts(self, exponent: NDArray[Any], bits: int) -> Integers:
        """Return the sums of the high and of the low integers of the terms, (2, 12)."""
        blocks = get_num_threads()
        terms = np.empty((blocks, PITCH))
        found = np.zeros((blocks, 2, PITCH), np.int64)
        grid = (np.ldexp(1.0, exponent), 2.0**bits)
        add_parts(blocks, tuple(self.bodies), grid, terms, found)
        parts: Integers = found[:, :, :TERMS].sum(axis=0)
        return parts

    def about(self, centre: Sequence[float]) -> "Distances":
        """Return the distances from a centre, weighted by the masses."""
        return Distances(self.bodies, np.array(centre))


class Distances:
    """Distances from a centre; see `hybrid_nbody.parallel.sums.Weights`."""

    def __init__(self, bodies: MeasuredBodies, centre: Floats) -> None:
        self.mass = bodies.mass
        self.distance = np.empty(len(bodies.mass))
        find_distances(get_num_threads(), bodies.position, centre, self.distance)

    def most(self) -> Floats:
        """Return the largest distance and the largest mass."""
        return np.array([self.distance.max(initial=0.0), self.mass.max(initial=0.0)])

    def between(self, low: Integers, high: Integers, shift: Integers, exponent: int) -> Integers:
        """Return the masses of the bodies in intervals of the patterns of their distances."""
        blocks = get_num_threads()
        found = np.zeros((blocks, len(low), INTERVALS), np.int64)
        intervals = (low, high, shift.astype(np.int64), factors_of(exponent))
        count_masses(blocks, self.distance.view(np.int64), self.mass, intervals, found)
        counts: Integers = found.sum(axis=0)
        return counts


# ---- Loops ---------------------------------------------------------------------------------------


@compiled_with_threads
def find_largest(blocks, bodies, terms, found):
    """Find the largest magnitude of each term of blocks of bodies."""
    each_on_threads(find_largest_of_block, 0, blocks, (blocks, bodies, terms, found))


@linked
def find_largest_of_block(block, blocks, bodies, terms, found):
    """Find the largest magnitude of each term of a block of bodies; infinity where one is NaN."""
    number = bodies[2].size
    for i in range(number * block // blocks, number * (block + 1) // blocks):
        fill_terms(i, bodies, terms[block])
        for k in range(TERMS):
            size = abs(terms[block, k])
            if np.isnan(size):
                size = np.inf
            found[block, k] = max(found[block, k], size)


@compiled_with_threads
def add_parts(blocks, bodies, grid, terms, found):
    """Add up the integer parts of the terms of blocks of bodies."""
    each_on_threads(add_parts_of_block, 0, blocks, (blocks, bodies, grid, terms, found))


@linked
def add_parts_of_block(block, blocks, bodies, grid, terms, found):
    """Add up the integer parts of the terms of a block of bodies.

    `grid` are the factors of the terms, and that of what the first integers leave.
    """
    factors, finer = grid
    number = bodies[2].size
    for i in range(number * block // blocks, number * (block + 1) // blocks):
        fill_terms(i, bodies, terms[block])
        for k in range(TERMS):
            scaled = terms[block, k] * factors[k]
            high = np.rint(scaled)
            found[block, 0, k] += np.int64(high)
            found[block, 1, k] += np.int64(np.rint((scaled - high) * finer))


@linked
def fill_terms(i, bodies, terms):
    """Fill in what a body adds to the sums, as `hybrid_nbody.nbody.diagnostics.terms_of` does."""
    position, velocity, mass, potential = bodies
    m = mass[i]
    half = 0.5 * m
    x = position[i, 0]
    y = position[i, 1]
    z = position[i, 2]
    u = velocity[i, 0]
    v = velocity[i, 1]
    w = velocity[i, 2]
    terms[0] = m
    terms[1] = half * (u * u + v * v + w * w)
    terms[2] = half * potential[i]
    terms[3] = m * x
    terms[4] = m * y
    terms[5] = m * z
    terms[6] = m * u
    terms[7] = m * v
    terms[8] = m * w
    terms[9] = m * (y * w - z * v)
    terms[10] = m * (z * u - x * w)
    terms[11] = m * (x * v - y * u)


@compiled_with_threads
def find_distances(blocks, position, centre, distance):
    """Fill in the distances of blocks of bodies from a centre."""
    each_on_threads(find_distances_of_block, 0, blocks, (blocks, position, centre, distance))


@linked
def find_distances_of_block(block, blocks, position, centre, distance):
    """Fill in the distances of a block of bodies from a centre."""
    number = distance.size
    for i in range(number * block // blocks, number * (block + 1) // blocks):
        x = position[i, 0] - centre[0]
        y = position[i, 1] - centre[1]
        z = position[i, 2] - centre[2]
        distance[i] = np.sqrt(x * x + y * y + z * z)


@compiled_with_threads
def count_masses(blocks, patterns, mass, intervals, found):
    """Count the masses of blocks of bodies in intervals of patterns."""
    each_on_threads(count_masses_of_block, 0, blocks, (blocks, patterns, mass, intervals, found))


@linked
def count_masses_of_block(block, blocks, patterns, mass, intervals, found):
    """Count the masses of a block of bodies in intervals; see `Weights.between`."""
    low, high, shift, factors = intervals
    number = mass.size
    for i in range(number * block // blocks, number * (block + 1) // blocks):
        pattern = patterns[i]
        weight = np.int64(np.rint(mass[i] * factors[0] * factors[1]))
        for k in range(low.size):
            if low[k] < pattern <= high[k]:
                found[block, k, (pattern - low[k] - 1) >> shift[k]] += weight
