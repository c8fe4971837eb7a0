"""A ball that moves within a hollow one: the exact flow, by potential theory."""

import numpy as np
from support.ranks import this_rank
from support.staggered import centres, make_stepper, own, put, still

from hybrid_nbody.fluid.obstacles import Sphere
from hybrid_nbody.fluid.obstacles.function import Shape
from hybrid_nbody.fluid.staggered.faces import Faces

MIDDLE = (0.5, 0.5, 0.5)
RADIUS, HOLLOW = 0.17, 0.43
SPEED = (0.0, 0.0, 1.0)
CLOSED = Faces.of_axes(("free-slip",) * 3)


def outside(points):
    """Return the signed distance from what surrounds the hollow ball."""
    return HOLLOW - np.linalg.norm(points - MIDDLE, axis=1)


def exact(axis, x, y, z):
    """Return a component of the velocity (Lamb, Hydrodynamics, 6th edition, section 93).

    The potential is (A + B / r^3) z, with a slope along r of that of the ball at its radius and of
    0 at that of the hollow one.
    """
    about = [c - m for c, m in zip((x, y, z), MIDDLE, strict=True)]
    r = np.sqrt(sum(c * c for c in about))
    b = -0.5 * SPEED[2] * (RADIUS * HOLLOW) ** 3 / (HOLLOW**3 - RADIUS**3)
    a = 2.0 * b / HOLLOW**3
    along = a + b / r**3 if axis == 2 else 0.0
    return along - 3.0 * b * about[2] * about[axis] / r**5


def errors_of(backend, cells):
    """Return the mean error and the largest of the velocities at faces, where there is fluid."""
    ball = Sphere(MIDDLE, RADIUS, velocity=SPEED, wall="free-slip")
    hollow = Shape(outside, MIDDLE, wall="free-slip")
    made = (backend, this_rank(), (cells,) * 3, CLOSED, still())
    stepper = make_stepper(*made, obstacles=[ball, hollow])
    put(stepper, lambda axis, x, y, z: 0.0 * x)
    errors, areas = [], []
    for axis in range(3):
        x, y, z = (own(stepper, c) for c in centres(stepper.grid, axis))
        open_area = own(stepper, stepper.solids.openings[axis])
        found = own(stepper, stepper.state.velocity[axis])
        errors.append(np.abs(found - exact(axis, x, y, z))[open_area > 0.0])
        areas.append(open_area[open_area > 0.0])
    errors, areas = np.concatenate(errors), np.concatenate(areas)
    return np.average(errors, weights=areas), errors[areas > 0.5].max()


def test_a_ball_that_sets_out_in_a_hollow_one_converges(backend):
    """The fluid is at rest before: only the ball tells how fast it is."""
    coarse, fine = errors_of(backend, 20), errors_of(backend, 40)
    assert np.log2(coarse[0] / fine[0]) > 1.6
    assert fine[0] < 1e-3
    assert fine[1] < 0.1
