"""Where the shares of ranks begin along the curve, kept from force to force.

To find parts anew takes many messages one after another. Bodies move little from one force to the
next: shares begin at the same keys again, as long as none of these lies within a leaf. What ranks
must know of each other for that follows from how many bodies have keys between some bounds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.parts import CELL, Parts

Keys = NDArray[np.uint64]


class Around(NamedTuple):
    """A cell of a level around a cut, and the cut, as places among the bounds of `Cuts`."""

    level: int
    begin: int
    cut: int
    end: int


class Cuts:
    """The keys at which the shares of ranks begin.

    Parameters
    ----------
    keys : sequence of int
        Those of all ranks but the first; equal ones are those of ranks without bodies.
    levels : int
        Of cells below the root.
    cube : Cube
        The root, to which keys belong.
    capacity : int
        Most bodies of a leaf.

    Attributes
    ----------
    keys : (S - 1,) array of uint64
    bounds : (T + 1,) array of uint64
        Where the cells around the cuts begin and end, and the cuts, in order.
    """

    def __init__(self, keys: list[int], levels: int, cube: Cube, capacity: int) -> None:
        self.keys: Keys = np.array(keys, np.uint64)
        self.cube = cube
        self.capacity = capacity
        around = [cell for key in sorted(set(keys)) for cell in _cells_around(key, levels)]
        bounds = {0, 8**levels, *keys}
        for _, begin, _, end in around:
            bounds |= {begin, end}
        places = {bound: place for place, bound in enumerate(sorted(bounds))}
        self.bounds: Keys = np.array(sorted(bounds), np.uint64)
        self.around = [
            Around(level, places[begin], places[cut], places[end])
            for level, begin, cut, end in around
        ]
        self.owners = np.searchsorted(self.keys, self.bounds[:-1], side="right")

    def taken(self, between: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many bodies of each rank each rank takes, (S, S).

        `between` says how many bodies of each rank have keys from each bound to the next, (S, T).
        """
        taken = np.zeros((len(between), len(self.keys) + 1), np.int64)
        for place, owner in enumerate(self.owners):
            taken[:, owner] += between[:, place]
        return taken

    def parts(self, between: NDArray[np.int64]) -> Parts | None:
        """Return the parts, for how many bodies of all ranks lie between bounds, (T,).

        They need not be cells: each lies in one of the level that it has. None is returned where a
        cut lies within a leaf.
        """
        before = np.append(0, np.cumsum(between))
        shared = [cell for cell in self.around if _is_shared(cell, before)]
        if not all(before[cell.end] - before[cell.begin] > self.capacity for cell in shared):
            return None
        levels = np.zeros(len(between), np.int64)
        for cell in shared:
            some = levels[cell.begin : cell.end]
            np.maximum(some, cell.level + 1, out=some)
        filled = np.flatnonzero(between)
        cells = np.zeros(len(shared) + len(filled), CELL)
        for row, cell in zip(cells, shared, strict=False):
            row["start"] = before[cell.begin]
            row["size"] = before[cell.end] - before[cell.begin]
            row["level"] = cell.level
        pieces = cells[len(shared) :]
        pieces["start"] = before[filled]
        pieces["size"] = between[filled]
        pieces["level"] = levels[filled]
        return Parts(cells, np.arange(len(shared), len(cells)), self.owners[filled])


def _cells_around(key: int, levels: int) -> list[tuple[int, int, int, int]]:
    """Return level, beginning, cut and end of the cells that a cut lies within, the root first."""
    found = []
    for level in range(levels + 1):
        width = 8 ** (levels - level)
        begin = key - key % width
        if begin < key < 8**levels:
            found.append((level, begin, key, begin + width))
    return found


def _is_shared(cell: Around, before: NDArray[np.int64]) -> bool:
    """Return whether there are bodies on both sides of the cut."""
    return bool(before[cell.begin] < before[cell.cut] < before[cell.end])
