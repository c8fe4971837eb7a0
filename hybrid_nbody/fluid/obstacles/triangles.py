"""Signed distances to triangles, by a tree of boxes around them; compiled by Numba.

The search starts at the triangle that is nearest to the point before, so that most of the tree is
too far away from the outset. Of the triangles that are left, planes tell for little how near each
may be: its own, and those upright on it through its edges.

The sign is that of the normal where the surface is nearest: of the triangle, of the edge (the sum
of the normals of both sides) or of the corner (weighted by angles), as Baerentzen and Aanaes (2005)
show. So it is right at edges and corners too.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Numbers, Vector

compiled = njit(cache=True, error_model="numpy")

Found = tuple[float, float, float, int]
"""Of the nearest triangle so far: the square of its distance, the sign there, the square up to
which others are looked at, and its number."""

ROUNDING, TINY = 1e-9, 1e-12
"""Triangles are looked at that are farther than the nearest by this share and this length. Rounding
errors are less, so that the distance does not depend on which triangle comes first."""

FACE, EDGE, CORNER, PLANE = 3, 4, 7, 10
"""Where vectors of a triangle start, after its corners a, b, c: its normal; those of edges ab, bc
and ca; of corners; of planes: its own, then those upright on it through its edges."""


@compiled
def dot(a: Vector, b: Vector) -> float:
    """Return the scalar product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def along(start: Vector, way: Vector, share: float) -> Vector:
    """Return the point at a share of a way."""
    return (start[0] + share * way[0], start[1] + share * way[1], start[2] + share * way[2])


