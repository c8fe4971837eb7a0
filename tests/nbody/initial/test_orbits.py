"""Binaries and planets: elements that are found again from positions and velocities."""

import numpy as np
import pytest
from scipy.stats import kstest

from hybrid_nbody.nbody.initial.orbits import drawn_binaries, eccentric_anomaly, solar_system

NUMBER = 20_000
YEAR = 4 * np.pi**2


def elements(position, velocity, pull):
    """Return semi-major axes and the vectors of angular momentum and eccentricity."""
    distance = np.linalg.norm(position, axis=1)
    energy = np.sum(velocity**2, axis=1) / 2 - pull / distance
    spin = np.cross(position, velocity)
    towards = np.cross(velocity, spin) / np.reshape(pull, (-1, 1)) - position / distance[:, None]
    return -pull / (2 * energy), spin, towards


@pytest.mark.parametrize("eccentricity", [0.0, 0.5, 0.99])
def test_keplers_equation(eccentricity):
    mean = np.linspace(-np.pi, np.pi, 101)
    found = eccentric_anomaly(mean, np.full(101, eccentricity))
    np.testing.assert_allclose(found - eccentricity * np.sin(found), mean, rtol=0, atol=1e-14)


def test_binaries_have_the_orbits_that_are_asked_for():
    bodies = drawn_binaries(
        NUMBER, 1, semi_major_axes=(1e-3, 1e-1), max_eccentricity=0.8, mass=2.0, scale=3.0, G=1.5
    ).all()
    apart = bodies.position[1::2] - bodies.position[::2]
    relative = bodies.velocity[1::2] - bodies.velocity[::2]
    size, spin, towards = elements(apart, relative, 1.5 * 2 * 2.0 / NUMBER)
    most = 1.95 / np.sqrt(NUMBER / 2)
    eccentricity = np.linalg.norm(towards, axis=1)
    direction = spin / np.linalg.norm(spin, axis=1)[:, None]
    assert kstest(np.log10(size), lambda x: (x + 3) / 2).statistic < most
    assert kstest(eccentricity, lambda e: (e / 0.8) ** 2).statistic < most
    for component in direction.T:
        assert kstest(component, lambda x: (1 + x) / 2).statistic < most


def test_centres_of_binaries_are_a_plummer_sphere():
    """Half of its mass is within 1.3 scale lengths; its dispersion follows from 2 K = |W|."""
    bodies = drawn_binaries(
        NUMBER, 1, semi_major_axes=(1e-3, 1e-2), max_eccentricity=0.0, mass=2.0, scale=3.0
    ).all()
    centre = (bodies.position[::2] + bodies.position[1::2]) / 2
    velocity = (bodies.velocity[::2] + bodies.velocity[1::2]) / 2
    radius = np.linalg.norm(centre, axis=1) / 3
    assert np.median(radius) == pytest.approx(1.3048, rel=0.03, abs=0)
    square = np.mean(np.sum(velocity**2, axis=1)) / (2.0 / 3)
    assert square == pytest.approx(3 * np.pi / 32, rel=0.03, abs=0)


def test_planets_at_the_beginning_of_2000():
    """Heliocentric positions in the ecliptic, as almanacs have them to 0.001 au or better."""
    bodies = solar_system(G=YEAR)
    to_sun = bodies.position - bodies.position[0]
    np.testing.assert_allclose(to_sun[3], [-0.1772, 0.9672, 0.0], rtol=0, atol=1e-3)
    np.testing.assert_allclose(to_sun[5], [3.996, 2.933, -0.1018], rtol=0, atol=2e-2)
    np.testing.assert_allclose(bodies.mass @ bodies.velocity, 0, rtol=0, atol=1e-14)
    assert bodies.mass[0] == 1
    assert bodies.mass[5] == pytest.approx(9.5458e-4, rel=1e-3, abs=0)


def test_planets_have_their_elements():
    """Years of Earth and Jupiter; inclinations, nodes and perihelia of Mercury and Mars."""
    bodies = solar_system(G=YEAR)
    pull = YEAR * (1 + bodies.mass[1:])
    size, spin, towards = elements(
        bodies.position[1:] - bodies.position[0], bodies.velocity[1:] - bodies.velocity[0], pull
    )
    years = 2 * np.pi * np.sqrt(size**3 / pull)
    assert years[2] == pytest.approx(1.0, rel=1e-5, abs=0)
    assert years[4] == pytest.approx(11.86, rel=1e-3, abs=0)
    inclination = np.degrees(np.arccos(spin[:, 2] / np.linalg.norm(spin, axis=1)))
    assert inclination[0] == pytest.approx(7.00498, rel=0, abs=1e-5)
    node = np.degrees(np.arctan2(spin[3, 0], -spin[3, 1]))
    assert node == pytest.approx(49.5596, rel=0, abs=1e-4)
    assert np.linalg.norm(towards[3]) == pytest.approx(0.0933941, rel=1e-6, abs=0)
    longitude = np.degrees(np.arctan2(towards[2, 1], towards[2, 0]))
    assert longitude == pytest.approx(102.93768, rel=0, abs=1e-4)


def test_speeds_of_planets_scale_with_the_root_of_G():
    slow = solar_system().velocity
    np.testing.assert_allclose(solar_system(G=4.0).velocity, 2 * slow, rtol=1e-13, atol=0)
