"""Advection on CPU threads: every cell looks up what was where its fluid comes from.

All positions are displacements from the cell, so that rounding does not grow with the coordinate,
and interpolation is ``a + t * (b - a)``, so that a uniform field stays uniform to the last bit.

Cells are taken LANES at a time, along x. In a smooth flow such neighbours come from neighbours:
where their steps, the displacements rounded down, are the same, the values around all feet are 8
vectors; where they differ by 1 at most, they are chosen among 27. Elsewhere each cell looks up its
own. The result is the same.
"""

from typing import NamedTuple

from numba import prange

from hybrid_nbody.backends.simd import (
    LANES,
    address_of,
    all_of,
    any_of,
    arange_from,
    broadcast,
    first_lane,
    insert,
    load,
    load_scalar,
    maximum,
    minimum,
    store,
    store_scalar,
)
from hybrid_nbody.backends.subnormals import flush_subnormals, restore_subnormals
from hybrid_nbody.fluid.kernels.cpu.ghosts import MARGIN
from hybrid_nbody.fluid.kernels.cpu.interpolation import (
    chosen_corners,
    corners_from,
    foot_of,
    interpolated,
    largest_of,
    limits_in,
    place_in,
    plane_size,
    row_size,
    smallest_of,
    whole,
)
from hybrid_nbody.fluid.kernels.cpu.layout import compiled, compiled_parallel, inlined


class Reach(NamedTuple):
    """The planes of a copy with ghosts, which hold all that traces can reach.

    Attributes
    ----------
    origin, planes : int
        It was made of planes origin, origin + 1 ... of the grid, and has so many itself.
    """

    origin: int
    planes: int


# ---- Feet ----------------------------------------------------------------------------------------


@inlined
def feet_of_block(u, v, w, place, x, y, z, scale, box):
    """Return steps and parts, along x, y and z, of LANES cells from x, y, z on, whose velocity is at `place`."""
    by = broadcast(scale)
    cells = arange_from(type(scale)(x))
    (low_x, high_x), (low_y, high_y), (low_z, high_z) = limits_in(y, z, box, type(scale)(0.5))
    i, x_part = foot_of(load(u, place), by, broadcast(low_x) - cells, broadcast(high_x) - cells)
    j, y_part = foot_of(load(v, place), by, broadcast(low_y), broadcast(high_y))
    k, z_part = foot_of(load(w, place), by, broadcast(low_z), broadcast(high_z))
    return (i, j, k), (x_part, y_part, z_part)


@inlined
def corners_of_cell(ghosted, reach, u, v, w, place, x, y, z, scale, box):
    """Return the values around the foot of one cell, and the parts."""
    (low_x, high_x), (low_y, high_y), (low_z, high_z) = limits_in(y, z, box, type(scale)(0.5))
    cell = type(scale)(x)
    i, x_part = foot_of(load_scalar(u, place), scale, low_x - cell, high_x - cell)
    j, y_part = foot_of(load_scalar(v, place), scale, low_y, high_y)
    k, z_part = foot_of(load_scalar(w, place), scale, low_z, high_z)
    foot = place_in(x + whole(i), y + whole(j), z + whole(k), reach.origin, reach.planes, box)
    return corners_from(ghosted, foot, load_scalar, box), (x_part, y_part, z_part)


@inlined
def place_of_foot(reach, x, y, z, box):
    """Return where a cell lies in the copy with ghosts, and whether all lies there that traces near it read."""
    plane = z - reach.origin + MARGIN
    inside = (x >= -1) & (x <= box.last) & (y >= -1) & (y < box.ny)
    inside &= (plane > 0) & (plane < reach.planes - 2)
    return plane * plane_size(box) + (y + 1) * row_size(box) + x + 1, inside


@inlined
def first_steps(steps):
    """Return the steps of the first cell along x, y and z, and whether all cells have the same; NaN is not."""
    i, j, k = first_lane(steps[0]), first_lane(steps[1]), first_lane(steps[2])
    alike = (steps[0] == broadcast(i)) & (steps[1] == broadcast(j)) & (steps[2] == broadcast(k))
    return (whole(i), whole(j), whole(k)), all_of(alike)


