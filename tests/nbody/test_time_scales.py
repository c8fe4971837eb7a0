"""Warnings before a run: close pairs without softening, and steps that are too long.

Two bodies of mass 1 at distance d fall onto each other in pi / sqrt(8) sqrt(d^3 / 2); at speed v
they pass each other in d / v. A uniform sphere at rest collapses within 1.1107 sqrt(R^3 / (G M)).
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from support.bodies import make_model

from hybrid_nbody.config import loader
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.config import Gravity, NBodyTime
from hybrid_nbody.nbody.diagnostics import QUANTITIES
from hybrid_nbody.nbody.initial_conditions import cold_sphere, two_body
from hybrid_nbody.nbody.starting import initial_bodies
from hybrid_nbody.nbody.step_advice import better_steps, rounded_down
from hybrid_nbody.nbody.time_scales import shortest_time, warnings_of_steps
from hybrid_nbody.output.limits import Limits
from hybrid_nbody.running.models import MODELS

ROOT = Path(__file__).resolve().parents[2]


def pair(distance, speed=0.0):
    """Return two bodies of mass 1, one of which passes the other."""
    position = np.array([[0.0, 0, 0], [distance, 0, 0]])
    velocity = np.array([[0.0, 0, 0], [0, speed, 0]])
    return Bodies(position, velocity, np.ones(2))


@pytest.mark.parametrize(
    ("bodies", "softening", "time", "kind"),
    [
        (pair(2.0), 0.0, math.pi / math.sqrt(8) * 2, "free-fall"),
        (pair(2.0, speed=8.0), 0.0, 0.25, "crossing"),
        (pair(4.0), 3.0, math.pi / math.sqrt(8) * math.sqrt(125 / 2), "free-fall"),
    ],
)
def test_the_shortest_time_of_a_pair(bodies, softening, time, kind):
    found = shortest_time(bodies, 2, Gravity(softening=softening))
    assert found.time == pytest.approx(time, rel=1e-12)
    assert (found.kind, found.whose) == (kind, "bodies 0 and 1")


@pytest.mark.parametrize("number", [4000, 400_000])
def test_a_cold_sphere_collapses_as_a_whole(number):
    """Half the mass is within 2^(-1/3) R, and a sample stands for all."""
    bodies = cold_sphere(n=4000, seed=1, mass=number / 4000)
    mass = number / 4000 * number / 4000
    found = shortest_time(bodies, number, Gravity(softening=0.0))
    assert found.time == pytest.approx(1.1107 / math.sqrt(mass), rel=0.02)
    assert (found.kind, found.whose) == ("free-fall", "all bodies together")


def test_a_close_pair_among_many_softened_bodies_is_found():
    """The heaviest body and its neighbour, far from all others."""
    bodies = cold_sphere(n=1000, seed=1, mass=1.0)
    bodies.mass[7] = 10.0
    bodies.position[7] = (50.0, 0, 0)
    bodies.position[3] = (50.1, 0, 0)
    found = shortest_time(bodies, 1000, Gravity(softening=0.01))
    apart = math.sqrt(0.1**2 + 0.01**2)
    assert found.time == pytest.approx(1.1107 * math.sqrt(apart**3 / 10.001), rel=1e-4)
    assert found.whose == "bodies 3 and 7"


@pytest.mark.parametrize("bodies", [pair(0.0), Bodies(*np.zeros((2, 3, 3)), np.zeros(3))])
def test_bodies_at_one_place_or_without_mass_have_no_time(bodies):
    assert shortest_time(bodies, len(bodies), Gravity()).time == math.inf


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.0067, 0.006), (1.0, 1.0), (2999.0, 2000.0), (0.0, 0.0), (3e-5, 3e-5)]
)
def test_advice_has_one_digit(value, rounded):
    assert rounded_down(value) == pytest.approx(rounded, rel=1e-12)


ORBIT = "bodies: {kind: two-body, eccentricity: 0.9}\n"
SPHERE = "bodies: {kind: cold-sphere, n: 101}\n"


def warnings_in(config_of, text, bodies):
    return warnings_of_steps(bodies, len(bodies), config_of(text))


def test_a_step_is_long_beside_the_time_at_pericentre(config_of):
    """At 0.1 a the relative speed is sqrt(2 * 1.9 / 0.1), and the passage 0.0162 long."""
    orbit = two_body(eccentricity=0.9)
    assert warnings_in(config_of, ORBIT + "time: {dt: 1e-3, end: 1}", orbit) == [
        "time.dt: 0.001 is long beside the shortest crossing time found, 0.016 (bodies 0 and 1); "
        "take 0.0001"
    ]
    assert not warnings_in(config_of, ORBIT + "time: {dt: 8e-4, end: 1}", orbit)
    adaptive = "time: {dt: 1e-3, end: 1, integrator: hermite4}"
    assert not warnings_in(config_of, ORBIT + adaptive, orbit)


def test_many_bodies_without_softening(config_of):
    sphere = cold_sphere(n=101, seed=1)
    time = "time: {dt: 1e-3, end: 1}\n"
    (warning,) = warnings_in(config_of, SPHERE + time, sphere)
    assert warning == (
        "gravity.softening is 0 with 101 bodies and steps of one length: close pairs will spoil "
        "the energy; take a gravity.softening, such as 0.03, or time.integrator: hermite4"
    )
    assert not warnings_in(config_of, SPHERE + time, sphere.some(np.arange(100)))
    assert not warnings_in(config_of, SPHERE + time + "gravity: {softening: 0.03}", sphere)
    hermite = "time: {dt: 1e-3, end: 1, integrator: hermite4}"
    assert not warnings_in(config_of, SPHERE + hermite, sphere)
    (fmm,) = warnings_in(config_of, SPHERE + time + "gravity: {solver: fmm}", sphere)
    assert fmm.endswith("take a gravity.softening, such as 0.03")


def test_an_energy_error_above_a_thousandth_is_warned_of():
    limits = Limits(QUANTITIES)
    assert not limits.warnings({"relative_energy_error": -9e-4})
    (warning,) = limits.warnings({"relative_energy_error": -2e-3})
    assert warning.startswith("warning: relative_energy_error is -0.002, beyond 0.001: do not ")


@pytest.mark.parametrize(
    ("integrator", "error", "better"),
    [
        ("leapfrog", 2e-3, "time.dt: 0.005"),  # error / 4
        ("leapfrog", -0.05, "time.dt: 0.001"),  # error / 100
        ("yoshida4", 8e-3, "time.dt: 0.005"),
        ("euler", 5e-3, "time.dt: 0.001"),
        ("hermite4", -8e-3, "time.accuracy: 0.005"),
        ("leapfrog", 37.0, "time.dt: 0.0001"),
        ("leapfrog", math.nan, "a smaller time.dt"),
        ("own", 1.0, "a smaller time.dt"),
    ],
)
def test_smaller_steps_are_suggested_by_the_order(integrator, error, better):
    assert better_steps(integrator, 0.01, 0.02, error) == better


def test_a_step_that_was_suggested_is_good(alone):
    def worst_error(dt):
        model = make_model(two_body(eccentricity=0.9), dt, alone)
        model.diagnostics()
        steps = int(2 * math.pi / dt / 20)
        errors = []
        for _ in range(20):
            model.advance(steps)
            errors.append(abs(model.diagnostics()["relative_energy_error"]))
        return max(errors)

    error = worst_error(4e-3)
    advice = NBodyTime(dt=4e-3, end=1.0).advise(error)
    suggested = float(re.search(r"take time\.dt: (\S+) \(by the order of leapfrog\)", advice)[1])
    assert advice.endswith("or a larger gravity.softening or time.integrator: hermite4")
    assert error > 1e-3 > worst_error(suggested)


def test_a_run_warns_with_a_step_that_fits_it(alone, config_of):
    config = config_of(ORBIT + "time: {dt: 4e-3, end: 1}\ncompute: {backend: cpu, threads: 1}")
    builder = NBodyBuilder(config, alone)
    model = builder.fresh(builder.initial()).model
    (warning,) = Limits(model.quantities).warnings({"relative_energy_error": 0.05})
    assert "take time.dt: 0.0004 (by the order of leapfrog)" in warning


def shortest_of_the_readme():
    """Return the first configuration that the README shows."""
    return re.search(r"^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1]


@pytest.mark.parametrize("name", ["README.md", "plummer.yaml", "flat.yaml", "six_bodies.yaml"])
def test_what_we_show_resolves_its_motion(name):
    path = ROOT / "input" / name
    text = shortest_of_the_readme() if name == "README.md" else path.read_text()
    text = text.replace("six_bodies.csv", str(ROOT / "input" / "six_bodies.csv"))
    config = loader.loads(text, name, models=MODELS)
    initial = initial_bodies(config)
    assert warnings_of_steps(initial.sample(), len(initial), config) == []
