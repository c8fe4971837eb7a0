"""Every kind of initial conditions: its defining properties, and that the seed decides."""

import numpy as np
import pytest

from hybrid_nbody.nbody import initial_conditions as ic
from hybrid_nbody.nbody.kernels import reference

ATOL = 1e-14


def energies(bodies, G=1.0):
    """Return kinetic and potential energy by the reference."""
    kinetic = 0.5 * np.sum(bodies.mass * np.sum(bodies.velocity**2, axis=1))
    potential = 0.5 * np.sum(
        bodies.mass * reference.potential(bodies.position, bodies.mass, 0.0, G)
    )
    return kinetic, potential


def half_mass_radius(bodies):
    """Return the median distance from the origin (equal masses)."""
    return np.median(np.linalg.norm(bodies.position, axis=1))


@pytest.mark.parametrize(
    "make", [ic.plummer, ic.uniform_sphere, ic.cold_sphere, ic.random_box, ic.random_square]
)
def test_the_seed_decides(make):
    first, again, other = make(100, seed=1), make(100, seed=1), make(100, seed=2)
    np.testing.assert_array_equal(first.position, again.position)
    np.testing.assert_array_equal(first.velocity, again.velocity)
    assert (first.position != other.position).any()
    np.testing.assert_array_equal(first.id, np.arange(100))


@pytest.mark.parametrize("make", [ic.plummer, ic.uniform_sphere, ic.cold_sphere])
def test_spheres_are_centred_and_of_mass_one(make):
    bodies = make(1000, seed=1)
    assert bodies.mass.sum() == pytest.approx(1.0, rel=1e-14, abs=0)
    np.testing.assert_allclose(bodies.mass @ bodies.position, 0, rtol=0, atol=ATOL)
    np.testing.assert_allclose(bodies.mass @ bodies.velocity, 0, rtol=0, atol=ATOL)


def test_plummer_sphere_in_standard_units():
    """Averages over 16 spheres of 1024 bodies, within four standard deviations."""
    ratios, radii, totals = [], [], []
    for seed in range(16):
        bodies = ic.plummer(1024, seed)
        kinetic, potential = energies(bodies)
        ratios.append(2 * kinetic / -potential)
        totals.append(kinetic + potential)
        radii.append(half_mass_radius(bodies))
    assert np.mean(ratios) == pytest.approx(1.0, rel=0, abs=4 * 0.024 / 4)
    assert np.mean(radii) == pytest.approx(0.76857, rel=0, abs=4 * 0.021 / 4)
    assert np.mean(totals) == pytest.approx(-0.25, rel=0, abs=0.01)


def test_plummer_speeds_scale_with_the_root_of_G():
    light, heavy = ic.plummer(50, 1, G=1.0), ic.plummer(50, 1, G=4.0)
    np.testing.assert_array_equal(light.position, heavy.position)
    np.testing.assert_allclose(heavy.velocity, 2 * light.velocity, rtol=1e-14, atol=0)


@pytest.mark.parametrize("G", [1.0, 3.0])
def test_uniform_sphere_fills_its_radius_and_has_the_virial_ratio(G):
    bodies = ic.uniform_sphere(4000, seed=2, mass=5.0, radius=2.0, virial_ratio=0.5, G=G)
    radius = np.linalg.norm(bodies.position, axis=1)
    assert radius.max() < 2.1
    assert np.median(radius) == pytest.approx(2.0 * 0.5 ** (1 / 3), rel=0.03, abs=0)
    kinetic, potential = energies(bodies, G)
    assert 2 * kinetic / -potential == pytest.approx(0.5, rel=0.05, abs=0)
    assert potential == pytest.approx(-0.6 * G * 25 / 2, rel=0.03, abs=0)


def test_cold_sphere_is_at_rest():
    assert not ic.cold_sphere(100, seed=1).velocity.any()


def test_random_box_fills_the_box_with_bodies_of_one_mass():
    bodies = ic.random_box(5000, seed=1, half_width=2.0, mass=3.0)
    assert np.abs(bodies.position).max() <= 2.0
    np.testing.assert_allclose(bodies.position.std(axis=0), 2 / np.sqrt(3), rtol=0.03, atol=0)
    assert (bodies.mass == 3.0).all()


def test_two_bodies_have_the_energy_and_angular_momentum_of_their_orbit():
    """E = -G m1 m2 / (2 a), L = mu sqrt(G M a (1 - e^2))."""
    masses, a, e, G = (2.0, 3.0), 1.5, 0.4, 2.0
    bodies = ic.two_body(masses, a, e, G)
    kinetic, potential = energies(bodies, G)
    assert kinetic + potential == pytest.approx(-G * 6.0 / (2 * a), rel=1e-14, abs=0)
    spin = np.sum(bodies.mass[:, None] * np.cross(bodies.position, bodies.velocity), axis=0)
    np.testing.assert_allclose(
        spin, [0, 0, 1.2 * np.sqrt(G * 5 * a * (1 - e**2))], rtol=1e-14, atol=ATOL
    )
    np.testing.assert_allclose(bodies.mass @ bodies.position, 0, rtol=0, atol=ATOL)


def test_lagrange_triangle_is_equilateral_and_turns_at_the_exact_rate():
    bodies = ic.lagrange_triangle(side=2.0, mass=3.0, G=1.5)
    sides = np.linalg.norm(bodies.position - np.roll(bodies.position, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, 2.0, rtol=1e-14, atol=0)
    omega_squared = 3 * 1.5 * 3.0 / 2.0**3
    acceleration = reference.accelerations(bodies.position, bodies.mass, G=1.5)
    np.testing.assert_allclose(
        acceleration, -omega_squared * bodies.position, rtol=1e-13, atol=ATOL
    )
    speed = np.linalg.norm(bodies.velocity, axis=1)
    np.testing.assert_allclose(speed, np.sqrt(omega_squared) * 2 / np.sqrt(3), rtol=1e-14, atol=0)


@pytest.mark.parametrize("make", [ic.plummer, ic.uniform_sphere, ic.random_box])
def test_one_body_is_possible(make):
    bodies = make(1, seed=1)
    assert np.isfinite(bodies.position).all()
    assert np.isfinite(bodies.velocity).all()


def test_random_square():
    bodies = ic.random_square(4000, seed=1)
    assert not bodies.velocity.any()
    assert not bodies.position[:, 2].any()
    assert bodies.mass.tolist() == [1 / 4000] * 4000
    assert bodies.position.min() >= 0
    assert bodies.position.max() <= 1
    counts, _, _ = np.histogram2d(*bodies.position[:, :2].T, 4, range=((0, 1), (0, 1)))
    np.testing.assert_allclose(counts, 250, rtol=0, atol=75)  # five standard deviations
