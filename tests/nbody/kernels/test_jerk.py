"""Accelerations and jerks against the reference, and the reference against a finite difference."""

import numpy as np
import pytest
from support.bodies import make_gravity

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import plummer, two_body
from hybrid_nbody.nbody.kernels import reference

# Bounds on the 99th percentiles of accelerations and of jerks, which have one more power of 1 / r.
BOUNDS = {"double": (1e-12, 1e-12), "mixed": (1e-6, 3e-6), "single": (1e-5, 5e-5)}


def computed(backend, bodies, precision, softening=0.0, G=1.0, own=None):
    """Return the accelerations and jerks of a rank's bodies."""
    gravity = make_gravity(backend, bodies, precision, softening, G, own)
    jerk = backend.zeros(gravity.state.velocity.shape, "f8")
    gravity.state.acceleration[:] = 0
    gravity.kernels.accelerations_and_jerks(gravity.state, backend.upload(bodies.velocity), jerk)
    return backend.download(gravity.state.acceleration), backend.download(jerk)


def unequal(number, seed=7):
    """Return a Plummer sphere of unequal masses."""
    bodies = plummer(number, seed)
    return Bodies(
        bodies.position,
        bodies.velocity,
        np.random.default_rng(seed).uniform(0.5, 1.5, number) / number,
    )


def percentile(found, true):
    """Return the 99th percentile of the errors, in units of the rms of the true vectors."""
    error = np.linalg.norm(found - true, axis=1)
    return np.percentile(error, 99) / np.sqrt(np.mean(np.sum(true**2, axis=1)))


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("number", [2, 31, 257, 2000])
@pytest.mark.parametrize("softening", [0.0, 0.05])
def test_accelerations_and_jerks_agree_with_the_reference(backend, precision, number, softening):
    bodies = unequal(number)
    acceleration, jerk = computed(backend, bodies, precision, softening, G=2.0)
    true = reference.accelerations_and_jerks(
        bodies.position, bodies.velocity, bodies.mass, softening, G=2.0
    )
    assert percentile(acceleration, true[0]) < BOUNDS[precision][0]
    assert percentile(jerk, true[1]) < BOUNDS[precision][1]


@pytest.mark.parametrize("precision", BOUNDS)
def test_accelerations_are_those_of_the_plain_kernel(backend, precision):
    bodies = unequal(500)
    plain = make_gravity(backend, bodies, precision, 0.01)
    expected = backend.download(plain.state.acceleration)
    acceleration, _ = computed(backend, bodies, precision, 0.01)
    assert percentile(acceleration, expected) < BOUNDS[precision][0]


@pytest.mark.parametrize("precision", BOUNDS)
def test_a_common_velocity_has_no_jerk_and_costs_no_accuracy(backend, precision):
    bodies = unequal(1000)
    fast = Bodies(bodies.position, bodies.velocity + 1000.0, bodies.mass)
    _, jerk = computed(backend, fast, precision, 0.01)
    _, true = reference.accelerations_and_jerks(bodies.position, bodies.velocity, bodies.mass, 0.01)
    # the velocities themselves are rounded at 1000
    assert percentile(jerk, true) < max(BOUNDS[precision][1], 1e-9)
    still = Bodies(bodies.position, np.full_like(bodies.velocity, 3.0), bodies.mass)
    assert not computed(backend, still, precision, 0.01)[1].any()


@pytest.mark.parametrize("precision", BOUNDS)
def test_bits_of_jerks_do_not_depend_on_who_owns_the_targets(backend, precision):
    bodies = unequal(700)
    acceleration, jerk = computed(backend, bodies, precision, 0.01)
    for own in (slice(0, 1), slice(1, 300), slice(300, 300), slice(300, 700)):
        found = computed(backend, bodies, precision, 0.01, own=own)
        np.testing.assert_array_equal(found[0], acceleration[own])
        np.testing.assert_array_equal(found[1], jerk[own])


def test_reference_is_the_derivative_of_the_acceleration():
    bodies, softening, step = unequal(10), 0.1, 1e-5

    def acceleration(time):
        return reference.accelerations(
            bodies.position + time * bodies.velocity, bodies.mass, softening, G=3.0
        )

    difference = (acceleration(step) - acceleration(-step)) / (2 * step)
    _, jerk = reference.accelerations_and_jerks(
        bodies.position, bodies.velocity, bodies.mass, softening, G=3.0
    )
    np.testing.assert_allclose(jerk, difference, rtol=0, atol=1e-7 * np.abs(jerk).max())


def test_jerk_on_a_circular_orbit_by_hand(backend):
    """On a circle the acceleration turns with the orbit: its rate is the angular velocity times its
    size.
    """
    bodies = two_body(masses=(3.0, 1.0), semi_major_axis=2.0)
    omega = np.sqrt(4.0 / 8.0)
    acceleration, jerk = computed(backend, bodies, "double")
    turned = omega * np.stack([-acceleration[:, 1], acceleration[:, 0], acceleration[:, 2]], axis=1)
    np.testing.assert_allclose(jerk, turned, rtol=0, atol=1e-14)
