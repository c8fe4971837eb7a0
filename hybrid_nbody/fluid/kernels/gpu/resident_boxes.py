"""The boxes in which a GPU keeps a small grid: for ``red_black_resident.cu``."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.gpu.layout import LANES, RESERVED_SHARED_MEMORY

Facts = Mapping[str, Any]
"""Properties of a GPU by name."""

BANKS = 32
"""Banks of shared memory."""

SCHEDULERS = 4
"""Schedulers of a multiprocessor: the warps of a block take turns on them, and its registers are
divided among them."""

REGISTERS_BESIDE_B = 48
"""Registers of a thread for addresses and sums. Each of its rows needs a few more, which the
compiler can spill."""

MAX_REGISTERS = 255
"""Registers of a thread."""

MAX_PLANES = 32
"""Planes of a box: a thread has a bit for each."""

MIN_THREADS = 256
"""Threads of a block, however few columns it has: they exchange its halo together."""

CYCLES_OF_CELL = 100
"""Cycles in which a thread updates a cell, among other threads; a cell pair of the halo takes about
one. Seen on an H200."""


class Boxes(NamedTuple):
    """Boxes that cover a grid, one for each block of threads.

    Attributes
    ----------
    rows, planes : int
        Rows and planes of a box; boxes at the upper ends of the grid may have fewer.
    across, along : int
        Boxes along y and z.
    thread_rows : int
        Rows of a thread, which updates one cell pair of each in every plane.
    threads : int
        Threads of a block.
    stride : int
        Numbers from one row to the next in shared memory.
    """

    rows: int
    planes: int
    across: int
    along: int
    thread_rows: int
    threads: int
    stride: int

    @property
    def macros(self) -> dict[str, int]:
        """Return the macros of ``red_black_resident.cu``."""
        names = ("BOX_ROWS", "BOX_PLANES", "BOXES_Y", "BOXES_Z", "ROWS", "THREADS", "STRIDE")
        return dict(zip(names, self, strict=True))

    @property
    def number(self) -> int:
        """Return the number of boxes."""
        return self.across * self.along

    def memory(self, dtype: DTypeLike) -> int:
        """Return the bytes of shared memory for a box and its halo.

        The last thread may read a few rows beyond.
        """
        plane = (self.rows + 2) * self.stride + 2 * self.rows
        numbers = 2 * (self.planes + 2) * plane + self.thread_rows * self.stride
        return numbers * np.dtype(dtype).itemsize

    def cost(self, half: int) -> int:
        """Return about how many cycles a block needs for half an iteration, besides waiting."""
        cells = self.thread_rows * self.planes
        halo = (self.rows + self.planes) * half
        return CYCLES_OF_CELL * cells + halo


def boxes_of(slab: Slab, dtype: DTypeLike, facts: Facts) -> Boxes | None:
    """Return the fastest boxes of a grid, or None if it does not fit.

    Parameters
    ----------
    slab : Slab
        The whole grid.
    dtype : dtype
        The working type.
    facts : dict
        The properties of the GPU, of `hybrid_nbody.backends.gpu.GpuBackend.facts`.
    """
    every = (_boxes(slab, dtype, facts, across) for across in range(1, slab.cells[1] + 1))
    fitting = (boxes for boxes in every if boxes is not None)
    return min(fitting, key=lambda boxes: boxes.cost(slab.half), default=None)


def _boxes(slab: Slab, dtype: DTypeLike, facts: Facts, across: int) -> Boxes | None:
    """Return the boxes of which at most `across` are along y; None if they do not fit."""
    _, ny, nz = slab.cells
    along = min(nz, facts["multiprocessors"] // across)
    if not along:
        return None
    rows = -(-ny // across)
    planes = -(-nz // along)
    words = planes * np.dtype(dtype).itemsize // 4
    layout = _threads(rows, slab.half, words, facts)
    if planes > MAX_PLANES or layout is None:
        return None
    thread_rows, threads = layout
    stride = _stride(slab.half, thread_rows)
    numbers = (-(-ny // rows), -(-nz // planes))
    boxes = Boxes(rows, planes, *numbers, thread_rows, threads, stride)
    memory = boxes.memory(dtype) + RESERVED_SHARED_MEMORY
    return boxes if memory <= facts["shared_memory_per_block_limit"] else None


def _threads(rows: int, half: int, words: int, facts: Facts) -> tuple[int, int] | None:
    """Return the fewest rows of a thread, and the threads of a block; None if registers are short.

    A row of a thread needs `words` registers for each colour.
    """
    for thread_rows in range(1, MAX_REGISTERS):
        needed = 2 * thread_rows * words + REGISTERS_BESIDE_B
        if needed > MAX_REGISTERS:
            return None
        groups = -(-rows // thread_rows)
        threads = max(MIN_THREADS, -(-groups * half // LANES) * LANES)
        warps_in_turn = -(-threads // (LANES * SCHEDULERS))
        registers = facts["registers_per_block_limit"] // (LANES * SCHEDULERS * warps_in_turn)
        if threads <= facts["threads_per_block_limit"] and needed <= registers:
            return thread_rows, threads
    return None


def _stride(half: int, thread_rows: int) -> int:
    """Return a stride with which the cells of a warp are in different banks, across rows, too."""
    strides = range(half, half + BANKS)
    return next((s for s in strides if (thread_rows * s - half) % BANKS == 0), half)
