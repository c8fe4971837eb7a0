"""The tiles by which a GPU passes over large grids: for ``red_black_tiles.cu``."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.gpu.layout import LANES, RESERVED_SHARED_MEMORY, pitch_of
from hybrid_nbody.fluid.kernels.gpu.resident_boxes import Facts

ARRAYS = 4
"""Numbers that a step reads for each cell pair of a tile: two of x and two of b."""

RANGE_OVERHEAD = 2
"""Cost of beginning a range of planes, in steps."""

LONG_WALK = 32
"""Planes that a block must walk over at least if the first of them are pushed to another rank
meanwhile: a few times as many as are pushed."""

MIN_BUSY = 0.95
"""Share of the multiprocessors that is enough, if their blocks then begin with the same planes."""


class Tiling(NamedTuple):
    """Tiles of a pass over the grid: as much as the registers of a multiprocessor hold.

    Attributes
    ----------
    rows : int
        Rows of a thread.
    warps : int
        Warps of a block.
    side : int
        Warps of a block beside each other in x; the others are above them in y.
    align : int
        The skirts along x are a multiple of this many cells of a colour: with 4 a tile writes whole
        sectors of memory, 1 wastes less.
    stages : int
        Steps for which numbers are in shared memory or on their way there. The steps that are
        unrolled, 2 K + 2 in a pass of K iterations, are a multiple of them, so that the compiler
        knows the stage of each number.
    """

    rows: int
    warps: int
    side: int
    align: int
    stages: int

    @property
    def threads(self) -> int:
        """Return the threads of a block."""
        return self.warps * LANES

    @property
    def height(self) -> int:
        """Return the rows of a tile."""
        return self.warps // self.side * self.rows

    def memory(self, dtype: DTypeLike) -> int:
        """Return the bytes of shared memory for the numbers of all stages."""
        return self.stages * ARRAYS * self.rows * self.threads * np.dtype(dtype).itemsize

    def edges(self, dtype: DTypeLike, count: int) -> int:
        """Return the bytes of shared memory for the edges of warps in a pass."""
        lanes = 2 * self.warps * self.rows if self.side > 1 else self.rows
        return 2 * 2 * count * (2 * self.warps * LANES + lanes) * np.dtype(dtype).itemsize

    def fits(self, dtype: DTypeLike, count: int, limit: int) -> bool:
        """Return whether a pass can have such tiles with a limit of shared memory, in bytes."""
        needed = self.memory(dtype) + self.edges(dtype, count)
        return (2 * count + 2) % self.stages == 0 and needed <= limit

    def macros(self, count: int) -> dict[str, int]:
        """Return the macros of ``red_black_tiles.cu`` for `count` iterations of a pass."""
        names = ("ROWS", "WARPS", "SIDE", "ALIGN", "STAGES")
        return dict(zip(names, self, strict=True)) | {"K": count}

    def number(self, slab: Slab, count: int) -> tuple[int, int]:
        """Return the tiles beside each other in x, and the strips of them in y."""
        skirt = -(-count // self.align) * self.align
        across = _tiles(slab, 0, self.side * LANES, skirt, self.align == 1)
        return across, _tiles(slab, 1, self.height, 2 * count, True)

    def cuts(self, slab: Slab, count: int, multiprocessors: int) -> np.ndarray:
        """Return how the planes of all strips, one after another, are divided among rows of blocks.

        A row computes 2 `count` planes beyond each end of its part of a strip, too; all rows take
        about the same time.

        Parameters
        ----------
        slab : Slab
            The planes of this rank.
        count : int
            Iterations of a pass.
        multiprocessors : int
            Multiprocessors of the GPU; each has one block at most.

        Returns
        -------
        (rows + 1,) array of int32
            The first plane of each row, and the end of the last.
        """
        return np.array(self._divided(slab, count, multiprocessors)[0], "i4")

    def cost(self, slab: Slab, count: int, multiprocessors: int) -> float:
        """Return about how long a pass over float32 takes, in units that are the same for all."""
        _, steps = self._divided(slab, count, multiprocessors)
        cost = steps * (STEP_COST + self.height)
        if self.rows > TALL_ROWS:
            cost *= TALL_COST * (1.0 + TALL_SPILL * _spill(slab, 256))
        if self.align < ALIGNED:
            cost *= SPLIT_COSTS[self.align] * (1.0 + SPLIT_SPILL * _spill(slab, 128))
        return cost * LEVEL_GAIN if self.level(slab, count, multiprocessors) else cost

    def level(self, slab: Slab, count: int, multiprocessors: int) -> bool:
        """Return whether all blocks walk side by side, and share cells in the cache."""
        return (len(self.cuts(slab, count, multiprocessors)) - 1) % self.number(slab, count)[1] == 0

    def walk(self, slab: Slab, count: int, multiprocessors: int) -> int:
        """Return the fewest planes of a strip that a row of blocks passes over."""
        strips = np.arange(self.number(slab, count)[1]) * slab.planes
        return int(np.diff(np.union1d(self.cuts(slab, count, multiprocessors), strips)).min())

    def pushers(self, slab: Slab, count: int, multiprocessors: int) -> int:
        """Return how many multiprocessors without a tile push planes to the rank below in a pass.

        It is worth while if all tiles walk over many planes: they complete the first of them early.
        """
        no_rank_below = slab.complete or slab.walls[0]
        if no_rank_below or not self.level(slab, count, multiprocessors):
            return 0
        if self.walk(slab, count, multiprocessors) < LONG_WALK:
            return 0
        across = self.number(slab, count)[0]
        rows = len(self.cuts(slab, count, multiprocessors)) - 1
        return min(across, max(0, multiprocessors - across * rows))

    def _divided(self, slab: Slab, count: int, multiprocessors: int) -> tuple[list[int], int]:
        """Return the cuts, and the most steps of a row of blocks."""
        across, strips = self.number(slab, count)
        rows = max(1, min(multiprocessors // across, strips * slab.planes))
        together = rows - rows % strips  # blocks above each other begin with the same plane
        rows = together if together >= MIN_BUSY * rows else rows
        beyond = 4 * count + RANGE_OVERHEAD
        steps = -(-strips * slab.planes // rows)
        while len(cuts := _cuts(strips, slab.planes, steps, beyond)) > rows + 1:
            steps += 1
        return cuts, steps


def _cuts(strips: int, planes: int, steps: int, beyond: int) -> list[int]:
    """Return the cuts between rows of blocks of `steps` steps each.

    Each part of a strip takes as many steps as it has planes, and `beyond` more.
    """
    cuts = [0]
    cut = 0
    while cut < strips * planes:
        left = max(steps, beyond + 1)
        while left > beyond and cut < strips * planes:
            part = min(left - beyond, planes - cut % planes)
            cut = cut + part
            left = left - part - beyond
        cuts.append(cut)
    return cuts


def _plane(slab: Slab) -> int:
    """Return the cells of a plane of z."""
    return slab.cells[0] * slab.cells[1]


def _row_bytes(slab: Slab) -> int:
    """Return the bytes of a row of a colour in float32."""
    return pitch_of(slab, "f4") * np.dtype("f4").itemsize


def _spill(slab: Slab, line: int) -> float:
    """Return the doublings of a plane's edges beyond what the cache holds.

    It is 0 where rows begin at different places of a line of memory.
    """
    if _row_bytes(slab) % line:
        return 0.0
    return max(0.0, 0.5 * math.log2(_plane(slab) / CACHED_PLANE))


def _tiles(slab: Slab, axis: int, width: int, skirt: int, more: bool) -> int:
    """Return the number of tiles along an axis; at walls they may have `more` cells."""
    size = (slab.half, slab.cells[1])[axis]
    periodic = slab.periodic[axis]
    if size == width or (not periodic and size < width):
        return 1
    beyond = skirt if more and not periodic else 0
    return -(-(size - 2 * beyond) // (width - 2 * skirt))


# --- the fastest tiles ---

# The constants of `Tiling.cost` fit passes of two iterations over 45 cubes of 128 to 1024 cells,
# even and odd, on an H200 (`bench fluid --parts edges`): the tiles chosen by them run at 0.99 of
# the best of all that were tried in the mean, and at 0.95 at least.

STEP_COST = 28.0
"""What a step takes beside its rows, in rows: barriers, and memory that is waited for."""

TALL_ROWS = 4
"""Threads with more rows have few registers left."""

TALL_COST = 1.13
"""Relative time of a step of theirs."""

ALIGNED = 4
"""Cells of a sector of memory that a colour's tile begins at; others share sectors."""

