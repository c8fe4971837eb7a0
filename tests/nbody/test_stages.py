"""Orders of the integrators on an eccentric Kepler orbit, symmetries and work; G = 1."""

import numpy as np
import pytest
from support.bodies import make_gravity, make_model, whole
from support.paper import PaperGpu

from hybrid_nbody.nbody.initial_conditions import plummer, two_body
from hybrid_nbody.nbody.stages import EULER, FORCE, LEAPFROG, YOSHIDA4, StepPlan

PERIOD = 2 * np.pi / np.sqrt(2)
"""Of two unit masses at distance 1."""

STAGES = {"euler": EULER, "leapfrog": LEAPFROG, "yoshida4": YOSHIDA4}

FIXED = 1e12
"""An accuracy with which hermite4 takes one substep a step."""


def error_after_an_orbit(alone, backend, integrator, steps):
    """Return the largest coordinate error, from pericentre to pericentre at e = 0.5."""
    bodies = two_body(eccentricity=0.5)
    model = make_model(bodies, PERIOD / steps, alone, backend, integrator, accuracy=FIXED)
    model.advance(steps)
    return np.abs(whole(model, "bodies/position") - bodies.position).max()


@pytest.mark.parametrize(
    ("integrator", "order", "steps"),
    [("leapfrog", 2, 2000), ("yoshida4", 4, 1500), ("hermite4", 4, 600)],
)
def test_the_order_is_that_of_the_scheme(alone, backend, integrator, order, steps):
    coarse, fine = (
        error_after_an_orbit(alone, backend, integrator, number) for number in (steps, 2 * steps)
    )
    assert np.log2(coarse / fine) == pytest.approx(order, rel=0, abs=0.1)
    assert fine < 1e-3


@pytest.mark.parametrize("stages", STAGES.values(), ids=STAGES)
def test_kicks_and_drifts_of_a_step_make_up_a_step(stages):
    for action in ("kick", "drift"):
        total = sum(stage.fraction for stage in stages if stage.action == action)
        assert total == pytest.approx(1.0, rel=0, abs=1e-15)


def test_yoshida_is_the_same_backwards():
    moves = [stage for stage in YOSHIDA4 if stage is not FORCE]
    assert moves == moves[::-1]
    drifts = [stage.fraction for stage in moves if stage.action == "drift"]
    # cancels order 3
    assert sum(fraction**3 for fraction in drifts) == pytest.approx(0.0, rel=0, abs=1e-14)


def test_yoshida_runs_backwards(alone):
    bodies = plummer(50, 10)
    model = make_model(bodies, 1e-3, alone, integrator="yoshida4", softening=0.1)
    model.advance(100)
    model.bodies.velocity[:] *= -1
    model.advance(100)
    np.testing.assert_allclose(whole(model, "bodies/position"), bodies.position, rtol=0, atol=1e-12)


def test_the_work_of_a_step_counts_its_forces(alone):
    works = {name: make_model(plummer(10, 1), 1e-3, alone, integrator=name).work for name in STAGES}
    forces = {name: work.per_step / 100 for name, work in works.items()}
    assert forces == {"euler": 1.0, "leapfrog": 1.0, "yoshida4": 3.0}
    assert {work.operations for work in works.values()} == {20}


@pytest.mark.mpi
def test_yoshida_has_the_same_bits_on_any_number_of_ranks(communicator, alone, backend):
    """One rank may have no bodies."""
    weights = [float(rank != 1) for rank in range(communicator.size)]
    options = {
        "backend": backend,
        "integrator": "yoshida4",
        "precision": "single",
        "softening": 0.05,
    }
    shared = make_model(plummer(100, 3), 1e-3, communicator, weights=weights, **options)
    single = make_model(plummer(100, 3), 1e-3, alone, **options)
    for model in (shared, single):
        model.advance(5)
    for name in ("bodies/position", "bodies/velocity"):
        np.testing.assert_array_equal(whole(shared, name), whole(single, name))


@pytest.mark.parametrize(
    ("stages", "before"),
    [
        (EULER, []),
        (LEAPFROG, ["add_scaled", "add_scaled"]),
    ],
    ids=["euler", "leapfrog"],
)
def test_a_device_is_given_the_kernels_of_the_stages_in_their_order(stages, before):
    """On a GPU on paper: from force to force, what moves the bodies is done with the sums."""
    backend = PaperGpu(lambda *arguments: 1e-3)
    gravity = make_gravity(backend, plummer(700, 1), "single", 0.05)
    sort = ["find_box", "find_keys", "sort", "find_leaps", "find_heads", "cut"]
    assert backend.launches == [*sort, "pack", "accelerations_of_equal_masses", "combine"]
    backend.launches.clear()
    gravity.run(StepPlan(stages, 1e-3), 2)
    force = ["accelerations_of_equal_masses", "combine_move_and_pack"]
    assert backend.launches == [*before, "pack", "keep_middles", *2 * force]
