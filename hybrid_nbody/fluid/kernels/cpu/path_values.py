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
    broadcast,
    first_lane,
    gather,
    load,
    select,
)
from hybrid_nbody.fluid.kernels.cpu.interpolation import (
    between,
    interpolate,
    maximum_of,
    minimum_of,
)
from hybrid_nbody.fluid.kernels.cpu.layout import inlined, linked
from hybrid_nbody.fluid.kernels.cpu.path_ends import (
    Element,
    Point,
    are_alike,
    are_inside,
    end_of,
    moved_element,
    offset_of,
    path_of,
    place_of,
    steps_of,
    whole,
)


class Along(NamedTuple):
    """Where the ends of LANES paths lie along an axis.

    Attributes
    ----------
    is_next : vector of bool
        Whether a step is larger by one than the smallest.
    part : vector
        How far from the element below to the next one.
    """

    is_next: Any
    part: Any


# ---- Values around them --------------------------------------------------------------------------


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
    return whole(base), steps > low, all_of(near)


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
    if all_of(are_alike(steps)):
        return load_around(array, place_of(moved_element(element, steps), box), box)
    return values_apart(array, element, steps, box)


@inlined
def parts_of(distance, steps):
    """Return where ends lie between elements, along x, y and z."""
    return distance.x - steps.x, distance.y - steps.y, distance.z - steps.z


@linked
def sample_anywhere(array, element, distance, staggered, box):
    """Return what `sample` does, wherever paths end."""
    end = end_of(element, distance, staggered, box)
    steps = steps_of(element, end, box)
    return interpolate(values_around(array, element, steps, box), parts_of(end, steps))


# ---- Values between them -------------------------------------------------------------------------


@inlined
def between_next(low, middle, high, axis):
    """Return the values between the first and the second of three, or the second and the third."""
    first = select(axis.is_next, middle, low)
    return between(first, select(axis.is_next, high, middle), axis.part)


@inlined
def blend_row(array, offset, x):
    """Return the values between elements of a row."""
    middle = load(array, offset + 1)
    return between_next(load(array, offset), middle, load(array, offset + 2), x)


@inlined
def blend_plane(array, offset, y, x, row):
    """Return the values between three rows of a plane."""
    low = blend_row(array, offset, x)
    middle = blend_row(array, offset + row, x)
    return between_next(low, middle, blend_row(array, offset + 2 * row, x), y)


@inlined
def blend_planes(array, offset, axes, box):
    """Return the values between three planes.

    Axes along which all steps are the same are not told apart: a branch that cannot be foreseen
    takes longer.
    """
    z, y, x = axes
    row = box.columns
    plane = box.rows * row
    low = blend_plane(array, offset, y, x, row)
    middle = blend_plane(array, offset + plane, y, x, row)
    return between_next(low, middle, blend_plane(array, offset + 2 * plane, y, x, row), z)


@linked
def sample_apart(array, element, distance, staggered, box):
    """Return what `sample` does, where steps differ."""
    path = path_of(element, distance, staggered, box)
    z, next_z, near_z = smallest(path.steps.z)
    y, next_y, near_y = smallest(path.steps.y)
    x, next_x, near_x = smallest(path.steps.x)
    there = Element(element.k + z, element.j + y, element.i + x)
    if near_z & near_y & near_x & are_inside(there, 2, box):
        part_x, part_y, part_z = parts_of(path.end, path.steps)
        axes = (Along(next_z, part_z), Along(next_y, part_y), Along(next_x, part_x))
        return blend_planes(array, place_of(there, box), axes, box)
    return sample_anywhere(array, element, distance, staggered, box)


@inlined
def sample_alike(array, path, box):
    """Return what `sample` does, where all lanes go to elements beside each other."""
    values = load_around(array, place_of(path.there, box), box)
    return interpolate(values, parts_of(path.end, path.steps))


@inlined
def sample(array, element, distance, staggered, box):
    """Return a field at distances from LANES elements; `staggered` is along z, y and x.

    Where all go the same steps, and within the box, nothing else is looked at.
    """
    path = path_of(element, distance, staggered, box)
    if all_of(are_alike(path.steps)) & are_inside(path.there, 1, box):
        return sample_alike(array, path, box)
    return sample_apart(array, element, distance, staggered, box)


@inlined
def sample_with_bounds(array, element, distance, staggered, box):
    """Return the smallest and the largest value around the ends of LANES paths."""
    end = end_of(element, distance, staggered, box)
    values = values_around(array, element, steps_of(element, end, box), box)
    return minimum_of(values), maximum_of(values)
