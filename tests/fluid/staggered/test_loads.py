"""Forces on obstacles: in a fluid at rest, in a steady flow, and of a ball that turns."""

import math

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import (
    PERIODIC,
    ROUGH,
    WALLS,
    advance,
    centres,
    make_stepper,
    put,
    still,
)

from hybrid_nbody.fluid.obstacles import Box, Cylinder, Sphere
from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.loads import loads
from hybrid_nbody.fluid.staggered.profiles import Uniform


def under_pressure(backend, obstacle, pressure, cells=(16, 16, 16), faces=WALLS):
    """Return the load on an obstacle in a fluid at rest with a pressure of x, y and z."""
    stepper = make_stepper(backend, this_rank(), cells, faces, still(), obstacles=[obstacle])
    values = pressure(*centres(stepper.grid))
    stepper.state.pressure[...] = backend.upload(values)
    (load,) = loads(stepper, 0.0)
    return load


@pytest.mark.parametrize("faces", [WALLS, PERIODIC])
def test_a_ball_is_lifted_by_what_it_displaces(backend, faces):
    """Archimedes: a pressure with a gradient g pushes with -g V, and does not turn a ball."""
    ball = Sphere((0.5, 0.52, 0.48), 0.23)
    gradient = np.array([1.0, 2.0, -3.0])
    load = under_pressure(
        backend, ball, lambda x, y, z: x + 2.0 * y - 3.0 * z, cells=(32, 32, 32), faces=faces
    )
    volume = 4.0 / 3.0 * math.pi * ball.radius**3
    np.testing.assert_allclose(load.pressure, -gradient * volume, rtol=0.01)
    assert load.friction == (0.0, 0.0, 0.0)
    assert np.abs(load.torque).max() < 0.01 * volume


def test_a_saddle_of_pressure_turns_a_box(backend):
    """The torque about z of p = x y is the integral of y^2 - x^2 over the box.

    The pressure is read half a cell from the wall.
    """
    edges = (0.5, 0.25, 0.375)
    box = Box((0.5, 0.5, 0.5), edges)
    load = under_pressure(backend, box, lambda x, y, z: (x - 0.5) * (y - 0.5))
    turn = math.prod(edges) * (edges[1] ** 2 - edges[0] ** 2) / 12.0
    assert load.torque[2] == pytest.approx(turn, rel=0.3)
    np.testing.assert_allclose(load.force, 0.0, atol=1e-12)


def driven(backend, ranks, cells, weights=None, accuracy=None):
    """Return a fluid that is driven past a ball in a periodic box, after some time."""
    physics = still(0.2, density=(0.0, 0.0, 1.0))
    physics.diffusivity["density"] = 0.0
    ball = Sphere((0.4, 0.5, 0.55), 0.2, name="ball")
    given = {"weights": weights, "accuracy": accuracy, "obstacles": [ball]}
    stepper = make_stepper(backend, ranks, cells, PERIODIC, physics, **given)
    put(stepper, lambda axis, x, y, z: 0.0 * x, lambda x, y, z: 1.0 + 0.0 * x)
    return stepper


def test_drag_of_a_steady_flow_is_what_drives_it(backend):
    stepper = driven(backend, this_rank(), (12, 12, 12))
    for step in range(60):
        advance(stepper, 0.1 * step, 0.1)
    (load,) = loads(stepper, 6.0)
    drive = 1.0 - 4.0 / 3.0 * math.pi * 0.2**3
    assert load.name == "ball"
    assert load.force[2] == pytest.approx(drive, rel=2e-3)
    assert min(load.pressure[2], load.friction[2]) > 0.2 * drive
    np.testing.assert_allclose(load.force[:2], 0.0, atol=0.02)


@pytest.mark.mpi
def test_bits_of_forces_do_not_depend_on_the_ranks(backend, communicator):
    cells = (10, 8, 4 * communicator.size + 2)
    weights = [1.0 + rank % 2 for rank in range(communicator.size)]

    def found(ranks, shares=None):
        stepper = driven(backend, ranks, cells, shares, ROUGH)
        advance(stepper, 0.0, 0.2)
        return loads(stepper, 0.2)

    whole = communicator.on_root(lambda: found(this_rank()))
    assert found(communicator, weights) == whole
    assert whole[0].force[2] > 0.0


def test_a_slippery_cylinder_in_an_ideal_fluid_has_little_drag(backend):
    """d'Alembert: a fluid without viscosity leaves a body as it came, and does not pull on it."""
    if backend.name != "cpu":
        pytest.skip("what is within a slippery solid is the same on all devices")
    inlet = Face("inflow", Uniform((1.0, 0.0, 0.0)))
    slides, around = Face("free-slip"), Face("periodic")
    faces = Faces(inlet, Face("outflow"), slides, slides, around, around)
    body = Cylinder((1 / 3, 0.25, 0.0), (0.0, 0.0, 1.0), 1 / 12, wall="free-slip")
    stepper = make_stepper(backend, this_rank(), (48, 24, 2), faces, still(), obstacles=[body])
    put(stepper, lambda axis, x, y, z: 0.0 * x + (axis == 0))
    for step in range(16):
        advance(stepper, step / 48, 1 / 48)
    (load,) = loads(stepper, 1 / 3)
    area = 1 / 6 * 2 / 48
    assert abs(2.0 * load.force[0] / area) < 0.1
