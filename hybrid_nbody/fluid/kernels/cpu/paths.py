"""Advection on the staggered grid in vector code: `cells.advection`, LANES elements at a time.

The arithmetic is that of the functions of a cell, and so are the bits.
"""

from typing import Any, NamedTuple

from hybrid_nbody.backends.simd import (
    LANES,
    address_of,
    all_of,
    broadcast,
    first_lane,
    load,
    maximum,
    minimum,
    select,
    store,
)
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.cpu.layout import compiled_with_threads, inlined, linked
from hybrid_nbody.fluid.kernels.cpu.path_ends import (
    Box,
    Element,
    Point,
    are_alike,
    are_inside,
    faces_along_x,
    offset_of,
    path_of,
)
from hybrid_nbody.fluid.kernels.cpu.path_values import (
    sample,
    sample_alike,
    sample_apart,
    sample_with_bounds,
)


class Flow(NamedTuple):
    """Addresses of the components of the velocity."""

    u: Any
    v: Any
    w: Any


# ---- Paths ---------------------------------------------------------------------------------------


@linked
def flow_apart(flow, element, of_u, of_v, of_w, box):
    """Return what `flow_at` does, where paths go different steps."""
    z, y, x = unit_axes(box.scale)
    u = sample_apart(flow.u, element, of_u, x, box)
    v = sample_apart(flow.v, element, of_v, y, box)
    return Point(sample_apart(flow.w, element, of_w, z, box), v, u)


@inlined
def unit_axes(number):
    """Return along which axes w, v and u are staggered, in the type of a number."""
    zero = type(number)(0.0)
    one = type(number)(1.0)
    return (one, zero, zero), (zero, one, zero), (zero, zero, one)


@inlined
def flow_at(flow, element, distance, box):
    """Return the velocity at distances from LANES elements; those are from their low corners."""
    half = broadcast(type(box.scale)(0.5))
    axis_z, axis_y, axis_x = unit_axes(box.scale)
    of_u = Point(distance.z, distance.y, distance.x + half)
    of_v = Point(distance.z, distance.y + half, distance.x)
    of_w = Point(distance.z + half, distance.y, distance.x)
    path_u = path_of(element, of_u, axis_x, box)
    path_v = path_of(element, of_v, axis_y, box)
    path_w = path_of(element, of_w, axis_z, box)
    alike = are_alike(path_u.steps) & are_alike(path_v.steps) & are_alike(path_w.steps)
    inside = are_inside(path_u.there, 1, box) & are_inside(path_v.there, 1, box)
    inside &= are_inside(path_w.there, 1, box)
    if all_of(alike) & inside:  # one branch: several that cannot be foreseen would take longer
        u = sample_alike(flow.u, path_u, box)
        v = sample_alike(flow.v, path_v, box)
        return Point(sample_alike(flow.w, path_w, box), v, u)
    return flow_apart(flow, element, of_u, of_v, of_w, box)


@inlined
def half_of(vector):
    """Return a half in the type of a vector's numbers."""
    return type(first_lane(vector))(0.5)


@inlined
def mean_along_x(array, offset, ends):
    """Return the means of elements at two offsets along x, of LANES elements."""
    low, high = ends
    first = load(array, offset + low)
    if low == high:
        return first
    return first + broadcast(half_of(first)) * (load(array, offset + high) - first)


@inlined
def mean_along_y(array, offset, ends_y, ends_x):
    """Return the means along x and y."""
    low, high = ends_y
    first = mean_along_x(array, offset + low, ends_x)
    if low == high:
        return first
    second = mean_along_x(array, offset + high, ends_x)
    return first + broadcast(half_of(first)) * (second - first)


@inlined
def mean_of(array, offset, ends):
    """Return the means along x, y and z; ends are offsets along z, y and x."""
    low, high = ends[0]
    first = mean_along_y(array, offset + low, ends[1], ends[2])
    if low == high:
        return first
    second = mean_along_y(array, offset + high, ends[1], ends[2])
    return first + broadcast(half_of(first)) * (second - first)


@inlined
def across(staggered, stride):
    """Return which elements are beside one that is at a low face of cells, or at centres."""
    return (-stride if staggered > 0 else 0), 0


@inlined
def along(staggered, stride):
    """Return the same of a field that is at the low faces of cells itself."""
    return 0, (0 if staggered > 0 else stride)


@inlined
def flow_of_elements(flow, element, staggered, box):
    """Return the velocity at LANES elements: means of those around them."""
    z, y, x = staggered
    row = box.columns
    plane = box.rows * box.columns
    offset = offset_of(element.k, element.j, element.i, box)
    in_z = across(z, plane)
    in_y = across(y, row)
    in_x = across(x, 1)
    u = mean_of(flow.u, offset, (in_z, in_y, along(x, 1)))
    v = mean_of(flow.v, offset, (in_z, along(y, row), in_x))
    return Point(mean_of(flow.w, offset, (along(z, plane), in_y, in_x)), v, u)


@inlined
def halfway(velocity, staggered, half):
    """Return half the paths of LANES elements, from their centres of cells."""
    factor = broadcast(half)
    number = type(half)
    z = factor * velocity.z - broadcast(number(0.5) * staggered[0])
    y = factor * velocity.y - broadcast(number(0.5) * staggered[1])
    return Point(z, y, factor * velocity.x - broadcast(number(0.5) * staggered[2]))


@inlined
def scaled(velocity, factor):
    """Return a velocity times a factor."""
    number = broadcast(factor)
    return Point(number * velocity.z, number * velocity.y, number * velocity.x)


