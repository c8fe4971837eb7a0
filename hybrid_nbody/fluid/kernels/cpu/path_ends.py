"""Where paths on the staggered grid end, LANES elements at a time.

The arithmetic is that of the functions of a cell, and so are the bits.
"""

from typing import Any, NamedTuple

from hybrid_nbody.backends.simd import (
    LANES,
    arange_from,
    broadcast,
    first_lane,
    floor,
    maximum,
    minimum,
    select,
)
from hybrid_nbody.fluid.kernels.cpu.interpolation import FARTHEST, integer
from hybrid_nbody.fluid.kernels.cpu.layout import inlined


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


class Path(NamedTuple):
    """Paths of LANES elements.

    Attributes
    ----------
    end, steps : Point
        Their distances, and these rounded down.
    there : Element
        Where the first leads.
    """

    end: Any
    steps: Any
    there: Any


# ---- Wherever they lead --------------------------------------------------------------------------


@inlined
def moved(start, end, distance, staggered, wraps):
    """Return distances along an axis that end within the box, whose ends are at distances."""
    if wraps == 1:
        period = end - start
        beyond = distance - start
        wrapped = start + (beyond - period * floor(beyond / period))
        return select((distance < start) | (distance > end), wrapped, distance)
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


# ---- Where they stay within the box --------------------------------------------------------------


@inlined
def end_along_x(element, distance, staggered, box):
    """Return distances along x as `end_of` does; where x wraps, if they end within the box."""
    if box.wraps_x == 1:
        return distance
    low, high = faces_along_x(element, box)
    return moved(low, high, distance, staggered, 0)


@inlined
def end_in_box(element, distance, staggered, box):
    """Return distances as `end_of` does if they end within the box along y and z."""
    return Point(distance.z, distance.y, end_along_x(element, distance.x, staggered[2], box))


@inlined
def steps_down(element, end, box):
    """Return the steps of LANES paths within the box; between walls another element is above."""
    along_x = floor(end.x)
    if box.wraps_x == 0:
        number = type(box.scale)
        lanes = arange_from(number(0.0))
        along_x = minimum(along_x, broadcast(number(box.columns - 2 - element.i)) - lanes)
    return Point(floor(end.z), floor(end.y), along_x)


@inlined
def whole(step):
    """Return a step as an integer: within bounds, beyond which no integer may be."""
    number = type(step)
    return integer(minimum(maximum(step, number(-FARTHEST)), number(FARTHEST)))


@inlined
def moved_element(element, steps):
    """Return the element to which the first lane goes."""
    k = element.k + whole(first_lane(steps.z))
    j = element.j + whole(first_lane(steps.y))
    return Element(k, j, element.i + whole(first_lane(steps.x)))


@inlined
def path_of(element, distance, staggered, box):
    """Return LANES paths, which end within the box along y and z."""
    end = end_in_box(element, distance, staggered, box)
    steps = steps_down(element, end, box)
    return Path(end, steps, moved_element(element, steps))


@inlined
def are_alike(steps):
    """Return for each lane whether it goes the same steps as the first."""
    same_z = steps.z == broadcast(first_lane(steps.z))
    same_y = steps.y == broadcast(first_lane(steps.y))
    return same_z & same_y & (steps.x == broadcast(first_lane(steps.x)))


@inlined
def are_inside(element, more, box):
    """Return whether LANES elements and `more` behind them are within the box, at no face of it.

    Between walls along x they may be beside one: of a vector that is loaded there the last number
    is that of the next row, and not used.
    """
    k, j, i = element
    inside = (k >= 0) & (k >= box.bottom) & (k + more < box.top) & (k + more <= box.last)
    inside &= (j >= 1) & (j + more + 1 < box.rows)
    return inside & (i >= box.wraps_x) & (i + LANES + box.wraps_x * (more - 1) < box.columns)


@inlined
def offset_of(k, j, i, box):
    """Return where an element lies in a flat array."""
    return (k * box.rows + j) * box.columns + i


@inlined
def place_of(element, box):
    """Return the same for an `Element`."""
    return offset_of(element.k, element.j, element.i, box)
