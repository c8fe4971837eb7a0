"""Each pair once on GPUs: the reference, and the same bits for any call and number of ranks.

Errors are relative to the rms over all bodies, potentials to their own values.
"""

import numpy as np
import pytest
from support.bodies import clustered, make_backend, make_gravity, make_model, whole

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.direct import DirectForce
from hybrid_nbody.nbody.forces.symmetric import SymmetricForce
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.kernels.gpu.exact_sums import LEAST_BODIES
from hybrid_nbody.parallel.transport import nccl

pytestmark = pytest.mark.gpu

SAMPLE = 200


def unequal(bodies):
    """Return bodies of unequal masses."""
    return Bodies(
        bodies.position,
        bodies.velocity,
        bodies.mass * np.random.default_rng(8).uniform(0.5, 1.5, len(bodies)),
    )


def in_metres(bodies):
    """Return a sphere of a parsec and a thousand suns or so."""
    return Bodies(3e16 * bodies.position, 1e3 * bodies.velocity, 2e33 * bodies.mass)


def tiny(bodies):
    """Return a sphere of a nanometre and a femtogram."""
    return Bodies(1e-9 * bodies.position, bodies.velocity, 1e-18 * bodies.mass)


def tracers(bodies):
    """Return bodies of which every fourth one has no mass."""
    return Bodies(
        bodies.position,
        bodies.velocity,
        np.where(np.arange(len(bodies)) % 4 == 0, 0.0, bodies.mass),
    )


def stirred(bodies):
    """Return bodies that move."""
    return Bodies(
        bodies.position, np.random.default_rng(3).normal(size=bodies.position.shape), bodies.mass
    )


BODIES = {
    "just enough": (lambda: plummer(LEAST_BODIES, seed=1), 0.01),
    "a part of a chunk more": (lambda: unequal(plummer(LEAST_BODIES + 77, seed=2)), 0.01),
    "an odd number of chunks": (lambda: unequal(plummer(LEAST_BODIES + 256, seed=3)), 0.05),
    "clusters far apart": (lambda: stirred(clustered(20000)), 1e-2),
    "a tiny softening": (lambda: unequal(plummer(20000, seed=4)), 1e-7),
    "metres": (lambda: in_metres(unequal(plummer(17000, seed=5))), 3e14),
    "equal masses in metres": (lambda: in_metres(plummer(17000, seed=5)), 3e14),
    "nanometres": (lambda: tiny(unequal(plummer(17000, seed=6))), 1e-11),
    "masses of nothing among others": (lambda: tracers(plummer(17000, seed=7)), 0.01),
}


@pytest.fixture(scope="module")
def gpu():
    return make_backend("gpu")


def sample(number):
    return np.unique(np.linspace(0, number - 1, SAMPLE).astype(int))


def error(found, true):
    """Return the errors of vectors, relative to their rms."""
    return np.linalg.norm(found - true, axis=1) / np.sqrt(np.mean(np.sum(true**2, axis=1)))


@pytest.mark.parametrize("case", BODIES)
def test_sums_are_those_of_the_reference(gpu, case):
    make, softening = BODIES[case]
    bodies = make()
    some = sample(len(bodies))
    system = bodies.position, bodies.mass, softening
    gravity = make_gravity(gpu, bodies, "single", softening)
    assert isinstance(gravity, SymmetricForce)
    found = gpu.download(gravity.state.acceleration)
    true = reference.accelerations(*system, targets=some)
    assert np.percentile(error(found[some], true), 95) < 1e-5
    potential = reference.potential(*system, targets=some)
    np.testing.assert_allclose(
        gpu.download(gravity.potential())[some], potential, rtol=1e-5, atol=0
    )
    jerk = gpu.zeros((len(bodies), 3), "f8")
    gravity.kernels.accelerations_and_jerks(gravity.state, gpu.upload(bodies.velocity), jerk)
    both = reference.accelerations_and_jerks(
        bodies.position, bodies.velocity, bodies.mass, softening, targets=some
    )
    assert np.percentile(error(gpu.download(gravity.state.acceleration)[some], both[0]), 95) < 1e-5
    assert np.percentile(error(gpu.download(jerk)[some], both[1]), 95) < 5e-5


@pytest.mark.parametrize("case", BODIES)
def test_forces_add_up_to_nothing(gpu, case):
    """The forces of a pair are equal and opposite; only the sums are rounded."""
    make, softening = BODIES[case]
    bodies = make()
    found = gpu.download(make_gravity(gpu, bodies, "single", softening).state.acceleration)
    forces = bodies.mass[:, None] * found
    assert np.abs(forces.sum(axis=0)).max() < 1e-6 * np.abs(forces).sum()


