"""Obstacles of simple shapes: spheres, boxes, cylinders."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from hybrid_nbody.fluid.obstacles.base import (
    REST,
    Numbers,
    Obstacle,
    Points,
    Vector,
    in_radians,
    length,
    turned,
)


@dataclass(frozen=True)
class Sphere(Obstacle):
    """A ball.

    Attributes
    ----------
    centre : tuple of float
    radius : float
    """

    centre: Vector
    radius: float

    @property
    def middle(self) -> Vector:
        """Return its centre."""
        return self.centre

    def distance(self, points: Points) -> Numbers:
        """Return the signed distance of points."""
        return length(points - np.array(self.centre)) - self.radius


@dataclass(frozen=True)
class Box(Obstacle):
    """A box, turned or not.

    Attributes
    ----------
    centre : tuple of float
    size : tuple of float
        Its whole edges.
    orientation : tuple of float
        How it is turned about its centre at time 0: the direction is the axis, the length the angle
        in degrees.
    """

    centre: Vector
    size: Vector
    orientation: Vector = REST

    @classmethod
    def between(cls, low: Vector, high: Vector) -> Self:
        """Return the box between two corners, at rest."""
        x, y, z = (0.5 * (a + b) for a, b in zip(low, high, strict=True))
        size_x, size_y, size_z = (b - a for a, b in zip(low, high, strict=True))
        return cls((x, y, z), (size_x, size_y, size_z))

    @property
    def middle(self) -> Vector:
        """Return its centre."""
        return self.centre

    def distance(self, points: Points) -> Numbers:
        """Return the signed distance of points."""
        x, y, z = (-angle for angle in in_radians(self.orientation))
        arms = turned(points - np.array(self.centre), (x, y, z))
        return _beyond(np.abs(arms) - 0.5 * np.array(self.size))

    def solid_share(self, low: Points, high: Points, time: float) -> Numbers | None:
        """Return the share of boxes from low to high that is solid, if it is not turned."""
        if self.orientation != REST or self.rotation != REST:
            return None
        centre = np.array(self.centre_at(time))
        half = 0.5 * np.array(self.size)
        common = np.minimum(high, centre + half) - np.maximum(low, centre - half)
        flat = high == low
        shares = np.clip(common, 0.0, None) / np.where(flat, 1.0, high - low)
        shares = np.where(flat, common >= 0.0, shares)
        product: Numbers = shares[:, 0] * shares[:, 1] * shares[:, 2]
        return product


@dataclass(frozen=True)
class Cylinder(Obstacle):
    """A round cylinder with flat ends, or one without end.

    Attributes
    ----------
    centre : tuple of float
    axis : tuple of float
        Its direction, of any length but 0.
    radius : float
    extent : float or None
        Its length from end to end; None: it has no end.
    """

    centre: Vector
    axis: Vector
    radius: float
    extent: float | None = None

    @classmethod
    def from_to(cls, start: Vector, end: Vector, radius: float) -> Self:
        """Return the cylinder between the middles of its ends, at rest."""
        x, y, z = (0.5 * (a + b) for a, b in zip(start, end, strict=True))
        axis_x, axis_y, axis_z = (b - a for a, b in zip(start, end, strict=True))
        extent = math.sqrt(axis_x * axis_x + axis_y * axis_y + axis_z * axis_z)
        return cls((x, y, z), (axis_x, axis_y, axis_z), radius, extent)

    @property
    def middle(self) -> Vector:
        """Return its centre."""
        return self.centre

    def distance(self, points: Points) -> Numbers:
        """Return the signed distance of points."""
        axis = np.array(self.axis) / max(map(abs, self.axis))  # squares of any length overflow
        axis = axis / math.sqrt(sum(axis * axis))
        arms = points - np.array(self.centre)
        along = arms[:, 0] * axis[0] + arms[:, 1] * axis[1] + arms[:, 2] * axis[2]
        outwards = length(arms - along[:, None] * axis) - self.radius
        if self.extent is None:
            return outwards
        return _beyond(np.stack((outwards, np.abs(along) - 0.5 * self.extent), axis=1))


def _beyond(overhangs: Points) -> Numbers:
    """Return the distance to a product of intervals from how far points are beyond each."""
    outside = np.maximum(overhangs, 0.0)
    squares: Numbers = outside[:, 0] * outside[:, 0]
    for column in outside.T[1:]:
        squares = squares + column * column
    inside: Numbers = np.minimum(overhangs.max(axis=1), 0.0)
    total: Numbers = np.sqrt(squares) + inside
    return total
