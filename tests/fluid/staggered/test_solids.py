"""Obstacles in the staggered fluid: nothing passes them, and they carry the fluid along."""

from dataclasses import replace

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import (
    CAVITY,
    PERIODIC,
    ROUGH,
    TOLERANCE,
    TUNNEL,
    advance,
    assert_same_planes,
    centres,
    fields_after,
    make_stepper,
    own,
    put,
    still,
)

from hybrid_nbody.fluid.obstacles import Box, Sphere
from hybrid_nbody.fluid.staggered.diagnostics import measured
from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.loads import loads
from hybrid_nbody.fluid.staggered.pressure import Accuracy

CLOSED = Faces.of_axes(("no-slip", "free-slip", "no-slip"))
BALL = Sphere((0.3, 0.34, 0.5), 0.17)
SLIPPERY = Sphere((0.3, 0.34, 0.5), 0.17, wall="free-slip")
TURNING = Box(
    (0.4, 0.45, 0.5), (0.35, 0.25, 0.2), (30.0, 0.0, 0.0), velocity=(0.3, 0.1, 0.1),
    rotation=(0.0, 1.0, 2.0),
)  # fmt: skip
THROUGH = Box((0.2, 0.3, 0.1), (0.3, 0.2, 0.4), velocity=(0.2, 0.1, -0.5), rotation=(0.0, 0.0, 1.0))
PLATE = Box((0.5, 0.5, 0.5), (3.0, 3.0, 0.005), (0.0, 25.0, 0.0))
SCENES = {
    "ball in a tunnel": (TUNNEL, [BALL]),
    "slippery ball in a tunnel": (TUNNEL, [SLIPPERY]),
    "turning box in a closed one": (CLOSED, [TURNING]),
    "box across the ends of a periodic one": (PERIODIC, [THROUGH]),
    "thin plate in a closed box": (CLOSED, [PLATE]),
}


def swirl(axis, x, y, z):
    """Return a velocity with gradients along all axes."""
    return 0.5 * np.sin(5.0 * (x + 2.0 * y + 3.0 * z) + axis)


def still_fluid(axis, x, y, z):
    """Return no velocity."""
    return 0.0 * x


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("scene", SCENES)
def test_no_divergence_is_left(backend, scene, dtype):
    faces, obstacles = SCENES[scene]
    cells = (16, 16, 20)
    stepper = make_stepper(
        backend, this_rank(), cells, faces, still(1e-3), dtype, obstacles=obstacles
    )
    put(stepper, swirl)
    for step in range(2):
        advance(stepper, 0.02 * step, 0.02)
        speed = stepper.grid.largest_speed(stepper.state.velocity)
        left = stepper.projection.divergence(stepper.state.velocity)
        assert left <= TOLERANCE[dtype] * speed


def test_divergence_is_told_relative_to_what_moves_faster(backend):
    """A box that turns without friction moves the fluid less than its own corners."""
    box = Box((0.5, 0.5, 0.5), (0.4, 0.3, 0.3), rotation=(0.0, 0.0, 2.0), wall="free-slip")
    accuracy = Accuracy(1e-3, 100)
    given = (backend, this_rank(), (16, 16, 16), CLOSED, still(0.0))
    stepper = make_stepper(*given, obstacles=[box], accuracy=accuracy)
    put(stepper, still_fluid)
    advance(stepper, 0.0, 0.02)
    values = measured(stepper)
    assert 0.0 < values["max_speed"] < 0.7 * stepper.solids.speed
    left = stepper.projection.divergence(stepper.state.velocity)
    np.testing.assert_allclose(
        values["divergence"], left / stepper.solids.speed, rtol=1e-12, atol=0
    )
    assert values["divergence"] <= accuracy.tolerance


@pytest.mark.mpi
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("second_order", [True, False])
def test_bits_do_not_depend_on_the_ranks(backend, communicator, scene, second_order):
    faces, obstacles = SCENES[scene]
    cells = (12, 10, 14)
    physics = still(1e-3, second_order, density=(0.0, 0.5, 0.2))
    weights = [1.0 + rank % 2 for rank in range(communicator.size)]
    given = {"obstacles": obstacles, "accuracy": ROUGH}

    def found(ranks, shares=None):
        stepper = make_stepper(backend, ranks, cells, faces, physics, weights=shares, **given)
        return fields_after(stepper, swirl, 3, 0.05)

    whole = communicator.on_root(lambda: found(this_rank()))
    assert_same_planes(found(communicator, weights), whole)


@pytest.mark.mpi
def test_a_plate_through_thick_slabs_does_not_make_bits_depend_on_the_ranks(backend, communicator):
    """Most planes see the fields themselves, those near the ends of a slab windows of them."""
    h = 1.0 / (16 * communicator.size)
    plate = Box((6.0 * h, 5.0 * h, 0.5), (3.0, 3.0, 0.1 * h), (0.0, 40.0, 0.0))
    given = (CLOSED, still(1e-3, True, density=(0.0, 0.5, 0.2)))

    def found(ranks, shares=None):
        cells = (12, 10, 16 * communicator.size)
        stepper = make_stepper(
            backend, ranks, cells, *given, weights=shares, obstacles=[plate], accuracy=ROUGH
        )
        return fields_after(stepper, swirl, 3, 0.5 * h)

    whole = communicator.on_root(lambda: found(this_rank()))
    assert_same_planes(found(communicator), whole)