def test_every_call_has_the_same_bits(gpu):
    bodies = unequal(plummer(30000, seed=6))
    gravity = make_gravity(gpu, bodies, "single", 0.01)
    jerk, velocity = gpu.zeros((len(bodies), 3), "f8"), gpu.upload(bodies.velocity)
    seen = set()
    for _ in range(5):
        gravity.kernels.accelerations(gravity.state)
        plain = gpu.download(gravity.state.acceleration).tobytes()
        gravity.kernels.accelerations_and_jerks(gravity.state, velocity, jerk)
        moving = gpu.download(gravity.state.acceleration).tobytes() + gpu.download(jerk).tobytes()
        seen.add((plain, moving, gpu.download(gravity.potential()).tobytes()))
    assert len(seen) == 1


def test_empty_slots_that_are_left_out_change_no_bit(gpu):
    """Clumps of 32 fill many chunks in part; both kernels sum the same bodies."""
    middles = np.random.default_rng(1).uniform(-1, 1, (LEAST_BODIES // 32, 3))
    position = np.repeat(middles, 32, axis=0)
    position += np.random.default_rng(2).normal(scale=1e-3, size=position.shape)
    velocity = np.random.default_rng(3).normal(size=position.shape)
    bodies = unequal(Bodies(position, velocity, np.full(len(position), 1.0)))
    gravity = make_gravity(gpu, bodies, "single", 1e-3)
    assert gravity.kernels.short
    seen = set()
    for short in (True, False):
        gravity.kernels.short = short
        gravity.kernels.accelerations(gravity.state)
        acceleration = gpu.download(gravity.state.acceleration).tobytes()
        jerk = gpu.zeros((len(bodies), 3), "f8")
        gravity.kernels.accelerations_and_jerks(gravity.state, gpu.upload(velocity), jerk)
        potential = gpu.download(gravity.potential()).tobytes()
        seen.add((acceleration, gpu.download(jerk).tobytes(), potential))
    assert len(seen) == 1


def state_of(model):
    """Return what a run writes, as bytes."""
    return [
        whole(model, f"bodies/{name}").tobytes()
        for name in ("position", "velocity", "acceleration")
    ]


WEIGHTS = {
    "equal": lambda size: [1.0] * size,
    "uneven": lambda size: [rank + 0.5 for rank in range(size)],
    "all on the last": lambda size: [0.0] * (size - 1) + [1.0],
}


@pytest.mark.mpi
@pytest.mark.parametrize("by_peers", [True, False])
@pytest.mark.parametrize("integrator", ["leapfrog", "hermite4"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_ranks_have_the_bits_of_one(
    communicator, alone, monkeypatch, integrator, weights, by_peers
):
    """Replayed steps, too, where messages can be recorded; whether GPUs reach others' memory."""
    if not by_peers:
        monkeypatch.setattr(nccl, "peer_memory", lambda *of_ranks: None)
    bodies = unequal(plummer(LEAST_BODIES, seed=7))
    backend = make_backend("gpu", local_rank=communicator.local_rank)
    options = {
        "integrator": integrator,
        "precision": "single",
        "softening": 0.05,
        "backend": backend,
    }
    together = make_model(
        bodies, 1e-3, communicator, weights=WEIGHTS[weights](communicator.size), **options
    )
    by_itself = make_model(bodies, 1e-3, alone, **options)
    assert isinstance(together.force, SymmetricForce)
    if by_peers and communicator.size > 1 and together.exchange.transport.peers is None:
        pytest.skip("the GPUs cannot reach each other's memory")
    assert (together.force.shared is not None) == (by_peers and communicator.size > 1)
    for model in (together, by_itself):
        for steps in (5, 5, 5, 150 if integrator == "leapfrog" else 5):  # graphs are replayed
            model.advance(steps)
    assert state_of(together) == state_of(by_itself)
    potential = whole_potential(together)
    assert potential == whole_potential(by_itself)


@pytest.mark.mpi(min_size=2)
def test_sources_sorted_anew_wait_for_no_positions_to_come(communicator, alone):
    """A rank that is done with sorting must not write positions that another one still sorts."""
    backend = make_backend("gpu", local_rank=communicator.local_rank)
    options = {"precision": "single", "softening": 0.05, "backend": backend}
    bodies = plummer(LEAST_BODIES + 1, seed=8)
    models = [make_model(bodies, 1e-2, ranks, **options) for ranks in (communicator, alone)]
    for model in models:
        for _ in range(4):
            model.advance(3)
            model.force._sort()
    assert state_of(models[0]) == state_of(models[1])


def whole_potential(model):
    """Return the potential at all bodies, as bytes."""
    return b"".join(
        model.communicator.gather(model.backend.download(model.force.potential()).tobytes())
    )


def test_steps_are_those_of_the_other_kernel_but_for_rounding(gpu, alone):
    bodies = plummer(LEAST_BODIES, seed=9)
    options = {"precision": "single", "softening": 0.05, "backend": gpu}
    found, expected = (
        make_model(bodies, 1e-3, alone, make_force=force, **options)
        for force in (SymmetricForce, DirectForce)
    )
    for model in (found, expected):
        model.advance(20)
    np.testing.assert_allclose(
        whole(found, "bodies/position"), whole(expected, "bodies/position"), rtol=0, atol=1e-8
    )
