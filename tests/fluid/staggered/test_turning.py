"""Taylor and Couette's flow between a cylinder that turns and a hollow one at rest around it.

Between radii a and b the fluid turns at ``A r + B / r``, with ``B = w a^2 b^2 / (b^2 - a^2)`` and
``A = -B / b^2``; the torque on either cylinder is ``4 pi B`` times viscosity and length.
"""

import math

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import advance, centres, make_stepper, own, put, still

from hybrid_nbody.fluid.obstacles import Cylinder
from hybrid_nbody.fluid.obstacles.function import Shape
from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.loads import loads

A, B = 0.17, 0.41
TURN = 2.0
SWIRL = TURN * (A * B) ** 2 / (B * B - A * A)
TORQUE = 4.0 * math.pi * SWIRL
INNER = Cylinder((0.5, 0.5, 0.0), (0.0, 0.0, 1.0), A, rotation=(0.0, 0.0, TURN))
OUTER = Shape(lambda points: B - np.hypot(points[:, 0] - 0.5, points[:, 1] - 0.5), (0.5,) * 3)


def steady(backend, cells):
    """Return the fluid after it has come to a steady flow."""
    walls = Faces(*(Face("no-slip"),) * 4, Face("periodic"), Face("periodic"))
    given = ((cells, cells, 4), walls, still(1.0, False))
    stepper = make_stepper(backend, this_rank(), *given, obstacles=[INNER, OUTER])
    put(stepper, lambda axis, x, y, z: 0.0 * x)
    for step in range(15):
        advance(stepper, 0.1 * step, 0.1)
    return stepper


def mean_error(stepper):
    """Return the mean error of the velocity along x, over the fastest."""
    x, y, _ = (own(stepper, place) for place in centres(stepper.grid, 0))
    r = np.hypot(x - 0.5, y - 0.5)
    exact = -(y - 0.5) / r * SWIRL * (1.0 / r - r / B**2)
    wet = (r > A) & (r < B)
    return np.abs(own(stepper, stepper.state.velocity[0]) - exact)[wet].mean() / (TURN * A)


def test_flow_beside_a_cylinder_that_turns_converges(backend):
    if backend.name != "cpu":
        pytest.skip("compared on the host")
    coarse, fine = (mean_error(steady(backend, cells)) for cells in (12, 36))
    assert fine < 0.004
    assert math.log(coarse / fine) / math.log(3.0) > 1.0


def test_torques_are_those_of_the_shear(backend):
    stepper = steady(backend, 24)
    inner, outer = (load.torque[2] * 24 / 4 for load in loads(stepper, 1.5))
    assert inner == pytest.approx(-TORQUE, rel=0.08)
    assert outer == pytest.approx(TORQUE, rel=0.1)
