"""Advection on CPU threads: every cell looks up what was where its fluid comes from.

All positions are displacements from the cell, so that rounding does not grow with the coordinate, and interpolation is
``a + t * (b - a)``, so that a uniform field stays uniform to the last bit.

Cells are taken LANES at a time, along x. In a smooth flow such neighbours come from neighbours: where their steps, the
displacements rounded down, differ by at most 1 along each axis, the values around all feet are chosen among 3 x 3 x 3
vectors. Elsewhere each cell looks up its own. The result is the same.
"""

import numpy as np
from numba import prange

from hybrid_nbody.fluid.kernels.cpu_ghosts import MARGIN
from hybrid_nbody.fluid.kernels.cpu_rows import (
    LANES,
    compiled,
    compiled_parallel,
    inlined,
    lanes,
    largest_lane,
    smallest_lane,
    window,
)

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
def limits_along(cell, axis, box, half):
    """Return the bounds of a displacement that ends, on a walled axis, at most half a cell behind the last one."""
    kind = type(half)
    room = kind(box.room[axis])
    return (-half - kind(cell)) - room, (kind(box.counts[axis] - cell) - half) + room


@inlined
def index_along(index, axis, box):
    """Return an index that exists in a copy with ghosts: only what NaN became lies outside at walls."""
    if index < box.lowest[axis] or index > box.highest[axis]:
        index -= box.wraps[axis] * (index // box.counts[axis])
        index = min(max(index, box.lowest[axis]), box.highest[axis])
    return index


@inlined
def row_start(y, box):
    """Return where a row starts in a plane of the copy with ghosts."""
    return (index_along(y, 1, box) + 1) * (box.nx + 2 + LANES) + 1


@inlined
def plane_start(ghosted, z, origin, box):
    """Return where a plane starts in the flat copy with ghosts."""
    size = (box.ny + 2) * (box.nx + 2 + LANES)
    return min(max(index_along(z, 2, box) - origin + MARGIN, 0), ghosted.size // size - 1) * size


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


@compiled
def corners_at(ghosted, x, y, z, origin, box):
    """Return the values of the cells x, x + 1; y, y + 1; z, z + 1."""
    x = min(index_along(x, 0, box), box.nx - 1)
    front, back = row_start(y, box) + x, row_start(y + 1, box) + x
    below, above = plane_start(ghosted, z, origin, box), plane_start(ghosted, z + 1, origin, box)
    return (
        ghosted[below + front],
        ghosted[below + front + 1],
        ghosted[below + back],
        ghosted[below + back + 1],
        ghosted[above + front],
        ghosted[above + front + 1],
        ghosted[above + back],
        ghosted[above + back + 1],
    )


@inlined
def pair_in(row, lane, further):
    """Return two neighbours of a row, the second pair of three values if `further`."""
    first, second, third = row[0][lane], row[1][lane], row[2][lane]
    return (second if further else first), (third if further else second)


@inlined
def corners_in(rows, lane, further_x, further_y):
    """Return the four corners in a plane of which three rows are given."""
    a0, a1 = pair_in(rows[0], lane, further_x)
    b0, b1 = pair_in(rows[1], lane, further_x)
    c0, c1 = pair_in(rows[2], lane, further_x)
    front = (b0 if further_y else a0), (b1 if further_y else a1)
    back = (c0 if further_y else b0), (c1 if further_y else b1)
    return front[0], front[1], back[0], back[1]


@inlined
def chosen(a, b, second):
    """Return four values, or four others."""
    return (
        b[0] if second else a[0],
        b[1] if second else a[1],
        b[2] if second else a[2],
        b[3] if second else a[3],
    )


@inlined
def vectors_in(ghosted, start):
    """Return three vectors of a row, each one cell further."""
    return window(ghosted, start), window(ghosted, start + 1), window(ghosted, start + 2)


# ---- Blocks ----------------------------------------------------------------------------------------------------------


@compiled
def find_feet(speed, scale, limits, stride, steps, parts):
    """Fill `steps` and `parts` with displacements of a row along an axis: rounded down, and the rest.

    The limits of a cell are less by `stride` than those of the previous one.
    """
    low, high = limits
    for c in range(speed.size):
        shift = stride * type(scale)(c)
        displacement = at_most(at_least(scale * speed[c], low - shift), high - shift)
        floor = np.floor(displacement)
        steps[c] = np.int32(floor)
        parts[c] = displacement - floor


@inlined
def trace_near(ghosted, origin, bases, start, y, z, box, steps, parts, result, low, high):
    """Fill `result` from feet whose steps are `bases` or 1 more, and `low` and `high` with the range around them."""
    x, y, z = start + bases[0], y + bases[1], z + bases[2]
    a, b, c = row_start(y, box) + x, row_start(y + 1, box) + x, row_start(y + 2, box) + x
    p, q = plane_start(ghosted, z, origin, box), plane_start(ghosted, z + 1, origin, box)
    r = plane_start(ghosted, z + 2, origin, box)
    below = vectors_in(ghosted, p + a), vectors_in(ghosted, p + b), vectors_in(ghosted, p + c)
    here = vectors_in(ghosted, q + a), vectors_in(ghosted, q + b), vectors_in(ghosted, q + c)
    above = vectors_in(ghosted, r + a), vectors_in(ghosted, r + b), vectors_in(ghosted, r + c)
    for lane in range(LANES):
        further_x, further_y = steps[0][lane] > bases[0], steps[1][lane] > bases[1]
        first = corners_in(below, lane, further_x, further_y)
        second = corners_in(here, lane, further_x, further_y)
        third = corners_in(above, lane, further_x, further_y)
        further_z = steps[2][lane] > bases[2]
        values = chosen(first, second, further_z) + chosen(second, third, further_z)
        result[lane] = interpolated(values, parts[0][lane], parts[1][lane], parts[2][lane])
        low[lane], high[lane] = smallest_of(values), largest_of(values)


@inlined
def trace_far(ghosted, origin, start, y, z, box, steps, parts, result, low, high):
    """Do the same for any feet."""
    for lane in range(LANES):
        x = start + lane + np.int64(steps[0][lane])
        y_foot, z_foot = y + np.int64(steps[1][lane]), z + np.int64(steps[2][lane])
        values = corners_at(ghosted, x, y_foot, z_foot, origin, box)
        result[lane] = interpolated(values, parts[0][lane], parts[1][lane], parts[2][lane])
        low[lane], high[lane] = smallest_of(values), largest_of(values)


@inlined
def put(values, row, start):
    """Store LANES values in a row, or as many as it has."""
    if row.size >= LANES:
        place = window(row, start)
        for lane in range(LANES):
            place[lane] = values[lane]
    else:
        for lane in range(row.size):
            row[lane] = values[lane]


@compiled
def find_feet_of_row(u, v, w, y, z, scale, box, steps, parts):
    """Fill `steps` and `parts` with the displacements of a row along x, y and z."""
    half, none = type(scale)(0.5), type(scale)(0)
    find_feet(u, scale, limits_along(0, 0, box, half), half + half, steps[0], parts[0])
    find_feet(v, scale, limits_along(y, 1, box, half), none, steps[1], parts[1])
    find_feet(w, scale, limits_along(z, 2, box, half), none, steps[2], parts[2])


@compiled
def trace_row(ghosted, origin, y, z, box, steps, parts, result, low, high):
    """Fill a row with the values at the feet of its cells, and `low` and `high` with the range around them.

    The last block of LANES starts where it ends with the row; a shorter row has one that goes on behind its end.
    """
    kind = result.dtype.type
    values, smallest, largest = lanes(kind), lanes(kind), lanes(kind)
    for first in range(0, result.size, LANES):
        start = max(min(first, result.size - LANES), 0)
        jumps = window(steps[0], start), window(steps[1], start), window(steps[2], start)
        rests = window(parts[0], start), window(parts[1], start), window(parts[2], start)
        (i, to_i), (j, to_j), (k, to_k) = range_of(jumps[0]), range_of(jumps[1]), range_of(jumps[2])
        if max(to_i - i, to_j - j, to_k - k) <= 1 and -1 <= start + i <= box.last:
            bases = i, j, k
            trace_near(ghosted, origin, bases, start, y, z, box, jumps, rests, values, smallest, largest)
        else:
            trace_far(ghosted, origin, start, y, z, box, jumps, rests, values, smallest, largest)
        put(values, result, start)
        put(smallest, low, start)
        put(largest, high, start)


@compiled
def room_for_feet(box, kind):
    """Return arrays for the steps and parts of a row, of LANES at least."""
    size = max(box.nx, LANES)
    return np.zeros((3, size), np.int32), np.zeros((3, size), kind)


# ---- All planes ------------------------------------------------------------------------------------------------------


@compiled
def advect_plane(z, ghosted, origin, out, u, v, w, scale, box):
    """Fill a plane with what the velocity carries to it."""
    low, high = np.empty(box.nx, out.dtype), np.empty(box.nx, out.dtype)
    plane, (steps, parts) = box.first + z - 1, room_for_feet(box, out.dtype)
    for y in range(box.ny):
        find_feet_of_row(u[z, y], v[z, y], w[z, y], y, plane, scale, box, steps, parts)
        trace_row(ghosted, origin, y, plane, box, steps, parts, out[z, y], low, high)


@compiled
def correct_plane(z, ghosted, ghosted_forward, source, forward, origin, out, u, v, w, scale, box):
    """Fill a plane with MacCormack's correction of `forward`, within the values around the source."""
    rows, half = np.empty((4, box.nx), out.dtype), type(scale)(0.5)
    back, ahead, low, high = rows[0], rows[1], rows[2], rows[3]
    plane, (steps, parts) = box.first + z - 1, room_for_feet(box, out.dtype)
    for y in range(box.ny):
        find_feet_of_row(u[z, y], v[z, y], w[z, y], y, plane, -scale, box, steps, parts)
        trace_row(ghosted_forward, origin, y, plane, box, steps, parts, back, low, high)
        find_feet_of_row(u[z, y], v[z, y], w[z, y], y, plane, scale, box, steps, parts)
        trace_row(ghosted, origin, y, plane, box, steps, parts, ahead, low, high)
        old, new = source[plane - origin, y], forward[plane - origin, y]
        for x in range(box.nx):
            corrected = new[x] + half * (old[x] - back[x])
            out[z, y, x] = at_most(at_least(corrected, low[x]), high[x])


@compiled_parallel
def advect(ghosted, origin, out, u, v, w, scale, box):
    """Fill `out` with what the velocity carries to each cell.

    Parameters
    ----------
    ghosted : flat array
        From `fill_ghosted`, with planes origin ... origin + m - 1 of the grid, all that traces can reach.
    out, u, v, w : (planes + 2, ny, nx) array
        Result, and velocity.
    scale : float
        Cells by which the foot of a trace lies further for a velocity of 1; negative to look back in time.
    box : Box
        The grid.
    """
    for z in prange(1, box.planes + 1):
        advect_plane(z, ghosted, origin, out, u, v, w, scale, box)


@compiled_parallel
def correct(ghosted, ghosted_forward, source, forward, origin, out, u, v, w, scale, box):
    """Fill `out` with the MacCormack scheme's second half: arguments as in `advect`, and what that gave."""
    for z in prange(1, box.planes + 1):
        correct_plane(z, ghosted, ghosted_forward, source, forward, origin, out, u, v, w, scale, box)
