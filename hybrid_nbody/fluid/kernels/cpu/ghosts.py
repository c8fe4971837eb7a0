"""Copies of fields with ghosts on every side, into which traces look, on CPU threads."""

from typing import NamedTuple

from numba import prange

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.fluid.kernels.cpu.layout import compiled, compiled_parallel, inlined

WALLS = 0
PERIODIC = 1
OPEN = 2
"""How an axis ends for a trace: at walls, around the edge, or, with planes of other ranks at hand,
nowhere."""

MARGIN = 2
"""Planes of a copy with ghosts before the source's first one: a ghost and one more, as there is one
more row behind the ghosts of y. Traces that end on both sides of a cell are chosen from three."""


class Box(NamedTuple):
    """The grid that traces cross: numbers alone, since arrays would be counted at every call.

    Attributes
    ----------
    nx, ny, nz : int
        Cells of the whole grid.
    ends_x, ends_y, ends_z : int
        How its axes end.
    first, planes : int
        The slab's planes.
    last : int
        Last place along x from which LANES traces may start in one row.
    """

    nx: int
    ny: int
    nz: int
    ends_x: int
    ends_y: int
    ends_z: int
    first: int
    planes: int
    last: int


def make_box(slab):
    """Return the `Box` of a slab."""
    ends = [PERIODIC if periodic else WALLS for periodic in slab.periodic]
    if slab.periodic[2] and not slab.complete:
        ends[2] = OPEN
    last = slab.cells[0] - (1 if ends[0] == WALLS else LANES + 1)
    return Box(*slab.cells, *ends, slab.first, slab.planes, last)


def ghosted_shape(source):
    """Return the shape of the copy of a source (m, ny, nx) with ghosts."""
    m, ny, nx = source.shape
    return m + 2 * MARGIN, ny + 3, nx + 2 + LANES


# ---- Copies --------------------------------------------------------------------------------------


@compiled
def nearest_cell(index, count, ends):
    """Return the cell that stands at an index of an axis."""
    if ends == PERIODIC:
        return index % count
    return within(index, count) if ends == WALLS else index


@inlined
def within(index, count):
    """Return the index of the nearest cell."""
    return min(max(index, 0), count - 1)


@compiled
def fill_ghosted_plane(plane, ghosted, signs, sign_z, box):
    """Copy a plane times a sign, with ghosts behind the ends of x and y."""
    one = sign_z * sign_z
    for y in range(-1, box.ny + 2):
        source = plane[nearest_cell(y, box.ny, box.ends_y)]
        mirrored = box.ends_y == WALLS and (y < 0 or y >= box.ny)
        sign = sign_z * (signs[1] if mirrored else one)
        copy_row(source, sign, ghosted[y + 1])
        end = sign * (signs[0] if box.ends_x == WALLS else one)
        ghosted[y + 1, 0] = end * source[nearest_cell(-1, box.nx, box.ends_x)]
        ghosted[y + 1, box.nx + 1] = end * source[nearest_cell(box.nx, box.nx, box.ends_x)]


@compiled
def copy_row(row, sign, ghosted):
    """Copy the cells of a row."""
    for x in range(row.size):
        ghosted[x + 1] = sign * row[x]


@compiled
def fill_ghosted_at(index, source, origin, ghosted, signs, box):
    """Fill a plane of the copy with ghosts."""
    z = origin + index - MARGIN
    plane = within(nearest_cell(z, box.nz, box.ends_z) - origin, source.shape[0])
    mirrored = box.ends_z == WALLS and (z < 0 or z >= box.nz)
    sign_z = signs[2] if mirrored else signs[2] * signs[2]
    fill_ghosted_plane(source[plane], ghosted[index], signs, sign_z, box)


@compiled_parallel
def fill_ghosted(source, origin, ghosted, signs, box):
    """Copy the planes origin ... origin + m - 1 of the grid, and put ghosts around them."""
    for index in prange(ghosted.shape[0]):
        fill_ghosted_at(index, source, origin, ghosted, signs, box)
