"""Spheres in equilibrium: radii against the profile, dispersions by the Jeans equation, virial.

Each sample has 10^5 bodies. A distance of Kolmogorov and Smirnov of 0.0062 is exceeded by one
right sample in a thousand; the seeds are fixed, so that these tests always say the same.
"""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from hybrid_nbody.nbody.initial.models import (
    HERNQUIST_MASS_WITHIN,
    drawn_hernquist,
    drawn_king,
    drawn_nfw,
    hernquist_sphere,
    king_sphere,
    nfw_sphere,
)

NUMBER = 100_000
MOST_DISTANCE = 1.95 / np.sqrt(NUMBER)
MASS, SCALE, G = 3.0, 2.0, 1.5

MAKERS = {"hernquist": drawn_hernquist, "nfw": drawn_nfw, "king": drawn_king}


@cache
def sample(kind):
    """Return radii in scale lengths, and velocities in units of sqrt(G mass / scale)."""
    bodies = MAKERS[kind](NUMBER, seed=1, mass=MASS, scale=SCALE, G=G).all()
    assert bodies.mass.sum() == pytest.approx(MASS, rel=1e-12, abs=0)
    radius = np.linalg.norm(bodies.position, axis=1) / SCALE
    return bodies.position / SCALE, radius, bodies.velocity / np.sqrt(G * MASS / SCALE)


def nfw_density(radius):
    """Return the density of the default cut, up to a factor."""
    return 1 / (radius * (1 + radius) ** 2 * np.cosh(radius / 10))


def nfw_within(radius):
    """Return the mass within each of some ascending radii, by quadrature from each to the next."""
    ends = np.append(0, radius)
    shells = [
        quad(lambda r: r * r * nfw_density(r), *pair)[0]
        for pair in zip(ends[:-1], ends[1:], strict=True)
    ]
    whole = quad(lambda r: r * r * nfw_density(r), 0, 300)[0]
    return np.cumsum(shells) / whole


def test_radii_of_a_hernquist_sphere():
    radius = sample("hernquist")[1]
    found = kstest(radius, lambda r: (r / (1 + r)) ** 2 / HERNQUIST_MASS_WITHIN)
    assert found.statistic < MOST_DISTANCE


def test_radii_of_an_nfw_sphere():
    radius = sample("nfw")[1]
    nodes = np.geomspace(1e-3, 300, 300)
    within = nfw_within(nodes)
    found = kstest(radius, lambda r: np.interp(np.log(r), np.log(nodes), within))
    assert found.statistic < MOST_DISTANCE


@pytest.mark.parametrize(("depth", "edge"), [(3, 0.672), (6, 1.255), (9, 2.12)])
def test_edges_of_king_models(depth, edge):
    """King's table: logarithm of the radius of the edge over the core radius."""
    assert np.log10(king_sphere(depth).radius[-1]) == pytest.approx(edge, rel=0, abs=0.005)


def test_radii_of_a_king_model():
    """Half of the mass of W0 = 6 lies within 2.64 core radii, and all within the edge, 17.99."""
    radius = sample("king")[1]
    sphere = king_sphere(6.0)
    found = kstest(radius, lambda r: np.interp(np.log(r), np.log(sphere.radius), sphere.enclosed))
    assert found.statistic < MOST_DISTANCE
    assert np.median(radius) == pytest.approx(2.64, rel=0.01, abs=0)
    assert radius.max() < 18.0


def test_distribution_function_of_a_hernquist_sphere():
    """Against equation 17 of Hernquist (1990)."""
    sphere = hernquist_sphere()
    inner = sphere.radius[(sphere.radius > 1e-3) & (sphere.radius < 1e3)]
    energy = 1 / (1 + inner)
    q = np.sqrt(energy)
    polynomial = (1 - 2 * energy) * (8 * energy**2 - 8 * energy - 3)
    rest = 1 - energy
    expected = (3 * np.arcsin(q) + q * np.sqrt(rest) * polynomial) / rest**2.5
    expected /= 8 * np.sqrt(2) * np.pi**3
    found = sphere.distribution[np.isin(sphere.radius, inner)]
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=0)


