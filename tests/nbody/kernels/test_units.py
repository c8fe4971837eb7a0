"""The units of the kernels: whatever units bodies come in, forces are as exact.

Results scale exactly with powers of two, and agree within rounding for other units.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.bodies import make_backend, make_gravity

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import reference
from hybrid_nbody.nbody.kernels.units import Units, measured, typical_distance

SOFTENING = 0.02
G_SI = 6.674e-11
SOLAR_MASS = 1.989e30
PARSEC = 3.086e16

# A unit of length, one of mass, and the gravitational constant.
SYSTEMS = {
    "SI, a cluster": (PARSEC, 1000 * SOLAR_MASS, G_SI),
    "CGS, a cluster": (100 * PARSEC, 1e6 * SOLAR_MASS, 1e3 * G_SI),
    "pc, solar masses and km/s": (1.0, 1000.0, 4.301e-3),
    "metres and solar masses": (PARSEC, 1000.0, 1.327e20),
    "km and solar masses at 10 kpc": (1e4 * PARSEC / 1e3, 1e10, 1.327e11),
    "SI, dust": (1e-6, 1e-18, G_SI),
}

# Bounds on the 99th percentiles of differences from natural units, in units of the rms.
BOUNDS = {
    "single": {"acceleration": 2e-6, "jerk": 2e-5, "potential": 2e-7},
    "mixed": {"acceleration": 1e-6, "jerk": 3e-6, "potential": 2e-7},
    "double": {"acceleration": 1e-13, "jerk": 1e-12, "potential": 1e-14},
}


def sphere(number, equal=False):
    """Return a Plummer sphere in natural units.

    Its closest pairs decide on errors in single precision: those of every other sphere exceed the
    bounds in some system of units.
    """
    bodies = plummer(number, seed=4)
    share = np.random.default_rng(4).uniform(0.5, 1.5, number)
    return bodies if equal else Bodies(bodies.position, bodies.velocity, share / share.sum())


def computed(backend, bodies, precision, softening, G=1.0):
    """Return accelerations, jerks and potentials."""
    gravity = make_gravity(backend, bodies, precision, softening, G)
    download = backend.download
    acceleration = download(gravity.state.acceleration).copy()
    jerk = backend.zeros(bodies.velocity.shape, "f8")
    gravity.kernels.accelerations_and_jerks(gravity.state, backend.upload(bodies.velocity), jerk)
    return {
        "acceleration": acceleration,
        "jerk": download(jerk),
        "potential": download(gravity.potential()),
    }


def scaled(bodies, length, mass, speed):
    """Return bodies in other units."""
    return Bodies(length * bodies.position, speed * bodies.velocity, mass * bodies.mass)


def difference(found, true):
    """Return the 99th percentile of the differences of rows, in units of the rms."""
    rows = (found - true).reshape(len(true), -1)
    of_all = np.sqrt(np.mean(np.sum(true.reshape(len(true), -1) ** 2, axis=1)))
    return np.percentile(np.linalg.norm(rows, axis=1), 99) / of_all


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("equal", [True, False])
def test_any_system_of_units_gives_the_same_errors(backend, precision, system, equal):
    length, mass, G = SYSTEMS[system]
    speed = np.sqrt(G * mass / length)
    bodies = sphere(300, equal)
    found = computed(backend, scaled(bodies, length, mass, speed), precision, SOFTENING * length, G)
    units = {
        "acceleration": speed**2 / length,
        "jerk": speed**3 / length**2,
        "potential": speed**2,
    }
    law = (bodies.mass, SOFTENING)
    true = {
        "acceleration": reference.accelerations(bodies.position, *law),
        "jerk": reference.accelerations_and_jerks(bodies.position, bodies.velocity, *law)[1],
        "potential": reference.potential(bodies.position, *law),
    }
    for name, bound in BOUNDS[precision].items():
        assert difference(found[name] / units[name], true[name]) < bound, name


@settings(max_examples=40, deadline=None)
@given(
    powers=st.tuples(*[st.integers(-200, 200)] * 3),
    precision=st.sampled_from(list(BOUNDS)),
    softening=st.sampled_from([0.0, SOFTENING]),
    equal=st.booleans(),
)
def test_results_scale_exactly_with_powers_of_two(powers, precision, softening, equal):
    length, mass, time = powers
    constant = 3 * length - mass - 2 * time
    assume(abs(constant) < 1000)
    backend = make_backend("cpu")
    bodies = sphere(20, equal)
    plain = computed(backend, bodies, precision, softening)
    others = scaled(bodies, 2.0**length, 2.0**mass, 2.0 ** (length - time))
    found = computed(backend, others, precision, softening * 2.0**length, 2.0**constant)
    power = {
        "acceleration": length - 2 * time,
        "jerk": length - 3 * time,
        "potential": 2 * (length - time),
    }
    for name, values in plain.items():
        np.testing.assert_array_equal(found[name], np.ldexp(values, power[name]), name)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("powers", [(-200, 150, 40), (60, -90, 30), (200, 200, 100)])
def test_a_gpu_scales_exactly_with_powers_of_two(precision, powers):
    length, mass, time = powers
    backend = make_backend("gpu")
    for number in (100, 1000, 20000):
        bodies = sphere(number)
        plain = computed(backend, bodies, precision, SOFTENING)
        others = scaled(bodies, 2.0**length, 2.0**mass, 2.0 ** (length - time))
        constant = 2.0 ** (3 * length - mass - 2 * time)
        found = computed(backend, others, precision, SOFTENING * 2.0**length, constant)
        for name, power in (("acceleration", 2), ("jerk", 3)):
            exact = np.ldexp(plain[name], length - power * time)
            np.testing.assert_array_equal(found[name], exact, name)
        exact = np.ldexp(plain["potential"], 2 * (length - time))
        np.testing.assert_array_equal(found["potential"], exact)


@pytest.mark.parametrize("precision", ["single", "mixed"])
def test_a_body_far_away_leaves_close_pairs_in_range(backend, precision):
    """A unit near the extent would put 1 / r^3 of the pair beyond the range of float32."""
    bodies = sphere(100)
    bodies.position[1] = bodies.position[0] + [1e-5, 0, 0]
    bodies.position[50] = 1e9
    true = reference.accelerations(bodies.position, bodies.mass, targets=range(2))
    found = computed(backend, bodies, precision, 0.0)["acceleration"][:2]
    bound = 1e-5 if precision == "mixed" else 0.05
    assert np.abs(found - true).max() < bound * np.abs(true).max()


# ---- Close pairs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("separation", [1e-6, 1e-8, 1e-10])
def test_mixed_precision_gets_close_pairs_right(backend, separation):
    """Coordinates keep 48 bits on a GPU, and on a CPU all that they have."""
    bodies = sphere(1000)
    bodies.position[0] = [0.1, -0.2, 0.15]
    bodies.position[1] = bodies.position[0] + separation * np.array([0.6, 0.0, 0.8])
    true = reference.accelerations(bodies.position, bodies.mass, targets=range(2))
    found = computed(backend, bodies, "mixed", 0.0)["acceleration"][:2]
    bound = 1e-5 if backend.name == "cpu" else max(1e-5, 2.0**-48 / separation)
    assert np.linalg.norm(found - true, axis=1).max() < bound * np.linalg.norm(true, axis=1).min()


# ---- What the units are --------------------------------------------------------------------------


def test_units_are_powers_of_two_near_the_bodies():
    bodies = scaled(sphere(100), 3e16, 2e33, 5e3)
    units = measured(bodies.position, bodies.velocity, bodies.mass, G=6.7e-11)
    assert 0.1 < typical_distance(bodies.position) / units.length < 10
    assert 0.5 <= bodies.mass.max() / units.mass < 1
    assert np.abs(bodies.velocity).max() <= units.speed
    for unit in (units.length, units.mass, units.speed):
        assert np.frexp(unit)[0] == 0.5


@pytest.mark.parametrize(
    ("position", "softening", "length"),
    [
        ([[5.0, 0, 0]], 0.0, 1.0),
        ([[5.0, 0, 0]], 0.25, 0.25),
        ([[7.0, 0, 0]] * 3, 0.0, 1.0),
        ([[0.0, 0, 0], [np.nan, 0, 0], [4, 0, 0], [8, 0, 0]], 0.0, 4.0),
        ([[0.0, 0, 0], [4, 0, 0]], 64.0, 64.0),
    ],
)
def test_units_of_few_bodies(position, softening, length):
    at = np.array(position)
    units = measured(at, np.zeros_like(at), np.zeros(len(at)), softening)
    assert (units.length, units.mass, units.speed) == (length, 2.0, 1.0)


def test_bodies_at_rest_have_the_speeds_that_they_will_have():
    at = np.array([[0.0, 0, 0], [1e16, 0, 0]])
    units = measured(at, np.zeros_like(at), np.array([1e30, 1e30]), G=G_SI)
    assert 0.25 < units.speed / np.sqrt(G_SI * 2e30 / 1e16) < 4


def test_units_come_back_from_the_numbers_of_a_checkpoint():
    units = Units(2.0**70, 2.0**-30, 2.0**5)
    assert Units.of_scalars({"step": 1.0, **units.scalars()}) == units
    assert Units.of_scalars({"step": 1.0}) is None
