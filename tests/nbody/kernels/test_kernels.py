"""The pair force against the reference.

The error of a body is |a - a_ref| over the rms of |a_ref| over all bodies; of the potential,
relative to its own value.
"""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bodies import SETS, make_gravity

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.kernels import reference

# Bounds on the 99th percentile, and on the largest error: the latter where softening keeps
# encounters from dominating.
BOUNDS = {"double": (1e-12, 1e-12), "mixed": (1e-6, 2e-6), "single": (1e-5, 1e-5)}


def truth(bodies, softening, G=1.0):
    """Return accelerations and potentials in float64."""
    return tuple(
        of(bodies.position, bodies.mass, softening, G)
        for of in (reference.accelerations, reference.potential)
    )


@cache
def truth_of_set(name, softening, G):
    """Return the same of a set, once: every precision and device is compared with it."""
    return truth(SETS[name](), softening, G)


def errors(gravity, bodies, softening, G=1.0):
    """Return the errors of accelerations and potentials."""
    return errors_from(gravity, *truth(bodies, softening, G))


def errors_from(gravity, true, true_potential):
    """Return the errors against accelerations and potentials that are known."""
    download = gravity.backend.download
    acceleration = np.linalg.norm(download(gravity.state.acceleration) - true, axis=1)
    potential = np.abs(download(gravity.potential()) - true_potential)
    return acceleration / np.sqrt(np.mean(np.sum(true**2, axis=1))), potential / np.abs(
        true_potential
    )


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("softening", [1e-4, 1e-2])
def test_error_at_4096_bodies(backend, name, precision, softening):
    gravity = make_gravity(backend, SETS[name](), precision, softening, G=2.0)
    acceleration, potential = errors_from(gravity, *truth_of_set(name, softening, 2.0))
    percentile, largest = BOUNDS[precision]
    if precision == "double":
        assert acceleration.max() < largest
    assert np.percentile(acceleration, 99) < percentile
    assert np.percentile(potential, 99) < percentile
    if name == "clustered" or softening == 1e-2:
        assert acceleration.max() < largest


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize(("length", "mass"), [(1e-9, 1e-12), (1e12, 1e30), (3e16, 2e30)])
@pytest.mark.parametrize("equal", [True, False])
def test_any_units(backend, precision, length, mass, equal):
    """In metres and kilograms 1 / r^3 lies below the range of float32, and m / eps^3 above."""
    bodies = random_box(300, seed=8)
    masses = mass * (np.ones(300) if equal else np.random.default_rng(1).uniform(0.5, 1.5, 300))
    scaled = Bodies(length * bodies.position, bodies.velocity, masses)
    acceleration, potential = errors(
        make_gravity(backend, scaled, precision, 0.01 * length), scaled, 0.01 * length
    )
    assert np.percentile(acceleration, 99) < BOUNDS[precision][0]
    assert np.percentile(potential, 99) < BOUNDS[precision][0]


@pytest.mark.parametrize("precision", BOUNDS)
def test_heavy_bodies_and_a_tiny_softening(backend, precision):
    """A body's weight on itself, m / eps^3, exceeds the range of float32; all others are finite."""
    bodies = random_box(50, seed=9, mass=1e30)
    bodies.mass[:] = np.random.default_rng(2).uniform(0.5e30, 1.5e30, 50)
    acceleration, _ = errors(make_gravity(backend, bodies, precision, 1e-3), bodies, 1e-3)
    assert np.percentile(acceleration, 99) < 100 * BOUNDS[precision][0]


