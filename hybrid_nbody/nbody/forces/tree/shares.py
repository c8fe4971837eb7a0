"""Sums by a tree that each device of one host has whole, shared out among the ranks by their work.

No bit depends on where the shares begin.
"""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.forces.tree.resharing import Resharing
from hybrid_nbody.nbody.kernels.device_tree import TreeShare
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.parallel.communicator import Communicator

MOST_WHOLE = 1 << 22
"""Bodies of which each device of a host has the whole tree, at most. With more of them it takes
longer to make all cells than to exchange messages about them."""

PIECES = 1024
"""Pieces of the curve, with the same number of bodies each, for which work is counted."""


class SumsByShares:
    """Sums over the bodies of all ranks of a host; every method is collective.

    Parameters
    ----------
    tree : TreeShare
        This rank's share of the tree.
    communicator : Communicator
    number : int
        Of all bodies.
    """

    def __init__(self, tree: TreeShare, communicator: Communicator, number: int) -> None:
        self.tree = tree
        self.communicator = communicator
        self.number = number
        self.resharing = Resharing()
        self._cut(np.zeros(PIECES))

    def sums(self, bodies: Array, potentials: bool, timer: Timer) -> Array:
        """Return the sums at this rank's bodies; see `DistributedTree.sums`."""
        self.tree.collect(bodies)
        timer.record("exchange")
        self.tree.add_up(potentials)
        timer.record("force")
        sums = self.tree.gather(potentials)
        timer.record("exchange")
        if self.resharing.counts_work:
            self._cut(self.communicator.sum(self.tree.work(PIECES)))
        self.resharing.go_on()
        return sums

    def _cut(self, work: NDArray[np.float64]) -> None:
        """Let the shares of the next forces take the same time, for the work of each piece."""
        self.tree.cut(cuts_of(work, self.number, self.communicator.size))


def cuts_of(work: NDArray[np.float64], number: int, ranks: int) -> NDArray[np.int64]:
    """Return the bodies along the curve at which the shares of ranks begin, and their number.

    Parameters
    ----------
    work : (P,) array of float64
        For the bodies of each piece of the curve; all pieces but the last ones have as many. Zero
        where it is not known: then shares have as many bodies.
    number : int
        Of the bodies.
    ranks : int
        Of the shares.

    Returns
    -------
    (S + 1,) array of int64
    """
    of_a_piece = -(-number // len(work))
    ends = np.minimum(np.arange(len(work) + 1) * of_a_piece, number)
    known = work if work.any() else np.diff(ends)
    done = np.append(0.0, np.cumsum(known))
    wanted = done[-1] * np.arange(ranks + 1) / ranks
    cuts: NDArray[np.int64] = np.interp(wanted, done, ends).astype(np.int64)
    cuts[0] = 0  # pieces at the ends may be without work
    cuts[-1] = number
    return cuts
