"""Advection on CPU threads: every cell looks up what was where its fluid comes from.

All positions are displacements from the cell, so that rounding does not grow with the coordinate, and interpolation is
``a + t * (b - a)``, so that a uniform field stays uniform to the last bit.

Cells are taken LANES at a time, along x. In a smooth flow such neighbours come from neighbours: where their steps, the
displacements rounded down, differ by at most 1 along each axis, the values around all feet are chosen among 3 x 3 x 3
vectors. Elsewhere each cell looks up its own. The result is the same.
"""

import numpy as np
from numba import prange

from hybrid_nbody.fluid.kernels.cpu_corners import (
    along_rows,
    at_least,
    at_most,
    between,
    corners_at,
    interpolated,
    largest_in_rows,
    largest_of,
    limits_along,
    pair_of,
    plane_size,
    planes_from,
    range_of,
    row_size,
    smallest_in_rows,
    smallest_of,
)
from hybrid_nbody.fluid.kernels.cpu_ghosts import MARGIN
from hybrid_nbody.fluid.kernels.cpu_rows import LANES, compiled, compiled_parallel, inlined, lanes, window

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


@compiled
def trace_near(ghosted, place, bases, box, steps, parts, target):
    """Fill `target` from feet whose steps are `bases`, which lead to a place, or 1 more."""
    planes, result = planes_from(ghosted, place, box), lanes(target.dtype.type)
    for lane in range(LANES):  # stores nothing where the source may be: it could not be vector code
        further = steps[0][lane] > bases[0], steps[1][lane] > bases[1]
        a = along_rows(planes[0], lane, further, parts[0][lane], parts[1][lane])
        b = along_rows(planes[1], lane, further, parts[0][lane], parts[1][lane])
        c = along_rows(planes[2], lane, further, parts[0][lane], parts[1][lane])
        result[lane] = between(*pair_of(a, b, c, steps[2][lane] > bases[2]), parts[2][lane])
    for lane in range(LANES):
        target[lane] = result[lane]


@compiled
def bound_near(ghosted, place, bases, box, steps, least, most):
    """Fill `least` and `most` with the range of the values around such feet."""
    planes, low, high = planes_from(ghosted, place, box), lanes(least.dtype.type), lanes(most.dtype.type)
    for lane in range(LANES):
        further, above = (steps[0][lane] > bases[0], steps[1][lane] > bases[1]), steps[2][lane] > bases[2]
        a, b = smallest_in_rows(planes[0], lane, further), smallest_in_rows(planes[1], lane, further)
        low[lane] = min(*pair_of(a, b, smallest_in_rows(planes[2], lane, further), above))
        a, b = largest_in_rows(planes[0], lane, further), largest_in_rows(planes[1], lane, further)
        high[lane] = max(*pair_of(a, b, largest_in_rows(planes[2], lane, further), above))
    for lane in range(LANES):
        least[lane], most[lane] = low[lane], high[lane]


@inlined
def corners_of(ghosted, origin, start, y, z, box, steps, lane):
    """Return the values around any foot."""
    x = start + lane + np.int64(steps[0][lane])
    return corners_at(ghosted, x, y + np.int64(steps[1][lane]), z + np.int64(steps[2][lane]), origin, box)


@compiled
def trace_far(ghosted, origin, start, y, z, box, steps, parts, result):
    """Fill `result` from any feet."""
    for lane in range(result.size):
        values = corners_of(ghosted, origin, start, y, z, box, steps, lane)
        result[lane] = interpolated(values, parts[0][lane], parts[1][lane], parts[2][lane])


@compiled
def bound_far(ghosted, origin, start, y, z, box, steps, low, high):
    """Fill `low` and `high` with the range of the values around any feet."""
    for lane in range(low.size):
        values = corners_of(ghosted, origin, start, y, z, box, steps, lane)
        low[lane], high[lane] = smallest_of(values), largest_of(values)


@compiled
def find_feet_of_row(u, v, w, y, z, scale, box, steps, parts):
    """Fill `steps` and `parts` with the displacements of a row along x, y and z."""
    half, none = type(scale)(0.5), type(scale)(0)
    size = u.size
    find_feet(u, scale, limits_along(0, box.nx, box.ends_x, half), half + half, steps[:size], parts[:size])
    find_feet(v, scale, limits_along(y, box.ny, box.ends_y, half), none, steps[size : 2 * size], parts[size : 2 * size])
    find_feet(w, scale, limits_along(z, box.nz, box.ends_z, half), none, steps[2 * size :], parts[2 * size :])


@inlined
def vectors_of(rows, start, size):
    """Return LANES places of three rows of a flat array."""
    return window(rows, start), window(rows, size + start), window(rows, 2 * size + start)


@inlined
def bases_of(planes, origin, steps, start, y, z, box):
    """Return the smallest steps of a block along x, y and z, the place they lead to, and whether the block is near.

    It is if no step is more than 1 larger, and all that is read lies in the copy, which has so many planes.
    """
    (i, to_i), (j, to_j), (k, to_k) = range_of(steps[0]), range_of(steps[1]), range_of(steps[2])
    x, y, plane = start + i, y + j, z + k - origin + MARGIN
    close = (to_i - i <= 1) & (to_j - j <= 1) & (to_k - k <= 1)
    inside = (x >= -1) & (x <= box.last) & (y >= -1) & (y < box.ny) & (plane > 0) & (plane < planes - 2)
    return (i, j, k), plane * plane_size(box) + (y + 1) * row_size(box) + x + 1, close & inside


