"""Hermite's scheme: known orbits to 1e-10, and the same bits on any ranks and after restarts."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.bodies import make_backend, make_model, whole
from support.devices import hybrid

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.nbody.bodies import Bodies, centred
from hybrid_nbody.nbody.initial_conditions import (
    cold_sphere,
    figure_eight,
    plummer,
    random_box,
    two_body,
)
from hybrid_nbody.nbody.integrators.substeps import next_substep
from hybrid_nbody.nbody.kernels.contract import Criterion
from hybrid_nbody.nbody.kernels.cpu.hermite import next_steps

FIGURE_EIGHT_PERIOD = 6.32591398
FAST = 1e-6  # an accuracy far below what rounding allows


def model_of(bodies, dt, communicator, backend=None, compiled=True, **options):
    """Return a model of hermite4, in the compiled loop if there is one and `compiled` is true."""
    model = make_model(bodies, dt, communicator, backend, "hermite4", **options)
    if not compiled:
        model.force.kernels.run_hermite = None
    return model


def state_of(model):
    """Return positions and velocities of all bodies, and the substep wanted next."""
    return (
        whole(model, "bodies/position"),
        whole(model, "bodies/velocity"),
        model.scalars()["substep"],
    )


def assert_same_bits(first, second):
    """Compare two states bit by bit."""
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


# ---- Known orbits --------------------------------------------------------------------------------


def test_kepler_orbit_of_eccentricity_0_9_returns_for_three_periods(alone, backend):
    bodies = two_body(eccentricity=0.9)
    model = model_of(bodies, 2 * np.pi / np.sqrt(2) / 10, alone, backend, accuracy=FAST)
    model.diagnostics()
    model.advance(30)
    np.testing.assert_allclose(whole(model, "bodies/position"), bodies.position, rtol=0, atol=1e-10)
    assert abs(model.diagnostics()["relative_energy_error"]) < 1e-11


@pytest.mark.parametrize(("accuracy", "error"), [(0.02, 2.4e-4), (0.01, 4.4e-5), (1e-4, 5e-10)])
def test_energy_error_of_the_kepler_orbit_for_an_accuracy(alone, accuracy, error):
    """After ten periods at e = 0.9."""
    model = model_of(
        two_body((0.5, 0.5), eccentricity=0.9), 2 * np.pi / 50, alone, accuracy=accuracy
    )
    model.diagnostics()
    model.advance(500)
    assert abs(model.diagnostics()["relative_energy_error"]) == pytest.approx(error, rel=0.1, abs=0)


@pytest.mark.parametrize(("periods", "error"), [(1, 3.0e-8), (10, 2.9e-7)])
def test_figure_eight_returns_with_the_error_of_its_initial_values(alone, backend, periods, error):
    bodies = figure_eight()
    model = model_of(bodies, FIGURE_EIGHT_PERIOD / 16, alone, backend, accuracy=1e-4)
    model.advance(16 * periods)
    found = np.abs(whole(model, "bodies/position") - bodies.position).max()
    assert found == pytest.approx(error, rel=0.05, abs=0)


def scattering():
    """Return a pair and a third body that comes in and leaves with the second."""
    pair = two_body((1.0, 1.0), 1.0, 0.3)
    position = np.vstack([pair.position, [[-4.0, 1.0, 0.5]]])
    return centred(position, np.vstack([pair.velocity, [[1.2, 0.0, 0.0]]]), np.ones(3))


@cache
def exact_positions(make, time):
    """Return positions after some time by a Runge-Kutta method of order 8 with its own forces."""
    bodies = make()

    def slope(_, y):
        position, velocity = y.reshape(2, -1, 3)
        difference = position[None] - position[:, None]
        square = np.sum(difference**2, axis=2)
        np.fill_diagonal(square, 1.0)
        accelerations = bodies.mass[:, None] * difference / square[..., None] ** 1.5
        return np.concatenate([velocity, accelerations.sum(axis=1)]).ravel()

    start = np.concatenate([bodies.position, bodies.velocity]).ravel()
    return (
        solve_ivp(slope, (0, time), start, "DOP853", rtol=1e-13, atol=1e-15)
        .y[:, -1]
        .reshape(2, -1, 3)[0]
    )


@pytest.mark.parametrize(
    ("make", "time"), [(scattering, 10.0), (figure_eight, FIGURE_EIGHT_PERIOD)]
)
def test_three_bodies_agree_with_an_independent_solution(alone, backend, make, time):
    model = model_of(make(), time / 16, alone, backend, accuracy=FAST)
    model.advance(16)
    found = whole(model, "bodies/position")
    np.testing.assert_allclose(found, exact_positions(make, time), rtol=0, atol=1e-10)


def test_the_scattering_is_an_exchange():
    first, second, third = exact_positions(scattering, 10.0)
    assert np.linalg.norm(second - third) < 1.5
    assert np.linalg.norm(first - second) > 8


# ---- Substeps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(2.0, 1.0), (1.0, 1.0), (0.9, 0.5), (0.51, 0.5), (0.5, 0.5), (0.3, 0.3)],
)
def test_the_last_two_substeps_share_what_is_left(wanted, expected):
    assert next_substep(wanted, 1.0) == pytest.approx(expected, rel=1e-15, abs=0)


def test_the_time_left_after_a_substep_is_exact():
    left = 1.0
    total = Fraction(0)
    while left > 0:
        h = next_substep(0.001234567, left)
        total += Fraction(h)
        left -= h
    assert total == 1


def test_a_force_that_does_not_change_asks_for_no_substep():
    """All derivatives of it are zero, and so is what Aarseth's criterion divides by."""
    start, result = np.zeros((6, 2, 3)), np.zeros(2)
    start[2] = acceleration = np.array([[1.0, 2.0, 3.0], [np.nan, 0.0, 0.0]])
    next_steps(0.1, Criterion(0.01, 1.0, 0.0, 0.0), start, acceleration, start[3], result)
    assert result.tolist() == [np.inf, 0.0]  # and NaN for one that cannot be taken


