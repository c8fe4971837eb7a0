"""What lies around the foot of a trace, on CPU threads: places in a copy with ghosts, and the values of eight corners.

Values are numbers, or vectors of the feet of neighbouring cells: what is done with them is the
same.
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
    """Return the bounds of a displacement that ends, on a walled axis, at most half a cell behind the last one."""
    kind = type(half)
    if ends != WALLS:
        return kind(-FARTHEST), kind(FARTHEST)
    return -half - kind(cell), kind(count - cell) - half


@inlined
def limits_in(y, z, box, half):
    """Return the bounds of displacements along x, those of the cell x = 0, y and z."""
    along_y = limits_along(y, box.ny, box.ends_y, half)
    along_z = limits_along(z, box.nz, box.ends_z, half)
    return limits_along(0, box.nx, box.ends_x, half), along_y, along_z


@inlined
def index_along(index, count, ends):
    """Return an index that exists in a copy with ghosts: only what NaN became lies outside at walls."""
    if ends == PERIODIC and (index < 0 or index >= count):
        return index % count
    return min(max(index, -1), count) if ends == WALLS else index


@inlined
def row_size(box):
    """Return the places of a row of the copy with ghosts."""
    return box.nx + 2 + LANES


@inlined
def plane_size(box):
    """Return the places of a plane of the copy with ghosts."""
    return (box.ny + 3) * row_size(box)


@inlined
def place_in(x, y, z, origin, planes, box):
    """Return where a cell that has a next one along every axis lies in the flat copy with ghosts."""
    x = min(index_along(x, box.nx, box.ends_x), box.nx - 1)
    y = min(index_along(y, box.ny, box.ends_y), box.ny - 1)
    plane = index_along(z, box.nz, box.ends_z) - origin + MARGIN
    plane = min(max(plane, 0), planes - 2)
    return plane * plane_size(box) + (y + 1) * row_size(box) + x + 1


@inlined
def foot_of(speed, scale, low, high):
    """Return a displacement within bounds, rounded down, and the rest; NaN stays NaN."""
    displacement = minimum(high, maximum(low, scale * speed))
    step = floor(displacement)
    return step, displacement - step


@inlined
def whole(number):
    """Return a rounded number as an integer; some integer if it is NaN."""
    return np.int64(number) if number == number else np.int64(0)


# ---- Values around a foot ------------------------------------------------------------------------


@inlined
def between(a, b, t):
    """Return the value at a part t of the way from a to b."""
    return a + t * (b - a)


@inlined
def interpolated(v, x, y, z):
    """Return the value between 8 corners: along x, then y, then z."""
    below = between(between(v[0], v[1], x), between(v[2], v[3], x), y)
    above = between(between(v[4], v[5], x), between(v[6], v[7], x), y)
    return between(below, above, z)


@inlined
def smallest_of(v):
    """Return the smallest of 8 values."""
    lower = minimum(minimum(v[0], v[1]), minimum(v[2], v[3]))
    upper = minimum(minimum(v[4], v[5]), minimum(v[6], v[7]))
    return minimum(lower, upper)


@inlined
def largest_of(v):
    """Return the largest of 8 values."""
    lower = maximum(maximum(v[0], v[1]), maximum(v[2], v[3]))
    upper = maximum(maximum(v[4], v[5]), maximum(v[6], v[7]))
    return maximum(lower, upper)


@inlined
def corners_from(ghosted, place, read, box):
    """Return what lies at a place and at the next ones along x, y and z: `read` is `load_scalar`, or `load`."""
    row = row_size(box)
    plane = plane_size(box)
    return (
        read(ghosted, place),
        read(ghosted, place + 1),
        read(ghosted, place + row),
        read(ghosted, place + row + 1),
        read(ghosted, place + plane),
        read(ghosted, place + plane + 1),
        read(ghosted, place + plane + row),
        read(ghosted, place + plane + row + 1),
    )


# ---- Feet that lie a cell apart ------------------------------------------------------------------


@inlined
def pair_in_row(ghosted, place, further):
    """Return two vectors of a row, from a place on or, where `further`, from the next one on."""
    first = load(ghosted, place)
    second = load(ghosted, place + 1)
    third = load(ghosted, place + 2)
    return select(further, second, first), select(further, third, second)


@inlined
def corners_in_plane(ghosted, place, row, further_x, further_y):
    """Return the four corners of feet in a plane, that are chosen among three cells of three rows."""
    a, b = pair_in_row(ghosted, place, further_x)
    c, d = pair_in_row(ghosted, place + row, further_x)
    e, f = pair_in_row(ghosted, place + 2 * row, further_x)
    return (
        select(further_y, c, a),
        select(further_y, d, b),
        select(further_y, e, c),
        select(further_y, f, d),
    )


@inlined
def chosen_corners(ghosted, place, further, box):
    """Return the values around LANES feet, each of which is at a place or, along any axis, one further."""
    row = row_size(box)
    plane = plane_size(box)
    a = corners_in_plane(ghosted, place, row, further[0], further[1])
    b = corners_in_plane(ghosted, place + plane, row, further[0], further[1])
    c = corners_in_plane(ghosted, place + 2 * plane, row, further[0], further[1])
    return (
        select(further[2], b[0], a[0]),
        select(further[2], b[1], a[1]),
        select(further[2], b[2], a[2]),
        select(further[2], b[3], a[3]),
        select(further[2], c[0], b[0]),
        select(further[2], c[1], b[1]),
        select(further[2], c[2], b[2]),
        select(further[2], c[3], b[3]),
    )