@inlined
def smallest_step(steps):
    """Return the smallest step along an axis, where steps are larger, and whether by no more than 1."""
    first = first_lane(steps)
    base = first - type(first)(1) if any_of(steps < broadcast(first)) else first
    low = broadcast(base)
    high = broadcast(base + type(first)(1))
    return whole(base), steps > low, all_of((steps == low) | (steps == high))


@inlined
def smallest_steps(steps):
    """Return the same for x, y and z."""
    i, i_further, i_near = smallest_step(steps[0])
    j, j_further, j_near = smallest_step(steps[1])
    k, k_further, k_near = smallest_step(steps[2])
    return (i, j, k), (i_further, j_further, k_further), i_near & j_near & k_near


# ---- Values at feet ------------------------------------------------------------------------------


@compiled
def trace_apart(ghosted, reach, u, v, w, place, x, y, z, scale, box):
    """Return what is at the feet of LANES cells, looked up one by one."""
    result = broadcast(scale)
    for lane in range(LANES):
        corners, parts = corners_of_cell(
            ghosted, reach, u, v, w, place + lane, x + lane, y, z, scale, box
        )
        result = insert(result, lane, interpolated(corners, *parts))
    return result


@inlined
def trace(ghosted, reach, u, v, w, place, x, y, z, scale, box):
    """Return what is at the feet of LANES cells from x, y, z on, whose velocity is at `place`."""
    steps, parts = feet_of_block(u, v, w, place, x, y, z, scale, box)
    (i, j, k), alike = first_steps(steps)
    foot, inside = place_of_foot(reach, x + i, y + j, z + k, box)
    if alike & inside:
        return interpolated(corners_from(ghosted, foot, load, box), *parts)
    (i, j, k), further, near = smallest_steps(steps)
    foot, inside = place_of_foot(reach, x + i, y + j, z + k, box)
    if near & inside:
        return interpolated(chosen_corners(ghosted, foot, further, box), *parts)
    return trace_apart(ghosted, reach, u, v, w, place, x, y, z, scale, box)


@compiled
def bounds_apart(ghosted, reach, u, v, w, place, x, y, z, scale, box):
    """Return the smallest and the largest values around the feet of LANES cells, looked up one by one."""
    low = broadcast(scale)
    high = broadcast(scale)
    for lane in range(LANES):
        values, _ = corners_of_cell(
            ghosted, reach, u, v, w, place + lane, x + lane, y, z, scale, box
        )
        low = insert(low, lane, smallest_of(values))
        high = insert(high, lane, largest_of(values))
    return low, high


@inlined
def trace_bounds(ghosted, reach, u, v, w, place, x, y, z, scale, box):
    """Return the smallest and the largest values around the feet of LANES cells."""
    steps, _ = feet_of_block(u, v, w, place, x, y, z, scale, box)
    (i, j, k), further, near = smallest_steps(steps)
    foot, inside = place_of_foot(reach, x + i, y + j, z + k, box)
    if not near & inside:
        return bounds_apart(ghosted, reach, u, v, w, place, x, y, z, scale, box)
    corners = chosen_corners(ghosted, foot, further, box)
    return smallest_of(corners), largest_of(corners)


# ---- Rows ----------------------------------------------------------------------------------------


@compiled
def advect_row(ghosted, reach, out, u, v, w, place, y, z, scale, box):
    """Fill a row with what the velocity carries to it; the last LANES cells end with the row."""
    for first in range(0, box.nx, LANES):
        x = min(first, box.nx - LANES)
        store(out, place + x, trace(ghosted, reach, u, v, w, place + x, x, y, z, scale, box))


@compiled
def advect_narrow_row(ghosted, reach, out, u, v, w, place, y, z, scale, box):
    """The same for a row of less than LANES cells."""
    for x in range(box.nx):
        corners, parts = corners_of_cell(ghosted, reach, u, v, w, place + x, x, y, z, scale, box)
        store_scalar(out, place + x, interpolated(corners, *parts))


@inlined
def corrected(old, new, back, half, low, high):
    """Return `new` less half the error of going there and back, within bounds; NaN stays NaN."""
    return minimum(high, maximum(low, new + half * (old - back)))


