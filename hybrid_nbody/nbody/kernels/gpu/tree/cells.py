"""From bodies to the cells of a tree on one GPU."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.kernels.expansions import MANY, Expansion, limits_of, width_of_cells
from hybrid_nbody.nbody.kernels.gpu.tree.launches import THREADS, Launches
from hybrid_nbody.nbody.kernels.gpu.tree.memory import LEVELS
from hybrid_nbody.nbody.kernels.share import Numbering, Share

BOXES = 512
"""Most blocks that find the box of some bodies each."""

WORDS_OF_A_CELL = 250
"""Length of the lists of a cell, about; their memory grows where it is too small."""

MOST_WORDS = 2**31 - 1


class Curve(NamedTuple):
    """N bodies along the curve.

    Attributes
    ----------
    keys : (N,) array of uint64
    order : (N,) array of int64
        Their numbers.
    """

    keys: Array
    order: Array


class Starts(NamedTuple):
    """The cells that start at the bodies of this rank.

    Attributes
    ----------
    offset : (N + 1,) array of int32
        How many start at the bodies before each one.
    leaf : (N,) array of uint8
        The level of each body's leaf.
    """

    offset: Array
    leaf: Array


class CellMaker:
    """Makes the cells of a tree.

    Parameters
    ----------
    backend : GpuBackend
    launches : Launches
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies.
    """

    def __init__(
        self,
        backend: GpuBackend,
        launches: Launches,
        expansion: Expansion,
        eps2: float,
        mass: float,
    ) -> None:
        self.backend = backend
        self.launches = launches
        self.memory = launches.memory
        self.expansion = expansion
        self.eps2 = eps2
        self.mass = mass

    # ---- Along the curve -------------------------------------------------------------------------

    def box(self, bodies: Array) -> NDArray[np.float64]:
        """Return the lowest and highest coordinates of one or more bodies, (2, 3), on the host."""
        number, columns = bodies.shape
        corners = self.backend.xp.empty((min(BOXES, -(-number // THREADS)), 2, 3), "f8")
        sizes = (np.int32(number), np.int32(columns))
        self.launches.on_bodies("find_box", THREADS * len(corners), *sizes, bodies, corners)
        some = self.backend.download(corners)
        return np.stack([some[:, 0].min(axis=0), some[:, 1].max(axis=0)])

    def curve(self, bodies: Array, cube: Cube) -> Curve:
        """Return the order of bodies along the curve; those with the same key stay in theirs."""
        number, columns = bodies.shape
        keys = self.backend.xp.empty(number, "u8")
        scale = np.float64(2.0**LEVELS / cube.edge)
        corner = (np.float64(cube.x), np.float64(cube.y), np.float64(cube.z))
        sizes = (np.int32(number), np.int32(columns))
        self.launches.on_bodies("find_keys", number, *sizes, bodies, *corner, scale, keys)
        order = self.backend.xp.argsort(keys, kind="stable")
        return Curve(keys[order], order)

    def eighths(
        self, curve: Curve, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the eighths of C cells of a level begin, and where they end, (C, 9)."""
        number = len(first)
        bounds = self.backend.xp.empty((number, 9), "i4")
        cells = self.backend.upload(np.stack([first, last]))
        arguments = (curve.keys, cells[0], cells[1], np.int32(level), bounds)
        size = np.int32(number)
        self.launches.on_bodies("find_eighths", number, size, *arguments, module="sharing")
        found: NDArray[np.int32] = self.backend.download(bounds)
        return found

    # ---- Cells -----------------------------------------------------------------------------------

    def starts(self, bodies: Array, curve: Curve, cube: Cube, share: Share) -> tuple[Starts, Array]:
        """Return the cells that start at the bodies of a share, and how many on each level."""
        xp = self.backend.xp
        number, columns = bodies.shape
        starts = xp.empty(number, "i4")
        leaf = xp.empty(number, "u1")
        histogram = self.backend.zeros(LEVELS + 1, "i4")
        rows = (bodies, np.int32(columns), curve.order)
        reach = np.float64(self._reach(share.total, cube, known=columns > 4))
        divided = (reach, self._levels_of_parts(share), np.int32(share.shared[share.rank]))
        arguments = (*rows, *divided, starts, leaf, histogram)
        self.launches.on_bodies("find_levels", number, np.int32(number), curve.keys, *arguments)
        offset = self.backend.zeros(number + 1, "i4")
        xp.cumsum(starts, out=offset[1:])
        return Starts(offset, leaf), histogram

    def _levels_of_parts(self, share: Share) -> Array:
        """Return the level of the part that each body lies in; 0 where there are no parts."""
        if len(share.part_ends) == 0:
            return self.backend.zeros(share.number, "u1")
        xp = self.backend.xp
        ends = self.backend.upload(share.part_ends)
        levels = self.backend.upload(share.part_levels.astype(np.uint8))
        return levels[xp.searchsorted(ends, xp.arange(share.number), side="right")]

    def _reach(self, number: int, cube: Cube, known: bool) -> float:
        """Return the edge of the root over the width of cells with an acceleration of 1."""
        error = limits_of(self.expansion, known).error
        width = width_of_cells(self.expansion, error, self.mass)
        return cube.edge / width if number > MANY else 0.0

    def make(
        self, bodies: Array, curve: Curve, cube: Cube, starts: Starts, numbering: Numbering
    ) -> None:
        """Fill the cells that start at the bodies of this rank, and these along the curve."""
        memory = self.memory
        number, columns = bodies.shape
        memory.fit(numbering)
        memory.set_numbers(cube.edge, self.eps2, *limits_of(self.expansion, known=columns > 4))
        memory.set(keys=curve.keys)
        memory.fit_pool(min(MOST_WORDS, WORDS_OF_A_CELL * memory.own))
        memory.send()
        self._disown(numbering)
        numbers = self._numbers_of_cells(starts, number, int(numbering.made[numbering.share.rank]))
        on_bodies = self.launches.on_bodies
        on_bodies("make_cells", number, memory.argument, starts.offset, starts.leaf, numbers)
        order = (np.int32(columns), bodies, curve.order)
        on_bodies("sort_bodies", number, memory.argument, *order)

    def _disown(self, numbering: Numbering) -> None:
        """Mark the cells that start on other ranks until these have told of them."""
        some = numbering.started_before
        if len(some):
            self.memory.arrays["first"][self.backend.upload(some)] = -1

    def _numbers_of_cells(self, starts: Starts, number: int, cells: int) -> Array:
        """Return the numbers of cells in the order of the bodies they start at."""
        xp = self.backend.xp
        levels = xp.empty(cells, "u1")
        on_bodies = self.launches.on_bodies
        on_bodies("list_levels", number, np.int32(number), starts.offset, starts.leaf, levels)
        numbers = xp.empty(cells, "i4")
        order = xp.argsort(levels, kind="stable")
        size = np.int32(cells)
        on_bodies("number_cells", cells, self.memory.argument, size, levels, order, numbers)
        return numbers
