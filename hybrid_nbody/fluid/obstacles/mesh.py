"""Obstacles whose surface is a closed mesh of triangles."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.cpu import import_numba, prepare_numba
from hybrid_nbody.fluid.obstacles.base import (
    Numbers,
    Obstacle,
    Points,
    Vector,
    in_radians,
    turned,
)
from hybrid_nbody.fluid.obstacles.stl import Triangles

LEAF = 8
"""Most triangles in a leaf of the tree."""

FLAT = 1e-13
"""How far the corners of a triangle may be from the plane that its normal tells."""


@dataclass(frozen=True, eq=False)
class Mesh(Obstacle):
    """A solid within a closed surface of triangles.

    Attributes
    ----------
    triangles : array of float64, shape (n, 3, 3)
        Corners of each, counterclockwise as seen from outside; a mesh that is inside out is turned.

    Raises
    ------
    ValueError
        If it is not closed: each edge of a triangle must be that of one other, which has it in the
        opposite direction. Triangles with two equal corners do not count.
    """

    triangles: Triangles = field(repr=False)

    def __post_init__(self) -> None:
        """Check that the mesh is closed."""
        if text := what_is_open(self.triangles):
            raise ValueError(text)

    @classmethod
    def placed(
        cls,
        triangles: Triangles,
        scale: float,
        orientation: Vector,
        offset: Vector,
        **motion: Any,
    ) -> Self:
        """Return a mesh of triangles that are scaled, turned about the origin, then moved.

        Parameters
        ----------
        triangles : array of float64, shape (n, 3, 3)
        scale : float
        orientation : tuple of float
            The direction is the axis, the length the angle in degrees.
        offset : tuple of float
        **motion
            The attributes of every `Obstacle`.
        """
        corners = turned(scale * triangles.reshape(-1, 3), in_radians(orientation))
        return cls((corners + np.array(offset)).reshape(-1, 3, 3), **motion)

    @property
    def middle(self) -> Vector:
        """Return the centre of the box along the axes that just holds it."""
        low, high = self.bounds
        x, y, z = 0.5 * (low + high)
        return float(x), float(y), float(z)

    @cached_property
    def bounds(self) -> tuple[Numbers, Numbers]:
        """Return the lowest and the highest corner of the box that just holds it."""
        return self.triangles.min(axis=(0, 1)), self.triangles.max(axis=(0, 1))

    def distance(self, points: Points) -> Numbers:
        """Return the signed distance of points."""
        out = np.empty(len(points))
        _compiled()(np.ascontiguousarray(points, np.float64), *self._tree, out)
        return out

    @cached_property
    def _tree(self) -> tuple[Numbers, Numbers]:
        """Return the vectors of triangles in the order of a tree, and its boxes."""
        corners, ids = welded(self.triangles)
        if volume(corners) < 0.0:
            corners, ids = corners[:, ::-1], ids[:, ::-1]
        leaves = _leaves(corners)
        order = leaves.ravel()
        vectors = np.empty((len(order), 14, 3))
        vectors[:, :3] = corners[order]
        vectors[:, 3:10] = _normals(corners, ids)[order]
        vectors[:, 10:] = _planes(vectors[:, :3], vectors[:, 3])
        return vectors, _boxes(corners[leaves])


@cache
def _compiled() -> Callable[..., None]:
    """Return the loop over points; Numba takes time to be imported."""
    prepare_numba(1)
    import_numba()
    from hybrid_nbody.fluid.obstacles.triangles import signed_distances

    loop: Callable[..., None] = signed_distances
    return loop


def welded(triangles: Triangles) -> tuple[Triangles, NDArray[np.intp]]:
    """Return the triangles with three different corners, and the number of each corner.

    Returns
    -------
    array of float64, shape (m, 3, 3)
    array of intp, shape (m, 3)
        Equal corners have equal numbers.
    """
    ids = _numbered(triangles.reshape(-1, 3)).reshape(-1, 3)
    a, b, c = ids.T
    good = (a != b) & (b != c) & (c != a)
    return triangles[good], ids[good]


def _numbered(places: Points) -> NDArray[np.intp]:
    """Return the number of each place, the same for equal ones."""
    order = np.lexsort(places.T)
    ordered = places[order]
    numbers = np.zeros(len(places), np.intp)
    numbers[order[1:]] = np.cumsum((ordered[1:] != ordered[:-1]).any(axis=1))
    return numbers


def what_is_open(triangles: Triangles) -> str:
    """Return what is wrong with a mesh that is not closed, empty if nothing is."""
    corners, ids = welded(triangles)
    if not len(corners):
        return "has no triangle with three different corners"
    edges = np.concatenate((ids[:, [0, 1]], ids[:, [1, 2]], ids[:, [2, 0]]))
    size = int(ids.max()) + 1
    forwards = np.sort(edges[:, 0] * size + edges[:, 1])
    backwards = np.sort(edges[:, 1] * size + edges[:, 0])
    if np.array_equal(forwards, backwards):
        return "" if volume(corners) else "has no volume"
    alone = len(np.setxor1d(forwards, backwards)) // 2
    if alone:
        return (
            f"is not closed: {alone} of its edges have a triangle on one side only, or triangles "
            "that face opposite ways; close it in the program that made it"
        )
    return "has edges with more triangles on one side than on the other; repair it"


def volume(corners: Triangles) -> float:
    """Return the volume within a closed mesh, less than 0 if it is inside out."""
    a, b, c = np.moveaxis(corners - corners[0, 0], 1, 0)
    return float((a * np.cross(b, c)).sum() / 6.0)


def _leaves(corners: Triangles) -> NDArray[np.intp]:
    """Return the triangles of each leaf of a tree, shape (leaves, n); some are repeated to fill it.

    Again and again, sets are halved along the axis along which their middles extend farthest.
    """
    middles = 0.5 * (corners.min(axis=1) + corners.max(axis=1))
    count = len(corners)
    leaves = 2 ** max(0, math.ceil(math.log2(count / LEAF)))
    size = leaves * -(-count // leaves)
    sets: NDArray[np.intp] = (np.arange(size) * count // size)[None]
    while len(sets) < leaves:
        axes = np.ptp(middles[sets], axis=1).argmax(axis=1)
        half = sets.shape[1] // 2
        order = middles[sets, axes[:, None]].argpartition(half, axis=1)
        sets = np.take_along_axis(sets, order, axis=1).reshape(-1, half)
    return sets


def _boxes(corners: Triangles) -> Numbers:
    """Return the lowest and highest corners of boxes around the nodes of the tree.

    Parameters
    ----------
    corners : array of float64, shape (leaves, n, 3, 3)
    """
    low = corners.min(axis=(1, 2))
    high = corners.max(axis=(1, 2))
    boxes = [np.stack((low, high), axis=1)]
    while len(low) > 1:
        low = np.minimum(low[::2], low[1::2])
        high = np.maximum(high[::2], high[1::2])
        boxes.insert(0, np.stack((low, high), axis=1))
    return np.concatenate(boxes)


def _planes(corners: Triangles, faces: Numbers) -> Numbers:
    """Return normals of the planes of triangles and of those through their edges, shape (n, 4, 3).

    Those of triangles so thin that they leave these planes are 0.
    """
    ways = np.roll(corners, -1, axis=1) - corners
    edges = _unit(np.cross(ways, faces[:, None]))
    planes = np.concatenate((faces[:, None], edges), axis=1)
    beyond = np.zeros(len(corners))
    for corner in range(3):
        arms = corners - corners[:, [corner]]
        beyond = np.maximum(beyond, np.abs((arms * faces[:, None]).sum(axis=-1)).max(axis=1))
        beyond = np.maximum(beyond, (arms * edges[:, [corner]]).sum(axis=-1).max(axis=1))
    planes[beyond > FLAT] = 0.0
    return planes


def _normals(corners: Triangles, ids: NDArray[np.intp]) -> Numbers:
    """Return the normals of triangles, their edges and their corners, shape (n, 7, 3)."""
    ways = np.roll(corners, -1, axis=1) - corners
    faces = _unit(np.cross(ways[:, 0], ways[:, 1]))
    angles = _angles(_unit(ways))
    at_corners = np.zeros((int(ids.max()) + 1, 3))
    for corner in range(3):
        np.add.at(at_corners, ids[:, corner], faces * angles[:, corner, None])
    return np.concatenate((faces[:, None], _edge_sums(ids, faces), at_corners[ids]), axis=1)


def _edge_sums(ids: NDArray[np.intp], faces: Numbers) -> Numbers:
    """Return the sums of the normals on both sides of edges ab, bc, ca, shape (n, 3, 3)."""
    ends = np.stack((ids, np.roll(ids, -1, axis=1)), axis=-1)
    ends = np.sort(ends, axis=-1)
    keys = ends[..., 0] * (int(ids.max()) + 1) + ends[..., 1]
    _, inverse = np.unique(keys, return_inverse=True)
    numbers = inverse.reshape(-1, 3)
    sums = np.zeros((int(numbers.max()) + 1, 3))
    for edge in range(3):
        np.add.at(sums, numbers[:, edge], faces)
    total: Numbers = sums[numbers]
    return total


def _angles(directions: Numbers) -> Numbers:
    """Return the angles at the corners of triangles from the directions of their edges."""
    cosines = -(directions * np.roll(directions, 1, axis=1)).sum(axis=-1)
    angles: Numbers = np.arccos(np.clip(cosines, -1.0, 1.0))
    return angles


def _unit(vectors: Numbers) -> Numbers:
    """Return vectors of length 1, or 0 where they are."""
    lengths = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    unit: Numbers = vectors / np.where(lengths > 0.0, lengths, 1.0)
    return unit