@compiled
def trace_row(ghosted, origin, y, z, box, steps, parts, result):
    """Fill a row with the values at the feet of its cells; the last block of LANES ends with the row."""
    if result.size < LANES:
        jumps, rests = steps.reshape(3, result.size), parts.reshape(3, result.size)
        trace_far(ghosted, origin, 0, y, z, box, jumps, rests, result)
        return
    planes = ghosted.size // plane_size(box)
    for first in range(0, result.size, LANES):
        start = min(first, result.size - LANES)
        jumps, rests = vectors_of(steps, start, result.size), vectors_of(parts, start, result.size)
        target = window(result, start)
        bases, place, near = bases_of(planes, origin, jumps, start, y, z, box)
        if near:
            trace_near(ghosted, place, bases, box, jumps, rests, target)
        else:
            trace_far(ghosted, origin, start, y, z, box, jumps, rests, target)


@compiled
def bound_row(ghosted, origin, y, z, box, steps, low, high):
    """Fill `low` and `high` with the ranges of the values around the feet of a row."""
    if low.size < LANES:
        bound_far(ghosted, origin, 0, y, z, box, steps.reshape(3, low.size), low, high)
        return
    planes = ghosted.size // plane_size(box)
    for first in range(0, low.size, LANES):
        start = min(first, low.size - LANES)
        jumps, least, most = vectors_of(steps, start, low.size), window(low, start), window(high, start)
        bases, place, near = bases_of(planes, origin, jumps, start, y, z, box)
        if near:
            bound_near(ghosted, place, bases, box, jumps, least, most)
        else:
            bound_far(ghosted, origin, start, y, z, box, jumps, least, most)


@compiled
def room_for_feet(box, kind):
    """Return flat arrays for the steps and parts of a row, along x, then y, then z."""
    return np.empty(3 * box.nx, np.int32), np.empty(3 * box.nx, kind)


# ---- Rows whose fluid moves less than a cell -------------------------------------------------------------------------


@compiled
def fast_cells(speed, scale):
    """Return how many cells of a row move by a cell or more, or by NaN."""
    count = 0
    for c in range(speed.size):
        count += not abs(scale * speed[c]) < type(scale)(1)
    return count


@inlined
def foot_of(speed, scale, low, high):
    """Return a displacement of less than a cell: whether it is rounded down to 0, not -1, and the rest."""
    displacement = at_most(at_least(scale * speed, low), high)
    floor = np.floor(displacement)
    return floor == 0, displacement - floor


@compiled
def trace_slow_row(ghosted, place, y, z, u, v, w, scale, box, out):
    """Fill a row whose steps are -1 or 0, which lead to `place` or to the next one along an axis; as `trace_row`."""
    half, kind = type(scale)(0.5), type(scale)
    low_x, high_x = limits_along(0, box.nx, box.ends_x, half)
    low_y, high_y = limits_along(y, box.ny, box.ends_y, half)
    low_z, high_z = limits_along(z, box.nz, box.ends_z, half)
    result = lanes(kind)
    for first in range(0, out.size, LANES):
        start = min(first, out.size - LANES)
        planes, target = planes_from(ghosted, place + start, box), window(out, start)
        speeds = window(u, start), window(v, start), window(w, start)
        for lane in range(LANES):
            shift = kind(start + lane)
            further_x, x = foot_of(speeds[0][lane], scale, low_x - shift, high_x - shift)
            further_y, y_part = foot_of(speeds[1][lane], scale, low_y, high_y)
            further_z, z_part = foot_of(speeds[2][lane], scale, low_z, high_z)
            further = further_x, further_y
            a = along_rows(planes[0], lane, further, x, y_part)
            b = along_rows(planes[1], lane, further, x, y_part)
            c = along_rows(planes[2], lane, further, x, y_part)
            result[lane] = between(*pair_of(a, b, c, further_z), z_part)
        for lane in range(LANES):
            target[lane] = result[lane]


# ---- All planes ------------------------------------------------------------------------------------------------------


@compiled
def advect_plane(z, ghosted, origin, out, u, v, w, scale, box):
    """Fill a plane with what the velocity carries to it."""
    plane, (steps, parts) = box.first + z - 1, room_for_feet(box, out.dtype)
    lowest = (plane - 1 - origin + MARGIN) * plane_size(box)
    for y in range(box.ny):
        fast = fast_cells(u[z, y], scale) + fast_cells(v[z, y], scale) + fast_cells(w[z, y], scale)
        if fast == 0 and box.nx >= LANES:
            place = lowest + y * row_size(box)
            trace_slow_row(ghosted, place, y, plane, u[z, y], v[z, y], w[z, y], scale, box, out[z, y])
        else:
            find_feet_of_row(u[z, y], v[z, y], w[z, y], y, plane, scale, box, steps, parts)
            trace_row(ghosted, origin, y, plane, box, steps, parts, out[z, y])


@compiled
def correct_plane(z, ghosted, ghosted_forward, source, forward, origin, out, u, v, w, scale, box):
    """Fill a plane with MacCormack's correction of `forward`, within the values around the source."""
    rows, half = np.empty((3, box.nx), out.dtype), type(scale)(0.5)
    back, low, high = rows[0], rows[1], rows[2]
    plane, (steps, parts) = box.first + z - 1, room_for_feet(box, out.dtype)
    for y in range(box.ny):
        find_feet_of_row(u[z, y], v[z, y], w[z, y], y, plane, -scale, box, steps, parts)
        trace_row(ghosted_forward, origin, y, plane, box, steps, parts, back)
        find_feet_of_row(u[z, y], v[z, y], w[z, y], y, plane, scale, box, steps, parts)
        bound_row(ghosted, origin, y, plane, box, steps, low, high)
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