SPLIT_COSTS = {1: 1.12, 2: 1.05, 4: 1.0}
"""Relative time of a step where tiles share sectors, by `Tiling.align`."""

LEVEL_GAIN = 0.94
"""Relative time of a step where all blocks walk side by side."""

CACHED_PLANE = 512 * 512
"""Cells of the largest planes of which the second-level cache holds all that blocks work on."""

TALL_SPILL = 0.3
SPLIT_SPILL = 0.4
"""How much longer a step takes for each doubling of a plane's edges beyond that, where all rows
begin at the same place of a line of memory, and so meet in the same parts of it."""

HEIGHTS = (12, 11, 10, 9, 8)
LARGE_GRIDS = (
    *(Tiling(4, warps, 1, align, 2) for align in (2, 4) for warps in HEIGHTS),
    Tiling(8, 8, 1, 4, 2),
)
SMALL_GRIDS = *LARGE_GRIDS, *(Tiling(4, warps, 1, 1, 2) for warps in HEIGHTS)
TALL_AND_NARROW = Tiling(8, 8, 1, 2, 2)
PERIODIC_GRIDS = Tiling(4, 12, 1, 2, 2), Tiling(4, 12, 1, 4, 2)
PERIODIC_LINES = Tiling(4, 12, 1, 2, 6), Tiling(4, 12, 1, 4, 2)
LONG_NUMBERS = Tiling(4, 8, 1, 2, 2), Tiling(4, 8, 1, 4, 2)
"""Tiles that were the fastest somewhere: for planes beyond the cache, within it (the third ones
where rows are no multiple of 256 bytes long), periodic in y (the second ones where rows are a
multiple of 512 bytes long), and for float64."""

