"""Obstacles as a box with periodic axes sees them: each with its images in boxes around it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Numbers, Obstacle, Points, Vector

Periodic = tuple[bool, bool, bool]
CLOSED: Periodic = (False, False, False)


@dataclass(frozen=True)
class Image:
    """An obstacle, moved by whole periods.

    Attributes
    ----------
    owner : int
        Its place among the obstacles.
    obstacle : Obstacle
    shift : tuple of float
    time : float
    """

    owner: int
    obstacle: Obstacle
    shift: Vector
    time: float

    def distance(self, points: Points) -> Numbers:
        """Return the signed distance of points."""
        return self.obstacle.signed_distance(self._back(points), self.time)

    def velocity(self, points: Points) -> Points:
        """Return the velocity of the solid at points."""
        return self.obstacle.velocity_at(self._back(points), self.time)

    def solid_share(self, low: Points, high: Points) -> Numbers | None:
        """Return the exact solid share of boxes, None if not known."""
        return self.obstacle.solid_share(self._back(low), self._back(high), self.time)

    def _back(self, points: Points) -> Points:
        """Return where points are in the box of the obstacle itself."""
        return points - np.array(self.shift) if any(self.shift) else points


def images_of(
    obstacles: Sequence[Obstacle], edges: Vector, periodic: Periodic, time: float
) -> tuple[Image, ...]:
    """Return the obstacles and, along periodic axes, their images.

    Parameters
    ----------
    obstacles : sequence of Obstacle
    edges : tuple of float
        Lengths of the box's edges.
    periodic : tuple of bool
        Which axes are.
    time : float
    """
    return tuple(
        Image(owner, obstacle, shift, time)
        for owner, obstacle in enumerate(obstacles)
        for shift in _shifts(obstacle.centre_at(time), edges, periodic)
    )


def _shifts(centre: Vector, edges: Vector, periodic: Periodic) -> list[Vector]:
    """Return the shifts of an obstacle that bring it into the box and the boxes around it."""
    along_axes = []
    for position, edge, wraps in zip(centre, edges, periodic, strict=True):
        home = -int(np.floor(position / edge))
        along_axes.append([edge * (home + step) for step in (0, -1, 1)] if wraps else [0.0])
    return [(x, y, z) for z, y, x in product(*reversed(along_axes))]


def union(images: Sequence[Image], points: Points, near: NDArray[np.bool_]) -> Numbers:
    """Return the signed distance of points to the nearest of those images that may be near.

    Parameters
    ----------
    images : sequence of Image
    points : array of float64, shape (n, 3)
    near : array of bool, shape (images, n)
        Whether an image may be near a point. Infinite where none is.
    """
    nearest = np.full(len(points), np.inf)
    for image, some in zip(images, near, strict=True):
        if some.any():
            nearest[some] = np.minimum(nearest[some], image.distance(points[some]))
    return nearest
