"""The passes over the cells of a tree on a GPU, level by level."""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.kernels.gpu.tree.launches import Launches

Counts = NDArray[np.int64]
"""How many of this rank's cells there are on each level, (L,), or more: kernels know how many."""


class Passes:
    """Queues the passes; those over cells take the counts of this rank's.

    Parameters
    ----------
    launches : Launches
    """

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        self.memory = launches.memory

    def link(self, name: str, number: int) -> None:
        """Tell a number of cells of their children."""
        self.launches.on_bodies(name, number, self.memory.argument)

    def find_multipoles(self, counts: Counts) -> None:
        """Find the multipoles of cells, the leaves first."""
        self.launches.on_own_cells("upward", "find_leaf_multipoles", number_of(counts))
        for level in reversed(range(depth_of(counts))):
            self.launches.on_parents("find_parent_multipoles", int(counts[level]), np.int32(level))

    def find_sources(self, counts: Counts) -> None:
        """Find the sources of cells, as far as there is memory for their lists."""
        for level in range(depth_of(counts) + 1):
            self.launches.on_level("walk", "find_sources", int(counts[level]), level)
        self._order_cells(number_of(counts))

    def _order_cells(self, number: int) -> None:
        """Let cells with long lists come first."""
        self.memory.arrays["classes"].fill(0)
        for name in ("count_lists", "order_by_length"):
            self.launches.on_bodies(name, number, self.memory.argument, module="walk")

    def add_far_field(self, counts: Counts, potentials: bool) -> None:
        """Find the sums over the distant sources of cells."""
        self.find_expansions(counts)
        self.hand_down_expansions(counts)
        self.evaluate_expansions(counts, potentials)

    def find_expansions(self, counts: Counts) -> None:
        """Find the expansions of distant sources about the cells that accept these."""
        self.launches.on_own_cells("far_field", "add_far_field", number_of(counts))

    def hand_down_expansions(self, counts: Counts) -> None:
        """Add the expansions of cells to those of their children, from the root on."""
        for level in range(1, depth_of(counts) + 1):
            self.launches.on_level("far_field", "shift_to_children", int(counts[level]), level)

    def evaluate_expansions(self, counts: Counts, potentials: bool) -> None:
        """Find the values of the expansions at the bodies."""
        kernel = f"evaluate_{_name(potentials)}"
        self.launches.on_own_cells("far_field", kernel, number_of(counts))

    def add_near_field(self, counts: Counts, potentials: bool) -> None:
        """Add the sums over nearby bodies."""
        kernel = f"add_nearby_{_name(potentials)}"
        self.launches.on_blocks("near_field", kernel, number_of(counts))

    def find_places(self, order: Array, places: Array) -> None:
        """Find the place of each body along the curve, whose order is given, (n,) of int32."""
        number = len(order)
        self.launches.on_bodies("find_places", number, np.int32(number), order, places)

    def unsort(self, rows: Array, places: Array, result: Array) -> None:
        """Fill `result`, (n, k), with rows along the curve in the order that bodies came in.

        Gathering rows takes a third of the time of scattering them.

        Parameters
        ----------
        rows : (n, k) array of float64
        places : (n,) array of int32
            The place of each body along the curve.
        result : (n, k) array of float64
        """
        sizes = (np.int64(result.size), np.int32(result.shape[1]))
        arguments = (self.memory.argument, *sizes, rows, places, result)
        self.launches.on_bodies("unsort", result.size, *arguments)


def depth_of(counts: Counts) -> int:
    """Return the deepest level that has cells."""
    filled = np.flatnonzero(counts)
    return int(filled[-1]) if len(filled) else 0


def number_of(counts: Counts) -> int:
    """Return the number of cells on all levels."""
    return int(counts.sum())


def _name(potentials: bool) -> str:
    """Return what kernels call the sums."""
    return "potentials" if potentials else "accelerations"
