"""Orbits with known answers; G = 1, no softening.

The values were computed independently in high precision.
"""

from pathlib import Path

import numpy as np
import pytest
from support.bodies import make_model, whole
from support.configs import load

from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import (
    cold_sphere,
    figure_eight,
    lagrange_triangle,
    two_body,
)

ROOT = Path(__file__).resolve().parents[3]
FIGURE_EIGHT_PERIOD = 6.32591398


def errors_after_a_period(alone, backend, steps):
    """Return the largest coordinate error of a figure-eight body after a period."""
    bodies = figure_eight()
    model = make_model(bodies, FIGURE_EIGHT_PERIOD / steps, alone, backend)
    model.advance(steps)
    return np.abs(whole(model, "bodies/position") - bodies.position).max()


@pytest.mark.parametrize(("steps", "expected"), [(1000, 6.40e-5), (2000, 1.60e-5), (4000, 4.03e-6)])
def test_figure_eight_returns_with_the_known_error_of_leapfrog(alone, backend, steps, expected):
    assert errors_after_a_period(alone, backend, steps) == pytest.approx(expected, rel=0.02, abs=0)


def test_leapfrog_is_of_order_two(alone, backend):
    coarse, fine = (errors_after_a_period(alone, backend, steps) for steps in (500, 1000))
    assert np.log2(coarse / fine) == pytest.approx(2.0, rel=0, abs=0.05)


