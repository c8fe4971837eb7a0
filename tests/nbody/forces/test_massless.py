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
def test_massive_bodies_do_not_notice_the_others(alone, precision):
    bodies = with_tests()
    options = {"precision": precision, "softening": 0.05}
    alone_, together = (
        make_model(some, 1e-3, alone, **options) for some in (massive_of(bodies), bodies)
    )
    for model in (alone_, together):
        model.advance(5)
    moved = whole(together, "bodies/position")[bodies.mass > 0]
    np.testing.assert_array_equal(moved, whole(alone_, "bodies/position"))


def test_accelerations_are_those_of_all_pairs():
    bodies = with_tests()
    force = make_gravity(make_backend("cpu"), bodies, softening=0.05)
    expected = accelerations(bodies.position, bodies.mass, 0.05)
    np.testing.assert_allclose(force.bodies.acceleration, expected, rtol=1e-12, atol=1e-13)
    assert force.work(jerks=False).per_step == len(bodies) * MASSIVE


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
def test_a_restart_has_the_same_bits(alone, integrator):
    options = {"softening": 0.05, "integrator": integrator, "precision": "mixed"}
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
