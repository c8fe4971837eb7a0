"""Bodies drawn at random, any range of them by itself.

Bodies come in blocks. The random numbers of a block follow from the seed and the number of the
block alone, by a generator that counts (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
3", SC 2011). However ranks share the bodies, each makes its own, and they are the same bodies.
"""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition

Floats = NDArray[np.float64]
Seed = int | tuple[int, ...]

BLOCK = 4096
"""Bodies of a block: another number would give a seed other bodies."""

SAMPLE = 1 << 18
"""Most bodies that stand for all where units and precision are chosen."""

Draw = Callable[[np.random.Generator], Floats]
"""Draws the positions and velocities of a block, a (2, BLOCK, 3) array."""


class DrawnBodies:
    """Bodies of one mass, drawn at random.

    Parameters
    ----------
    number : int
        Bodies in all.
    seed : int or sequence of int
        The same seed gives the same bodies, not negative.
    mass : float
        Mass of each body.
    draw : callable
        Draws a block; a function of a module or a partial one, so that ranks can send it.
    centred : bool
        Whether the centre of mass is put at rest at the origin.
    in_place : bool
        Whether bodies that are centred are so put at rest only: a few far out would move a cusp.
    """

    def __init__(
        self,
        number: int,
        seed: Seed,
        mass: float,
        draw: Draw,
        centred: bool = False,
        in_place: bool = False,
    ) -> None:
        self.number = number
        self.mass = mass
        self._key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._draw = draw
        self._centred = centred
        self._in_place = in_place

    def __len__(self) -> int:
        """Return the number of bodies."""
        return self.number

    def rows(self, first: int, last: int) -> Bodies:
        """Return the bodies first … last - 1, the same bits in any range."""
        both = self._drawn(first, last)
        both -= self._centre[:, None]
        return self._bodies(both, first)

    def all(self) -> Bodies:
        """Return all bodies."""
        return self.rows(0, self.number)

    def sample(self) -> Bodies:
        """Return some bodies that stand for all; not centred, which would need all of them."""
        return self._bodies(self._drawn(0, min(self.number, SAMPLE)), 0)

    def masses(self) -> Floats:
        """Return the masses of all bodies."""
        return np.full(self.number, self.mass)

    def find_centre(self, communicator: Communicator) -> None:
        """Find the centre of mass together, so that no rank has to draw all bodies for it.

        Parameters
        ----------
        communicator : Communicator
            Every rank calls together.
        """
        own = Partition.equal(self._blocks, communicator.size).share(communicator.rank)
        if self._centred:
            terms = self._terms_of_the_centre(own.start, own.stop)
            self._centre = self._centre_of(communicator.concatenate(terms))

    @cached_property
    def _centre(self) -> Floats:
        """Position and velocity of the centre of mass, (2, 3), as one process finds them."""
        if not self._centred:
            return np.zeros((2, 3))
        return self._centre_of(self._terms_of_the_centre(0, self._blocks))

    def _centre_of(self, terms: Floats) -> Floats:
        """Return what is taken off positions and velocities, (2, 3)."""
        centre = exact_sums(terms)
        if self._in_place:
            centre[0] = 0
        return centre

    def _terms_of_the_centre(self, first: int, last: int) -> Floats:
        """Return what each of the blocks first … last - 1 adds to the centre, (n, 2, 3)."""
        terms = np.empty((last - first, 2, 3))
        for term, block in zip(terms, range(first, last), strict=True):
            in_use = self._block(block)[:, : self.number - block * BLOCK]
            term[:] = (in_use / self.number).sum(axis=1)
        return terms

    @property
    def _blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.number // BLOCK)

    def _drawn(self, first: int, last: int) -> Floats:
        """Return positions and velocities before they are centred, (2, last - first, 3)."""
        both = np.empty((2, last - first, 3))
        for block in range(first // BLOCK, -(-last // BLOCK)):
            start = max(first, block * BLOCK)
            stop = min(last, (block + 1) * BLOCK)
            within = slice(start - block * BLOCK, stop - block * BLOCK)
            both[:, start - first : stop - first] = self._block(block)[:, within]
        return both

    def _block(self, block: int) -> Floats:
        """Return a whole block: how many of its bodies are in use changes none of them."""
        counter = np.array([0, 0, block, 0], np.uint64)  # the first two count numbers drawn
        return self._draw(np.random.Generator(np.random.Philox(key=self._key, counter=counter)))

    def _bodies(self, both: Floats, first: int) -> Bodies:
        """Return bodies whose identities count from `first`."""
        number = both.shape[1]
        identity = np.arange(first, first + number, dtype=np.int64)
        return Bodies(both[0], both[1], np.full(number, self.mass), identity)


def exact_sums(terms: Floats) -> Floats:
    """Return the sum of (n, …) terms over n, rounded once; NaN where one is not finite."""
    rows = terms.reshape(len(terms), -1)
    sums = [math.fsum(column) if np.isfinite(column).all() else math.nan for column in rows.T]
    return np.array(sums).reshape(terms.shape[1:])
