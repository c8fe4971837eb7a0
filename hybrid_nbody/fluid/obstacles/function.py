"""Obstacles of one's own: a Python function that makes one, or says how far points are from it."""

import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybrid_nbody.files.functions import BadFunctionError, Function, raised_by
from hybrid_nbody.fluid.obstacles.base import Numbers, Obstacle, Points, Vector

STEP = 1e-5
"""Step of the differences that give the velocity of a surface, in units of length and of time."""

TRIED = np.array([[0.1, 0.2, 0.3], [0.6, 0.5, 0.4]])
"""Points at which a function is tried before a run."""


@dataclass(frozen=True)
class Shape(Obstacle):
    """A solid where a function is negative.

    Attributes
    ----------
    function : callable
        Of points, shape (n, 3), or of points and a time; returns their signed distances, shape
        (n,). Between two points they differ by no more than the distance of these, or surfaces are
        missed. With a velocity or a rotation, points are where they were at time 0.
    centre : tuple of float
        About which it turns.
    takes_time : bool
        Whether it is a function of the time too: then the surface moves as it says.
    origin: str
        Where it stands, for messages.
    """

    function: Function
    centre: Vector
    takes_time: bool = False
    origin: str = ""

    @property
    def middle(self) -> Vector:
        """Return its centre."""
        return self.centre

    @property
    def moves(self) -> bool:
        """Return whether it is not at rest, or may change with time."""
        return self.takes_time or super().moves

    def distance(self, points: Points) -> Numbers:
        """Return the signed distance of points at time 0."""
        return self._values(points, 0.0)

    def signed_distance(self, points: Points, time: float) -> Numbers:
        """Return the signed distance of points at a time."""
        return self._values(self._at_start(points, time) if super().moves else points, time)

    def velocity_at(self, points: Points, time: float) -> Points:
        """Return the velocity of the solid at points: its motion, and that of the surface in it."""
        rigid = super().velocity_at(points, time)
        if not self.takes_time:
            return rigid
        late = self._change(points, time, np.zeros(3), STEP)
        slope = np.stack([self._change(points, time, way, 0.0) for way in STEP * np.eye(3)], axis=1)
        steepness = np.maximum((slope * slope).sum(axis=1), np.finfo(np.float64).tiny)
        drift = (rigid * slope).sum(axis=1)
        velocity: Points = rigid - ((late + drift) / steepness)[:, None] * slope
        return velocity

    def _change(self, points: Points, time: float, way: Points, later: float) -> Numbers:
        """Return how the signed distance changes along a way or with time, over the step.

        Before the time 0 the function is not asked.
        """
        earlier = min(later, time)
        after = self.signed_distance(points + way, time + later)
        before = self.signed_distance(points - way, time - earlier)
        change: Numbers = (after - before) / (2.0 * STEP - (later - earlier))
        return change

    def _values(self, points: Points, time: float) -> Numbers:
        """Return what the function says of points, as an array of their number."""
        given = (points, time) if self.takes_time else (points,)
        try:
            values = np.asarray(self.function(*given), np.float64)
        except (Exception, SystemExit) as error:
            raise self._bad(raised_by(error)) from error
        if values.shape != (len(points),):
            raise self._bad(
                f"returned the shape {values.shape} for {len(points)} points; must be one signed "
                "distance for each"
            )
        if np.isnan(values).any():
            raise self._bad(f"returned nan at {points[np.isnan(values)][0].tolist()}")
        return values

    def _bad(self, text: str) -> BadFunctionError:
        """Return the error that says where the function stands."""
        return BadFunctionError(f"{self.origin} {text}".strip())


def obstacle_of(function: Function, centre: Vector, **motion: Any) -> Obstacle:
    """Return the obstacle that a function describes.

    Parameters
    ----------
    function : callable
        Without parameters: it returns an `Obstacle`. Else see `Shape`.
    centre : tuple of float
        About which a shape turns.
    **motion
        Attributes of every `Obstacle`; they take the place of those of one that is returned.

    Raises
    ------
    BadFunctionError
        If it takes other parameters, fails, or returns something else.
    """
    count = len(inspect.signature(function).parameters)
    if count > 2:
        raise BadFunctionError(
            f"takes {count} parameters; must take none and return an Obstacle, or take points "
            "(n, 3), or points and a time, and return signed distances"
        )
    try:
        return _tried(function, centre, count, motion)
    except BadFunctionError:
        raise
    except (Exception, SystemExit) as error:
        raise BadFunctionError(raised_by(error)) from error


def _tried(function: Function, centre: Vector, count: int, motion: dict[str, Any]) -> Obstacle:
    """Return the obstacle of a function, which has been called once."""
    if count:
        shape = Shape(function, centre, count == 2, **motion)
        shape.distance(TRIED)
        return shape
    made = function()
    if not isinstance(made, Obstacle):
        raise BadFunctionError(f"returned {type(made).__name__}; must return an Obstacle")
    return replace(made, **motion)
