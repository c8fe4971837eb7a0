"""Two devices of a rank: together they compute what one does, to the bit where both have the
same backend.

Stand-ins play the two; a real GPU takes part in the tests marked `gpu`.
"""

import numpy as np
import pytest
from support.bodies import make_backend, make_gravity, make_model, whole
from support.devices import hybrid
from support.ranks import same_bits

from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.nbody.forces.direct import STEPS_BETWEEN_SORTS
from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.stages import LEAPFROG, StepPlan

PRECISIONS = ["single", "mixed", "double"]
SHARES = [0.0, 0.003, 0.3, 0.9, 1.0, "auto"]
BOUNDS = {"double": 1e-12, "mixed": 2e-6, "single": 1e-5}


def unequal(bodies):
    bodies.mass[:] *= np.random.default_rng(1).uniform(0.5, 1.5, len(bodies))
    return bodies


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("own", [slice(0, 700), slice(123, 561), slice(699, 700), slice(300, 300)])
def test_forces_and_potentials_have_the_bits_of_one_device(precision, share, own):
    bodies = unequal(plummer(700, seed=1))
    alone = make_gravity(make_backend("cpu"), bodies, precision, 0.0, own=own)
    both = make_gravity(hybrid(share), bodies, precision, 0.0, own=own)
    assert same_bits(both.state.acceleration, alone.state.acceleration)
    assert same_bits(both.potential(), alone.potential())


@pytest.mark.parametrize("share", SHARES)
def test_jerks_have_the_bits_of_one_device(share):
    bodies, jerks = plummer(300, seed=2), []
    for backend in (make_backend("cpu"), hybrid(share)):
        gravity = make_gravity(backend, bodies, "mixed", 0.01, own=slice(50, 250))
        jerks.append(np.zeros((200, 3)))
        gravity.state.acceleration[:] = 0
        gravity.kernels.accelerations_and_jerks(gravity.state, bodies.velocity, jerks[-1])
        jerks.append(gravity.state.acceleration.copy())
    assert same_bits(jerks[0], jerks[2])
    assert same_bits(jerks[1], jerks[3])
    assert jerks[0].any()


def test_the_last_bodies_are_the_helpers():
    """Spoiling what the helper computes shows which bodies it has."""
    backend = hybrid(0.25)
    gravity = make_gravity(backend, plummer(400, seed=3), "double", 0.01)
    before = gravity.state.acceleration.copy()
    compute = gravity.kernels.helper.accelerations
    gravity.kernels.helper.accelerations = lambda state: (
        compute(state),
        state.acceleration.__imul__(2.0),
    )
    gravity.start()
    np.testing.assert_array_equal(gravity.state.acceleration[:300], before[:300])
    np.testing.assert_array_equal(gravity.state.acceleration[300:], 2 * before[300:])


def test_each_part_knows_its_own_bodies_in_the_order_of_their_places():
    """A GPU takes its targets in that order, and would reach beyond its part in that of all own
    bodies.
    """
    gravity = make_gravity(hybrid(0.3), plummer(500, seed=3), "single", 0.01, own=slice(100, 400))
    parts = gravity.kernels.split.parts(gravity.state, gravity.kernels.count)
    assert (parts.main.own, parts.helper.own) == (slice(100, 310), slice(310, 400))
    for part in (parts.main, parts.helper):
        np.testing.assert_array_equal(part.own_order, np.argsort(part.source_index))


def test_a_share_can_be_fixed_and_changed_at_any_time():
    bodies = plummer(300, seed=4)
    truth = make_gravity(make_backend("cpu"), bodies, "single", 0.01).state.acceleration
    gravity = make_gravity(hybrid("auto"), bodies, "single", 0.01)
    for share in (0.5, 0.0, 1.0, 0.1):
        gravity.kernels.fix(share)
        gravity.state.acceleration[:] = np.nan
        gravity.start()
        assert gravity.kernels.share == share
        assert same_bits(gravity.state.acceleration, truth)


