"""The staggered fluid against exact solutions: channels, waves, what a flow carries, rest."""

from dataclasses import replace

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import PERIODIC, advance, centres, make_stepper, own, put, still

from hybrid_nbody.fluid.obstacles import Sphere
from hybrid_nbody.fluid.staggered.faces import Face, Faces
from hybrid_nbody.fluid.staggered.loads import loads

AROUND = Face("periodic")
WALL = Face("no-slip")
K = 2.0 * np.pi


@pytest.fixture(autouse=True)
def _on_a_cpu(backend):
    """Exact solutions are NumPy's."""
    if backend.name != "cpu":
        pytest.skip("compared on the host")


def without_diffusion(physics):
    """Return physics whose density only moves along."""
    physics.diffusivity["density"] = 0.0
    return physics


def at_rest(axis, x, y, z):
    """Return no velocity."""
    return 0.0 * x


# --- viscosity ------------------------------------------------------------------------------------


def error_in_a_channel(backend, cells):
    """Return the largest error of a flow that a constant force drives between two walls."""
    channel = Faces(AROUND, AROUND, WALL, WALL, AROUND, AROUND)
    physics = without_diffusion(still(1.0, False, density=(1.0, 0.0, 0.0)))
    stepper = make_stepper(backend, this_rank(), (4, cells, 4), channel, physics)
    put(stepper, at_rest, lambda x, y, z: 1.0 + 0.0 * x)
    for step in range(20):
        advance(stepper, 0.2 * step, 0.2)
    _, y, _ = centres(stepper.grid)
    return np.abs(own(stepper, stepper.state.velocity[0] - 0.5 * y * (1.0 - y))).max()


def test_poiseuille_flow_is_a_parabola_at_second_order(backend):
    coarse, fine = (error_in_a_channel(backend, cells) for cells in (8, 16))
    assert fine < 0.005 * 0.125
    assert np.log2(coarse / fine) == pytest.approx(2.0, abs=0.01)


def rate_of_a_wave(backend, cells, steps, second_order):
    """Return the rate at which a shear wave decays, over the exact one."""
    viscosity, end = 0.05, 1.0
    physics = still(viscosity, second_order)
    stepper = make_stepper(backend, this_rank(), (cells, 4, 4), PERIODIC, physics)
    put(stepper, lambda axis, x, y, z: np.sin(K * x) if axis == 1 else 0.0 * x)
    for step in range(steps):
        advance(stepper, end * step / steps, end / steps)
    x = centres(stepper.grid, 1)[0]
    amplitude = 2.0 * np.mean(own(stepper, stepper.state.velocity[1] * np.sin(K * x)))
    return -np.log(amplitude) / (viscosity * K * K * end)


def test_a_shear_wave_decays_at_its_rate(backend):
    assert rate_of_a_wave(backend, 64, 40, True) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("second_order", "order"), [(True, 2.0), (False, 0.9)])
