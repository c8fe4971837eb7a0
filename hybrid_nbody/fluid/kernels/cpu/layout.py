"""Where the cells of a slab lie in memory, for the compiled loops of the CPU.

Rows of one colour are padded to whole vectors, so that no loop has a remainder: the vectors beyond
a row's last cell are computed with it, times zero. Two of the padded places stand for the
neighbours of a row behind its ends: the one after its last cell, and, for the first cell of the
next row, the last one. Where x is periodic, these are stored there. Between walls they are 0, as
all padding is, and the places before the first row and after the last one: nothing else is ever
stored there, and what is mirrored at a wall is added to a cell apart.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from hybrid_nbody.backends.simd import LANES

ENDS = 2
"""Least padding of a row of one colour."""

ALIGNMENT = 64
"""Bytes of a cache line."""

compiled = njit(cache=True, error_model="numpy")
compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)
inlined = njit(
    forceinline=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""For what compiled code alone calls: ways in for others would take an eighth of all
compilation."""


class Grid(NamedTuple):
    """A slab, as compiled loops need it: numbers alone, since arrays would be counted at every call.

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
    below, above : int
        The plane before the first and after the last one of the slab; that plane itself at a wall.
    front, back : int
        The row before the first and after the last one of a plane; that row itself at a wall.
    """

    planes: int
    rows: int
    columns: int
    pitch: int
    first: int
    wraps: bool
    below: int
    above: int
    front: int
    back: int


def make_grid(slab):
    """Return the `Grid` of a slab; a slab that holds a whole periodic axis needs no halo planes along it."""
    columns, rows, planes = *slab.cells[:2], slab.planes
    pitch = -(-(slab.half + ENDS) // LANES) * LANES
    around = planes, 1
    beyond = int(slab.walls[0]), planes + 1 - slab.walls[1]
    below, above = around if slab.complete and slab.periodic[2] else beyond
    front, back = (rows - 1, 0) if slab.periodic[1] else (0, rows - 1)
    return Grid(
        planes, rows, columns, pitch, slab.first, slab.periodic[0], below, above, front, back
    )


def aligned(table):
    """Return a flat copy that starts at a cache line: no vector of a table is then loaded from two lines."""
    copy = aligned_zeros(table.size, table.dtype)
    copy[:] = table.reshape(-1)
    return copy


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


def walls_of_rows(columns, pitch, wraps):
    """Return 1 where a wall of x lies beside a cell, (2, 2, pitch): at x- and x+, of rows from x = 0 and x = 1."""
    walls = np.zeros((2, 2, pitch), int)
    if not wraps:
        walls[0, 0, 0] = 1
        walls[1, (columns - 1) % 2, (columns - 1) // 2] = 1
    return walls


def tables_of_rows(cells, walls, signs, factors):
    """Return what sweeps multiply with, flat, (5, 2, pitch): of rows from x = 0 and x = 1.

    First how many times a cell is one of its own neighbours along x, as a ghost behind a wall. Then what a place changes by, over what its equation lacks: in rows beside no other
    wall, beside one of y, of z, of both.

    Parameters
    ----------
    cells : (2, pitch) array
        From `cells_of_rows`.
    walls : (2, 2, pitch) array
        From `walls_of_rows`.
    signs : pair of int
        Of the ghosts behind x- and x+.
    factors : (8,) array
        Of a cell: 1 is added to the index for a wall of x beside it, 2 for one of y, 4 for one of
        z.
    """
    low, high = walls
    changes = cells * factors[(low + high > 0) + 2 * np.arange(4)[:, None, None]]
    ghosts = signs[0] * low + signs[1] * high
    return aligned(np.concatenate([ghosts[None], changes]).astype(cells.dtype))


@inlined
def place_of(colour, z, y, grid):
    """Return where a row of one colour starts in the flat array of both."""
    return ((colour * (grid.planes + 2) + z) * grid.rows + y) * grid.pitch


@inlined
def shift_of(colour, z, y, grid):
    """Return 1 if the cells of a colour in a row are x = 1, 3, 5 ..., 0 if they are x = 0, 2, 4 ..."""
    return (colour + y + grid.first + z - 1) & 1


@inlined
def plane_below(z, grid):
    """Return the plane before one, or that plane itself at a wall."""
    return grid.below if z == 1 else z - 1


@inlined
def plane_above(z, grid):
    """Return the plane after one, or that plane itself at a wall."""
    return grid.above if z == grid.planes else z + 1


@inlined
def row_before(y, grid):
    """Return the row before one of a plane, or that row itself at a wall."""
    return grid.front if y == 0 else y - 1


@inlined
def row_after(y, grid):
    """Return the row after one of a plane, or that row itself at a wall."""
    return grid.back if y == grid.rows - 1 else y + 1


@inlined
def bounds_of(block, blocks, grid):
    """Return the planes of a block, [start, stop)."""
    return 1 + grid.planes * block // blocks, 1 + grid.planes * (block + 1) // blocks
