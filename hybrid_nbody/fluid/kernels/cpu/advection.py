"""Advection on CPU threads: every cell takes the value at its departure point.

All positions are displacements from the cell, so that rounding does not grow with the coordinate,
and interpolation is ``a + t * (b - a)``, so that a uniform field stays uniform to the last bit.

Cells are taken LANES at a time, along x. In a smooth flow such neighbours come from neighbours:
where their steps, the displacements rounded down, are the same, the values around all departure
points are 8 vectors; where they differ by 1 at most, they are selected among 27. Elsewhere each
cell looks up its own. The result is the same.
"""

from typing import Any, NamedTuple

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
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.cpu.ghosts import MARGIN
from hybrid_nbody.fluid.kernels.cpu.interpolation import (
    integer,
    interpolate,
    limits_of,
    load_neighbours,
    maximum_of,
    minimum_of,
    neighbour_offset,
    plane_size,
    row_size,
    select_neighbours,
    split_displacement,
)
from hybrid_nbody.fluid.kernels.cpu.layout import compiled_with_threads, inlined, linked


class Copy(NamedTuple):
    """A copy with ghosts of all planes that traces can reach.

    Attributes
    ----------
    data : address
    origin, planes : int
        It was made of planes origin, origin + 1 ... of the grid, and has this many itself.
    """

    data: Any
    origin: int
    planes: int


class Flow(NamedTuple):
    """The velocity of a slab.

    Attributes
    ----------
    u, v, w : address
    scale : float
        Cells from a cell to its departure point for a velocity of 1: negative to look back in time.
    """

    u: Any
    v: Any
    w: Any
    scale: Any


class Cell(NamedTuple):
    """A cell of the grid, or the first of LANES cells, and where its velocity lies."""

    x: int
    y: int
    z: int
    offset: int


@inlined
def shifted(cell, columns):
    """Return the cell that lies a number of columns after another along x."""
    return Cell(cell.x + columns, cell.y, cell.z, cell.offset + columns)


@inlined
def reversed_flow(flow):
    """Return the flow with time reversed."""
    return Flow(flow.u, flow.v, flow.w, -flow.scale)


# ---- Departure points ----------------------------------------------------------------------------


@inlined
def departure_points(flow, cell, box):
    """Return the displacements of LANES cells along x, y and z: rounded down, and the rest."""
    scale = broadcast(flow.scale)
    half = type(flow.scale)(0.5)
    columns = arange_from(type(flow.scale)(cell.x))
    (low_x, high_x), (low_y, high_y), (low_z, high_z) = limits_of(cell.y, cell.z, box, half)
    low_x = broadcast(low_x) - columns
    high_x = broadcast(high_x) - columns
    i, part_x = split_displacement(load(flow.u, cell.offset), scale, low_x, high_x)
    v = load(flow.v, cell.offset)
    j, part_y = split_displacement(v, scale, broadcast(low_y), broadcast(high_y))
    w = load(flow.w, cell.offset)
    k, part_z = split_displacement(w, scale, broadcast(low_z), broadcast(high_z))
    return (i, j, k), (part_x, part_y, part_z)


@inlined
def neighbours_of_cell(copy, flow, cell, box):
    """Return the 8 values around the departure point of a cell, and its location between them."""
    scale = flow.scale
    half = type(scale)(0.5)
    column = type(scale)(cell.x)
    (low_x, high_x), (low_y, high_y), (low_z, high_z) = limits_of(cell.y, cell.z, box, half)
    u = load_scalar(flow.u, cell.offset)
    i, part_x = split_displacement(u, scale, low_x - column, high_x - column)
    j, part_y = split_displacement(load_scalar(flow.v, cell.offset), scale, low_y, high_y)
    k, part_z = split_displacement(load_scalar(flow.w, cell.offset), scale, low_z, high_z)
    x = cell.x + integer(i)
    y = cell.y + integer(j)
    z = cell.z + integer(k)
    offset = neighbour_offset(x, y, z, copy, box)
    return load_neighbours(copy.data, offset, load_scalar, box), (part_x, part_y, part_z)


@inlined
def offset_in_copy(copy, x, y, z, box):
    """Return where a cell lies in the copy with ghosts, and whether traces near it stay inside."""
    plane = z - copy.origin + MARGIN
    inside = (x >= -1) & (x <= box.last) & (y >= -1) & (y < box.ny)
    inside &= (plane > 0) & (plane < copy.planes - 2)
    return plane * plane_size(box) + (y + 1) * row_size(box) + x + 1, inside