@pytest.mark.mpi
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("integrator", ["euler", "leapfrog", "yoshida4"])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0, "auto"])
def test_steps_have_the_bits_of_one_device(communicator, precision, integrator, share):
    """Across a sort of the sources, on any number of ranks, one of which may have no bodies."""
    bodies = unequal(plummer(200, 5))
    weights = [float(rank != 1) for rank in range(communicator.size)]
    options = {
        "integrator": integrator,
        "precision": precision,
        "softening": 0.02,
        "weights": weights,
    }
    models = [
        make_model(bodies, 1e-3, communicator, backend, **options)
        for backend in (None, hybrid(share))
    ]
    for model in models:
        model.step = STEPS_BETWEEN_SORTS - 3
        model.advance(7)
    for name in ("bodies/position", "bodies/velocity", "bodies/acceleration"):
        assert same_bits(*(whole(model, name) for model in models))
    assert models[0].diagnostics() == models[1].diagnostics()


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.05, 0.95 * 640**2 / 1e9), (0.5, 0.5 * 640**2 / 1e8)]
)
def test_the_time_of_the_force_is_that_of_the_longer_part(share, seconds):
    """On the stand-ins' clock: main 1e9, helper 1e8 interactions a second."""
    gravity = make_gravity(hybrid(share, main=1e9, helper=1e8), random_box(640, 6), "single", 0.1)
    gravity.run(StepPlan(LEAPFROG, 1e-3), 10)
    assert gravity.timings["force"] == pytest.approx(10 * seconds, rel=1e-9)


# ---- A real GPU ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpu():
    """One GPU."""
    return make_backend("gpu")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0, "auto"])
def test_a_gpu_and_its_helper_against_the_gpu_and_the_reference(gpu, precision, share):
    bodies = unequal(plummer(4096, seed=7))
    alone = make_gravity(gpu, bodies, precision, 0.01)
    both = make_gravity(HybridBackend(gpu, make_backend("cpu", 2), share), bodies, precision, 0.01)
    true = reference.accelerations(bodies.position, bodies.mass, 0.01)
    scale = np.sqrt(np.mean(np.sum(true**2, axis=1)))
    found, from_gpu = (gpu.download(gravity.state.acceleration) for gravity in (both, alone))
    count = both.kernels.count
    assert same_bits(found[: 4096 - count], from_gpu[: 4096 - count])
    assert np.linalg.norm(found - true, axis=1).max() / scale < BOUNDS[precision]
    potential = reference.potential(bodies.position, bodies.mass, 0.01)
    np.testing.assert_allclose(
        gpu.download(both.potential()), potential, rtol=BOUNDS[precision], atol=0
    )


@pytest.mark.gpu
@pytest.mark.parametrize("share", [0.0, 0.05, 1.0, "auto"])
def test_steps_of_a_gpu_and_its_helper(gpu, alone, share):
    """Many steps: each part sees what the other did in the step before; a sort is among them."""
    bodies = plummer(2000, seed=8)
    backends = gpu, HybridBackend(gpu, make_backend("cpu", 2), share)
    models = [
        make_model(bodies, 1e-3, alone, backend, precision="double", softening=0.05)
        for backend in backends
    ]
    for model in models:
        model.advance(STEPS_BETWEEN_SORTS + 20)
    first, second = (whole(model, "bodies/position") for model in models)
    np.testing.assert_allclose(second, first, rtol=0, atol=1e-12)


@pytest.mark.gpu
def test_a_fixed_share_is_reproducible(gpu, alone):
    bodies, found = plummer(3000, seed=9), []
    for _ in range(2):
        backend = HybridBackend(gpu, make_backend("cpu", 2), 0.1)
        model = make_model(bodies, 1e-3, alone, backend, precision="single", softening=0.05)
        model.advance(50)
        found.append(whole(model, "bodies/velocity"))
    assert same_bits(*found)
