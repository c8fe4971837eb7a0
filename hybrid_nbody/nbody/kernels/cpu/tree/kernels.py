"""Gravity by a tree on the threads of one rank."""

import math
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.cpu.tree import sharing
from hybrid_nbody.nbody.kernels.cpu.tree.cells import child_bounds, deepest_level
from hybrid_nbody.nbody.kernels.cpu.tree.curve import LEVELS, Curve, curve_through, ties
from hybrid_nbody.nbody.kernels.cpu.tree.grown_tree import GrownTree, Method, grow
from hybrid_nbody.nbody.kernels.cpu.tree.layout import (
    ACCELERATIONS,
    CELLS,
    DOUBLE,
    EITHER,
    MISSING,
    MIXED,
    POTENTIALS,
    SINGLE,
    TOO_SHORT,
    Output,
    Walk,
)
from hybrid_nbody.nbody.kernels.cpu.tree.rows import (
    box_of,
    fill_rows,
    reorder_rows,
    scale_rows,
    unsort,
)
from hybrid_nbody.nbody.kernels.cpu.tree.walk import sum_forces
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.parts import Essential, Parts

SOURCES = 1 << 14
"""Sources that a cell may leave to its children at first; lists grow where they are too short."""

PAIRS_OF_A_TERM = 0.125
"""Pairs of bodies that take as long as a multiplication of two terms of expansions."""

PAIRS = {"single": SINGLE, "mixed": MIXED, "either": EITHER, "double": DOUBLE}

Vectors = NDArray[np.float64]


class TreeSums:
    """Sums over bodies by a tree of cells; see `hybrid_nbody.nbody.kernels.tree_contract.TreeSums`.

    Parameters
    ----------
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies.
    """

    def __init__(self, expansion: Expansion, eps2: float, mass: float) -> None:
        self.method = Method(expansion, eps2, mass)
        self.capacity = SOURCES
        self._order: NDArray[np.int32] | None = None
        self._own: GrownTree | None = None
        self._whole: GrownTree | None = None

    @property
    def own(self) -> GrownTree:
        """Return the tree without the cells of other ranks."""
        assert self._own is not None, "`grow` comes first"
        return self._own

    def fill_rows(
        self, position: Vectors, acceleration: Vectors, units: tuple[float, float], rows: Vectors
    ) -> None:
        """Fill the rows of bodies from their positions and last accelerations."""
        fill_rows(position, acceleration, *units, rows)

    def set_accelerations(self, sums: Vectors, unit: float, acceleration: Vectors) -> None:
        """Fill accelerations from sums and the unit of an acceleration."""
        scale_rows(sums, unit, acceleration)

    def box(self, bodies: Vectors) -> Vectors | None:
        """Return the lowest and highest coordinates; None if a number is not finite."""
        return box_of(bodies)

    def curve(self, position: Vectors, cube: Cube, words: int) -> Curve:
        """Return the order of bodies along the curve."""
        return curve_through(position, cube, words)

    def taken(self, rows: Vectors, order: NDArray[np.int32]) -> Vectors:
        """Return rows in an order."""
        taken = np.empty_like(rows)
        reorder_rows(rows, order, back=False, result=taken)
        return taken

    def put_back(self, rows: Vectors, order: NDArray[np.int32]) -> Vectors:
        """Return rows that are in an order as they were before."""
        places = np.empty_like(rows)
        reorder_rows(rows, order, back=True, result=places)
        return places

    def ties(self, curve: Curve) -> NDArray[np.bool_]:
        """Return whether a body and the next one along the curve have the same key."""
        return ties(curve)

    def child_bounds(
        self, curve: Curve, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the octants of cells of a level begin."""
        return child_bounds(first, last, level, curve.keys)

    def deepest_level(self, curve: Curve) -> int:
        """Return the level on which a cell may hold any number of bodies."""
        return deepest_level(curve.keys)

    def is_crowded(self, curve: Curve, parts: Parts) -> bool:
        """Return whether more bodies than a leaf holds share the first word of their keys.

        Those on this rank are enough: where parts share a word, their levels tell.
        """
        if parts.cells["level"].max() > LEVELS:
            return True
        keys = curve.keys[0]
        capacity = self.method.expansion.capacity
        return bool(np.any(keys[capacity:] == keys[:-capacity]))

    def grow(self, bodies: Vectors, curve: Curve, cube: Cube, parts: Parts, rank: int) -> None:
        """Grow the cells below this rank's parts and find their multipoles."""
        self._order = curve.order
        self._own = grow(self.method, parts, rank, cube, (bodies, curve))
        self._whole = self._own

    def part_rows(self) -> NDArray[Any]:
        """Return what all ranks must know of this rank's parts."""
        return sharing.part_rows(self.own)

    def set_parts(self, rows: NDArray[Any]) -> None:
        """Take the rows of all parts, and find the multipoles from there up to the root."""
        sharing.set_parts(self.own, rows)

    def target_rows(self) -> NDArray[Any]:
        """Return what other ranks must know of this rank's cells to find what these open."""
        return sharing.target_rows(self.own)

    def essential(self, rank: int, targets: NDArray[Any] | None) -> Essential:
        """Return the cells below this rank's parts that the targets of another rank open."""
        tree = self.own
        number = len(tree.cells.first)
        if targets is None:
            return sharing.essential(tree, np.ones(number, bool))
        parts = min(len(tree.parts.of(rank)), len(targets))
        roots = np.arange(number, number + parts, dtype=np.int32)
        output = self._walk(sharing.with_targets(tree, targets, parts), roots, CELLS)
        return sharing.essential(tree, output.opened[:number])

    def add(self, received: Sequence[tuple[int, Essential]]) -> None:
        """Add the cells that other ranks sent, in the place of earlier ones."""
        self._whole = sharing.grafted(self.own, received)

    def sums(self, potentials: bool) -> Vectors | None:
        """Return the sums and the work for each body; None if a cell is missing."""
        assert self._whole is not None, "`grow` comes first"
        wanted = POTENTIALS if potentials else ACCELERATIONS
        output = self._walk(self._whole, self._whole.own.astype(np.int32), wanted)
        if np.any(output.ends == MISSING):
            return None
        sizes = self.own.parts.cells["size"][self.own.own]
        work = np.ceil((output.costs + 1) / sizes)
        starts = np.append(0, np.cumsum(sizes))
        results = np.empty((starts[-1], 2 if potentials else 4))
        unsort(output.sums, 3 if potentials else 0, starts, work, self._order, results)
        return results

    def release(self) -> None:
        """Let go of the tree, so that its memory is free."""
        self._own = None
        self._whole = None
        self._order = None

    def _walk(self, tree: GrownTree, roots: NDArray[np.int32], wanted: int) -> Output:
        """Return the result of a walk, with longer lists where they were too short."""
        order = self.method.expansion.order
        cost = PAIRS_OF_A_TERM * math.comb(order + 6, 6)
        arrays = (tree.cells, tree.bodies, tree.expansions, self.method.tables)
        summed = 0 if wanted == CELLS else len(tree.bodies.acceleration)
        while True:
            output = Output(
                sums=np.empty((summed, 4)),
                ends=np.zeros(len(roots), np.int8),
                costs=np.zeros(len(roots)),
                opened=np.zeros(len(tree.cells.first), bool),
            )
            walk = Walk(self.capacity, wanted, PAIRS[self.method.expansion.pairs], cost)
            with numba.parallel_chunksize(1):
                sum_forces(roots, walk, self.method.binomials, tree.opening, *arrays, output)
            if not np.any(output.ends == TOO_SHORT):
                return output
            self.capacity *= 4
