"""Gravity by a tree on the threads of one rank."""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.nbody.kernels.cpu.tree.cells import Cells, make_cells
from hybrid_nbody.nbody.kernels.cpu.tree.curve import LEVELS, Cube, cube_around, fill_keys, sort
from hybrid_nbody.nbody.kernels.cpu.tree.layout import (
    EDGE,
    SUMMARY,
    Expansions,
    Opening,
    Output,
    SortedBodies,
    Tables,
    Walk,
    pitch_of,
)
from hybrid_nbody.nbody.kernels.cpu.tree.upward import find_multipoles
from hybrid_nbody.nbody.kernels.cpu.tree.walk import sum_forces
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.multi_indices import Indices, indices_of

PARTS = 512
"""A part of the bodies that a thread takes holds at most this share of them, or is a leaf."""

SOURCES = 1 << 14
"""Sources that a cell may leave to its children at first; lists grow where they are too short."""

ANGLE = 1.0
"""Largest ratio of two cells' radii to their distance: expansions diverge beyond it."""

FIRST_ANGLE = 0.6
"""The same as long as no accelerations are known to which errors could be compared."""

Vectors = NDArray[np.float64]


class TreeSums:
    """Sums over all bodies by a tree of cells.

    Parameters
    ----------
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : (N,) array of float64
        In units of the kernels.
    """

    def __init__(self, expansion: Expansion, eps2: float, mass: NDArray[np.float64]) -> None:
        self.expansion = expansion
        self.eps2 = eps2
        self.mass = mass
        self.dtype = np.float64 if expansion.double else np.float32
        indices = indices_of(expansion.order)
        self.terms = len(indices.all)
        self.tables = _tables(indices)
        self.binomials = tuple(map(float, self.tables.binomials))
        self.order = np.arange(len(mass), dtype=np.int32)
        self.capacity = SOURCES

    def accelerations(self, position: Vectors, last: NDArray[np.float64] | None,
                      share: slice) -> Vectors:  # fmt: skip
        """Return sums of m d / r^3 at the bodies of a share of the parts, zero at the others.

        Parameters
        ----------
        position : (N, 3) array of float64
            In units of the kernels.
        last : (N,) array of float64 or None
            Lengths of the last accelerations; None where there are none yet.
        share : slice
            Of the parts.

        Returns
        -------
        (N, 3) array of float64
        """
        return np.ascontiguousarray(self._sums(position, last, share, potentials=False)[:, :3])

    def potentials(
        self, position: Vectors, last: NDArray[np.float64], share: slice
    ) -> NDArray[np.float64]:
        """Return sums of m / r, (N,): parameters as in `accelerations`."""
        return np.ascontiguousarray(self._sums(position, last, share, potentials=True)[:, 3])

    def _sums(
        self,
        position: Vectors,
        last: NDArray[np.float64] | None,
        share: slice,
        potentials: bool,
    ) -> Vectors:
        if not np.isfinite(position).all():  # the guard names the body
            return np.full((len(position), 4), np.nan)
        cube = cube_around(position.min(axis=0), position.max(axis=0))
        cells = self._cells(position, cube)
        bodies = self._sorted(position, last)
        expansions = self._expansions(cells, bodies, cube)
        opening = Opening(self.expansion.error, ANGLE, self.eps2)
        if last is None:
            opening = Opening(math.inf, FIRST_ANGLE, self.eps2)
        roots = np.ascontiguousarray(_parts(cells)[share])
        sums = np.zeros((len(position), 4))
        sources = (self.binomials, opening, cells, bodies, expansions, self.tables)
        self._walk(roots, potentials, sources, sums)
        result = np.empty_like(sums)
        result[self.order] = sums + 0.0  # -0.0 would be lost where ranks add zeros
        return result

    def _walk(
        self, roots: NDArray[np.int32], potentials: bool, sources: tuple, sums: Vectors
    ) -> None:
        """Fill the sums below some cells, in longer lists where they were too short."""
        while True:
            complete = np.ones(len(roots), bool)
            with numba.parallel_chunksize(1):
                walk = Walk(self.capacity, potentials)
                sum_forces(roots, walk, *sources, Output(sums, complete))
            if complete.all():
                return
            self.capacity *= 4

    def _cells(self, position: Vectors, cube: Cube) -> Cells:
        """Sort the bodies along the curve, and return their cells."""
        keys = np.empty(len(position), np.uint64)
        fill_keys(position, cube, 0, keys)
        self.order = np.arange(len(position), dtype=np.int32)
        sort(keys, self.order)
        cells = make_cells(keys, None, self.expansion.capacity)
        deepest = slice(cells.starts[-2], None)
        full = cells.last[deepest] - cells.first[deepest] > self.expansion.capacity
        if len(cells.starts) - 2 < LEVELS or not full.any():
            return cells
        return self._deep_cells(position, cube)

    def _deep_cells(self, position: Vectors, cube: Cube) -> Cells:
        """Return cells of twice as many levels: some bodies share the first word of their key."""
        lower = np.empty(len(position), np.uint64)
        fill_keys(position, cube, 1, lower)
        self.order = np.arange(len(position), dtype=np.int32)
        sort(lower, self.order)
        keys = np.empty(len(position), np.uint64)
        fill_keys(position[self.order], cube, 0, keys)
        rows = np.arange(len(position), dtype=np.int32)
        sort(keys, rows)
        self.order = self.order[rows]
        return make_cells(keys, lower[rows], self.expansion.capacity)

    def _sorted(self, position: Vectors, last: NDArray[np.float64] | None) -> SortedBodies:
        """Return the bodies along the curve."""
        number = len(position)
        known = np.ones(number) if last is None else last[self.order]
        return SortedBodies(
            position=position[self.order],
            mass=self.mass[self.order],
            acceleration=known,
            offset=np.zeros((3, number + LANES), self.dtype),
            weight=np.zeros(number + LANES, self.dtype),
        )

    def _expansions(self, cells: Cells, bodies: SortedBodies, cube: Cube) -> Expansions:
        """Return the multipoles of all cells."""
        number = len(cells.first)
        expansions = Expansions(
            centre=np.empty((number + 1, 4)),
            box=np.empty((number, 6)),
            summary=np.empty((number + 1, SUMMARY), np.float32),
            multipole=np.empty((number + 1) * pitch_of(self.terms), self.dtype),
            tolerance=np.empty(number),
            local=np.empty((number, self.terms)),
        )
        _clear_behind(expansions, cube, pitch_of(self.terms))
        for level in reversed(range(len(cells.starts) - 1)):
            find_multipoles(level, cube.edge, cells, bodies, expansions, self.tables)
        return expansions


