"""The parts of a tree: found by all ranks together, and shared out by the work that they take."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.kernels.parts import CELL, Parts
from hybrid_nbody.parallel.partition import Partition

PARTS = 512
"""A part holds at most 1 / PARTS of all bodies, or is a leaf."""

Integers = NDArray[np.int64]
Totals = Callable[[Integers], Integers]
"""Returns the element-wise sums over all ranks."""


class Divider(Protocol):
    """Divides bodies among the octants of cells."""

    def deepest_level(self, curve: Any) -> int:
        """Return the level below the root on which a cell may hold any number of bodies."""

    def child_bounds(
        self, curve: Any, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the octants of C cells of a level begin, and where they end, (C, 9)."""


class PartFinder:
    """Finds the cells from the root to the parts, level by level, by the bodies of all ranks.

    Parameters
    ----------
    divider : Divider
    curve
        This rank's bodies along the curve; see `TreeSums.curve`.
    backend : Backend
        Their device.
    totals : callable
        Every rank calls together.
    """

    def __init__(self, divider: Divider, curve: Any, backend: Backend, totals: Totals) -> None:
        self.divider = divider
        self.curve = curve
        self.backend = backend
        self.totals = totals
        own = len(curve.order)
        self.first = np.zeros(1, np.int32)
        self.last = np.full(1, own, np.int32)
        self.cells = np.zeros(1, CELL)
        self.cells["size"] = totals(np.array([own]))
        self.parents = np.zeros(1, np.int64)
        self.octants = np.zeros(1, np.int64)

    def find(self, capacity: int) -> None:
        """Divide cells until none has too many bodies.

        Parameters
        ----------
        capacity : int
            Most bodies of a leaf.
        """
        most = max(capacity, int(self.cells["size"][0]) // PARTS)
        for level in range(self.divider.deepest_level(self.curve)):
            is_large = (self.cells["level"] == level) & (self.cells["size"] > most)
            large = np.flatnonzero(is_large)
            if not len(large):
                break
            self._divide(large, level)

    def _divide(self, large: Integers, level: int) -> None:
        """Append the children of some cells of a level."""
        bounds = self.divider.child_bounds(self.curve, self.first[large], self.last[large], level)
        sizes = self.totals(np.diff(bounds, axis=1).astype(np.int64))
        filled = sizes > 0
        counts = filled.sum(axis=1)
        starts = self.cells["start"][large, None] + np.cumsum(sizes, axis=1) - sizes
        self.cells["children"][large] = counts
        self.cells["child"][large] = len(self.cells) + np.cumsum(counts) - counts
        below = np.zeros(counts.sum(), CELL)
        below["start"] = starts[filled]
        below["size"] = sizes[filled]
        below["level"] = level + 1
        self.cells = np.append(self.cells, below)
        parents, octants = np.nonzero(filled)
        self.parents = np.append(self.parents, large[parents])
        self.octants = np.append(self.octants, octants)
        self.first = np.append(self.first, bounds[:, :8][filled])
        self.last = np.append(self.last, bounds[:, 1:][filled])

    @property
    def _parts(self) -> Integers:
        """Return the parts along the curve."""
        leaves = np.flatnonzero(self.cells["children"] == 0)
        parts: Integers = leaves[np.argsort(self.cells["start"][leaves])]
        return parts

    def all_of_one_rank(self) -> Parts:
        """Return the parts where one rank takes all."""
        parts = self._parts
        return Parts(self.cells, parts, owners=np.zeros_like(parts))

    def shared_out(self, costs: Array, partition: Partition) -> tuple[Parts, list[int]]:
        """Return the parts and their owners, and how many of this rank's bodies each rank takes.

        Parameters
        ----------
        costs : (n,) array of int64
            Work for each of this rank's bodies, along the curve, on the device.
        partition : Partition
            Ranks get work in proportion to its shares.
        """
        parts = self._parts
        work = self.totals(self._sums(costs, parts))
        owners = owners_of(work, partition)
        counts = (self.last - self.first)[parts]
        taken = np.bincount(owners, weights=counts, minlength=partition.size)
        return Parts(self.cells, parts, owners), taken.astype(int).tolist()

    def cuts(self, parts: Parts, size: int) -> list[int]:
        """Return the keys at which the shares of all of some ranks but the first begin."""
        levels = self.divider.deepest_level(self.curve)
        firsts = np.searchsorted(parts.owners, np.arange(1, size)).tolist()
        return [
            self._key_of(int(parts.parts[first]), levels) if first < len(parts.parts) else 8**levels
            for first in firsts
        ]

    def _key_of(self, cell: int, levels: int) -> int:
        """Return the first key of a cell."""
        key = 0
        while cell:
            key += int(self.octants[cell]) * 8 ** (levels - int(self.cells["level"][cell]))
            cell = int(self.parents[cell])
        return key

    def _sums(self, costs: Array, parts: Integers) -> Integers:
        """Return the sum of the costs of this rank's bodies in each part."""
        before = self.backend.zeros(len(costs) + 1, "i8")
        self.backend.xp.cumsum(costs, out=before[1:])
        bounds = self.backend.upload(np.stack([self.first[parts], self.last[parts]]))
        first, last = self.backend.download(before[bounds])
        sums: Integers = last - first
        return sums


def owners_of(work: Integers, partition: Partition) -> Integers:
    """Return the rank of each part: each gets about its share of the work, parts in a row.

    Parameters
    ----------
    work : (R,) array of int64
        Of each part, along the curve; none is 0.
    partition : Partition
        The share of each rank in its total.
    """
    middle = np.cumsum(work) - work / 2
    ends = np.array(partition.offsets[1:]) / partition.total * work.sum()
    last = np.flatnonzero(partition.counts)[-1]
    owners: Integers = np.minimum(np.searchsorted(ends, middle, side="right"), last)
    return owners
