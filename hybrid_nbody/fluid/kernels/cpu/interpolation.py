"""Trilinear interpolation between the eight cells around a departure point, on CPU threads.

Values are numbers, or vectors of neighbouring cells' points: the arithmetic is the same.
"""

import numpy as np

from hybrid_nbody.backends.simd import LANES, floor, load, maximum, minimum, select
from hybrid_nbody.fluid.kernels.cpu.ghosts import MARGIN, PERIODIC, WALLS
from hybrid_nbody.fluid.kernels.cpu.layout import inlined

FARTHEST = 1 << 30
"""Cells around a periodic axis: an integer on any device."""

# ---- Along an axis -------------------------------------------------------------------------------


@inlined
def limits_along(cell, count, ends, half):
    """Return the bounds of a displacement along an axis.

    Between walls it ends at most half a cell behind the last one.
    """
    number = type(half)
    if ends != WALLS:
        return number(-FARTHEST), number(FARTHEST)
    return -half - number(cell), number(count - cell) - half


@inlined
def limits_of(y, z, box, half):
    """Return the bounds of displacements along x, those of the cell x = 0, y and z."""
    along_x = limits_along(0, box.nx, box.ends_x, half)
    along_y = limits_along(y, box.ny, box.ends_y, half)
    along_z = limits_along(z, box.nz, box.ends_z, half)
    return along_x, along_y, along_z


@inlined
def index_along(index, count, ends):
    """Return an index that exists in a copy with ghosts.

    Between walls, only NaN leads to one that does not.
    """
    if ends == PERIODIC and (index < 0 or index >= count):
        return index % count
    return min(max(index, -1), count) if ends == WALLS else index


@inlined
def row_size(box):
    """Return the elements of a row of the copy with ghosts."""
    return box.nx + 2 + LANES


@inlined
def plane_size(box):
    """Return the elements of a plane of the copy with ghosts."""
    return (box.ny + 3) * row_size(box)


@inlined
def neighbour_offset(x, y, z, copy, box):
    """Return where a cell lies in the flat copy with ghosts, with a next one along every axis."""
    x = min(index_along(x, box.nx, box.ends_x), box.nx - 1)
    y = min(index_along(y, box.ny, box.ends_y), box.ny - 1)
    plane = index_along(z, box.nz, box.ends_z) - copy.origin + MARGIN
    plane = min(max(plane, 0), copy.planes - 2)
    return plane * plane_size(box) + (y + 1) * row_size(box) + x + 1


@inlined
def split_displacement(speed, scale, low, high):
    """Return a displacement within bounds, rounded down, and the rest; NaN stays NaN."""
    displacement = minimum(high, maximum(low, scale * speed))
    rounded = floor(displacement)
    return rounded, displacement - rounded


@inlined
def integer(number):
    """Return a rounded number as an integer; some integer if it is NaN."""
    return np.int64(number) if number == number else np.int64(0)


# ---- Between eight cells -------------------------------------------------------------------------


@inlined
def between(a, b, t):
    """Return the value at a part t of the way from a to b."""
    return a + t * (b - a)


@inlined
def interpolate(v, parts):
    """Return the value between 8 cells: along x, then y, then z."""
    x, y, z = parts
    below = between(between(v[0], v[1], x), between(v[2], v[3], x), y)
    above = between(between(v[4], v[5], x), between(v[6], v[7], x), y)
    return between(below, above, z)


@inlined
def minimum_of(v):
    """Return the smallest of 8 values."""
    lower = minimum(minimum(v[0], v[1]), minimum(v[2], v[3]))
    upper = minimum(minimum(v[4], v[5]), minimum(v[6], v[7]))
    return minimum(lower, upper)


@inlined
def maximum_of(v):
    """Return the largest of 8 values."""
    lower = maximum(maximum(v[0], v[1]), maximum(v[2], v[3]))
    upper = maximum(maximum(v[4], v[5]), maximum(v[6], v[7]))
    return maximum(lower, upper)


@inlined
def load_neighbours(data, offset, read, box):
    """Return the 8 values at an offset and at the next ones along x, y and z.

    `read` loads numbers or vectors.
    """
    row = row_size(box)
    plane = plane_size(box)
    return (
        read(data, offset),
        read(data, offset + 1),
        read(data, offset + row),
        read(data, offset + row + 1),
        read(data, offset + plane),
        read(data, offset + plane + 1),
        read(data, offset + plane + row),
        read(data, offset + plane + row + 1),
    )


# ---- Departure points a cell apart ---------------------------------------------------------------


@inlined
def select_in_row(data, offset, is_next):
    """Return two vectors of a row, from an offset on or, where `is_next`, from the next one on."""
    first = load(data, offset)
    second = load(data, offset + 1)
    third = load(data, offset + 2)
    return select(is_next, second, first), select(is_next, third, second)


@inlined
def select_in_plane(data, offset, row, next_x, next_y):
    """Return the four values around points in a plane, selected among three cells of three rows."""
    a, b = select_in_row(data, offset, next_x)
    c, d = select_in_row(data, offset + row, next_x)
    e, f = select_in_row(data, offset + 2 * row, next_x)
    return (select(next_y, c, a), select(next_y, d, b), select(next_y, e, c), select(next_y, f, d))


@inlined
def select_neighbours(data, offset, is_next, box):
    """Return the values around LANES points, each at an offset or, along any axis, at the next."""
    row = row_size(box)
    plane = plane_size(box)
    next_x, next_y, next_z = is_next
    a = select_in_plane(data, offset, row, next_x, next_y)
    b = select_in_plane(data, offset + plane, row, next_x, next_y)
    c = select_in_plane(data, offset + 2 * plane, row, next_x, next_y)
    return (
        select(next_z, b[0], a[0]),
        select(next_z, b[1], a[1]),
        select(next_z, b[2], a[2]),
        select(next_z, b[3], a[3]),
        select(next_z, c[0], b[0]),
        select(next_z, c[1], b[1]),
        select(next_z, c[2], b[2]),
        select(next_z, c[3], b[3]),
    )
