"""The layout of a slab in memory, for the compiled loops of the CPU.

Rows of one colour are padded to whole vectors, so that no loop has a remainder: the vectors beyond
a row's last cell are computed with it, times zero. Two elements of the padding stand for the
neighbours of a row behind its ends: the one after its last cell, and, for the first cell of the
next row, the last one. Where x is periodic, these are stored there. Between walls they are 0, as
all padding is, and so are the elements before the first row and after the last one: nothing else is
ever stored there, and the ghost behind a wall is added to a cell apart.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.fluid.grid import Slab

ENDS = 2
"""Least padding of a row of one colour."""

ALIGNMENT = 64
"""Bytes of a cache line."""

compiled = njit(cache=True, error_model="numpy")
"""Compiles a function for one thread."""

compiled_with_threads = njit(cache=True, error_model="numpy", nogil=True)
"""Compiles a function that calls others on threads; other threads of Python go on meanwhile."""

linked = njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Compiles a function that only compiled code calls, as a part of what Python calls: entry points
of its own would take longer than the function. It makes no arrays, and counts no references to
those that it is given, which would be atomic operations in every call."""

linked_with_arrays = njit(
    error_model="numpy", _nrt=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""Compiles a function like `linked`, but one that makes arrays, whoever calls it."""

inlined = njit(
    forceinline=True,
    error_model="numpy",
    _nrt=False,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)
"""Compiles a function like `linked`, but one that disappears in each of its callers."""


class Grid(NamedTuple):
    """A slab for compiled loops: numbers alone, since compiled calls count references to arrays.

    Attributes
    ----------
    planes, rows, columns : int
        Cells of this slab along z, y and x.
    pitch : int
        Elements of a row of one colour.
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


def make_grid(slab: Slab) -> Grid:
    """Return the `Grid` of a slab.

    A slab that holds a whole periodic axis needs no halo planes along it.
    """
    columns, rows, _ = slab.cells
    planes = slab.planes
    periodic_x, periodic_y, periodic_z = slab.periodic
    wall_below, wall_above = slab.walls
    wraps_z = slab.complete and periodic_z
    return Grid(
        planes=planes,
        rows=rows,
        columns=columns,
        pitch=-(-(slab.half + ENDS) // LANES) * LANES,
        first=slab.first,
        wraps=periodic_x,
        below=planes if wraps_z else int(wall_below),
        above=1 if wraps_z else planes + 1 - wall_above,
        front=rows - 1 if periodic_y else 0,
        back=0 if periodic_y else rows - 1,
    )


# ---- Tables --------------------------------------------------------------------------------------


def aligned(table: np.ndarray) -> np.ndarray:
    """Return a flat copy that starts at a cache line: no vector is then loaded from two lines."""
    copy = aligned_zeros(table.shape, table.dtype).reshape(-1)
    copy[:] = table.reshape(-1)
    return copy


def aligned_zeros(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return zeros that start at a cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def cells_of_rows(columns: int, pitch: int, dtype: np.dtype) -> np.ndarray:
    """Return 1 for each element of a row that is a cell and 0 for padding.

    The shape is (2, pitch): rows from x = 0 and from x = 1.
    """
    element = np.arange(pitch)
    return np.array([element < (columns + 1) // 2, element < columns // 2], dtype)


def walls_of_rows(columns: int, pitch: int, wraps: bool) -> np.ndarray:
    """Return 1 for each element of a row that is a cell beside a wall of x.

    The shape is (2, 2, pitch): for the walls x- and x+, rows from x = 0 and from x = 1.
    """
    walls = np.zeros((2, 2, pitch), int)
    if not wraps:
        walls[0, 0, 0] = 1
        walls[1, (columns - 1) % 2, (columns - 1) // 2] = 1
    return walls


def tables_of_rows(
    cells: np.ndarray, walls: np.ndarray, signs: Sequence[int], factors: np.ndarray
) -> np.ndarray:
    """Return what sweeps multiply with, flat, (5, 2, pitch): rows from x = 0 and from x = 1.

    The first of the five tables is what a cell counts as a neighbour of its own, being a ghost
    behind a wall of x. The others hold the change of an element over its residual: in rows beside
    no other wall, beside one of y, of z, of both.

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


# ---- Rows and planes -----------------------------------------------------------------------------


@inlined
def row_offset(colour, z, y, grid):
    """Return where a row of one colour starts in the flat array of both."""
    return ((colour * (grid.planes + 2) + z) * grid.rows + y) * grid.pitch


@inlined
def first_column(colour, z, y, grid):
    """Return x of the first cell of a colour in a row: 0, or 1 if its cells are x = 1, 3, 5 ..."""
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
def block_bounds(block, blocks, grid):
    """Return the planes of a block, [start, stop)."""
    return 1 + grid.planes * block // blocks, 1 + grid.planes * (block + 1) // blocks
