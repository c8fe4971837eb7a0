"""What all obstacles have: a signed distance, a motion, and how the fluid meets their wall.

Sums over components are written out: a matrix product may round by the number of its rows, and a
value must not depend on the slab in which it is computed.
"""

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Vector = tuple[float, float, float]
Points = NDArray[np.float64]
Numbers = NDArray[np.float64]
Wall = Literal["no-slip", "free-slip"]

REST: Vector = (0.0, 0.0, 0.0)


def name_in_tables(name: str, number: int) -> str:
    """Return the name of an obstacle in tables: its own as one word, or its number, from 1.

    Parameters
    ----------
    name : str
        Empty: it has none.
    number : int
        Its place among the obstacles, counted from 0.
    """
    return re.sub(r"\W+", "_", name) or f"obstacle_{number + 1}"


@dataclass(frozen=True, kw_only=True)
class Obstacle(ABC):
    """A solid in the fluid.

    Attributes
    ----------
    velocity : tuple of float
        Velocity of its centre, in units of length over time.
    rotation : tuple of float
        Its angular velocity about its centre: the direction is the axis, the length the angle in
        radians in a unit of time.
    wall : {"no-slip", "free-slip"}
        Whether the fluid sticks to its surface or slides along it.
    name : str
    """

    velocity: Vector = REST
    rotation: Vector = REST
    wall: Wall = "no-slip"
    name: str = ""

    @property
    @abstractmethod
    def middle(self) -> Vector:
        """Return its centre at time 0, about which it turns."""

    @abstractmethod
    def distance(self, points: Points) -> Numbers:
        """Return the signed distance of points at time 0, negative within the solid.

        It is exact near the surface. Elsewhere it may be nearer to 0 than the distance, and is
        never farther from it.

        Parameters
        ----------
        points : array of float64, shape (n, 3)

        Returns
        -------
        array of float64, shape (n,)
        """

    def solid_share(self, low: Points, high: Points, time: float) -> Numbers | None:
        """Return the exact share of boxes from low to high that is solid, None if not known.

        Parameters
        ----------
        low, high : array of float64, shape (n, 3)
            Along an axis in which they do not differ, the box is a rectangle.
        time : float
        """
        return None

    @property
    def moves(self) -> bool:
        """Return whether it is not at rest."""
        return self.velocity != REST or self.rotation != REST

    def centre_at(self, time: float) -> Vector:
        """Return its centre at a time."""
        x, y, z = (c + v * time for c, v in zip(self.middle, self.velocity, strict=True))
        return x, y, z

    def signed_distance(self, points: Points, time: float) -> Numbers:
        """Return the signed distance of points at a time, negative within the solid.

        Parameters
        ----------
        points : array of float64, shape (n, 3)
            In units of the box.
        time : float

        Returns
        -------
        array of float64, shape (n,)
        """
        return self.distance(self._at_start(points, time) if self.moves else points)

    def velocity_at(self, points: Points, time: float) -> Points:
        """Return the velocity that the solid has at points, shape (n, 3)."""
        arms = points - np.array(self.centre_at(time))
        return np.array(self.velocity) + cross(np.array(self.rotation), arms)

    def _at_start(self, points: Points, time: float) -> Points:
        """Return where the points of the solid at given points were at time 0."""
        arms = points - np.array(self.centre_at(time))
        if self.rotation != REST:
            x, y, z = (-time * w for w in self.rotation)
            arms = turned(arms, (x, y, z))
        starts: Points = arms + np.array(self.middle)
        return starts


def cross(axis: Numbers, arms: Points) -> Points:
    """Return the vector products of one vector and rows of vectors."""
    x, y, z = axis
    a, b, c = arms.T
    return np.stack((y * c - z * b, z * a - x * c, x * b - y * a), axis=1)


def turned(arms: Points, turn: Vector) -> Points:
    """Return vectors turned about an axis by Rodrigues' formula.

    Parameters
    ----------
    arms : array of float64, shape (n, 3)
    turn : tuple of float
        The direction is the axis, the length the angle in radians.
    """
    angle = math.sqrt(sum(value * value for value in turn))
    if angle == 0.0:
        return arms
    axis = np.array(turn) / angle
    along = (arms[:, 0] * axis[0] + arms[:, 1] * axis[1] + arms[:, 2] * axis[2])[:, None]
    across = arms - along * axis
    result: Points = along * axis + math.cos(angle) * across + math.sin(angle) * cross(axis, arms)
    return result


def in_radians(degrees: Vector) -> Vector:
    """Return a turn whose angle is given in degrees."""
    x, y, z = (math.radians(value) for value in degrees)
    return x, y, z


def length(arms: Points) -> Numbers:
    """Return the lengths of rows of vectors."""
    x, y, z = arms.T
    total: Numbers = np.sqrt(x * x + y * y + z * z)
    return total