@inlined
def first_steps(steps):
    """Return the steps of the first cell along x, y and z, and whether all cells have the same.

    NaN is the same as nothing.
    """
    i = first_lane(steps[0])
    j = first_lane(steps[1])
    k = first_lane(steps[2])
    same = (steps[0] == broadcast(i)) & (steps[1] == broadcast(j)) & (steps[2] == broadcast(k))
    return (integer(i), integer(j), integer(k)), all_of(same)


@inlined
def smallest_step(steps):
    """Return the smallest step along an axis, which steps are larger, and whether by 1 at most."""
    first = first_lane(steps)
    base = first - type(first)(1) if any_of(steps < broadcast(first)) else first
    low = broadcast(base)
    high = broadcast(base + type(first)(1))
    return integer(base), steps > low, all_of((steps == low) | (steps == high))


@inlined
def smallest_steps(steps):
    """Return the same for x, y and z."""
    i, next_x, near_x = smallest_step(steps[0])
    j, next_y, near_y = smallest_step(steps[1])
    k, next_z, near_z = smallest_step(steps[2])
    return (i, j, k), (next_x, next_y, next_z), near_x & near_y & near_z


# ---- Values at departure points ------------------------------------------------------------------


@linked
def trace_one_by_one(copy, flow, cell, box):
    """Return the values at the departure points of LANES cells, looked up one by one."""
    result = broadcast(flow.scale)
    for lane in range(LANES):
        neighbours, parts = neighbours_of_cell(copy, flow, shifted(cell, lane), box)
        result = insert(result, lane, interpolate(neighbours, parts))
    return result


@inlined
def trace(copy, flow, cell, box):
    """Return the values at the departure points of LANES cells."""
    steps, parts = departure_points(flow, cell, box)
    (i, j, k), same = first_steps(steps)
    offset, inside = offset_in_copy(copy, cell.x + i, cell.y + j, cell.z + k, box)
    if same & inside:
        return interpolate(load_neighbours(copy.data, offset, load, box), parts)
    (i, j, k), is_next, near = smallest_steps(steps)
    offset, inside = offset_in_copy(copy, cell.x + i, cell.y + j, cell.z + k, box)
    if near & inside:
        return interpolate(select_neighbours(copy.data, offset, is_next, box), parts)
    return trace_one_by_one(copy, flow, cell, box)


@linked
def bounds_one_by_one(copy, flow, cell, box):
    """Return the values of `trace_bounds`, looked up one by one."""
    low = broadcast(flow.scale)
    high = broadcast(flow.scale)
    for lane in range(LANES):
        neighbours, _ = neighbours_of_cell(copy, flow, shifted(cell, lane), box)
        low = insert(low, lane, minimum_of(neighbours))
        high = insert(high, lane, maximum_of(neighbours))
    return low, high


@inlined
def trace_bounds(copy, flow, cell, box):
    """Return the smallest and the largest values around the departure points of LANES cells."""
    steps, _ = departure_points(flow, cell, box)
    (i, j, k), is_next, near = smallest_steps(steps)
    offset, inside = offset_in_copy(copy, cell.x + i, cell.y + j, cell.z + k, box)
    if not near & inside:
        return bounds_one_by_one(copy, flow, cell, box)
    neighbours = select_neighbours(copy.data, offset, is_next, box)
    return minimum_of(neighbours), maximum_of(neighbours)


# ---- Rows ----------------------------------------------------------------------------------------


@linked
def advect_row(copy, flow, out, row, box):
    """Fill a row, given by its first cell; the last LANES cells end with the row."""
    for first in range(0, box.nx, LANES):
        cell = shifted(row, min(first, box.nx - LANES))
        store(out, cell.offset, trace(copy, flow, cell, box))


@linked
def advect_narrow_row(copy, flow, out, row, box):
    """Fill a row of less than LANES cells."""
    for x in range(box.nx):
        cell = shifted(row, x)
        neighbours, parts = neighbours_of_cell(copy, flow, cell, box)
        store_scalar(out, cell.offset, interpolate(neighbours, parts))


class Uncorrected(NamedTuple):
    """The fields of MacCormack's correction, without ghosts.

    Attributes
    ----------
    source, forward : address
        What is carried, and the uncorrected result.
    shift : int
        Offset of their cells from those of the slab.
    """

    source: Any
    forward: Any
    shift: int