def hernquist_dispersion(radius):
    """Return the dispersion of a component: equation 10 of Hernquist (1990), of mass 1 / 0.99."""
    r = radius
    square = 12 * r * (1 + r) ** 3 * np.log1p(1 / r)
    square -= r / (1 + r) * (25 + 52 * r + 42 * r**2 + 12 * r**3)
    return np.sqrt(square / 12 / HERNQUIST_MASS_WITHIN)


def nfw_dispersion(radius):
    """Return the dispersion of a component, by the Jeans equation for the mass found above."""
    nodes = np.geomspace(1e-3, 200, 2000)
    pull = np.interp(
        nodes, *(np.geomspace(1e-3, 300, 300), nfw_within(np.geomspace(1e-3, 300, 300)))
    )
    pressure = nfw_density(nodes) * pull / nodes  # times d log r
    outwards = np.cumsum(pressure[::-1])[::-1] * np.log(nodes[1] / nodes[0])
    return np.sqrt(np.interp(radius, nodes, outwards / nfw_density(nodes)))


DISPERSIONS = {"hernquist": hernquist_dispersion, "nfw": nfw_dispersion}


@pytest.mark.parametrize("kind", DISPERSIONS)
def test_dispersions_in_shells(kind):
    """Radial and tangential ones, in shells of 5000 bodies, within 4 standard errors and 1 %."""
    position, radius, velocity = sample(kind)
    order = np.argsort(radius)[5000:90000].reshape(17, 5000)
    expected = DISPERSIONS[kind](radius[order])
    radial = np.sum(position * velocity, axis=1) / radius
    across = np.sum(velocity**2, axis=1) - radial**2
    near = {"rtol": 0.01 + 4 / np.sqrt(2 * 5000), "atol": 0}
    mean = np.sqrt(np.mean(expected**2, axis=1))
    np.testing.assert_allclose(np.sqrt(np.mean(radial[order] ** 2, axis=1)), mean, **near)
    np.testing.assert_allclose(np.sqrt(np.mean(across[order], axis=1) / 2), mean, **near)


SPHERES = {
    "hernquist": hernquist_sphere,
    "nfw": lambda: nfw_sphere(10.0),
    "king": lambda: king_sphere(6.0),
}


@pytest.mark.parametrize("kind", SPHERES)
def test_virial_ratio(kind):
    """The pull of the mass within each radius is that of the sorted bodies themselves."""
    _, radius, velocity = sample(kind)
    within = (np.argsort(np.argsort(radius)) + 0.5) / NUMBER
    virial = np.mean(within / radius)
    assert np.mean(np.sum(velocity**2, axis=1)) / virial == pytest.approx(1, rel=0.02, abs=0)


@pytest.mark.parametrize("kind", SPHERES)
def test_no_body_leaves(kind):
    """Speeds are below that of escape, and most bodies have one of their own."""
    position, radius, velocity = sample(kind)
    sphere = SPHERES[kind]()
    potential = np.interp(np.log(radius), np.log(sphere.radius), sphere.potential)
    model_mass = 1 / HERNQUIST_MASS_WITHIN if kind == "hernquist" else 1
    energy = np.sum(velocity**2, axis=1) / 2 - model_mass * potential
    assert energy.max() < 0.01
    assert len(np.unique(energy)) == NUMBER


@pytest.mark.parametrize("kind", MAKERS)
def test_the_cusp_stays_at_the_origin_and_the_whole_at_rest(kind):
    position, _, velocity = sample(kind)
    np.testing.assert_allclose(velocity.mean(axis=0), 0, rtol=0, atol=1e-15)
    assert np.abs(np.median(position, axis=0)).max() < 4 * 1.25 / np.sqrt(NUMBER)
