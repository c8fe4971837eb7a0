"""What lies around the foot of a trace, on CPU threads: places in a copy with ghosts, and the values of eight corners.

For LANES feet at once three rows of three planes are read, and each lane chooses its corners among them.
"""

import numpy as np

from hybrid_nbody.fluid.kernels.cpu_ghosts import MARGIN, PERIODIC, WALLS
from hybrid_nbody.fluid.kernels.cpu_rows import LANES, inlined, largest_lane, smallest_lane, window

# ---- Along an axis ---------------------------------------------------------------------------------------------------


@inlined
def at_least(value, low):
    """Return the larger; NaN stays NaN."""
    return low if value < low else value


@inlined
def at_most(value, high):
    """Return the smaller; NaN stays NaN."""
    return high if value > high else value


@inlined
def limits_along(cell, count, ends, half):
    """Return the bounds of a displacement that ends, on a walled axis, at most half a cell behind the last one."""
    kind = type(half)
    if ends != WALLS:
        return kind(-np.inf), kind(np.inf)
    return -half - kind(cell), kind(count - cell) - half


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
def place_in(ghosted, x, y, z, origin, box):
    """Return where a cell that has a next one along every axis lies in the flat copy with ghosts."""
    x = min(index_along(x, box.nx, box.ends_x), box.nx - 1)
    y = min(index_along(y, box.ny, box.ends_y), box.ny - 1)
    plane = index_along(z, box.nz, box.ends_z) - origin + MARGIN
    plane = min(max(plane, 0), ghosted.size // plane_size(box) - 2)
    return plane * plane_size(box) + (y + 1) * row_size(box) + x + 1


@inlined
def range_of(steps):
    """Return the smallest and the largest of LANES integers."""
    return np.int64(smallest_lane(steps)), np.int64(largest_lane(steps))


# ---- Values around a foot --------------------------------------------------------------------------------------------


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
    return min(min(min(v[0], v[1]), min(v[2], v[3])), min(min(v[4], v[5]), min(v[6], v[7])))


@inlined
def largest_of(v):
    """Return the largest of 8 values."""
    return max(max(max(v[0], v[1]), max(v[2], v[3])), max(max(v[4], v[5]), max(v[6], v[7])))


@inlined
def corners_at(ghosted, x, y, z, origin, box):
    """Return the values of the cells x, x + 1; y, y + 1; z, z + 1: ghosts follow the last cells of every axis."""
    place, row, plane = place_in(ghosted, x, y, z, origin, box), row_size(box), plane_size(box)
    return (
        ghosted[place],
        ghosted[place + 1],
        ghosted[place + row],
        ghosted[place + row + 1],
        ghosted[place + plane],
        ghosted[place + plane + 1],
        ghosted[place + plane + row],
        ghosted[place + plane + row + 1],
    )


@inlined
def pair_of(first, second, third, further):
    """Return two neighbours of three, the last two if `further`."""
    return (second if further else first), (third if further else second)


@inlined
def along_rows(rows, lane, further, x, y):
    """Return the value in a plane, of which three rows are given."""
    a = between(*pair_of(rows[0][0][lane], rows[0][1][lane], rows[0][2][lane], further[0]), x)
    b = between(*pair_of(rows[1][0][lane], rows[1][1][lane], rows[1][2][lane], further[0]), x)
    c = between(*pair_of(rows[2][0][lane], rows[2][1][lane], rows[2][2][lane], further[0]), x)
    return between(*pair_of(a, b, c, further[1]), y)


@inlined
def smallest_in_rows(rows, lane, further):
    """Return the smallest of the four corners in a plane, of which three rows are given."""
    a = min(*pair_of(rows[0][0][lane], rows[0][1][lane], rows[0][2][lane], further[0]))
    b = min(*pair_of(rows[1][0][lane], rows[1][1][lane], rows[1][2][lane], further[0]))
    c = min(*pair_of(rows[2][0][lane], rows[2][1][lane], rows[2][2][lane], further[0]))
    return min(*pair_of(a, b, c, further[1]))


@inlined
def largest_in_rows(rows, lane, further):
    """Return the largest of the four corners in a plane, of which three rows are given."""
    a = max(*pair_of(rows[0][0][lane], rows[0][1][lane], rows[0][2][lane], further[0]))
    b = max(*pair_of(rows[1][0][lane], rows[1][1][lane], rows[1][2][lane], further[0]))
    c = max(*pair_of(rows[2][0][lane], rows[2][1][lane], rows[2][2][lane], further[0]))
    return max(*pair_of(a, b, c, further[1]))


@inlined
def vectors_in(ghosted, start):
    """Return three vectors of a row, each one cell further."""
    return window(ghosted, start), window(ghosted, start + 1), window(ghosted, start + 2)


@inlined
def rows_from(ghosted, place, row):
    """Return the vectors of three rows of a plane."""
    return vectors_in(ghosted, place), vectors_in(ghosted, place + row), vectors_in(ghosted, place + 2 * row)


@inlined
def planes_from(ghosted, place, box):
    """Return the vectors of three rows of three planes."""
    row, plane = row_size(box), plane_size(box)
    return (
        rows_from(ghosted, place, row),
        rows_from(ghosted, place + plane, row),
        rows_from(ghosted, place + 2 * plane, row),
    )
