"""Gravity by a tree on GPUs: cells, expansions and sums are found there."""

import math

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.device_tree import Wanted
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.gpu.tree.cells import MOST_WORDS, CellMaker, Curve, Starts
from hybrid_nbody.nbody.kernels.gpu.tree.launches import Launches
from hybrid_nbody.nbody.kernels.gpu.tree.memory import LEVELS, row_type
from hybrid_nbody.nbody.kernels.parts import Parts
from hybrid_nbody.nbody.kernels.share import Numbering, Share, numbering_of

PAIRS_OF_A_TERM = 0.06
"""Pairs of bodies that take as long as a multiplication of two terms of expansions."""


class DeviceTree:
    """Sums by a tree on one GPU; see `hybrid_nbody.nbody.kernels.device_tree.DeviceTree`.

    Parameters
    ----------
    backend : GpuBackend
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies.
    """

    levels = LEVELS + 1

    def __init__(self, backend: GpuBackend, expansion: Expansion, eps2: float, mass: float) -> None:
        self.backend = backend
        self.expansion = expansion
        self.launches = Launches(backend, expansion, unsoftened=eps2 == 0)
        self.memory = self.launches.memory
        self.maker = CellMaker(backend, self.launches, expansion, eps2, mass)
        self._bodies: Array = None
        self._curve = Curve(None, None)
        self._cube = Cube(0, 0, 0, 1)
        self._share: Share | None = None
        self._starts = Starts(None, None)
        self._numbering: Numbering | None = None

    # ---- Along the curve -------------------------------------------------------------------------

    def box(self, bodies: Array) -> NDArray[np.float64]:
        """Return the lowest and highest coordinates of one or more bodies, (2, 3), on the host."""
        return self.maker.box(bodies)

    def curve(self, bodies: Array, cube: Cube, words: int) -> Curve:
        """Return the order of bodies along the curve; their keys have one word."""
        return self.maker.curve(bodies, cube)

    def deepest_level(self, curve: Curve) -> int:
        """Return the level on which a cell may hold any number of bodies."""
        return LEVELS

    def eighths(
        self, curve: Curve, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the eighths of cells of a level begin."""
        return self.maker.eighths(curve, first, last, level)

    def is_crowded(self, curve: Curve, parts: Parts) -> bool:
        """Return that one word of the keys will do: cells on the last level hold any number."""
        return False

    # ---- Cells -----------------------------------------------------------------------------------

    def count_cells(
        self, bodies: Array, curve: Curve, cube: Cube, share: Share
    ) -> NDArray[np.int64]:
        """Return how many cells of each level start at the bodies of a share."""
        self._bodies = bodies
        self._curve = curve
        self._cube = cube
        self._share = share
        self._starts, histogram = self.maker.starts(bodies, curve, cube, share)
        counts: NDArray[np.int64] = self.backend.download(histogram).astype(np.int64)
        return counts

    def make_cells(self, counts: NDArray[np.int64]) -> None:
        """Make the cells of this rank, and find the multipoles of those that are its alone."""
        assert self._share is not None, "`count_cells` comes first"
        numbering = numbering_of(self._share, counts)
        self._numbering = numbering
        self.maker.make(self._bodies, self._curve, self._cube, self._starts, numbering)
        argument = self.memory.argument
        if self._share.alone:
            self.launches.on_bodies("link_cells", numbering.total, argument)
        else:
            self._link_whole_cells(numbering)
        self.launches.on_own_cells("upward", "find_leaf_multipoles")
        for level in reversed(range(numbering.depth)):
            number = int(numbering.own_counts[level])
            first = np.int32(numbering.own_first[level])
            self.launches.on_parents("find_parent_multipoles", number, first)

    def _link_whole_cells(self, numbering: Numbering) -> None:
        """Tell the cells that are this rank's alone of their children."""
        for level in range(1, numbering.depth + 1):
            number = int(numbering.own_counts[level])
            bounds = (np.int32(numbering.own_first[level]), np.int32(number))
            self.launches.on_bodies("link_whole_cells", number, self.memory.argument, *bounds)

    @property
    def numbering(self) -> Numbering:
        """Return the numbers of the cells."""
        assert self._numbering is not None, "`make_cells` comes first"
        return self._numbering

    def cell_rows(self) -> Array:
        """Return the cells that start on this rank, a row of bytes each."""
        made = int(self.numbering.made[self.numbering.share.rank])
        width = row_type(self.expansion).itemsize
        rows = self.backend.xp.empty((made, width), "u1")
        self.launches.on_own_cells("sharing", "pack_cells", rows)
        return rows

    def add_cells(self, rows: Array) -> None:
        """Take the cells of the other ranks; find the multipoles of those that ranks share."""
        argument = self.memory.argument
        self.launches.on_rows("unpack_cells", len(rows), argument, np.int32(len(rows)), rows)
        self.launches.on_bodies("link_cells", self.numbering.total, argument)
        for level in reversed(range(int(self.numbering.share.shared.max()) + 1)):
            cells = self.numbering.shared(level).astype(np.int32)
            on_device = self.backend.upload(cells)
            self.launches.on_parents("find_shared_multipoles", len(cells), on_device)

    # ---- Sums ------------------------------------------------------------------------------------

    def find_sources(self) -> None:
        """Find the sources of every cell, as far as there is memory for their lists."""
        self.memory.arrays["used"].fill(0)
        for level in range(self.numbering.depth + 1):
            self.launches.on_level("walk", "find_sources", self.numbering, level)

    def found_all(self) -> bool:
        """Return whether there was memory for all lists; provide it if not.

        Raises
        ------
        InputError
            If lists are longer than numbers of four bytes can tell.
        """
        wanted = int(self.backend.download(self.memory.arrays["used"])[0])
        if wanted > MOST_WORDS:
            raise InputError("gravity.solver: fmm: too many bodies for one GPU; take fewer")
        fits = wanted <= self.memory.words
        if not fits:
            self.memory.fit_pool(min(MOST_WORDS, wanted + wanted // 8))
            self.memory.send()
        return fits

    def wanted(self) -> Wanted:
        """Return the leaves of other ranks whose bodies are nearby."""
        xp = self.backend.xp
        flags = self.backend.zeros(self.numbering.total, "u1")
        self.launches.on_own_cells("sharing", "mark_nearby", flags)
        leaves = xp.flatnonzero(flags)
        first = self.memory.arrays["first"][leaves].astype("i8")
        along = xp.argsort(first)
        leaves = leaves[along]
        starts = self.backend.upload(self.numbering.share.starts[1:])
        ends = xp.searchsorted(first[along], starts)
        behind = self._bodies_before(leaves)[ends]
        ends, behind = self.backend.download(xp.stack([ends, behind]))
        counts = np.diff(ends, prepend=0)
        return Wanted(leaves.astype("i4"), counts, np.diff(behind, prepend=0))

    def _bodies_before(self, leaves: Array) -> Array:
        """Return the number of bodies of the leaves before each one, and of all, (K + 1,)."""
        arrays = self.memory.arrays
        before = self.backend.zeros(len(leaves) + 1, "i8")
        sizes = arrays["last"][leaves] - arrays["first"][leaves]
        self.backend.xp.cumsum(sizes, out=before[1:])
        return before

    def bodies_of(self, leaves: Array, number: int) -> Array:
        """Return a number of bodies: those of leaves of this rank, one leaf after another."""
        bodies = self.backend.xp.empty((number, 4), self.memory.real)
        offset = self._bodies_before(leaves).astype("i4")
        sizes = (self.memory.argument, np.int32(len(leaves)))
        self.launches.on_rows("copy_bodies", len(leaves), *sizes, leaves, offset, bodies)
        return bodies

    def place_for(self, leaves: Array, number: int) -> Array:
        """Return where a number of bodies have to be put: those of leaves of other ranks."""
        own = self.numbering.share.number
        self.memory.fit_near(number)
        self.memory.arrays["place"][leaves] = own + self._bodies_before(leaves)[:-1]
        self.memory.send()
        return self.memory.arrays["near"][own : own + number]

    def add_far_field(self, potentials: bool) -> None:
        """Find the sums over distant sources."""
        self.launches.on_own_cells("far_field", "add_far_field")
        for level in range(1, self.numbering.depth + 1):
            self.launches.on_level("far_field", "shift_to_children", self.numbering, level)
        self.launches.on_own_cells("far_field", f"evaluate_{_name(potentials)}")

    def sums(self, potentials: bool) -> Array:
        """Add the sums over nearby bodies; return the sums in the order that bodies came in."""
        self.launches.on_blocks("near_field", f"add_nearby_{_name(potentials)}")
        return self._unsorted(self.memory.arrays["sums"], 1 if potentials else 3)

    def work(self) -> Array:
        """Return the work for each body, (n, 1), in the order that bodies came in."""
        work = self.backend.xp.empty(self.numbering.share.number, "f8")
        pairs = np.float64(PAIRS_OF_A_TERM * math.comb(self.expansion.order + 6, 6))
        self.launches.on_own_cells("sharing", "count_work", pairs, work)
        return self._unsorted(work, 1)

    def _unsorted(self, rows: Array, columns: int) -> Array:
        """Return rows along the curve in the order that bodies came in."""
        number = self.numbering.share.number
        result = self.backend.xp.empty((number, columns), "f8")
        sizes = (np.int32(number), np.int32(columns))
        self.launches.on_bodies("unsort", number, *sizes, rows, self._curve.order, result)
        return result


def _name(potentials: bool) -> str:
    """Return what kernels call the sums."""
    return "potentials" if potentials else "accelerations"