def test_euler_is_of_order_one(alone):
    def energy_error(steps):
        model = make_model(
            two_body(eccentricity=0.3), 2 * np.pi / steps / np.sqrt(2), alone, integrator="euler"
        )
        model.diagnostics()
        model.advance(steps // 3)
        return abs(model.diagnostics()["relative_energy_error"])

    assert np.log2(energy_error(3000) / energy_error(6000)) == pytest.approx(1.0, rel=0, abs=0.05)


def test_bodies_of_the_figure_eight_follow_each_other(alone, backend):
    bodies = figure_eight()
    model = make_model(bodies, FIGURE_EIGHT_PERIOD / 3 / 20000, alone, backend)
    model.advance(20000)
    np.testing.assert_allclose(
        whole(model, "bodies/position"), bodies.position[[2, 0, 1]], rtol=0, atol=1e-7
    )


def test_energy_and_momenta_of_the_figure_eight(alone, backend):
    values = make_model(figure_eight(), 1e-3, alone, backend).diagnostics()
    assert values["total_energy"] == pytest.approx(-1.287141991766, rel=1e-11, abs=0)
    np.testing.assert_allclose(values["angular_momentum"], 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(values["momentum"], 0, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("steps", "expected"), [(1000, 9.9e-2), (4000, 6.2e-3), (16000, 3.8e-4)])
def test_kepler_orbit_of_eccentricity_0_9(alone, backend, steps, expected):
    """Largest energy error over one orbit from pericentre, a = M = 1."""
    model = make_model(
        two_body(masses=(0.5, 0.5), eccentricity=0.9), 2 * np.pi / steps, alone, backend
    )
    worst = abs(model.diagnostics()["relative_energy_error"])
    for _ in range(steps // 4 if steps == 1000 else 100):
        model.advance(4 if steps == 1000 else 1)
        worst = max(worst, abs(model.diagnostics()["relative_energy_error"]))
    assert worst == pytest.approx(expected, rel=0.03, abs=0)


def test_kepler_orbit_keeps_its_shape(alone):
    """Distances a (1 -+ e) of pericentre and apocentre, and Kepler's third law."""
    a, e, masses = 2.0, 0.6, (3.0, 1.0)
    period = 2 * np.pi * np.sqrt(a**3 / sum(masses))
    model = make_model(two_body(masses, a, e), period / 40000, alone)

    def distance():
        return np.linalg.norm(np.diff(whole(model, "bodies/position"), axis=0))

    assert distance() == pytest.approx(a * (1 - e), rel=1e-14, abs=0)
    model.advance(20000)
    assert distance() == pytest.approx(a * (1 + e), rel=1e-6, abs=0)
    model.advance(20000)
    assert distance() == pytest.approx(a * (1 - e), rel=1e-5, abs=0)


def test_lagrange_triangle_rotates_as_a_rigid_body_for_three_periods(alone, backend):
    bodies = lagrange_triangle(side=1.0, mass=1.0)
    steps_a_period = 20000
    model = make_model(bodies, 2 * np.pi / np.sqrt(3) / steps_a_period, alone, backend)
    model.advance(3 * steps_a_period)
    position = whole(model, "bodies/position")
    sides = np.linalg.norm(position - np.roll(position, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, 1.0, rtol=0, atol=1e-6)
    np.testing.assert_allclose(position, bodies.position, rtol=0, atol=1e-5)


def test_cold_sphere_collapses_along_the_exact_solution(alone):
    """r = R cos^2 b with b + sin(2 b) / 2 = t sqrt(2 G M / R^3) for a uniform sphere at rest."""
    b = 0.6
    time = (b + np.sin(2 * b) / 2) / np.sqrt(2)
    model = make_model(
        cold_sphere(4000, seed=3), time / 200, alone, precision="single", softening=0.02
    )
    before = model.diagnostics()
    model.advance(200)
    after = model.diagnostics()
    # 4000 random bodies: the half-mass radius of the sample starts within 1 % of R / 2^(1/3)
    assert after["half_mass_radius"] / before["half_mass_radius"] == pytest.approx(
        np.cos(b) ** 2, rel=0.02, abs=0
    )
    assert before["total_energy"] == pytest.approx(-0.6, rel=0.02, abs=0)
    assert abs(after["relative_energy_error"]) < 1e-4


def test_energy_of_a_bound_system_oscillates_and_does_not_drift(alone):
    """The largest error of ten orbits is that of the ten before."""
    model = make_model(two_body(eccentricity=0.5), 2 * np.pi / np.sqrt(2) / 2000, alone)
    model.diagnostics()
    errors = []
    for _ in range(400):
        model.advance(100)
        errors.append(abs(model.diagnostics()["relative_energy_error"]))
    assert max(errors) > 1e-7
    assert max(errors[200:]) == pytest.approx(max(errors[:200]), rel=0.02, abs=0)


def six_bodies():
    """Return the configuration of ``input/six_bodies.yaml`` and its bodies."""
    config = load(ROOT / "input" / "six_bodies.yaml")
    table = read_bodies(config.bodies.path)
    return config, Bodies(table.position, table.velocity, table.mass)


def test_energy_error_of_the_six_bodies_is_bounded_and_does_not_drift(alone):
    """A line through the error of the first fifth rises less than the error scatters about it."""
    config, bodies = six_bodies()
    model = make_model(bodies, config.time.dt, alone, precision=config.gravity.precision)
    errors = [model.diagnostics()["relative_energy_error"]]
    for _ in range(500):
        model.advance(2000)
        errors.append(model.diagnostics()["relative_energy_error"])
    time = np.linspace(0, 1, len(errors))
    slope, start = np.polyfit(time, errors, 1)
    assert np.abs(errors).max() < 1e-6
    assert abs(slope) < np.std(errors - (start + slope * time))
    assert abs(np.median(errors[250:])) < 1e-10  # away from encounters, nothing has added up


def test_six_bodies_are_those_of_the_experiment():
    config, bodies = six_bodies()
    assert (config.time.dt, config.time.steps, config.time.integrator) == (
        1e-5,
        5_000_000,
        "leapfrog",
    )
    assert len(bodies) == 6
    assert (config.gravity.precision, config.gravity.softening) == ("double", 0.0)
    assert np.all((bodies.mass >= 1) & (bodies.mass <= 10))
    assert np.abs(bodies.position).max() <= 5
    assert np.abs(bodies.velocity).max() <= 1
