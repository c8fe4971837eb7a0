"""Signed distances to triangles, by a tree of boxes around them; compiled by Numba.

The sign is that of the normal where the surface is nearest: of the triangle, of the edge (the sum
of the normals of both sides) or of the corner (weighted by angles), as Baerentzen and Aanaes (2005)
show. So it is right at edges and corners too.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Numbers, Vector
from hybrid_nbody.fluid.obstacles.mesh import LEAF

compiled = njit(cache=True, error_model="numpy")

FACE, EDGE, CORNER = 0, 1, 4
"""Where the normals of a triangle start: its own, of edges ab, bc, ca, of corners a, b, c."""


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
def vector(row: Numbers) -> Vector:
    """Return a row of an array as a tuple."""
    return (row[0], row[1], row[2])


@compiled
def to_box(point: Vector, low: Numbers, high: Numbers) -> float:
    """Return the square of the distance from a point to a box."""
    total = 0.0
    for axis in range(3):
        gap = max(low[axis] - point[axis], point[axis] - high[axis], 0.0)
        total += gap * gap
    return total


@compiled
def to_leaf(
    point: Vector, first: int, corners: Numbers, normals: Numbers, found: tuple[float, float]
) -> tuple[float, float]:
    """Return the least square of the distance, and the sign there, after the triangles of a leaf.

    `found` is what they were before.
    """
    square, sign = found
    for number in range(first, first + LEAF):
        a, b, c = vector(corners[number, 0]), vector(corners[number, 1]), vector(corners[number, 2])
        arm, where = nearest_of_triangle(point, a, b, c, vector(normals[number, FACE]))
        here = dot(arm, arm)
        if here < square:
            square = here
            sign = -1.0 if dot(arm, vector(normals[number, where])) < 0.0 else 1.0
    return square, sign


@compiled
def nearest(
    point: Vector,
    corners: Numbers,
    normals: Numbers,
    boxes: tuple[Numbers, Numbers],
    stack: tuple[NDArray[np.int64], Numbers],
) -> tuple[float, float]:
    """Return the square of the distance of a point to the nearest triangle, and the sign there.

    The stack is space for nodes that wait, and for the squares of the distances to their boxes.
    """
    lows, highs = boxes
    waiting, bounds = stack
    leaves = (len(lows) + 1) // 2
    found = (np.inf, 1.0)
    waiting[0], bounds[0] = 0, 0.0
    count = 1
    while count > 0:
        count -= 1
        node = waiting[count]
        if bounds[count] >= found[0]:
            continue
        if node >= leaves - 1:
            first = LEAF * (node - leaves + 1)
            found = to_leaf(point, first, corners, normals, found)
            continue
        near, far = 2 * node + 1, 2 * node + 2
        to_near = to_box(point, lows[near], highs[near])
        to_far = to_box(point, lows[far], highs[far])
        if to_far < to_near:
            near, far, to_near, to_far = far, near, to_far, to_near
        waiting[count], bounds[count] = far, to_far
        waiting[count + 1], bounds[count + 1] = near, to_near
        count += 2
    return found


@compiled
def signed_distances(
    points: Numbers,
    corners: Numbers,
    normals: Numbers,
    lows: Numbers,
    highs: Numbers,
    out: Numbers,
) -> None:
    """Set `out` to the signed distances of points.

    Parameters
    ----------
    points : array of float64, shape (n, 3)
    corners : array of float64, shape (m, 3, 3)
        Triangles in the order of the leaves.
    normals : array of float64, shape (m, 7, 3)
        Outwards; of the triangle, of length 1, then of its edges ab, bc, ca, then of its corners.
    lows, highs : array of float64, shape (2 m / LEAF - 1, 3)
        Boxes around the nodes of a full binary tree; node i has the children 2 i + 1, 2 i + 2.
    out : array of float64, shape (n,)
    """
    waiting = np.empty(64, np.int64)
    bounds = np.empty(64)
    for i in range(len(points)):
        point = vector(points[i])
        square, sign = nearest(point, corners, normals, (lows, highs), (waiting, bounds))
        out[i] = sign * np.sqrt(square)