@pytest.mark.parametrize("precision", BOUNDS)
def test_error_at_131072_bodies(backend, precision):
    """Of some targets: sums over many chunks and parts round no worse than those over a few."""
    bodies, own = plummer(131072, seed=3), slice(70000, 70512)
    gravity = make_gravity(backend, bodies, precision, 1e-2, own=own)
    sample = np.arange(own.start, own.stop, 8)
    true = reference.accelerations(bodies.position, bodies.mass, 1e-2, targets=sample)
    found = gravity.backend.download(gravity.state.acceleration)[sample - own.start]
    error = np.linalg.norm(found - true, axis=1) / np.sqrt(np.mean(np.sum(true**2, axis=1)))
    assert error.max() < BOUNDS[precision][0]


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("number", [1, 2, 3, 255, 256, 257, 513])
@pytest.mark.parametrize("softening", [0.0, 1e-15, 0.05])
def test_every_size_of_the_last_chunk(backend, precision, number, softening):
    bodies = random_box(number, seed=number)
    gravity = make_gravity(backend, bodies, precision, softening)
    if number == 1:
        assert not gravity.backend.download(gravity.state.acceleration).any()
        assert gravity.backend.download(gravity.potential())[0] == 0
        return
    acceleration, potential = errors(gravity, bodies, softening)
    assert np.median(acceleration) < BOUNDS[precision][0]
    assert acceleration.max() < max(1e-3 * (precision == "single"), 5 * BOUNDS[precision][1])
    assert potential.max() < 5 * BOUNDS[precision][1]


@pytest.mark.parametrize("precision", BOUNDS)
def test_bits_do_not_depend_on_who_owns_the_targets(backend, precision):
    bodies = plummer(1000, seed=3)
    together = make_gravity(backend, bodies, precision, 1e-2)
    whole = together.backend.download(together.state.acceleration)
    phi = together.backend.download(together.potential())
    for own in (slice(0, 1), slice(1, 334), slice(334, 334), slice(334, 1000)):
        part = make_gravity(backend, bodies, precision, 1e-2, own=own)
        np.testing.assert_array_equal(part.backend.download(part.state.acceleration), whole[own])
        np.testing.assert_array_equal(part.backend.download(part.potential()), phi[own])


@pytest.mark.parametrize("precision", BOUNDS)
def test_bodies_at_one_place_attract_nobody_there_but_have_a_potential(backend, precision):
    bodies = Bodies(np.zeros((3, 3)), np.zeros((3, 3)), np.array([1.0, 2.0, 3.0]))
    gravity = make_gravity(backend, bodies, precision, softening=0.5)
    assert not gravity.backend.download(gravity.state.acceleration).any()
    np.testing.assert_allclose(
        gravity.backend.download(gravity.potential()), [-10, -8, -6], rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("precision", ["mixed", "single"])
def test_a_far_shift_of_all_bodies_costs_no_accuracy(backend, precision):
    """Float32 positions a thousand lengths away would lose three digits; offsets from local origins
    do not.
    """
    near = plummer(1000, seed=4)
    far = Bodies(near.position + 1000.0, near.velocity, near.mass)
    acceleration, _ = errors(make_gravity(backend, far, precision, 0.01), far, 0.01)
    assert np.percentile(acceleration, 99) < BOUNDS[precision][0]


@settings(max_examples=25)
@given(
    number=st.integers(2, 60),
    seed=st.integers(0, 2**32 - 1),
    scale=st.floats(1e-3, 1e3),
    mass=st.floats(1e-6, 1e6),
)
def test_double_precision_on_any_bodies(number, seed, scale, mass):
    from support.bodies import make_backend

    bodies = random_box(number, seed, half_width=scale, mass=mass)
    acceleration, potential = errors(
        make_gravity(make_backend("cpu"), bodies, "double", 0.0), bodies, 0.0
    )
    assert acceleration.max() < 1e-12
    assert potential.max() < 1e-12


def test_one_and_two_threads_give_the_same_bits():
    from support.bodies import make_backend

    bodies = plummer(1500, seed=6)
    results = [
        make_gravity(make_backend("cpu", threads), bodies, "single", 0.01).state.acceleration
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(*results)


def test_reference_agrees_with_two_bodies_by_hand():
    position = np.array([[0.0, 0, 0], [3.0, 4.0, 0]])
    mass = np.array([2.0, 5.0])
    acceleration = reference.accelerations(position, mass, softening=0.0, G=10.0)
    np.testing.assert_allclose(
        acceleration, [[1.2, 1.6, 0], [-0.48, -0.64, 0]], rtol=1e-15, atol=1e-15
    )
    np.testing.assert_allclose(
        reference.potential(position, mass, G=10.0), [-10.0, -4.0], rtol=1e-15, atol=0
    )