def _clear_behind(expansions: Expansions, cube: Cube, pitch: int) -> None:
    """Fill the row behind the last cell: no mass, and as far from all bodies as they extend."""
    expansions.centre[-1] = (cube.x - cube.edge, cube.y, cube.z, 0)
    expansions.summary[-1] = 0
    expansions.summary[-1, EDGE] = cube.edge
    expansions.multipole[-pitch:] = 0


def _parts(cells: Cells) -> NDArray[np.int32]:
    """Return the highest cells with a small share of the bodies each, or leaves."""
    size = cells.last - cells.first
    large = (size > size[0] // PARTS) & (cells.children > 0)
    below = np.zeros(len(size), bool)
    below[0] = True
    for cell in np.flatnonzero(large):
        below[cells.child[cell] : cells.child[cell] + cells.children[cell]] = True
    return np.flatnonzero(below & ~large).astype(np.int32)


def _tables(indices: Indices) -> Tables:
    """Return the tables of an order as compiled loops read them."""
    return Tables(
        orders=indices.orders,
        inverses=1 / indices.factorials,
        halves=np.exp2(-indices.orders.astype(float)),
        parent=indices.parent,
        axis=indices.axis,
        source=indices.shift.source,
        power=indices.shift.power,
        starts=indices.shift.starts,
        gradient=indices.gradient,
        norms=indices.norms,
        binomials=np.array([math.comb(indices.order, k) for k in range(indices.order + 1)], float),
    )
