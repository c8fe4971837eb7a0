"""Where the cells of a slab lie in memory, for the compiled loops of the CPU.

Rows of one colour are padded to whole vectors, so that no loop has a remainder: the vectors beyond a row's last cell
are computed with it, times zero. Two of the padded places stand for the neighbours of a row behind its ends: the one
after its last cell, and, for the first cell of the next row, the last one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from hybrid_nbody.fluid.kernels.cpu_vectors import LANES

ENDS = 2
"""Least padding of a row of one colour."""

ALIGNMENT = 64
"""Bytes of a cache line."""

compiled = njit(cache=True, error_model="numpy")
compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)
inlined = njit(forceinline=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For what compiled code alone calls: ways in for others would take an eighth of all compilation."""


class Grid(NamedTuple):
    """A slab, as compiled loops need it.

    Attributes
    ----------
    planes, rows, columns : int
        Cells of this slab along z, y and x.
    pitch : int
        Places in a row of one colour.
    first : int
        Global number of the slab's first plane.
    wraps : bool
        Whether x is periodic.
    below, above : (planes + 2,) array of int64
        The plane before and after each plane of an array; the plane itself at a wall.
    front, back : (rows,) array of int64
        The row before and after each row of a plane; the row itself at a wall.
    """

    planes: int
    rows: int
    columns: int
    pitch: int
    first: int
    wraps: bool
    below: np.ndarray
    above: np.ndarray
    front: np.ndarray
    back: np.ndarray


def make_grid(slab):
    """Return the `Grid` of a slab; a slab that holds a whole periodic axis needs no halo planes along it."""
    columns, rows, planes = *slab.cells[:2], slab.planes
    whole = slab.complete
    pitch = -(-(slab.half + ENDS) // LANES) * LANES
    below, above = np.arange(planes + 2) - 1, np.arange(planes + 2) + 1
    if whole and slab.periodic[2]:
        below[1], above[planes] = planes, 1
    below[1] += slab.walls[0]
    above[planes] -= slab.walls[1]
    front, back = np.arange(rows) - 1, np.arange(rows) + 1
    front[0], back[-1] = (rows - 1, 0) if slab.periodic[1] else (0, rows - 1)
    return Grid(planes, rows, columns, pitch, slab.first, slab.periodic[0], below, above, front, back)


def aligned_zeros(shape, dtype):
    """Return zeros that start at a cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def cells_of_rows(columns, pitch, dtype):
    """Return 1 for each place of a row that is a cell and 0 for padding, (2, pitch): of rows from x = 0 and x = 1."""
    place = np.arange(pitch)
    return np.array([place < (columns + 1) // 2, place < columns // 2], dtype)


def factors_of_rows(cells, factors, columns, wraps):
    """Return factors of every place, (4, 2, pitch): see `cpu_sweeps.relax`.

    Parameters
    ----------
    cells : (2, pitch) array
        From `cells_of_rows`.
    factors : (8,) array
        Of a cell: 1 is added to the index for a wall of x beside it, 2 for one of y, 4 for one of z.
    columns : int
        Cells of the grid along x.
    wraps : bool
        Whether there are no walls of x.
    """
    at_wall = np.zeros(cells.shape, int)
    if not wraps:
        at_wall[0, 0] = at_wall[(columns - 1) % 2, (columns - 1) // 2] = 1
    return cells * factors[at_wall + 2 * np.arange(4)[:, None, None]]


@inlined
def place_of(colour, z, y, grid):
    """Return where a row of one colour starts in the flat array of both."""
    return ((colour * (grid.planes + 2) + z) * grid.rows + y) * grid.pitch


@inlined
def shift_of(colour, z, y, grid):
    """Return 1 if the cells of a colour in a row are x = 1, 3, 5 ..., 0 if they are x = 0, 2, 4 ..."""
    return (colour + y + grid.first + z - 1) & 1


@inlined
def bounds_of(block, blocks, grid):
    """Return the planes of a block, [start, stop)."""
    return 1 + grid.planes * block // blocks, 1 + grid.planes * (block + 1) // blocks
