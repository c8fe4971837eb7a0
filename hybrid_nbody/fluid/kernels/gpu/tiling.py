"""The tiles by which a GPU passes over large grids: for ``red_black_tiles.cu``."""

from typing import NamedTuple

import numpy as np

from hybrid_nbody.fluid.kernels.gpu.layout import LANES, OWN_SHARED_MEMORY

ARRAYS = 4
"""Numbers that a step takes for each cell pair of a tile: two of x and two of b."""

MANY_CELLS = 20_000_000
"""Grids with more gain from tiles that begin with a sector of memory; in smaller ones, narrower
skirts are better."""

BEFORE_A_RANGE = 2
"""Steps that the beginning of a range of planes takes as long as."""

LONG_WALK = 32
"""Planes of a walk, at least, of which the first are shown to another rank while it goes on: a few
times as many as are shown."""

MOST_IDLE = 0.95
"""Share of the multiprocessors that are enough, if their blocks then begin with the same planes."""


class Tiling(NamedTuple):
    """Tiles of a pass over the grid: as much as the registers of a multiprocessor hold.

    Attributes
    ----------
    rows : int
        Of a thread.
    warps : int
        Of a block.
    side : int
        Warps of a block beside each other in x; the others are above them in y.
    align : int
        Cells of a colour that the skirts along x are a multiple of: with 4 a tile writes whole
        sectors of memory, 1 wastes less.
    stages : int
        Steps for which numbers wait or are under way; those that are unrolled, 2 K + 2 in a pass of
        K iterations, are a multiple of them, so that the compiler knows where each number waits.
    """

    rows: int
    warps: int
    side: int
    align: int
    stages: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps * LANES

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return self.warps // self.side * self.rows

    def memory(self, dtype) -> int:
        """Return the bytes of shared memory for the numbers that wait."""
        return self.stages * ARRAYS * self.rows * self.threads * np.dtype(dtype).itemsize

    def edges(self, dtype, count: int) -> int:
        """Return the bytes of shared memory for what the warps show each other in a pass of `count` iterations."""
        lanes = 2 * self.warps * self.rows if self.side > 1 else self.rows
        return 2 * 2 * count * (2 * self.warps * LANES + lanes) * np.dtype(dtype).itemsize

    def fits(self, dtype, count: int, limit: int) -> bool:
        """Return whether a pass of `count` iterations can have such tiles in so many bytes of shared memory."""
        return (2 * count + 2) % self.stages == 0 and self.memory(dtype) + self.edges(
            dtype, count
        ) <= limit

    def macros(self, count: int) -> dict[str, int]:
        """Return the macros of ``red_black_tiles.cu`` for `count` iterations of a pass."""
        return dict(zip(("ROWS", "WARPS", "SIDE", "ALIGN", "STAGES"), self, strict=True)) | {
            "K": count
        }

    def number(self, slab, count: int) -> tuple[int, int]:
        """Return the tiles beside each other in x, and the strips of them in y, for `count` iterations of a pass."""
        skirt = -(-count // self.align) * self.align
        across = _tiles(slab, 0, self.side * LANES, skirt, self.align == 1)
        return across, _tiles(slab, 1, self.height, 2 * count, True)

    def cuts(self, slab, count: int, multiprocessors: int) -> np.ndarray:
        """Return how the planes of all strips, one after another, are shared out among rows of blocks.

        A row computes 2 `count` planes beyond each end of its part of a strip, too; all rows take
        about as long.

        Parameters
        ----------
        slab : Slab
            The planes of this rank.
        count : int
            Iterations of a pass.
        multiprocessors : int
            Of the GPU; each has one block at most.

        Returns
        -------
        (rows + 1,) array of int32
            The first plane of each row, and the end of the last.
        """
        return np.array(self._shared_out(slab, count, multiprocessors)[0], "i4")

    def cost(self, slab, count: int, multiprocessors: int) -> float:
        """Return about how long a pass takes, in units that are the same for all tiles."""
        return (
            self._shared_out(slab, count, multiprocessors)[1] * self.height * ROW_COSTS[self.rows]
        )

    def level(self, slab, count: int, multiprocessors: int) -> bool:
        """Return whether all blocks walk side by side, and find what they share in the cache."""
        return (len(self.cuts(slab, count, multiprocessors)) - 1) % self.number(slab, count)[1] == 0

    def walk(self, slab, count: int, multiprocessors: int) -> int:
        """Return the fewest planes of a strip that a row of blocks passes over."""
        strips = np.arange(self.number(slab, count)[1]) * slab.planes
        return int(np.diff(np.union1d(self.cuts(slab, count, multiprocessors), strips)).min())

    def helpers(self, slab, count: int, multiprocessors: int) -> int:
        """Return how many multiprocessors show planes to the rank below during a pass: those that have no tile.

        It is worth while if all tiles walk over many planes: they complete the first of them early.
        """
        nobody_below = slab.complete or slab.walls[0]
        if nobody_below or not self.level(slab, count, multiprocessors):
            return 0
        if self.walk(slab, count, multiprocessors) < LONG_WALK:
            return 0
        across = self.number(slab, count)[0]
        rows = len(self.cuts(slab, count, multiprocessors)) - 1
        return min(across, max(0, multiprocessors - across * rows))

    def _shared_out(self, slab, count, multiprocessors):
        """Return the cuts, and the steps that the rows of blocks take at most."""
        across, strips = self.number(slab, count)
        rows = max(1, min(multiprocessors // across, strips * slab.planes))
        together = rows - rows % strips  # blocks above each other begin with the same plane
        rows = together if together >= MOST_IDLE * rows else rows
        beyond = 4 * count + BEFORE_A_RANGE
        steps = -(-strips * slab.planes // rows)
        while len(cuts := _cuts(strips, slab.planes, steps, beyond)) > rows + 1:
            steps += 1
        return cuts, steps


def _cuts(strips, planes, steps, beyond):
    """Return cuts between rows of blocks of that many steps: of each part of a strip, its planes and `beyond`."""
    cuts = [0]
    place = 0
    while place < strips * planes:
        left = max(steps, beyond + 1)
        while left > beyond and place < strips * planes:
            part = min(left - beyond, planes - place % planes)
            place = place + part
            left = left - part - beyond
        cuts.append(place)
    return cuts


def _tiles(slab, axis, width, skirt, more):
    """Return how many tiles cover an axis; see ``red_black_tiles.cu``; at walls they may have `more` cells."""
    size = (slab.half, slab.cells[1])[axis]
    periodic = slab.periodic[axis]
    if size == width or (not periodic and size < width):
        return 1
    beyond = skirt if more and not periodic else 0
    return -(-(size - 2 * beyond) // (width - 2 * skirt))


LOW = tuple(Tiling(4, warps, 1, 1, 6) for warps in range(8, 13))
"""Tiles of several heights: faster where the grid is small, or one suits it so that all blocks walk
side by side."""

ROW_COSTS = {8: 1.0, 4: 1.1}
"""How long a step takes for a row of a tile, by the rows of a thread: measured on an H200, relative
to the first."""

SMALLER = Tiling(4, 8, 1, 4, 2), Tiling(4, 4, 1, 4, 2)
"""For GPUs with little shared memory."""


def tiling_of(slab, dtype, count: int, facts: dict) -> Tiling | None:
    """Return the tiles that were fastest on an H200 for `count` iterations of a pass, or smaller ones that fit.

    None if none fit into the GPU's shared memory; for a single iteration there are always some.

    Parameters
    ----------
    slab : Slab
        The planes of this rank.
    dtype : dtype
    count : int
    facts : dict
        What `hybrid_nbody.backends.gpu.GpuBackend.facts` says of the GPU.
    """
    best = _fastest(slab, np.dtype(dtype), count, facts["multiprocessors"])
    limit = facts["shared_memory_per_block_limit"] - OWN_SHARED_MEMORY
    tilings = *(best._replace(stages=stages) for stages in range(best.stages, 1, -1)), *SMALLER
    return next((some for some in tilings if some.fits(dtype, count, limit)), None)


def _fastest(slab, dtype, count, multiprocessors):
    wraps = any(slab.periodic[:2])
    warps = -(-slab.half // LANES)
    if dtype.itemsize > 4:
        return Tiling(4, 8, 1, 4, 4)
    if count > 1 and wraps:
        return Tiling(4, 12, 1, 2, 6)
    if count > 1:
        facts = (slab, count, multiprocessors)
        few = slab.planes * slab.cells[1] * slab.cells[0] <= MANY_CELLS
        high = Tiling(8, 8, 1, 4 if np.prod(slab.cells) > MANY_CELLS else 2, 6)
        low = [tiling for tiling in LOW if few or tiling.level(*facts)]
        return min((high, *low), key=lambda tiling: tiling.cost(*facts))
    if warps in (4, 7, 8):  # a block takes whole rows
        return Tiling(12 if wraps else 16, 8, 4 if warps == 4 else 8, 4, 2)
    return Tiling(4, 12, 1, 4, 4)