SMALL_TILES = Tiling(4, 8, 1, 4, 2), Tiling(4, 4, 1, 4, 2)
"""For GPUs with little shared memory."""


def tiling_of(slab: Slab, dtype: DTypeLike, count: int, facts: Facts) -> Tiling | None:
    """Return the tiles that were fastest on an H200 for such passes, if they fit.

    Else smaller ones, or None if none fit into the GPU's shared memory; for a single iteration some
    always do.

    Parameters
    ----------
    slab : Slab
        The planes of this rank.
    dtype : dtype
        The working type.
    count : int
        Iterations of a pass.
    facts : dict
        The properties of the GPU, of `hybrid_nbody.backends.gpu.GpuBackend.facts`.
    """
    best = _fastest(slab, np.dtype(dtype), count, facts["multiprocessors"])
    limit = facts["shared_memory_per_block_limit"] - RESERVED_SHARED_MEMORY
    tilings = *(best._replace(stages=stages) for stages in range(best.stages, 1, -1)), *SMALL_TILES
    return next((some for some in tilings if some.fits(dtype, count, limit)), None)


def _fastest(slab: Slab, dtype: np.dtype, count: int, multiprocessors: int) -> Tiling:
    """Return the tiles that were fastest on an H200."""
    if count == 1:
        return _fastest_for_one(slab, dtype)
    tilings = _worth_trying(slab, dtype)
    costs = [tiling.cost(slab, count, multiprocessors) for tiling in tilings]
    return tilings[int(np.argmin(costs))]


def _worth_trying(slab: Slab, dtype: np.dtype) -> Sequence[Tiling]:
    """Return the tiles among which the fastest is, for passes of several iterations."""
    if dtype.itemsize > 4:
        return LONG_NUMBERS
    if slab.periodic[1]:
        return PERIODIC_GRIDS if _row_bytes(slab) % 512 else PERIODIC_LINES
    if _plane(slab) > CACHED_PLANE:
        return LARGE_GRIDS
    return (*SMALL_GRIDS, TALL_AND_NARROW) if _row_bytes(slab) % 256 else SMALL_GRIDS


def _fastest_for_one(slab: Slab, dtype: np.dtype) -> Tiling:
    """Return the tiles that were fastest for a pass of one iteration."""
    if dtype.itemsize > 4:
        return Tiling(4, 12, 1, 4, 2)
    warps = -(-slab.half // LANES)
    if warps in (4, 7, 8):  # a block takes whole rows
        return Tiling(12 if any(slab.periodic[:2]) else 16, 8, 4 if warps == 4 else 8, 4, 2)
    return Tiling(4, 12, 1, 4, 4)
