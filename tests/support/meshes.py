"""Closed meshes of triangles that tests are made with."""

import numpy as np
from numpy.typing import NDArray

Triangles = NDArray[np.float64]

SQUARE = np.array([[(0, 0), (0, 1), (1, 1)], [(0, 0), (1, 1), (1, 0)]], np.float64)
"""Two triangles, clockwise."""


def cube() -> Triangles:
    """Return the 12 triangles of the unit cube, counterclockwise as seen from outside."""
    sides = []
    for axis in range(3):
        bottom = np.roll(np.insert(SQUARE, 2, 0.0, axis=2), axis + 1, axis=2)
        top = bottom[:, ::-1].copy()
        top[..., axis] = 1.0
        sides += [bottom, top]
    return np.concatenate(sides)


def ball(times: int) -> Triangles:
    """Return an octahedron whose triangles are divided in four so often, on the unit sphere."""
    signs = np.array([(x, y, z) for x in (1, -1) for y in (1, -1) for z in (1, -1)])
    found = np.einsum("ni,ij->nij", signs.astype(np.float64), np.eye(3))
    inside_out = signs.prod(axis=1) < 0
    found[inside_out] = found[inside_out, ::-1]
    for _ in range(times):
        found = _divided(found)
    return found


def _divided(triangles: Triangles) -> Triangles:
    """Return four triangles for each."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    ab, bc, ca = (_unit(a + b), _unit(b + c), _unit(c + a))
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def _unit(points: Triangles) -> Triangles:
    return points / np.sqrt((points * points).sum(axis=-1, keepdims=True))


def distances(triangles: Triangles, points: Triangles) -> Triangles:
    """Return the distances of points to the nearest of all triangles, each looked at."""
    arms = points[:, None, None] - triangles
    ways = np.roll(triangles, -1, axis=1) - triangles
    shares = (arms * ways).sum(axis=-1) / (ways * ways).sum(axis=-1)
    to_edges = arms - np.clip(shares, 0.0, 1.0)[..., None] * ways
    nearest = np.sqrt((to_edges * to_edges).sum(axis=-1)).min(axis=-1)
    normals = _unit(np.cross(ways[:, 0], ways[:, 1]))
    above = ((np.cross(ways, arms) * normals[:, None]).sum(axis=-1) > 0.0).all(axis=-1)
    heights = np.abs((arms[:, :, 0] * normals).sum(axis=-1))
    found: Triangles = np.where(above, heights, nearest).min(axis=1)
    return found


def is_inside(triangles: Triangles, points: Triangles) -> NDArray[np.bool_]:
    """Return whether a surface goes around points, by the sum of the solid angles it takes."""
    a, b, c = np.moveaxis(triangles - points[:, None, None], 2, 0)
    x, y, z = (np.sqrt((arm * arm).sum(axis=-1)) for arm in (a, b, c))
    above = (a * np.cross(b, c)).sum(axis=-1)
    ab, bc, ca = ((u * v).sum(axis=-1) for u, v in ((a, b), (b, c), (c, a)))
    below = x * y * z + ab * z + bc * x + ca * y
    inside: NDArray[np.bool_] = np.arctan2(above, below).sum(axis=1) > np.pi
    return inside