@pytest.mark.parametrize("compiled", [True, False])
def test_forces_and_their_times_are_counted(alone, compiled):
    """Accuracy 1e12 asks for one substep a step: forces at both of its ends."""
    model = model_of(plummer(20, 1), 1e-3, alone, compiled=compiled, softening=0.1, accuracy=1e12)
    model.advance(100)
    assert model.integrator.forces == 1 + 200  # one before the first step
    assert model.work.per_step == pytest.approx(2.01 * 400, rel=1e-12)
    assert model.timings["force"] > 0


def test_a_body_without_forces_moves_on_a_line(alone, backend):
    body = Bodies(np.zeros((1, 3)), np.array([[1.0, 2.0, 3.0]]), np.ones(1))
    model = model_of(body, 0.5, alone, backend)
    model.advance(4)
    np.testing.assert_allclose(
        whole(model, "bodies/position"), [[2.0, 4.0, 6.0]], rtol=1e-15, atol=0
    )


@pytest.mark.mpi
def test_a_body_whose_forces_cancel_does_not_hold_the_others_up(communicator, backend):
    """At rest at the centre of a pair its acceleration and jerk are rounding errors."""
    pair = two_body((1.0, 1.0), 1.0, 0.3)
    position, velocity = (
        np.vstack([array, np.zeros((1, 3))]) for array in (pair.position, pair.velocity)
    )
    model = model_of(
        Bodies(position, velocity, np.array([1.0, 1.0, 1e-3])), 0.1, communicator, backend
    )
    model.advance(10)
    assert model.integrator.forces < 400
    assert np.abs(whole(model, "bodies/position")[2]).max() < 1e-10


def test_bodies_at_rest_find_their_first_substep(alone):
    """No jerk says how long it may be: the first one is tried, and done again."""
    model = model_of(cold_sphere(50, 1), 0.5, alone, softening=0.1)
    model.diagnostics()
    model.advance(1)
    assert model.integrator.forces > 4
    assert abs(model.diagnostics()["relative_energy_error"]) < 1e-3


def falling():
    """Return two bodies that fall towards each other, and two that weigh nothing."""
    position = np.array([[-0.5, 0, 0], [0.5, 0, 0], [9.0, 0, 0], [0, 9.0, 0]])
    return Bodies(position, np.zeros((4, 3)), np.array([1.0, 1.0, 1e-9, 1e-9]))


