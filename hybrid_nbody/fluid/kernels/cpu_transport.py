"""Advection on CPU threads: every cell looks up what was where its fluid comes from.

All positions are displacements from the cell, so that rounding does not grow with the coordinate, and interpolation is
``a + t * (b - a)``, so that a uniform field stays uniform to the last bit.

Cells are taken LANES at a time, along x. In a smooth flow such neighbours come from neighbours: where their steps, the
displacements rounded down, differ by at most 1 along each axis, the values around all feet are chosen among 3 x 3 x 3
vectors. Elsewhere each cell looks up its own. The result is the same.
"""

import numpy as np
from numba import prange

from hybrid_nbody.fluid.kernels.cpu_ghosts import MARGIN, PERIODIC, WALLS
from hybrid_nbody.fluid.kernels.cpu_rows import LANES, compiled, compiled_parallel, inlined, integers, lanes, window

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


@compiled
def index_along(index, count, ends):
    """Return an index within a copy with ghosts; only what NaN became lies outside at walls."""
    if ends == PERIODIC and (index < 0 or index >= count):
        return index % count
    return min(max(index, -1), count) if ends == WALLS else index


@compiled
def place_in(ghosted, x, y, z, origin, box):
    """Return where a cell lies in the flat copy with ghosts."""
    y, z = index_along(y, box.ny, box.ends_y), index_along(z, box.nz, box.ends_z)
    rows, pitch = box.ny + 2, box.nx + 2 + LANES
    plane = min(max(z - origin + MARGIN, 0), ghosted.size // (rows * pitch) - 1)
    return (plane * rows + y + 1) * pitch + x + 1


@inlined
def range_of(steps):
    """Return the smallest and the largest of LANES integers."""
    smallest, largest = steps[0], steps[0]
    for lane in range(LANES):
        smallest, largest = min(smallest, steps[lane]), max(largest, steps[lane])
    return np.int64(smallest), np.int64(largest)


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
    x = min(max(index_along(x, box.nx, box.ends_x), -1), box.nx - 1)
    a, b = place_in(ghosted, x, y, z, origin, box), place_in(ghosted, x, y + 1, z, origin, box)
    c, d = place_in(ghosted, x, y, z + 1, origin, box), place_in(ghosted, x, y + 1, z + 1, origin, box)
    return (
        ghosted[a],
        ghosted[a + 1],
        ghosted[b],
        ghosted[b + 1],
        ghosted[c],
        ghosted[c + 1],
        ghosted[d],
        ghosted[d + 1],
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
def rows_in(ghosted, x, y, z, origin, box):
    """Return three rows of a plane from y on, each as three vectors from x on."""
    a, b = place_in(ghosted, x, y, z, origin, box), place_in(ghosted, x, y + 1, z, origin, box)
    c = place_in(ghosted, x, y + 2, z, origin, box)
    return (
        (window(ghosted, a), window(ghosted, a + 1), window(ghosted, a + 2)),
        (window(ghosted, b), window(ghosted, b + 1), window(ghosted, b + 2)),
        (window(ghosted, c), window(ghosted, c + 1), window(ghosted, c + 2)),
    )


# ---- Blocks ----------------------------------------------------------------------------------------------------------


@inlined
def find_feet(speed, scale, limits, stride, steps, parts):
    """Fill `steps` and `parts` with LANES displacements along an axis: rounded down, and the rest.

    The limits of a lane are less by `stride` than those of the previous one.
    """
    kind = type(scale)
    for lane in range(LANES):
        shift = stride * kind(lane)
        displacement = at_most(at_least(scale * speed[lane], limits[0] - shift), limits[1] - shift)
        floor = np.floor(displacement)
        steps[lane], parts[lane] = np.int32(floor), displacement - floor


@inlined
def trace_near(ghosted, origin, bases, start, y, z, box, steps, parts, result, low, high):
    """Fill `result` from feet whose steps are `bases` or 1 more, and `low` and `high` with the range around them."""
    x, y, z = start + bases[0], y + bases[1], z + bases[2]
    below, here = rows_in(ghosted, x, y, z, origin, box), rows_in(ghosted, x, y, z + 1, origin, box)
    above = rows_in(ghosted, x, y, z + 2, origin, box)
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
def trace(ghosted, origin, speeds, start, y, z, scale, box, result, low, high):
    """Fill `result` with the values at the feet of LANES cells; `low` and `high`, with the range around them."""
    kind = type(scale)
    steps, parts = (integers(), integers(), integers()), (lanes(kind), lanes(kind), lanes(kind))
    half, none = type(scale)(0.5), type(scale)(0)
    find_feet(speeds[0], scale, limits_along(start, box.nx, box.ends_x, half), half + half, steps[0], parts[0])
    find_feet(speeds[1], scale, limits_along(y, box.ny, box.ends_y, half), none, steps[1], parts[1])
    find_feet(speeds[2], scale, limits_along(z, box.nz, box.ends_z, half), none, steps[2], parts[2])
    x_range, y_range, z_range = range_of(steps[0]), range_of(steps[1]), range_of(steps[2])
    near = x_range[1] - x_range[0] <= 1 and y_range[1] - y_range[0] <= 1 and z_range[1] - z_range[0] <= 1
    x = start + x_range[0]
    if near and x >= -1 and (x + LANES < box.nx or box.ends_x == WALLS and x < box.nx):
        bases = x_range[0], y_range[0], z_range[0]
        trace_near(ghosted, origin, bases, start, y, z, box, steps, parts, result, low, high)
    else:
        trace_far(ghosted, origin, start, y, z, box, steps, parts, result, low, high)


@inlined
def take(row, start, taken):
    """Fill `taken` with LANES values of a row; a row that is shorter repeats its last one."""
    if row.size >= LANES:
        values = window(row, start)
        for lane in range(LANES):
            taken[lane] = values[lane]
    else:
        for lane in range(LANES):
            taken[lane] = row[min(lane, row.size - 1)]


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
def advect_row(ghosted, origin, out, u, v, w, y, z, scale, box):
    """Fill a row with what the velocity carries to it; the last block starts where it ends with the row."""
    speeds, result = (lanes(type(scale)), lanes(type(scale)), lanes(type(scale))), lanes(type(scale))
    low, high = lanes(type(scale)), lanes(type(scale))
    for first in range(0, out.size, LANES):
        start = max(min(first, out.size - LANES), 0)
        take(u, start, speeds[0])
        take(v, start, speeds[1])
        take(w, start, speeds[2])
        trace(ghosted, origin, speeds, start, y, z, scale, box, result, low, high)
        put(result, out, start)


@compiled
def correct_row(ghosted, ghosted_forward, source, forward, origin, out, u, v, w, y, z, scale, box):
    """Fill a row with MacCormack's correction of `forward`, within the values around the source."""
    kind = type(scale)
    speeds, back, ignored = (lanes(kind), lanes(kind), lanes(kind)), lanes(kind), lanes(kind)
    low, high, old, new, half = lanes(kind), lanes(kind), lanes(kind), lanes(kind), kind(0.5)
    for first in range(0, out.size, LANES):
        start = max(min(first, out.size - LANES), 0)
        take(u, start, speeds[0])
        take(v, start, speeds[1])
        take(w, start, speeds[2])
        trace(ghosted_forward, origin, speeds, start, y, z, -scale, box, back, low, high)
        trace(ghosted, origin, speeds, start, y, z, scale, box, ignored, low, high)
        take(source, start, old)
        take(forward, start, new)
        for lane in range(LANES):
            new[lane] = new[lane] + half * (old[lane] - back[lane])
            new[lane] = at_most(at_least(new[lane], low[lane]), high[lane])
        put(new, out, start)


# ---- All planes ------------------------------------------------------------------------------------------------------


@compiled
def advect_plane(z, ghosted, origin, out, u, v, w, scale, box):
    """Fill a plane with what the velocity carries to it."""
    for y in range(box.ny):
        advect_row(ghosted, origin, out[z, y], u[z, y], v[z, y], w[z, y], y, box.first + z - 1, scale, box)


@compiled
def correct_plane(z, ghosted, ghosted_forward, source, forward, origin, out, u, v, w, scale, box):
    """Fill a plane with MacCormack's correction."""
    plane = box.first + z - 1
    for y in range(box.ny):
        rows = source[plane - origin, y], forward[plane - origin, y], origin, out[z, y], u[z, y], v[z, y], w[z, y]
        correct_row(ghosted, ghosted_forward, *rows, y, plane, scale, box)


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
