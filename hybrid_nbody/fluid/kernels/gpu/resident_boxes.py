"""Which grids fit into the multiprocessors of a GPU, and in which boxes: for ``red_black_resident.cu``."""

from typing import NamedTuple

import numpy as np

from hybrid_nbody.fluid.kernels.gpu.layout import LANES, OWN_SHARED_MEMORY

BANKS = 32
"""Of shared memory."""

SCHEDULERS = 4
"""Of a multiprocessor; the warps of a block take turns on them, and its registers are split among
them."""

REGISTERS_BESIDE_B = 48
"""That a thread needs for addresses and sums; some more with each of its rows, which the compiler
can spill."""

MOST_REGISTERS = 255
MOST_PLANES = 32
"""Of a box: a thread has a bit for each."""

LEAST_THREADS = 256
"""Of a block, however few columns it has: they exchange its halo together."""

CYCLES_OF_CELL = 100
"""In which a thread renews one, among others; the halo takes about one a cell pair.

Seen on an H200.
"""


class Boxes(NamedTuple):
    """Boxes that cover a grid, one for each block of threads.

    Attributes
    ----------
    rows, planes : int
        Of a box; those at the upper ends of the grid may have fewer.
    across, along : int
        Boxes along y and z.
    thread_rows : int
        Of a thread, which renews one cell pair of each in every plane.
    threads : int
        Of a block.
    stride : int
        Numbers from a row to the next in shared memory.
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
        """The macros of ``red_black_resident.cu``."""
        names = "BOX_ROWS", "BOX_PLANES", "BOXES_Y", "BOXES_Z", "ROWS", "THREADS", "STRIDE"
        return dict(zip(names, self, strict=True))

    @property
    def number(self) -> int:
        """How many there are."""
        return self.across * self.along

    def memory(self, dtype) -> int:
        """Return the bytes of shared memory that hold the values of a box and its halo; a last thread reads beyond."""
        plane = (self.rows + 2) * self.stride + 2 * self.rows
        return (2 * (self.planes + 2) * plane + self.thread_rows * self.stride) * np.dtype(
            dtype
        ).itemsize

    def cost(self, half: int) -> int:
        """Return about how many cycles a block needs for half an iteration, besides waiting."""
        return CYCLES_OF_CELL * self.thread_rows * self.planes + (self.rows + self.planes) * half


def boxes_of(slab, dtype, facts: dict) -> Boxes | None:
    """Return the fastest boxes of a grid, or None if it does not fit.

    Parameters
    ----------
    slab : Slab
        Of a rank that owns every plane.
    dtype : dtype
    facts : dict
        What `hybrid_nbody.backends.gpu.GpuBackend.facts` says of the GPU.
    """
    every = (_boxes(slab, dtype, facts, across) for across in range(1, slab.cells[1] + 1))
    return min(filter(None, every), key=lambda boxes: boxes.cost(slab.half), default=None)


def _boxes(slab, dtype, facts, across):
    """Return the boxes if there are at most `across` of them along y, or None if they do not fit."""
    _, ny, nz = slab.cells
    along = min(nz, facts["multiprocessors"] // across)
    if not along:
        return None
    rows = -(-ny // across)
    planes = -(-nz // along)
    threads = _threads(rows, slab.half, planes * np.dtype(dtype).itemsize // 4, facts)
    if planes > MOST_PLANES or threads is None:
        return None
    boxes = Boxes(
        rows, planes, -(-ny // rows), -(-nz // planes), *threads, _stride(slab.half, threads[0])
    )
    return (
        boxes
        if boxes.memory(dtype) + OWN_SHARED_MEMORY <= facts["shared_memory_per_block_limit"]
        else None
    )


def _threads(rows, half, words, facts):
    """Return the fewest rows of a thread, of so many words in each colour, and the threads; None: too few registers."""
    for thread_rows in range(1, MOST_REGISTERS):
        groups = -(-rows // thread_rows)
        needed = 2 * thread_rows * words + REGISTERS_BESIDE_B
        threads = max(LEAST_THREADS, -(-groups * half // LANES) * LANES)
        warps_in_turn = -(-threads // (LANES * SCHEDULERS))
        if needed > MOST_REGISTERS:
            return None
        if threads <= facts["threads_per_block_limit"] and needed <= facts[
            "registers_per_block_limit"
        ] // (LANES * SCHEDULERS * warps_in_turn):
            return thread_rows, threads
    return None


def _stride(half, thread_rows):
    """Return the stride with which the cells of a warp lie in different banks, those of another row, too."""
    return next(
        (s for s in range(half, half + BANKS) if (thread_rows * s - half) % BANKS == 0), half
    )
