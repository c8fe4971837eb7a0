"""Bodies that stay on the ranks of their parts while steps are taken, and come home."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import whole
from support.tree_forces import ACCURACY, make_settling_force, moved

from hybrid_nbody import Simulation
from hybrid_nbody.nbody.forces.tree import force
from hybrid_nbody.nbody.forces.tree.ties import order_ties
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.integrators.kick_drift import KickDrift


@pytest.mark.mpi(min_size=2)
def test_bodies_stay_until_their_rows_are_asked_for(communicator, monkeypatch):
    """Few travel for the next force then; fields are those of a run whose bodies return."""
    names = ("bodies/position", "bodies/velocity", "bodies/acceleration", "gravity/acceleration")
    bodies = plummer(3000, seed=3)
    expected = moved(bodies, communicator)
    monkeypatch.setattr(force, "FORCES_AT_HOME", 3)
    model = moved(bodies, communicator, make_force=make_settling_force)
    assert not model.force.bodies.are_own
    assert 0 < model.force.tree.travels.share_away < force.MOST_AWAY
    rows = {name: whole(model, name) for name in names}
    assert model.force.bodies.are_own
    for name in names:
        np.testing.assert_array_equal(rows[name], whole(expected, name), err_msg=name)


@pytest.mark.mpi(min_size=2)
def test_bodies_stay_for_integrators_that_do_not_read_them(communicator, monkeypatch):
    """Others would read, and write, bodies that are elsewhere."""
    monkeypatch.setattr(KickDrift, "only_kicks_and_drifts", False)
    model = moved(plummer(700, seed=3), communicator, make_force=make_settling_force)
    assert not model.force.tree.travels.may_settle


@pytest.mark.mpi(min_size=2)
def test_a_function_may_ask_on_one_rank_alone(communicator, monkeypatch):
    monkeypatch.setattr(force, "FORCES_AT_HOME", 2)
    simulation = Simulation(
        model="nbody",
        bodies={"kind": "plummer", "n": 700},
        gravity={"solver": "fmm", "accuracy": ACCURACY, "softening": 0.05},
        time={"dt": 1e-2, "steps": 20},
        compute={"backend": "cpu", "threads": 1},
    )
    travels = simulation.model.force.tree.travels
    travels.may_settle = True
    seen = []

    @simulation.every(steps=5)
    def look(simulation):
        seen.append(travels.numbers is None)
        if communicator.is_root:
            assert np.isfinite(simulation.positions).all()

    simulation.run()
    assert seen == [True] * 5


@pytest.mark.mpi(min_size=2)
def test_bodies_return_for_longer_where_they_are_often_asked_for(communicator, monkeypatch):
    monkeypatch.setattr(force, "FORCES_AT_HOME", 2)
    model = moved(plummer(700, seed=3), communicator, make_force=make_settling_force)
    stayed = []
    for _ in range(12):
        model.fields()
        model.advance(2)
        stayed.append(not model.force.bodies.are_own)
    assert 2 <= sum(stayed) <= 4


@given(
    seed=st.integers(0, 1000),
    number=st.integers(1, 60),
    keys=st.integers(1, 20),
)
def test_bodies_of_one_key_are_in_the_order_of_their_numbers(seed, number, keys):
    chance = np.random.default_rng(seed)
    key = chance.integers(0, keys, number)
    numbers = chance.permutation(3 * number)[:number]
    order = np.argsort(key, kind="stable").astype(np.int32)
    order_ties(np, np.diff(key[order]) == 0, order, numbers)
    np.testing.assert_array_equal(order, np.lexsort([numbers, key]))
