"""Bodies without mass feel the others and are no sources."""

import numpy as np
import pytest
from support.bodies import make_backend, make_gravity, make_model, whole

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.reference import accelerations
from hybrid_nbody.nbody.sources import massive_first

MASSIVE = 300


def with_tests(number=700):
    """Return massive bodies of several masses, and others without, among each other."""
    random = np.random.default_rng(8)
    bodies = plummer(MASSIVE + number, seed=3)
    mass = np.zeros(len(bodies))
    mass[np.sort(random.choice(len(bodies), MASSIVE, replace=False))] = random.uniform(
        0.5, 1.5, MASSIVE
    )
    return Bodies(bodies.position, bodies.velocity, mass / MASSIVE)


def massive_of(bodies):
    return bodies.some(np.flatnonzero(bodies.mass > 0))


@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
def test_massive_bodies_do_not_notice_the_others(alone, precision, backend_name):
    bodies = with_tests()
    options = {"precision": precision, "softening": 0.05, "backend": make_backend(backend_name)}
    alone_, together = (
        make_model(some, 1e-3, alone, **options) for some in (massive_of(bodies), bodies)
    )
    for model in (alone_, together):
        model.advance(5)
    moved = whole(together, "bodies/position")[bodies.mass > 0]
    np.testing.assert_array_equal(moved, whole(alone_, "bodies/position"))


@pytest.mark.parametrize("number", [20, 700])
def test_accelerations_are_those_of_all_pairs(backend_name, number):
    bodies = with_tests(number)
    backend = make_backend(backend_name)
    force = make_gravity(backend, bodies, softening=0.05)
    expected = accelerations(bodies.position, bodies.mass, 0.05)
    found = backend.download(force.bodies.acceleration)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert force.work(jerks=False).per_step == len(bodies) * MASSIVE


@pytest.mark.gpu
@pytest.mark.parametrize("number", [4000, 30000])
def test_a_gpu_sums_over_some_of_many_bodies(number):
    """Where all had mass, each pair would be computed once."""
    bodies = with_tests(number)
    backend = make_backend("gpu")
    force = make_gravity(backend, bodies, precision="single", softening=0.05)
    assert force.work(jerks=False).per_step == len(bodies) * MASSIVE
    some = np.arange(0, len(bodies), 50)
    massive = massive_of(bodies)
    apart = massive.position - bodies.position[some, None]
    cube = ((apart**2).sum(axis=2) + 0.05**2) ** 1.5
    expected = (massive.mass[:, None] * apart / cube[..., None]).sum(axis=1)
    scale = np.sqrt((expected**2).mean())
    found = backend.download(force.bodies.acceleration)[some]
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-5 * scale)


@pytest.mark.gpu
def test_a_gpu_steps_a_few_bodies_in_one_block(alone):
    bodies = plummer(100, seed=3)
    mass = np.where(np.arange(100) < 5, 0.2, 0.0) * np.linspace(0.8, 1.2, 100)
    models = [
        make_model(
            Bodies(*bodies_of(bodies), mass),
            1e-3,
            alone,
            softening=0.05,
            precision="double",
            backend=make_backend(name),
        )
        for name in ("cpu", "gpu")
    ]
    for model in models:
        model.advance(20)
    cpu, gpu = (whole(model, "bodies/position") for model in models)
    np.testing.assert_allclose(gpu, cpu, rtol=0, atol=1e-12)


def test_two_without_mass_may_be_at_one_place():
    position = np.array([[0.0, 0, 0], [1, 0, 0], [1, 0, 0]])
    bodies = Bodies(position, np.zeros((3, 3)), np.array([1.0, 0, 0]))
    force = make_gravity(make_backend("cpu"), bodies)
    np.testing.assert_allclose(
        force.bodies.acceleration, [[0, 0, 0], [-1, 0, 0], [-1, 0, 0]], rtol=1e-15, atol=0
    )


@pytest.mark.parametrize("mass", [0.0, 1.0])
def test_where_all_are_alike_all_are_sources(mass):
    bodies = plummer(40, seed=2)
    force = make_gravity(make_backend("cpu"), Bodies(*bodies_of(bodies), np.full(40, mass)))
    assert force.sources == 40


def bodies_of(bodies):
    return bodies.position, bodies.velocity


@pytest.mark.parametrize("spatial", [True, False])
def test_massive_bodies_come_first_in_the_order(spatial):
    bodies = with_tests()
    order = massive_first(bodies.position, bodies.mass > 0, spatial)
    np.testing.assert_array_equal(np.sort(order.bodies), np.arange(len(bodies)))
    assert (bodies.mass[order.bodies[:MASSIVE]] > 0).all()
    assert order.starts[-1] == MASSIVE
    assert order.chunks == 2


@pytest.mark.parametrize("integrator", ["leapfrog", "hermite4"])
def test_a_restart_has_the_same_bits(alone, integrator, backend_name):
    options = {"softening": 0.05, "integrator": integrator, "precision": "mixed"}
    options["backend"] = make_backend(backend_name)
    model, other = (make_model(with_tests(), 1e-3, alone, **options) for _ in range(2))
    model.advance(3)
    saved = {name: whole(model, name) for name in model.fields()}
    other.restore(saved.__getitem__, model.scalars())
    for each in (model, other):
        each.advance(3)
    np.testing.assert_array_equal(*(whole(each, "bodies/velocity") for each in (model, other)))


def test_a_state_written_where_all_were_sources_is_ordered_anew(alone):
    """Checkpoints of earlier versions have massless bodies in any place of the order."""
    model = make_model(with_tests(), 1e-3, alone, softening=0.05, precision="single")
    saved = {name: whole(model, name) for name in model.fields()}
    number = len(saved["gravity/order"])
    saved["gravity/order"] = np.arange(number, dtype=np.int32)
    model.restore(saved.__getitem__, model.scalars())
    assert model.force.state.starts[-1] == MASSIVE


@pytest.mark.mpi
def test_bits_do_not_depend_on_the_ranks(communicator, alone):
    weights = [1.0 + rank for rank in range(communicator.size)]
    options = {"softening": 0.05, "precision": "single"}
    several = make_model(with_tests(), 1e-3, communicator, weights=weights, **options)
    one = make_model(with_tests(), 1e-3, alone, **options)
    for model in (several, one):
        model.advance(3)
    np.testing.assert_array_equal(*(whole(model, "bodies/position") for model in (several, one)))
