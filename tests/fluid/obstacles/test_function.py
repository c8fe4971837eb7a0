"""Obstacles of functions: what they return, how they move, what is bad."""

import numpy as np
import pytest
from support.openings import ARRAYS
from support.openings import cube as openings_of

from hybrid_nbody.files.functions import BadFunctionError
from hybrid_nbody.fluid.obstacles import Sphere
from hybrid_nbody.fluid.obstacles.function import obstacle_of

CENTRE = (0.5, 0.5, 0.5)
BALL = Sphere((0.5, 0.4, 0.6), 0.2)
POINTS = np.random.default_rng(4).random((100, 3))


def test_a_function_that_makes_an_obstacle() -> None:
    assert obstacle_of(lambda: BALL, CENTRE) == BALL
    named = Sphere(BALL.centre, BALL.radius, name="ball")
    assert obstacle_of(lambda: BALL, CENTRE, name="ball") == named


def test_a_function_of_points_is_the_shape_that_it_describes() -> None:
    found = openings_of([obstacle_of(lambda points: BALL.distance(points), CENTRE)], 12)
    expected = openings_of([BALL], 12)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.solid_u is None


def test_a_shape_moves_and_turns_about_its_centre() -> None:
    motion = {"velocity": (0.1, 0.2, 0.3), "rotation": (0.0, 0.0, 1.0)}
    shape = obstacle_of(lambda points: BALL.distance(points), BALL.centre, **motion)
    ball = Sphere(BALL.centre, BALL.radius, **motion)
    np.testing.assert_allclose(
        shape.signed_distance(POINTS, 0.7), ball.signed_distance(POINTS, 0.7), 0.0, 1e-15
    )
    np.testing.assert_array_equal(shape.velocity_at(POINTS, 0.7), ball.velocity_at(POINTS, 0.7))


def breathing(points, time):
    """Return the distances to a ball that grows and drifts along x."""
    centre = np.array([0.5 + 0.1 * time, 0.5, 0.5])
    return np.sqrt(((points - centre) ** 2).sum(axis=1)) - 0.2 - 0.05 * time


def test_a_function_of_time_moves_as_it_says() -> None:
    """Across the surface it grows by 0.05, and drifts by the normal component of (0.1, 0, 0)."""
    shape = obstacle_of(breathing, CENTRE)
    assert shape.moves
    normals = POINTS - [0.6, 0.5, 0.5]
    normals /= np.sqrt((normals**2).sum(axis=1))[:, None]
    expected = normals * (0.05 + 0.1 * normals[:, :1])
    np.testing.assert_allclose(shape.velocity_at(POINTS, 1.0), expected, 0.0, 1e-8)


def test_a_function_of_time_is_not_asked_for_what_was_before() -> None:
    """One that begins to grow by a root of the time knows nothing of it."""

    def growing(points, time):
        distance = np.sqrt(((points - 0.5) ** 2).sum(axis=1))
        return distance - 0.2 - 0.05 * np.sqrt(time)

    shape = obstacle_of(growing, CENTRE)
    assert np.isfinite(shape.velocity_at(POINTS, 0.0)).all()


def test_a_function_of_time_is_carried_along() -> None:
    """Growth comes on top of a velocity: the normal velocity is the sum of both."""
    grow = obstacle_of(breathing, CENTRE, velocity=(0.0, 0.3, 0.0))
    normals = POINTS - [0.6, 0.8, 0.5]
    normals /= np.sqrt((normals**2).sum(axis=1))[:, None]
    found = (grow.velocity_at(POINTS, 1.0) * normals).sum(axis=1)
    expected = 0.05 + 0.1 * normals[:, 0] + 0.3 * normals[:, 1]
    np.testing.assert_allclose(found, expected, 0.0, 1e-8)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: 3, "returned int; must return an Obstacle"),
        (lambda points: points, r"returned the shape \(2, 3\) for 2 points"),
        (lambda points: points[:, 0] * np.nan, "returned nan at"),
        (lambda points: points[:, 7], "raised IndexError"),
        (lambda a, b, c: a, "takes 3 parameters"),
    ],
)
def test_bad_functions(function, words) -> None:
    with pytest.raises(BadFunctionError, match=words):
        obstacle_of(function, CENTRE)