@inlined
def advected(source, flow, element, staggered, box):
    """Return what comes to LANES elements in a step."""
    half = type(box.scale)(0.5) * box.scale
    middle = halfway(flow_of_elements(flow, element, staggered, box), staggered, half)
    path = scaled(flow_at(flow, element, middle, box), box.scale)
    return sample(source, element, path, staggered, box)


@inlined
def beyond(low, high, back, ahead, staggered, wraps):
    """Return which of two paths of LANES elements end beyond the faces of the box."""
    number = type(staggered)
    shift = broadcast(number(0.5) * (staggered - number(1.0)))
    outside = (minimum(back, ahead) < low + shift) | (maximum(back, ahead) > high + shift)
    return outside if wraps == 0 else low > high


@inlined
def leave(element, back, ahead, staggered, box):
    """Return which of LANES elements have a path that ends beyond the box."""
    number = type(box.scale)
    low = broadcast(number(box.bottom - element.k))
    high = broadcast(number(box.top - element.k))
    found = beyond(low, high, back.z, ahead.z, staggered[0], box.wraps_z)
    low = broadcast(number(1 - element.j))
    high = broadcast(number(box.rows - 1 - element.j))
    found = found | beyond(low, high, back.y, ahead.y, staggered[1], box.wraps_y)
    low, high = faces_along_x(element, box)
    return found | beyond(low, high, back.x, ahead.x, staggered[2], box.wraps_x)


@inlined
def corrected(fields, flow, element, staggered, box, slack):
    """Return what MacCormack's correction makes of what came to LANES elements."""
    source, forward = fields
    half = type(box.scale)(0.5) * box.scale
    here = flow_of_elements(flow, element, staggered, box)
    back = scaled(flow_at(flow, element, halfway(here, staggered, half), box), box.scale)
    ahead = scaled(flow_at(flow, element, halfway(here, staggered, -half), box), -box.scale)
    offset = offset_of(element.k, element.j, element.i, box)
    new = load(forward, offset)
    returned = sample(forward, element, ahead, staggered, box)
    value = new + broadcast(type(box.scale)(0.5)) * (load(source, offset) - returned)
    low, high = sample_with_bounds(source, element, back, staggered, box)
    more = broadcast(slack) * (high - low)
    value = minimum(maximum(value, low - more), high + more)
    return select(leave(element, back, ahead, staggered, box), new, value)


# ---- All planes ----------------------------------------------------------------------------------


@linked
def advect_row(source, flow, out, element, end, shift, staggered, box):
    """Set a row; the last LANES elements end with it."""
    plane = shift * box.rows * box.columns
    for first in range(element.i, end, LANES):
        lanes = Element(element.k, element.j, min(first, end - LANES))
        offset = offset_of(lanes.k, lanes.j, lanes.i, box) - plane
        store(out, offset, advected(source, flow, lanes, staggered, box))


@linked
def correct_row(fields, flow, out, element, end, shift, staggered, box, slack):
    """Set a row with MacCormack's correction."""
    plane = shift * box.rows * box.columns
    for first in range(element.i, end, LANES):
        lanes = Element(element.k, element.j, min(first, end - LANES))
        offset = offset_of(lanes.k, lanes.j, lanes.i, box) - plane
        store(out, offset, corrected(fields, flow, lanes, staggered, box, slack))


@linked
def advect_plane(k, source, flow, out, staggered, box, region):
    """Set the elements of a region in a plane; `region` is its ends in a plane and the shift."""
    j0, j1, i0, i1, shift = region
    for j in range(j0, j1):
        advect_row(source, flow, out, Element(k + shift, j, i0), i1, shift, staggered, box)


@linked
def correct_plane(k, fields, flow, out, staggered, box, slack, region):
    """Set the elements of a region in a plane with MacCormack's correction."""
    j0, j1, i0, i1, shift = region
    for j in range(j0, j1):
        element = Element(k + shift, j, i0)
        correct_row(fields, flow, out, element, i1, shift, staggered, box, slack)


@compiled_with_threads
def run_advect(
    k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns,
    source, u, v, w, out, scale, at_z, at_y, at_x, wraps_x, wraps_y, wraps_z,
    bottom, top, last, shift,
):  # fmt: skip
    """Call `advect` for the elements of a region, at least LANES in a row."""
    box = Box(rows, columns, last, wraps_x, wraps_y, wraps_z, bottom, top, scale)
    flow = Flow(address_of(u), address_of(v), address_of(w))
    region = (j0, j1, i0, i1, shift)
    given = (address_of(source), flow, address_of(out), (at_z, at_y, at_x), box, region)
    each_on_threads(advect_plane, k0, k1, given)


@compiled_with_threads
def run_correct(
    k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns,
    source, forward, u, v, w, out, scale, at_z, at_y, at_x, wraps_x, wraps_y, wraps_z,
    bottom, top, last, shift, slack,
):  # fmt: skip
    """Call `correct` for the elements of a region, at least LANES in a row."""
    box = Box(rows, columns, last, wraps_x, wraps_y, wraps_z, bottom, top, scale)
    flow = Flow(address_of(u), address_of(v), address_of(w))
    fields = address_of(source), address_of(forward)
    region = (j0, j1, i0, i1, shift)
    given = (fields, flow, address_of(out), (at_z, at_y, at_x), box, slack, region)
    each_on_threads(correct_plane, k0, k1, given)
