"""Steps of the staggered fluid: orders, divergence, exact solutions, bits on any ranks."""

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import (
    CAVITY,
    PERIODIC,
    ROUGH,
    TOLERANCE,
    TUNNEL,
    WALLS,
    advance,
    assert_same_planes,
    centres,
    fields_after,
    make_stepper,
    own,
    put,
    still,
)

from hybrid_nbody.fluid.staggered.faces import Face, Faces

VISCOSITY = 0.02
STREAM = (0.3, 0.2, 0.0)
"""What carries the vortices along."""


def vortices(time):
    """Return the velocity of Taylor and Green's vortices in a stream at a time."""
    k = 2.0 * np.pi
    decay = np.exp(-2.0 * k * k * VISCOSITY * time)

    def velocity(axis, x, y, z):
        x, y = x - STREAM[0] * time, y - STREAM[1] * time
        along = (np.sin(k * x) * np.cos(k * y), -np.cos(k * x) * np.sin(k * y), 0.0 * x)
        return STREAM[axis] + decay * along[axis]

    return velocity


def error_of_vortices(backend, cells, steps, second_order, end=0.4):
    """Return the largest error after some steps."""
    physics = still(VISCOSITY, second_order)
    stepper = make_stepper(backend, this_rank(), (cells, cells, 4), PERIODIC, physics)
    put(stepper, vortices(0.0))
    for step in range(steps):
        advance(stepper, step * end / steps, end / steps)
    return max(
        np.abs(own(stepper, a - vortices(end)(axis, *centres(stepper.grid, axis)))).max()
        for axis, a in enumerate(stepper.state.velocity)
    )


@pytest.fixture
def cpu_backend(backend):
    """The backend, on a CPU: exact solutions are NumPy's."""
    if backend.name != "cpu":
        pytest.skip("compared on the host")
    return backend


@pytest.mark.parametrize(("second_order", "order"), [(True, 2.0), (False, 0.9)])
def test_vortices_converge_in_space_and_time(cpu_backend, second_order, order):
    coarse = error_of_vortices(cpu_backend, 16, 8, second_order)
    fine = error_of_vortices(cpu_backend, 32, 16, second_order)
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("dtype", ["f8", pytest.param("f4", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, CAVITY, TUNNEL])
def test_no_divergence_is_left(backend, communicator, faces, dtype):
    cells = (18, 12, 10)
    stepper = make_stepper(backend, communicator, cells, faces, still(1e-3), dtype)
    noise = np.random.default_rng(1).uniform(-1.0, 1.0, (3, cells[2] + 2, 14, 20))
    planes = slice(stepper.grid.first, stepper.grid.first + stepper.grid.planes + 2)
    put(stepper, lambda axis, x, y, z: noise[axis, planes])
    advance(stepper, 0.0, 0.02)
    speed = stepper.grid.largest_speed(stepper.state.velocity)
    assert stepper.projection.divergence(stepper.state.velocity) <= TOLERANCE[dtype] * speed


@pytest.mark.parametrize("faces", [WALLS, TUNNEL])
def test_replayed_cycles_do_not_read_memory_that_others_use(backend, communicator, faces):
    """Whatever else is allocated between two steps, each projection ends."""
    stepper = make_stepper(backend, communicator, (18, 12, 10), faces, still(1e-3), "f4")
    put(stepper, lambda axis, x, y, z: np.sin(3 * x + 5 * y + 7 * z + axis))
    others = []
    for _ in range(5):
        advance(stepper, 0.0, 0.02)
        others += [backend.upload(np.full(128, 7.0, "f4")) for _ in range(50)]
        speed = stepper.grid.largest_speed(stepper.state.velocity)
        assert stepper.projection.divergence(stepper.state.velocity) <= TOLERANCE["f4"] * speed


def test_couette_flow_is_linear(cpu_backend):
    lid = CAVITY.y_high
    wall = Face("no-slip")
    around = Face("periodic")
    faces = Faces(around, around, wall, lid, around, around)
    stepper = make_stepper(cpu_backend, this_rank(), (4, 8, 4), faces, still(1.0, False))
    put(stepper, lambda axis, x, y, z: 0.0 * x)
    for step in range(60):
        advance(stepper, 0.1 * step, 0.1)
    _, y, _ = centres(stepper.grid)
    np.testing.assert_allclose(own(stepper, stepper.state.velocity[0] - y), 0.0, atol=1e-10)


def test_what_enters_leaves(cpu_backend):
    stepper = make_stepper(cpu_backend, this_rank(), (6, 6, 10), TUNNEL, still(1e-2))
    put(stepper, lambda axis, x, y, z: 0.0 * x)
    for step in range(50):
        advance(stepper, 0.05 * step, 0.05)
    w = stepper.state.velocity[2]
    flow = w[1:, 1:-1, 1:-1].sum(axis=(1, 2))
    np.testing.assert_allclose(flow, 36.0, rtol=1e-10)
    density = own(stepper, stepper.state.scalars["density"])
    np.testing.assert_allclose(density, 1.0, atol=0.02)


def test_corrected_scalars_stay_between_their_bounds(cpu_backend):
    stepper = make_stepper(cpu_backend, this_rank(), (24, 24, 4), PERIODIC, still())
    stepper.physics.diffusivity["density"] = 0.0

    def disc(x, y, z):
        return 1.0 * ((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1)

    put(stepper, vortices(0.0), disc)
    for step in range(20):
        advance(stepper, 0.03 * step, 0.03)
    density = own(stepper, stepper.state.scalars["density"])
    assert density.min() >= 0.0
    assert density.max() <= 1.0
    assert density.max() > 0.8


@pytest.mark.mpi
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, TUNNEL])
@pytest.mark.parametrize(
    ("second_order", "planes", "dt"),
    [(True, 4, 0.1), (False, 4, 0.1), (True, 4, 2.0), (False, 4, 2.0), (True, 12, 0.008)],
)
def test_bits_do_not_depend_on_the_ranks(backend, communicator, faces, second_order, planes, dt):
    """In short steps only the planes near the ends of a slab have paths that leave it.

    In long ones paths are longer than the box, also where it is periodic.
    """
    cells = (12, 8, planes * communicator.size + 2)
    physics = still(1e-3, second_order, density=(0.0, 0.5, 0.2))
    weights = [1.0 + rank % 2 for rank in range(communicator.size)]

    def found(ranks, shares=None):
        stepper = make_stepper(
            backend, ranks, cells, faces, physics, weights=shares, accuracy=ROUGH
        )
        return fields_after(stepper, swirl, 3, dt)

    whole = communicator.on_root(lambda: found(this_rank()))
    assert_same_planes(found(communicator, weights), whole)


def swirl(axis, x, y, z):
    """Return a velocity that crosses several planes in a step."""
    return 2.0 * np.sin(5.0 * (x + 2.0 * y + 3.0 * z) + axis) + 1.0