@pytest.mark.parametrize("compiled", [True, False])
def test_bodies_that_meet_end_the_run(alone, backend, compiled):
    """Two unit masses at distance 1 fall for pi / 4 units of time."""
    model = model_of(falling(), 0.1, alone, backend, compiled)
    message = r"^after step 7 .*: body [01] needs a substep of .*softening"
    with pytest.raises(NumericalError, match=message) as caught:
        model.advance(100)
    assert caught.value.exit_code == 3
    assert caught.value.shared


# ---- The same bits -------------------------------------------------------------------------------


def unequal(number, seed):
    bodies = plummer(number, seed)
    return Bodies(
        bodies.position,
        bodies.velocity,
        bodies.mass * np.random.default_rng(8).uniform(0.5, 1.5, number),
    )


@pytest.mark.parametrize("batches", [[20], [1, 19], [7, 7, 6]])
def test_substeps_one_by_one_have_the_bits_of_the_compiled_loop(alone, batches):
    bodies = unequal(70, 1)
    compiled, others = (
        model_of(bodies, 0.02, alone, compiled=choice, softening=1e-3) for choice in (True, False)
    )
    compiled.advance(20)
    for steps in batches:
        others.advance(steps)
    assert_same_bits(state_of(compiled), state_of(others))
    assert compiled.integrator.forces == others.integrator.forces > 60
    assert compiled.diagnostics() == others.diagnostics()


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("number", "precision"), [(1, "double"), (3, "double"), (150, "double"), (150, "single")]
)
def test_any_number_of_ranks_gives_the_bits_of_one(communicator, alone, backend, number, precision):
    """Uneven shares, and a rank without bodies."""
    bodies = unequal(number, 3) if number > 3 else scattering().share(slice(0, number))
    weights = [float(rank % 2 == 0) * (rank + 1) for rank in range(communicator.size)]
    options = {"backend": backend, "precision": precision, "softening": 1e-3}
    shared = model_of(
        bodies, 0.02, communicator, weights=weights, compiled=precision == "double", **options
    )
    single = model_of(bodies, 0.02, alone, compiled=precision == "double", **options)
    for model in (shared, single):
        model.advance(6)
    assert_same_bits(state_of(shared), state_of(single))
    assert shared.integrator.forces == single.integrator.forces


@pytest.mark.mpi
def test_every_rank_hears_of_bodies_that_meet(communicator):
    model = model_of(falling(), 0.1, communicator)
    with pytest.raises(NumericalError) as caught:
        model.advance(100)
    assert len(set(communicator.gather(str(caught.value)))) == 1


@pytest.mark.mpi
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_a_helper_changes_no_bit(communicator, share):
    models = [
        model_of(unequal(60, 5), 0.02, communicator, each, softening=1e-3)
        for each in (None, hybrid(share))
    ]
    for model in models:
        model.advance(4)
    assert_same_bits(*map(state_of, models))


@pytest.mark.mpi
def test_a_restored_model_goes_on_with_the_same_bits(communicator, backend):
    """On other shares than those that it was saved with, before a long substep would have ended."""
    bodies, elsewhere = unequal(60, 5), random_box(60, 6)
    options = {"backend": backend, "softening": 1e-3}
    model = model_of(bodies, 0.02, communicator, **options)
    model.advance(5)
    rows, scalars = {name: whole(model, name) for name in model.fields()}, model.scalars()
    weights = [rank + 1.0 for rank in range(communicator.size)]
    others = Bodies(elsewhere.position, elsewhere.velocity, bodies.mass)
    other = model_of(others, 0.02, communicator, weights=weights, **options)
    other.restore(lambda name: rows[name][other.exchange.own], scalars)
    for each in (model, other):
        each.advance(7)
    assert other.step == 12
    assert_same_bits(state_of(model), state_of(other))


@pytest.mark.gpu
def test_a_gpu_agrees_with_the_threads(alone):
    bodies = unequal(500, 7)
    here, there = (
        model_of(bodies, 0.01, alone, make_backend(name), softening=0.01, accuracy=1e-3)
        for name in ("gpu", "cpu")
    )
    for model in (here, there):
        model.advance(10)
    np.testing.assert_allclose(state_of(here)[0], state_of(there)[0], rtol=0, atol=1e-11)
    assert here.integrator.forces == pytest.approx(there.integrator.forces, rel=0.02, abs=0)
