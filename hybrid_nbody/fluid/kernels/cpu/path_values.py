"""Values at the ends of paths on the staggered grid, LANES elements at a time.

In a smooth flow neighbours come from neighbours: where their steps, the distances rounded down, are
the same, the values around the ends of their paths are eight vectors; where they differ by 1 at
most, these are selected among 27. Elsewhere each element looks up its own. The arithmetic is that
of the functions of a cell, and so are the bits.
"""

from typing import Any, NamedTuple

from hybrid_nbody.backends.simd import (
    LANES,
    all_of,
    any_of,
    arange_from,
    broadcast,
    first_lane,
    floor,
    gather,
    load,
    maximum,
    minimum,
    select,
)
from hybrid_nbody.fluid.kernels.cpu.interpolation import (
    integer,
    interpolate,
    maximum_of,
    minimum_of,
)
from hybrid_nbody.fluid.kernels.cpu.layout import inlined, linked


class Box(NamedTuple):
    """Where paths go, as the functions of a cell take it.

    Attributes
    ----------
    rows, columns, last : int
        Of all arrays.
    wraps_x, wraps_y, wraps_z : int
    bottom, top : int
    scale : float
        Cells that a velocity of 1 moves in a step.
    """

    rows: int
    columns: int
    last: int
    wraps_x: int
    wraps_y: int
    wraps_z: int
    bottom: int
    top: int
    scale: Any


class Point(NamedTuple):
    """Vectors along z, y and x."""

    z: Any
    y: Any
    x: Any


class Element(NamedTuple):
    """The first of LANES elements."""

    k: int
    j: int
    i: int


# ---- Ends of paths -------------------------------------------------------------------------------


@inlined
def moved(start, end, distance, staggered, wraps):
    """Return distances along an axis that end within the box, whose ends are at distances."""
    if wraps == 1:
        period = end - start
        beyond = distance - start
        return start + (beyond - period * floor(beyond / period))
    number = type(staggered)
    shift = broadcast(number(0.5) * (staggered - number(1.0)))
    return minimum(maximum(distance, start + shift), end + shift)


@inlined
def faces_along_x(element, box):
    """Return the distances of LANES elements to the first and the last face along x."""
    number = type(box.scale)
    lanes = arange_from(number(0.0))
    low = broadcast(number(1 - element.i)) - lanes
    return low, broadcast(number(box.columns - 1 - element.i)) - lanes


@inlined
def moved_along_x(element, distance, staggered, box):
    """Return distances along x that end within the box."""
    low, high = faces_along_x(element, box)
    return moved(low, high, distance, staggered, box.wraps_x)


@inlined
def moved_along_y(element, distance, staggered, box):
    """Return distances along y that end within the box."""
    number = type(box.scale)
    low = broadcast(number(1 - element.j))
    high = broadcast(number(box.rows - 1 - element.j))
    return moved(low, high, distance, staggered, box.wraps_y)


@inlined
def moved_along_z(element, distance, staggered, box):
    """Return distances along z that end within the box."""
    number = type(box.scale)
    low = broadcast(number(box.bottom - element.k))
    high = broadcast(number(box.top - element.k))
    return moved(low, high, distance, staggered, box.wraps_z)


@inlined
def end_of(element, distance, staggered, box):
    """Return distances that end within the box, of a field that is staggered along axes."""
    z = moved_along_z(element, distance.z, staggered[0], box)
    y = moved_along_y(element, distance.y, staggered[1], box)
    return Point(z, y, moved_along_x(element, distance.x, staggered[2], box))


@inlined
def steps_to(low, high, distance):
    """Return the steps down to the element below a point, with another one above it."""
    return maximum(minimum(floor(distance), high), low)


@inlined
def steps_of(element, distance, box):
    """Return the steps along all axes."""
    number = type(box.scale)
    lanes = arange_from(number(0.0))
    lowest = broadcast(number(-element.k))
    z = steps_to(lowest, broadcast(number(box.last - 1 - element.k)), distance.z)
    lowest = broadcast(number(-element.j))
    y = steps_to(lowest, broadcast(number(box.rows - 2 - element.j)), distance.y)
    lowest = broadcast(number(-element.i)) - lanes
    x = steps_to(lowest, broadcast(number(box.columns - 2 - element.i)) - lanes, distance.x)
    return Point(z, y, x)


# ---- Values around them --------------------------------------------------------------------------


@inlined
def offset_of(k, j, i, box):
    """Return where an element lies in a flat array."""
    return (k * box.rows + j) * box.columns + i


@inlined
def load_around(array, offset, box):
    """Return eight values, at an offset and at the next ones along all axes."""
    row = box.columns
    plane = box.rows * box.columns
    return (
        load(array, offset),
        load(array, offset + 1),
        load(array, offset + row),
        load(array, offset + row + 1),
        load(array, offset + plane),
        load(array, offset + plane + 1),
        load(array, offset + plane + row),
        load(array, offset + plane + row + 1),
    )