@compiled
def correct_row(
    ghosted, ghosted_forward, reach, fields, shift, out, u, v, w, place, y, z, scale, box
):
    """Fill a row with MacCormack's correction; rows of `fields`, the source and what it became, lie `shift` on."""
    half = broadcast(type(scale)(0.5))
    for first in range(0, box.nx, LANES):
        x = min(first, box.nx - LANES)
        here = place + x
        back = trace(ghosted_forward, reach, u, v, w, here, x, y, z, -scale, box)
        low, high = trace_bounds(ghosted, reach, u, v, w, here, x, y, z, scale, box)
        old = load(fields[0], here + shift)
        new = load(fields[1], here + shift)
        store(out, here, corrected(old, new, back, half, low, high))


@compiled
def correct_narrow_row(
    ghosted, ghosted_forward, reach, fields, shift, out, u, v, w, place, y, z, scale, box
):
    """The same for a row of less than LANES cells."""
    for x in range(box.nx):
        here = place + x
        corners, parts = corners_of_cell(
            ghosted_forward, reach, u, v, w, here, x, y, z, -scale, box
        )
        around, _ = corners_of_cell(ghosted, reach, u, v, w, here, x, y, z, scale, box)
        old = load_scalar(fields[0], here + shift)
        new = load_scalar(fields[1], here + shift)
        back = interpolated(corners, *parts)
        low = smallest_of(around)
        high = largest_of(around)
        store_scalar(out, here, corrected(old, new, back, type(scale)(0.5), low, high))


# ---- All planes ----------------------------------------------------------------------------------


@compiled
def advect_plane(z, ghosted, reach, out, u, v, w, scale, box):
    """Fill a plane with what the velocity carries to it."""
    plane = box.first + z - 1
    for y in range(box.ny):
        row = (z * box.ny + y) * box.nx, y, plane, scale, box
        if box.nx >= LANES:
            advect_row(ghosted, reach, out, u, v, w, *row)
        else:
            advect_narrow_row(ghosted, reach, out, u, v, w, *row)


@compiled
def correct_plane(z, ghosted, ghosted_forward, reach, fields, out, u, v, w, scale, box):
    """Fill a plane with MacCormack's correction."""
    plane = box.first + z - 1
    shift = (box.first - 1 - reach.origin) * box.ny * box.nx
    for y in range(box.ny):
        row = (z * box.ny + y) * box.nx, y, plane, scale, box
        if box.nx >= LANES:
            correct_row(ghosted, ghosted_forward, reach, fields, shift, out, u, v, w, *row)
        else:
            correct_narrow_row(ghosted, ghosted_forward, reach, fields, shift, out, u, v, w, *row)


@compiled_parallel
def advect(ghosted, origin, out, velocity, scale, box):
    """Fill `out` with what the velocity carries to each cell.

    Parameters
    ----------
    ghosted : flat array
        From `fill_ghosted`, with planes origin ... origin + m - 1 of the grid, all that traces can
        reach.
    out : flat array
        Result, a field of the slab.
    velocity : tuple of flat array
        u, v and w, fields of the slab.
    scale : float
        Cells by which the foot of a trace lies further for a velocity of 1; negative to look back
        in time.
    box : Box
        The grid.
    """
    u, v, w = velocity
    reach = Reach(origin, ghosted.size // plane_size(box))
    for z in prange(1, box.planes + 1):
        mode = flush_subnormals()
        speeds = address_of(u), address_of(v), address_of(w)
        advect_plane(z, address_of(ghosted), reach, address_of(out), *speeds, scale, box)
        restore_subnormals(mode)


@compiled_parallel
def correct(copies, fields, origin, out, velocity, scale, box):
    """Fill `out` with the MacCormack scheme's second half: arguments as in `advect`, and what that gave.

    `fields`: the source and what `advect` made of it, flat, without ghosts, from plane `origin` on.
    """
    u, v, w = velocity
    ghosted, ghosted_forward = copies
    source, forward = fields
    reach = Reach(origin, ghosted.size // plane_size(box))
    for z in prange(1, box.planes + 1):
        mode = flush_subnormals()
        ghosted_fields = address_of(ghosted), address_of(ghosted_forward)
        plain = address_of(source), address_of(forward)
        speeds = address_of(u), address_of(v), address_of(w)
        correct_plane(z, *ghosted_fields, reach, plain, address_of(out), *speeds, scale, box)
        restore_subnormals(mode)
