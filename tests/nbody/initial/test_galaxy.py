"""A galaxy: the profile of its disc, the pull of disc and halo, and velocities that fit both."""

from functools import cache

import numpy as np
import pytest
from scipy.special import gamma
from scipy.stats import kstest

from hybrid_nbody.nbody.bodies import joined
from hybrid_nbody.nbody.initial.galaxy import DISC_RADII, DiscMotion, Galaxy, drawn_galaxy

NUMBER = 100_000
MASS, SCALE, G = 3.0, 2.0, 1.5
SPEED = np.sqrt(G * MASS / SCALE)


@cache
def disc():
    """Return distances from the axis, heights, and velocities outwards, around and upwards."""
    made = drawn_galaxy(2 * NUMBER, seed=1, mass=MASS, scale=SCALE, G=G)["disc"].all()
    x, y, z = made.position.T / SCALE
    vx, vy, vz = made.velocity.T / SPEED
    distance = np.hypot(x, y)
    return distance, z, (vx * x + vy * y) / distance, (vy * x - vx * y) / distance, vz


def test_profile_of_the_disc():
    distance, height, *_ = disc()
    most = 1.95 / np.sqrt(NUMBER)
    assert kstest(distance, lambda r: 1 - (1 + r) * np.exp(-r)).statistic < most
    assert kstest(height, lambda z: (1 + np.tanh(z / 0.1)) / 2).statistic < most


def test_motion_of_the_disc_in_rings():
    """Means and dispersions are those of the tables, within 5 standard errors."""
    distance, _, outwards, around, upwards = disc()
    motion = DiscMotion.of(Galaxy())
    for inner in (0.5, 1.0, 2.0, 3.0):
        ring = (distance > inner) & (distance < 1.02 * inner)
        error = 5 / np.sqrt(ring.sum())
        at = [np.interp(1.01 * inner, DISC_RADII, table) for table in vars(motion).values()]
        rotation, radial, azimuthal, vertical = at
        assert around[ring].mean() == pytest.approx(rotation, rel=0.01, abs=error * azimuthal)
        assert outwards[ring].mean() == pytest.approx(0, rel=0, abs=error * radial)
        for values, expected in ((outwards, radial), (around, azimuthal), (upwards, vertical)):
            assert values[ring].std() == pytest.approx(expected, rel=error + 0.02, abs=0)


def test_toomre_parameter_is_the_one_asked_for():
    """From its definition, with the epicycle frequency by differences of the circular velocity."""
    galaxy = Galaxy(disc_mass=0.2, toomre_q=1.2)
    radius = np.array([2.5 - 1e-4, 2.5, 2.5 + 1e-4])
    momentum = radius**2 * np.sqrt(galaxy.frequency(radius))
    epicycle = np.sqrt((momentum[2] ** 2 - momentum[0] ** 2) / 2e-4 / radius[1] ** 3)
    radial = np.interp(2.5, DISC_RADII, DiscMotion.of(galaxy).radial)
    surface = 0.2 / (2 * np.pi) * np.exp(-2.5)
    assert radial * epicycle / (3.36 * surface) == pytest.approx(1.2, rel=2e-3, abs=0)


def test_circular_velocity_of_a_disc_alone():
    """Far away that of a point; the mass within a distance sums up to that of the disc."""
    lone = Galaxy(disc_mass=1 - 1e-12)
    far = np.array([300.0])
    assert lone.frequency(far)[0] * far[0] ** 3 == pytest.approx(1, rel=1e-4, abs=0)
    assert lone.disc_within(far)[0] == pytest.approx(gamma(2), rel=1e-9, abs=0)


def pull_of(whole, at):
    """Return the accelerations by all bodies at some places, softened a little, (n, 3)."""
    found = []
    for place in at:
        offset = whole.position - place
        square = np.sum(offset**2, axis=1) + 0.02**2
        found.append((whole.mass / square**1.5) @ offset)
    return np.array(found)


def test_bodies_follow_the_pull_that_they_make_themselves():
    """For disc and halo, the squares of the velocities are minus position times acceleration."""
    parts = [part.all() for part in drawn_galaxy(20_000, seed=1).values()]
    whole = joined(parts)
    assert whole.mass.sum() == pytest.approx(1, rel=1e-12, abs=0)
    for part in parts:
        some = part.share(slice(0, 500))
        virial = -np.sum(some.position * pull_of(whole, some.position), axis=1)
        squares = np.sum(some.velocity**2, axis=1)
        assert squares.mean() / virial.mean() == pytest.approx(1, rel=0.05, abs=0)


@pytest.mark.parametrize("number", [2, 3, 10])
def test_disc_and_halo_have_a_body_each(number):
    parts = drawn_galaxy(number, seed=1, disc_bodies=1e-3)
    assert [len(part) for part in parts.values()] == [1, number - 1]
    assert list(parts) == ["disc", "halo"]
