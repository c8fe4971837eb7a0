"""Radii, densities and dispersions of bodies whose structure is known."""

import numpy as np
import pytest

from hybrid_nbody.nbody.figures.profiles import (
    BODIES_OF_A_SHELL,
    dispersion_of,
    lagrangian_radii,
    profile_of,
)


def sphere(number, seed=1):
    """Return points spread evenly through a sphere of radius 1 about (3, 0, 0)."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(number, 3))
    points *= (random.random(number) ** (1 / 3) / np.linalg.norm(points, axis=1))[:, None]
    return points + [3, 0, 0]


def test_radii_of_bodies_on_a_line():
    positions = np.array([[x, 0, 0] for x in (-4, -3, -2, -1, 0, 0, 1, 2, 3, 4.0)])
    radii = lagrangian_radii(positions, np.ones(10), (0.1, 0.2, 0.3, 0.6, 1.0))
    np.testing.assert_array_equal(radii, [0, 0, 1, 2, 4])


def test_radii_weigh_by_mass():
    positions, mass = np.array([[0, 0, 0], [1, 0, 0], [-1, 0, 0.0]]), np.array([8, 1, 1.0])
    np.testing.assert_array_equal(lagrangian_radii(positions, mass, (0.8, 0.81)), [0, 1])


def test_radii_of_a_uniform_sphere():
    radii = lagrangian_radii(sphere(50_000), np.full(50_000, 0.1), (0.1, 0.5, 0.9))
    # the noise is 1 / sqrt(12 x 5000), at most
    np.testing.assert_allclose(radii, np.cbrt([0.1, 0.5, 0.9]), rtol=0.01)


def test_bodies_that_are_nowhere_are_left_out_and_without_mass_there_are_no_radii():
    points = sphere(100)
    expected = lagrangian_radii(points, np.ones(100), (0.5,))
    with_nan = np.concatenate([points, np.full((2, 3), np.nan)])
    np.testing.assert_array_equal(lagrangian_radii(with_nan, np.ones(102), (0.5,)), expected)
    assert np.isnan(lagrangian_radii(points, np.zeros(100), (0.1, 0.5))).all()


def test_profile_of_a_uniform_sphere_at_one_temperature():
    number = 20_000
    velocities = np.random.default_rng(2).normal(scale=0.3, size=(number, 3)) + [10, 0, 0]
    found = profile_of(sphere(number), velocities, np.full(number, 4 / number))
    assert (np.diff(found.radius) > 0).all()
    # 500 bodies a shell: 4.5 % of noise. The last shell is thinner than the centre of mass is
    # known.
    np.testing.assert_allclose(found.density[:-1], 4 / (4 / 3 * np.pi), rtol=0.15)
    np.testing.assert_allclose(found.dispersion, 0.3, rtol=0.1)


def test_shells_together_hold_all_the_mass():
    number = 5 * BODIES_OF_A_SHELL + 7
    points = sphere(number)
    found = profile_of(points, points, np.ones(number))
    assert len(found.radius) == 5
    edge = np.linalg.norm(points - points.mean(axis=0), axis=1).max()
    shells = np.array_split(np.arange(number), 5)
    volumes = [len(shell) / density for shell, density in zip(shells, found.density, strict=True)]
    assert sum(volumes) == pytest.approx(4 / 3 * np.pi * edge**3, rel=1e-12)


def test_dispersion_leaves_the_mean_motion_out():
    velocities = np.array([[1, 0, 0], [3, 0, 0.0]])
    assert dispersion_of(velocities, np.ones(2)) == pytest.approx(np.sqrt(1 / 3), rel=1e-15)
    assert np.isnan(dispersion_of(velocities, np.zeros(2)))