@pytest.mark.parametrize("wall", ["no-slip", "free-slip"])
def test_a_ball_that_goes_with_the_flow_does_not_disturb_it(backend, wall):
    stream = (0.3, -0.2, 0.25)
    ball = Sphere((0.5, 0.5, 0.5), 0.2, velocity=stream, wall=wall)
    stepper = make_stepper(
        backend, this_rank(), (12, 12, 12), PERIODIC, still(1e-2), obstacles=[ball]
    )
    put(stepper, lambda axis, x, y, z: 0.0 * x + stream[axis], lambda x, y, z: 0.0 * x + 2.0)
    for step in range(5):
        advance(stepper, 0.05 * step, 0.05)
    for axis, speed in enumerate(stream):
        np.testing.assert_allclose(own(stepper, stepper.state.velocity[axis]), speed, 1e-11)
    density = own(stepper, stepper.state.scalars["density"])
    fluid = own(stepper, stepper.solids.of_cells) > 0.0
    np.testing.assert_allclose(density[fluid], 2.0, 1e-11)
    assert (density[~fluid] == 0.0).all()


def test_what_enters_leaves_past_a_ball(backend):
    stepper = make_stepper(
        backend, this_rank(), (12, 12, 16), TUNNEL, still(1e-2), obstacles=[BALL]
    )
    put(stepper, still_fluid)
    for step in range(3):
        advance(stepper, 0.05 * step, 0.05)
    w = stepper.grid.backend.download(stepper.state.velocity[2])[1:, 1:-1, 1:-1]
    openings = stepper.grid.backend.download(stepper.solids.openings[2])[1:, 1:-1, 1:-1]
    assert openings.min() == 0.0
    np.testing.assert_allclose((openings * w).sum(axis=(1, 2)), 144.0, 1e-10)


def height_over(stepper):
    """Return the height of centres over `PLATE`."""
    angle = np.radians(25.0)
    x, _, z = centres(stepper.grid)
    return np.cos(angle) * (z - 0.5) + np.sin(angle) * (x - 0.5)


def with_smoke_above_a_plate(backend, plate, second_order, velocity):
    """Return a fluid with smoke on one side of a slanted plate that spans the box."""
    walls = Faces.of_axes(("free-slip",) * 3)
    physics = still(1e-3, second_order)
    stepper = make_stepper(backend, this_rank(), (12, 6, 12), walls, physics, obstacles=[plate])
    height = height_over(stepper)
    put(stepper, velocity, lambda x, y, z: 1.0 * (height > 1.0 / 12))
    return stepper


def smoke_on_both_sides(stepper):
    """Return the density on both sides of the plate, below it from a cell away."""
    density = own(stepper, stepper.state.scalars["density"])
    height = height_over(stepper)[1:-1, 1:-1, 1:-1]
    return density[height > 1.5 / 12], density[height < -1.0 / 12]


def test_nothing_diffuses_through_a_thin_plate(backend):
    stepper = with_smoke_above_a_plate(backend, PLATE, True, still_fluid)
    stepper.physics.diffusivity["density"] = 0.1
    for step in range(5):
        advance(stepper, 0.05 * step, 0.05)
    above, below = smoke_on_both_sides(stepper)
    assert above.min() > 0.1
    assert (below == 0.0).all()


@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("thickness", [0.1, 1.0])
@pytest.mark.parametrize("dt", [0.05, 0.3])
def test_nothing_is_carried_through_a_thin_plate(backend, second_order, thickness, dt):
    """Paths of up to three cells meet it; on the side of the smoke they stir."""
    plate = replace(PLATE, size=(3.0, 3.0, thickness / 12))
    stepper = with_smoke_above_a_plate(backend, plate, second_order, swirl)
    for step in range(5):
        advance(stepper, dt * step, dt)
    above, below = smoke_on_both_sides(stepper)
    assert 0.0 <= above.min() < 0.99
    assert above.max() <= 1.0
    assert (below == 0.0).all()


@pytest.mark.parametrize("wall", [2.2, 2.5, 2.7, 3.0])
def test_couette_flow_is_linear_down_to_a_wall_anywhere(backend, wall):
    """Between a lid and a box whose surface is within a cell."""
    floor = Box.between((-1.0, -1.0, -1.0), (2.0, wall / 8.0, 2.0))
    around = Face("periodic")
    faces = Faces(around, around, Face("no-slip"), CAVITY.y_high, around, around)
    stepper = make_stepper(
        backend, this_rank(), (4, 8, 4), faces, still(1.0, False), obstacles=[floor]
    )
    put(stepper, still_fluid)
    for step in range(60):
        advance(stepper, 0.1 * step, 0.1)
    y = centres(stepper.grid)[1][1:-1, 1:-1, 1:-1]
    found = own(stepper, stepper.state.velocity[0])
    expected = np.maximum(y - wall / 8.0, 0.0) / (1.0 - wall / 8.0)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    (load,) = loads(stepper, 6.0)
    drag = 0.25 / (1.0 - wall / 8.0)
    assert load.friction[0] == pytest.approx(drag, rel=1e-9)