@compiled
def minus(a: Vector, b: Vector) -> Vector:
    """Return the difference of two vectors."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@compiled
def nearest_of_edge(point: Vector, start: Vector, end: Vector, number: int) -> tuple[Vector, int]:
    """Return the arm from the nearest point of an edge, and the normal that counts there."""
    way = minus(end, start)
    square = dot(way, way)
    share = dot(minus(point, start), way) / square if square > 0.0 else 0.0
    if share <= 0.0:
        return minus(point, start), CORNER + number
    if share >= 1.0:
        return minus(point, end), CORNER + (number + 1) % 3
    return minus(point, along(start, way, share)), EDGE + number


@compiled
def is_above(point: Vector, start: Vector, end: Vector, normal: Vector) -> bool:
    """Return whether a point is on the inner side of an edge of a triangle with a normal."""
    way = minus(end, start)
    arm = minus(point, start)
    x = way[1] * arm[2] - way[2] * arm[1]
    y = way[2] * arm[0] - way[0] * arm[2]
    z = way[0] * arm[1] - way[1] * arm[0]
    return bool(x * normal[0] + y * normal[1] + z * normal[2] > 0.0)


@compiled
def nearest_of_triangle(
    point: Vector, a: Vector, b: Vector, c: Vector, normal: Vector
) -> tuple[Vector, int]:
    """Return the arm from the nearest point of a triangle, and the normal that counts there."""
    inside = is_above(point, a, b, normal) and is_above(point, b, c, normal)
    if inside and is_above(point, c, a, normal):
        height = dot(minus(point, a), normal)
        return (height * normal[0], height * normal[1], height * normal[2]), FACE
    best, where = nearest_of_edge(point, a, b, 0)
    second, at_second = nearest_of_edge(point, b, c, 1)
    if dot(second, second) < dot(best, best):
        best, where = second, at_second
    third, at_third = nearest_of_edge(point, c, a, 2)
    if dot(third, third) < dot(best, best):
        best, where = third, at_third
    return best, where


@compiled
def vector(array: Numbers, number: int, which: int) -> Vector:
    """Return a vector of a triangle or a box; a view of an array would take more time."""
    return (array[number, which, 0], array[number, which, 1], array[number, which, 2])


@compiled
def to_box(point: Vector, boxes: Numbers, node: int) -> float:
    """Return the square of the distance from a point to the box of a node."""
    total = 0.0
    for axis in range(3):
        gap = max(boxes[node, 0, axis] - point[axis], point[axis] - boxes[node, 1, axis], 0.0)
        total += gap * gap
    return total


@compiled
def above(point: Vector, triangles: Numbers, number: int, corner: int, plane: int) -> float:
    """Return how far a point is above a plane of a triangle through one of its corners."""
    arm = minus(point, vector(triangles, number, corner))
    return float(dot(arm, vector(triangles, number, plane)))


@compiled
def to_planes(point: Vector, triangles: Numbers, number: int) -> float:
    """Return a square that is not greater than that of the distance to a triangle."""
    height = above(point, triangles, number, 0, PLANE)
    beyond = 0.0
    for edge in range(3):
        beyond = max(beyond, above(point, triangles, number, edge, PLANE + 1 + edge))
    return float(height * height + beyond * beyond)


@compiled
def to_triangle(point: Vector, triangles: Numbers, number: int, found: Found) -> Found:
    """Return what is nearest after one more triangle.

    Of equal distances the negative one counts, whichever comes first.
    """
    a = vector(triangles, number, 0)
    b = vector(triangles, number, 1)
    c = vector(triangles, number, 2)
    arm, where = nearest_of_triangle(point, a, b, c, vector(triangles, number, FACE))
    square = dot(arm, arm)
    if square > found[0]:
        return found
    sign = -1.0 if dot(arm, vector(triangles, number, where)) < 0.0 else 1.0
    if square == found[0]:
        sign = min(sign, found[1])
    limit = np.sqrt(square) * (1.0 + ROUNDING) + TINY
    return square, sign, limit * limit, number


@compiled
def to_leaf(point: Vector, triangles: Numbers, leaf: int, size: int, found: Found) -> Found:
    """Return what is nearest after the triangles of a leaf, of which there are `size`."""
    for number in range(leaf * size, (leaf + 1) * size):
        if to_planes(point, triangles, number) <= found[2]:
            found = to_triangle(point, triangles, number, found)
    return found


@compiled
def nearest(
    point: Vector,
    start: int,
    triangles: Numbers,
    boxes: Numbers,
    waiting: NDArray[np.int64],
    bounds: Numbers,
) -> Found:
    """Return what is nearest to a point.

    The search starts at a triangle, by its number, then goes down from the root. The last two
    arrays are space for nodes that wait and for the squares of the distances to their boxes.
    """
    leaves = (len(boxes) + 1) // 2
    size = len(triangles) // leaves
    found: Found = to_triangle(point, triangles, start, (np.inf, 1.0, np.inf, start))
    waiting[0] = 0
    bounds[0] = 0.0
    count = 1
    while count > 0:
        count -= 1
        node = waiting[count]
        if bounds[count] > found[2]:
            continue
        if node >= leaves - 1:
            found = to_leaf(point, triangles, node - leaves + 1, size, found)
            continue
        near = 2 * node + 1
        far = 2 * node + 2
        to_near = to_box(point, boxes, near)
        to_far = to_box(point, boxes, far)
        if to_far < to_near:
            near, far, to_near, to_far = far, near, to_far, to_near
        waiting[count], bounds[count] = far, to_far
        waiting[count + 1], bounds[count + 1] = near, to_near
        count += 2
    return found


@compiled
def signed_distances(points: Numbers, triangles: Numbers, boxes: Numbers, out: Numbers) -> None:
    """Set `out` to the signed distances of points; faster if each is near the one before.

    Parameters
    ----------
    points : array of float64, shape (n, 3)
    triangles : array of float64, shape (m, 14, 3)
        The vectors of each, in the order of the leaves: its corners; its normal outwards, of length
        1, those of its edges and of its corners; the normals, of length 1, of planes: of its own,
        then of those upright on it through ab, bc, ca, facing away from it. Where a normal of a
        plane is 0, the plane says nothing.
    boxes : array of float64, shape (2 l - 1, 2, 3)
        Lowest and highest corners of boxes around the nodes of a full binary tree; node i has the
        children 2 i + 1, 2 i + 2. Of l leaves, each has m / l triangles.
    out : array of float64, shape (n,)
    """
    waiting = np.empty(64, np.int64)
    bounds = np.empty(64)
    number = 0
    for i in range(len(points)):
        point = (points[i, 0], points[i, 1], points[i, 2])
        square, sign, _, number = nearest(point, number, triangles, boxes, waiting, bounds)
        out[i] = sign * np.sqrt(square)