@linked
def values_one_by_one(array, element, steps, box):
    """Return the eight values around each end, wherever those are."""
    row = box.columns
    plane = box.rows * box.columns
    offset = offset_of(element.k, element.j, element.i, box)
    along = (steps.z, steps.y, steps.x)
    strides = (plane, row, 1)
    return (
        gather(array, offset, along, strides),
        gather(array, offset + 1, along, strides),
        gather(array, offset + row, along, strides),
        gather(array, offset + row + 1, along, strides),
        gather(array, offset + plane, along, strides),
        gather(array, offset + plane + 1, along, strides),
        gather(array, offset + plane + row, along, strides),
        gather(array, offset + plane + row + 1, along, strides),
    )


@inlined
def select_in_row(array, offset, is_next):
    """Return two vectors of a row, from an offset on or, where `is_next`, from the next one on."""
    second = load(array, offset + 1)
    low = select(is_next, second, load(array, offset))
    return low, select(is_next, load(array, offset + 2), second)


@inlined
def select_in_plane(array, offset, next_x, next_y, box):
    """Return four vectors of a plane, selected among three rows."""
    a, b = select_in_row(array, offset, next_x)
    c, d = select_in_row(array, offset + box.columns, next_x)
    e, f = select_in_row(array, offset + 2 * box.columns, next_x)
    return select(next_y, c, a), select(next_y, d, b), select(next_y, e, c), select(next_y, f, d)


@inlined
def select_around(array, offset, is_next, box):
    """Return eight vectors, each number from an offset on or, along any axis, from the next one."""
    plane = box.rows * box.columns
    a = select_in_plane(array, offset, is_next.x, is_next.y, box)
    b = select_in_plane(array, offset + plane, is_next.x, is_next.y, box)
    c = select_in_plane(array, offset + 2 * plane, is_next.x, is_next.y, box)
    z = is_next.z
    return (
        select(z, b[0], a[0]),
        select(z, b[1], a[1]),
        select(z, b[2], a[2]),
        select(z, b[3], a[3]),
        select(z, c[0], b[0]),
        select(z, c[1], b[1]),
        select(z, c[2], b[2]),
        select(z, c[3], b[3]),
    )


@inlined
def smallest(steps):
    """Return the smallest step, or the first less 1; where others are larger; if by 1 at most."""
    first = first_lane(steps)
    number = type(first)
    base = first - number(1.0) if any_of(steps < broadcast(first)) else first
    low = broadcast(base)
    near = (steps == low) | (steps == broadcast(base + number(1.0)))
    return integer(base), steps > low, all_of(near)


@linked
def values_apart(array, element, steps, box):
    """Return the eight values around each end, where steps differ."""
    z, next_z, near_z = smallest(steps.z)
    y, next_y, near_y = smallest(steps.y)
    x, next_x, near_x = smallest(steps.x)
    k = element.k + z
    j = element.j + y
    i = element.i + x
    inside = (k >= 0) & (j >= 0) & (i >= 0) & (k + 2 <= box.last)
    inside &= (j + 2 < box.rows) & (i + LANES + 1 < box.columns)
    if near_z & near_y & near_x & inside:
        is_next = Point(next_z, next_y, next_x)
        return select_around(array, offset_of(k, j, i, box), is_next, box)
    return values_one_by_one(array, element, steps, box)


@inlined
def values_around(array, element, steps, box):
    """Return the eight values around the ends of LANES paths."""
    z = first_lane(steps.z)
    y = first_lane(steps.y)
    x = first_lane(steps.x)
    same = (steps.z == broadcast(z)) & (steps.y == broadcast(y)) & (steps.x == broadcast(x))
    if all_of(same):
        k = element.k + integer(z)
        j = element.j + integer(y)
        offset = offset_of(k, j, element.i + integer(x), box)
        return load_around(array, offset, box)
    return values_apart(array, element, steps, box)


@inlined
def parts_of(distance, steps):
    """Return where ends lie between elements, along x, y and z."""
    return distance.x - steps.x, distance.y - steps.y, distance.z - steps.z


@inlined
def sample(array, element, distance, staggered, box):
    """Return a field at distances from LANES elements; `staggered` is along z, y and x."""
    end = end_of(element, distance, staggered, box)
    steps = steps_of(element, end, box)
    return interpolate(values_around(array, element, steps, box), parts_of(end, steps))


@inlined
def sample_with_bounds(array, element, distance, staggered, box):
    """Return the smallest and the largest value around the ends of LANES paths."""
    end = end_of(element, distance, staggered, box)
    values = values_around(array, element, steps_of(element, end, box), box)
    return minimum_of(values), maximum_of(values)