@inlined
def corrected(old, new, back, half, bounds):
    """Return `new` less half the error of going there and back, within bounds; NaN stays NaN."""
    low, high = bounds
    return minimum(high, maximum(low, new + half * (old - back)))


@linked
def correct_row(copies, fields, flow, out, row, box):
    """Fill a row, given by its first cell, with MacCormack's correction."""
    source, forward = copies
    half = broadcast(type(flow.scale)(0.5))
    for first in range(0, box.nx, LANES):
        cell = shifted(row, min(first, box.nx - LANES))
        back = trace(forward, reversed_flow(flow), cell, box)
        bounds = trace_bounds(source, flow, cell, box)
        old = load(fields.source, cell.offset + fields.shift)
        new = load(fields.forward, cell.offset + fields.shift)
        store(out, cell.offset, corrected(old, new, back, half, bounds))


@linked
def correct_narrow_row(copies, fields, flow, out, row, box):
    """Fill a row of less than LANES cells with MacCormack's correction."""
    source, forward = copies
    half = type(flow.scale)(0.5)
    for x in range(box.nx):
        cell = shifted(row, x)
        neighbours, parts = neighbours_of_cell(forward, reversed_flow(flow), cell, box)
        around, _ = neighbours_of_cell(source, flow, cell, box)
        bounds = minimum_of(around), maximum_of(around)
        old = load_scalar(fields.source, cell.offset + fields.shift)
        new = load_scalar(fields.forward, cell.offset + fields.shift)
        back = interpolate(neighbours, parts)
        store_scalar(out, cell.offset, corrected(old, new, back, half, bounds))


# ---- All planes ----------------------------------------------------------------------------------


@inlined
def first_cell(z, y, box):
    """Return the first cell of a row of a plane of the slab, counted from its lower halo plane."""
    return Cell(0, y, box.first + z - 1, (z * box.ny + y) * box.nx)


@linked
def advect_plane(z, copy, flow, out, box):
    """Fill a plane with what the flow carries."""
    mode = flush_subnormals()
    for y in range(box.ny):
        row = first_cell(z, y, box)
        if box.nx >= LANES:
            advect_row(copy, flow, out, row, box)
        else:
            advect_narrow_row(copy, flow, out, row, box)
    restore_subnormals(mode)


@linked
def correct_plane(z, copies, fields, flow, out, box):
    """Fill a plane with MacCormack's correction."""
    mode = flush_subnormals()
    for y in range(box.ny):
        row = first_cell(z, y, box)
        if box.nx >= LANES:
            correct_row(copies, fields, flow, out, row, box)
        else:
            correct_narrow_row(copies, fields, flow, out, row, box)
    restore_subnormals(mode)


@compiled_with_threads
def advect(ghosted, origin, out, velocity, scale, box):
    """Fill `out` with what a flow carries to each cell.

    Parameters
    ----------
    ghosted : flat array
        From `fill_ghosted`, with planes origin ... origin + m - 1 of the grid, all that traces can
        reach.
    origin : int
    out : flat array
        Result, a field of the slab.
    velocity : tuple of flat array
        u, v and w, fields of the slab.
    scale : float
        See `Flow`.
    box : Box
        The grid.
    """
    u, v, w = velocity
    copy = Copy(address_of(ghosted), origin, ghosted.size // plane_size(box))
    flow = Flow(address_of(u), address_of(v), address_of(w), scale)
    each_on_threads(advect_plane, 1, box.planes + 1, (copy, flow, address_of(out), box))


@compiled_with_threads
def correct(ghosted, fields, origin, out, velocity, scale, box):
    """Fill `out` with MacCormack's correction.

    Parameters are those of `advect`, but for

    ghosted : tuple of flat array
        Copies of both fields with ghosts.
    fields : tuple of flat array
        The source and what `advect` made of it, from plane `origin` on.
    """
    u, v, w = velocity
    ghosted_source, ghosted_forward = ghosted
    source, forward = fields
    planes = ghosted_source.size // plane_size(box)
    shift = (box.first - 1 - origin) * box.ny * box.nx
    copies = (
        Copy(address_of(ghosted_source), origin, planes),
        Copy(address_of(ghosted_forward), origin, planes),
    )
    uncorrected = Uncorrected(address_of(source), address_of(forward), shift)
    flow = Flow(address_of(u), address_of(v), address_of(w), scale)
    given = (copies, uncorrected, flow, address_of(out), box)
    each_on_threads(correct_plane, 1, box.planes + 1, given)
