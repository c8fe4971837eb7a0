"""Rounding under Hermite's scheme: of forces, of positions and velocities, and of time."""

import json

import numpy as np
import pytest
from support import configs
from support.bodies import make_model, whole

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.initial_conditions import plummer, two_body
from hybrid_nbody.nbody.integrators.noise import hidden_noise, least_accuracy
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.kernels.contract import Criterion
from hybrid_nbody.nbody.kernels.cpu.hermite import next_steps

PYTHAGOREAN_END = [[0.7438075, 1.9399480], [0.2640103, -0.7316244], [-0.6574928, -0.5786693]]
"""Positions at t = 60 with the low parts of positions in the differences, accuracy 1e-7."""


def pythagorean():
    """Return masses 3, 4 and 5 at rest at the corners of the triangle of sides 3, 4 and 5."""
    position = np.array([[1.0, 3.0, 0.0], [-2.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
    return Bodies(position, np.zeros((3, 3)), np.array([3.0, 4.0, 5.0]))


def clumps():
    """Return eight Plummer spheres of thirty bodies in a box."""
    random = np.random.default_rng(3)
    parts = [plummer(30, seed) for seed in range(1, 9)]
    position = [0.3 * part.position + random.uniform(-2, 2, 3) for part in parts]
    velocity = [part.velocity * np.sqrt(1 / 8 / 0.3) for part in parts]
    mass = [part.mass / 8 for part in parts]
    return Bodies(*map(np.concatenate, (position, velocity, mass)))


def hermite(bodies, dt, communicator, backend=None, compiled=True, **options):
    """Return a model of hermite4, in the compiled loop if there is one and `compiled` is true."""
    model = make_model(bodies, dt, communicator, backend, "hermite4", **options)
    if not compiled:
        model.force.kernels.run_hermite = None
    return model


def energy(model, mass, softening):
    """Return the energy of the bodies of a model in float64."""
    position, velocity = (whole(model, f"bodies/{name}") for name in ("position", "velocity"))
    potential = reference.potential(position, mass, softening)
    return np.sum(mass * (np.sum(velocity**2, axis=1) + potential)) / 2


# --- forces -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "softening", "error"),
    [("mixed", 0.0, 3e-7), ("mixed", 0.01, 3e-9), ("single", 0.01, 3e-8)],
)
@pytest.mark.parametrize("make", [lambda: plummer(240, 1), clumps])
def test_rounding_of_forces_does_not_drive_substeps(
    alone, backend, make, precision, softening, error
):
    """At an accuracy of 1e-3 single and mixed precision need as many forces as double."""
    bodies = make()
    models = [
        hermite(bodies, 0.01, alone, backend, precision=each, softening=softening, accuracy=1e-3)
        for each in ("double", precision)
    ]
    before = energy(models[1], bodies.mass, softening)
    for model in models:
        model.advance(4)
    double, found = (model.integrator.forces for model in models)
    assert found < 1.5 * double
    assert abs(energy(models[1], bodies.mass, softening) / before - 1) < error


@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
@pytest.mark.parametrize("powers", [(0, 160), (0, -160), (200, -150), (-200, 200)])
def test_substeps_scale_exactly_with_powers_of_two(alone, backend, precision, powers):
    """Of length and time; products of derivatives leave the range of float64 in these units."""
    length, time = powers
    bodies = plummer(20, 1)
    others = Bodies(
        np.ldexp(bodies.position, length),
        np.ldexp(bodies.velocity, length - time),
        np.ldexp(bodies.mass, 3 * length - 2 * time),
    )
    plain, scaled = (
        hermite(each, dt, alone, backend, precision=precision, softening=softening)
        for each, dt, softening in (
            (bodies, 0.1, 0.02),
            (others, 0.1 * 2.0**time, 0.02 * 2.0**length),
        )
    )
    for model in (plain, scaled):
        model.advance(2)
    assert scaled.integrator.forces == plain.integrator.forces
    for name, power in (("position", length), ("velocity", length - time)):
        expected = np.ldexp(whole(plain, f"bodies/{name}"), power)
        np.testing.assert_array_equal(whole(scaled, f"bodies/{name}"), expected)


def test_in_double_precision_noise_is_far_below_what_the_criterion_sees(alone):
    model = hermite(plummer(240, 1), 0.01, alone, accuracy=1e-3, softening=0.01)
    assert 0 < model.scalars()["force_noise"] < 1e-12


@pytest.mark.mpi
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
def test_the_noise_of_a_force_is_the_same_on_any_ranks(communicator, alone, precision):
    weights = [float(rank % 2 == 0) * (rank + 1) for rank in range(communicator.size)]
    shared = hermite(
        plummer(90, 1), 0.01, communicator, weights=weights, precision=precision, softening=0.01
    )
    single = hermite(plummer(90, 1), 0.01, alone, precision=precision, softening=0.01)
    assert shared.scalars()["force_noise"] == single.scalars()["force_noise"] > 0


def test_measuring_the_noise_moves_no_body(alone):
    bodies = plummer(50, 1)
    model = hermite(bodies, 0.01, alone, precision="single", softening=0.01)
    np.testing.assert_array_equal(whole(model, "bodies/position"), bodies.position)
    np.testing.assert_array_equal(whole(model, "bodies/velocity"), bodies.velocity)
    assert not whole(model, "bodies/position_low").any()


def test_noise_hides_at_most_a_part_of_the_criterion():
    """Whatever is measured, substeps are at most three times as long as those asked for."""
    assert hidden_noise(1e-9, 1e-3) == 1e-9
    assert hidden_noise(1.0, 1e-3) == pytest.approx(32 / 12 * 1e-3**1.5, rel=1e-12, abs=0)
    assert least_accuracy(1e-3**1.5 / 12) == pytest.approx(1e-3, rel=1e-12, abs=0)


def test_a_derivative_within_noise_lets_a_substep_double():
    """The accelerations differ by their rounding alone, over a short substep."""
    start, result = np.zeros((6, 1, 3)), np.zeros(1)
    start[2, 0] = [1.0, 0.0, 0.0]
    start[3, 0] = [0.0, 1.0, 0.0]
    acceleration = start[2] + [[1e-8, 1e-6, 0.0]]
    found = []
    for noise in (0.0, 1e-7):
        limits = Criterion(0.01, 1.0, noise, 0.0)
        next_steps(1e-6, limits, start, acceleration, start[3], result)
        found.append(result[0])
    assert found[0] < 1e-4
    assert found[1] == 2e-6
    next_steps(1e-6, limits, start, np.full((1, 3), np.nan), start[3], result)
    assert result[0] == 0.0


LIMITED = """
model: nbody
bodies: {kind: plummer, n: 60}
gravity: {softening: SOFTENING, precision: PRECISION}
time: {dt: 1e-2, steps: 10, integrator: hermite4, accuracy: 1e-3}
compute: {backend: cpu, threads: 1}
"""


@pytest.mark.parametrize(("precision", "limited"), [("single", True), ("double", False)])
def test_the_log_says_that_rounding_limits_the_substeps(alone, precision, limited):
    text = LIMITED.replace("SOFTENING", "1e-6").replace("PRECISION", precision)
    builder = NBodyBuilder(configs.loads(text, "test.yaml"), alone)
    setup = builder.fresh(builder.initial())
    setup.model.integrator.noise = {"single": 1e-4, "double": 1e-14}[precision]
    said = [line for line in builder.lines(setup) if "limited by the rounding" in line]
    assert bool(said) == limited
    if limited:
        assert said[0].startswith(
            "single precision: substeps are limited by the rounding of forces"
        )
        assert "take time.accuracy 0.02 or more" in said[0]


# --- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("accuracy", [1e-3, 1e-2])
def test_a_close_encounter_within_a_long_step_is_followed(alone, backend, accuracy):
    """The bodies of the Pythagorean problem meet at t = 15.8, at a distance of 4e-4."""
    model = hermite(pythagorean(), 0.1, alone, backend, accuracy=accuracy)
    model.advance(170)
    assert model.step == 170


@pytest.mark.parametrize("compiled", [True, False])
def test_nan_ends_the_run_at_once_and_names_its_body(alone, backend, compiled):
    bodies = two_body()
    model = hermite(bodies, 0.1, alone, backend, compiled)
    model.advance(1)
    forces = model.integrator.forces
    model.bodies.velocity[1, 0] = np.nan
    with pytest.raises(NumericalError, match=r"^after step 1 .*: body [01] needs a substep of 0"):
        model.advance(5)
    assert model.integrator.forces - forces < 5


def test_a_long_step_comes_back_to_python_now_and_then(alone):
    """So that signals are noticed; the pauses change nothing."""
    model = hermite(pythagorean(), 60.0, alone, accuracy=1e-5)
    run, calls = model.force.kernels.run_hermite, []
    model.force.kernels.run_hermite = lambda *given: calls.append(run(*given)) or calls[-1]
    model.diagnostics()
    model.advance(1)
    assert [progress.steps for progress in calls] == [0] * (len(calls) - 1) + [1]
    assert len(calls) > 1
    assert 0 < calls[0].point.left < 60
    assert abs(model.diagnostics()["relative_energy_error"]) < 1e-9


def test_a_pause_within_a_step_ends_a_series_of_copies_behind_it(alone):
    one, other = (hermite(pythagorean(), 60.0, alone, accuracy=1e-5) for _ in range(2))
    memory = {f"bodies/{name}": np.zeros((3, 3, 3)) for name in ("position", "velocity")}
    one.queue_with_copies(1, memory)()
    other.advance(1)
    assert one.step == 1
    np.testing.assert_array_equal(memory["bodies/position"][0], other.bodies.position)
    np.testing.assert_array_equal(one.bodies.position, other.bodies.position)


# --- positions and velocities -------------------------------------------------------------------


@pytest.fixture(scope="module")
def followed():
    """Return the largest energy error and the last positions of the Pythagorean problem."""
    from support.ranks import this_rank

    model = hermite(pythagorean(), 0.1, this_rank(), accuracy=1e-6)
    errors = []
    for _ in range(600):
        errors.append(model.diagnostics()["relative_energy_error"])
        model.advance(1)
    return np.abs(errors).max(), whole(model, "bodies/position")


def test_rounding_of_a_million_substeps_does_not_add_up(followed):
    error, position = followed
    assert error < 1e-12
    np.testing.assert_allclose(position[:, :2], PYTHAGOREAN_END, rtol=0, atol=2e-6)
    assert not position[:, 2].any()


def test_the_pythagorean_problem_ends_where_ias15_does(followed):
    """The error of IAS15 at t = 60 is 1e-4."""
    rebound = pytest.importorskip("rebound")
    simulation = rebound.Simulation()
    simulation.integrator = "ias15"
    bodies = pythagorean()
    for mass, (x, y, _) in zip(bodies.mass, bodies.position, strict=True):
        simulation.add(m=mass, x=x, y=y)
    simulation.integrate(60.0)
    expected = [[body.x, body.y] for body in simulation.particles]
    np.testing.assert_allclose(followed[1][:, :2], expected, rtol=0, atol=5e-4)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_order_of_convergence_is_four(alone, compiled):
    """Substeps are half as long at a quarter of the accuracy."""
    bodies = two_body(eccentricity=0.5)
    errors = []
    for accuracy in (4e-4, 1e-4):
        model = hermite(bodies, 2 * np.pi / np.sqrt(2), alone, compiled=compiled, accuracy=accuracy)
        model.advance(1)
        errors.append(np.abs(whole(model, "bodies/position") - bodies.position).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, rel=0, abs=0.2)


def saved(model):
    """Return what a checkpoint holds: fields, and numbers through JSON."""
    rows = {name: whole(model, name) for name in model.fields()}
    return rows, json.loads(json.dumps(model.scalars()))


@pytest.mark.mpi
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
def test_a_restart_has_the_low_parts_and_the_noise(communicator, precision):
    bodies = plummer(40, 3)
    options = {"precision": precision, "softening": 1e-2}
    model = hermite(bodies, 0.02, communicator, **options)
    model.advance(5)
    rows, scalars = saved(model)
    low = rows["bodies/position_low"]
    assert low.any()
    assert np.all(np.abs(low) <= np.spacing(np.abs(rows["bodies/position"])) / 2)
    weights = [rank + 1.0 for rank in range(communicator.size)]
    other = hermite(bodies, 0.02, communicator, weights=weights, **options)
    other.restore(lambda name: rows[name][other.exchange.own], scalars)
    for each in (model, other):
        each.advance(5)
    first, second = saved(model), saved(other)
    assert first[1] == second[1]
    for name in first[0]:
        np.testing.assert_array_equal(first[0][name], second[0][name])


def test_an_older_checkpoint_has_no_low_parts(alone):
    model = hermite(plummer(40, 3), 0.02, alone, softening=1e-2)
    model.advance(5)
    rows, scalars = saved(model)
    for name in ("bodies/position_low", "bodies/velocity_low"):
        del rows[name]
    del scalars["force_noise"]
    model.restore(lambda name: rows[name], scalars)
    assert not whole(model, "bodies/velocity_low").any()
    model.advance(5)
    assert model.scalars()["force_noise"] > 0


@pytest.mark.mpi
@pytest.mark.parametrize("number", [3, 40])
def test_the_compiled_loop_and_any_ranks_agree_on_the_low_parts(communicator, alone, number):
    bodies = pythagorean() if number == 3 else plummer(number, 1)
    shared = hermite(bodies, 0.05, communicator, accuracy=1e-4)
    single = hermite(bodies, 0.05, alone, accuracy=1e-4)
    hosted = hermite(bodies, 0.05, alone, compiled=False, accuracy=1e-4)
    for model in (shared, single, hosted):
        model.advance(6)
    for name in ("position", "velocity", "position_low", "velocity_low"):
        expected = whole(single, f"bodies/{name}")
        np.testing.assert_array_equal(whole(shared, f"bodies/{name}"), expected)
        np.testing.assert_array_equal(whole(hosted, f"bodies/{name}"), expected)


@pytest.mark.mpi
def test_noise_is_measured_anew_after_long_steps(communicator, alone):
    """On any ranks, from Python and in the compiled loop; a restart has the last measurement."""
    options = {"precision": "single", "accuracy": 1e-3, "softening": 1e-3}
    models = [
        hermite(plummer(80, 1), 0.05, each, compiled=compiled, **options)
        for each, compiled in ((communicator, True), (alone, True), (alone, False))
    ]
    first = models[0].scalars()["force_noise"]
    for model in models:
        model.advance(4)
    assert models[0].integrator.forces_per_step > 64
    found = [model.scalars() for model in models]
    assert found[0]["force_noise"] != first
    assert found[0] == found[1] == found[2]