def test_the_rate_of_a_wave_converges_in_time(backend, second_order, order):
    discrete = 2.0 * (1.0 - np.cos(K / 16)) * 16**2 / K**2
    errors = [
        rate_of_a_wave(backend, 16, steps, second_order) / discrete - 1.0 for steps in (10, 20)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


# --- advection ------------------------------------------------------------------------------------


def gaussian(time):
    """Return a density that a stream of (1, 0.5) carries through a periodic box."""

    def density(x, y, z):
        x, y = (x - time + 5.0) % 1.0 - 0.5, (y - 0.5 * time + 5.0) % 1.0 - 0.5
        return np.exp(-(x * x + y * y) / (2.0 * 0.15**2))

    return density


def error_of_a_gaussian(backend, cells, second_order):
    """Return the mean error of a Gaussian after it has crossed the box."""
    physics = without_diffusion(still(0.0, second_order))
    stepper = make_stepper(backend, this_rank(), (cells, cells, 4), PERIODIC, physics)
    put(stepper, lambda axis, x, y, z: 0.0 * x + (1.0, 0.5, 0.0)[axis], gaussian(0.0))
    steps = round(cells / 0.7)
    for step in range(steps):
        advance(stepper, step / steps, 1.0 / steps)
    exact = gaussian(1.0)(*centres(stepper.grid))
    return np.abs(own(stepper, stepper.state.scalars["density"] - exact)).mean()


@pytest.mark.parametrize(("second_order", "least", "most"), [(True, 1.8, 2.2), (False, 0.7, 1.1)])
def test_a_gaussian_converges(backend, second_order, least, most):
    coarse, fine = (error_of_a_gaussian(backend, cells, second_order) for cells in (32, 64))
    assert least < np.log2(coarse / fine) < most


def turning(axis, x, y, z):
    """Return a rotation about the middle that fades out towards the walls: one turn in 2 pi."""
    r = np.hypot(x - 0.5, y - 0.5)
    fading = np.where(r < 0.38, 1.0, np.cos(0.5 * np.pi * np.clip((r - 0.38) / 0.11, 0.0, 1.0)))
    return (-(y - 0.5) * fading, (x - 0.5) * fading, 0.0 * x)[axis]


def slotted_disc(x, y, z):
    """Return Zalesak's disc: 1 in a disc but for a slot."""
    disc = (x - 0.5) ** 2 + (y - 0.67) ** 2 < 0.17**2
    slot = (np.abs(x - 0.5) < 0.06) & (y < 0.76)
    return 1.0 * (disc & ~slot)


@pytest.mark.parametrize(
    ("second_order", "error", "highest"), [(True, 0.9, 0.85), (False, 1.05, 0.6)]
)
def test_a_slotted_disc_turns_round(backend, second_order, error, highest):
    """Bounds and the total are kept, it comes back to its place, and much of its height is left."""
    slippery = Faces.of_axes(("free-slip", "free-slip", "periodic"))
    physics = replace(without_diffusion(still(0.0, second_order)), conserve=True)
    stepper = make_stepper(backend, this_rank(), (50, 50, 4), slippery, physics)
    put(stepper, turning, slotted_disc)
    flow = [array.copy() for array in stepper.state.velocity]
    before = own(stepper, stepper.state.scalars["density"]).copy()
    for _ in range(50):
        set_flow(stepper, flow)
        advance(stepper, 0.0, 2.0 * np.pi / 50)
    after = own(stepper, stepper.state.scalars["density"])
    assert after.min() >= 0.0
    assert highest < after.max() <= 1.0
    assert after.sum() == pytest.approx(before.sum(), rel=1e-12)
    assert np.abs(after - before).sum() < error * before.sum()
    np.testing.assert_allclose(middle(stepper, after), middle(stepper, before), rtol=0, atol=0.03)


def set_flow(stepper, flow):
    """Give a fluid a velocity that it has always had."""
    state = stepper.state
    for velocity in filter(None, (state.velocity, state.before)):
        for array, given in zip(velocity, flow, strict=True):
            array[...] = given


def middle(stepper, density):
    """Return the centre of mass in x and y."""
    return [np.average(own(stepper, place), weights=density) for place in centres(stepper.grid)[:2]]


# --- rest -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("obstacles", [[], [Sphere((0.5, 0.55, 0.45), 0.2)]])
def test_layers_of_density_stay_at_rest(backend, second_order, obstacles):
    """Pressure holds what gravity pulls, at the cut cells of a ball too."""
    walls = Faces.of_axes(("no-slip", "free-slip", "no-slip"))
    physics = without_diffusion(still(1e-3, second_order, density=(0.0, -1.0, 0.0)))
    stepper = make_stepper(backend, this_rank(), (12, 16, 12), walls, physics, obstacles=obstacles)
    put(stepper, at_rest, lambda x, y, z: 2.0 - y)
    for step in range(5):
        advance(stepper, 0.1 * step, 0.1)
    assert stepper.grid.largest_speed(stepper.state.velocity) < 1e-11


def test_a_ball_in_a_heavy_fluid_has_its_buoyancy(backend):
    """Archimedes, with the pressure that gravity makes."""
    walls = Faces.of_axes(("free-slip",) * 3)
    physics = without_diffusion(still(0.0, True, density=(0.0, -1.0, 0.0)))
    ball = Sphere((0.5, 0.52, 0.48), 0.23)
    stepper = make_stepper(backend, this_rank(), (24, 24, 24), walls, physics, obstacles=[ball])
    put(stepper, at_rest, lambda x, y, z: 1.0 + 0.0 * x)
    for step in range(10):
        advance(stepper, 0.1 * step, 0.1)
    (load,) = loads(stepper, 1.0)
    expected = [0.0, 4.0 / 3.0 * np.pi * ball.radius**3, 0.0]
    np.testing.assert_allclose(load.force, expected, rtol=0.01, atol=1e-4)
