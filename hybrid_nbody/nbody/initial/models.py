"""Hernquist, NFW and King spheres: the usual models of galaxies, dark haloes and clusters."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import erf

from hybrid_nbody.nbody.drawn import DrawnBodies
from hybrid_nbody.nbody.initial.spheres import (
    NODES,
    IsotropicSphere,
    drawn_sphere,
    sphere_of_density,
)

Floats = NDArray[np.float64]

HERNQUIST_MASS_WITHIN = 0.99
"""Bodies are drawn from this inner part of the mass, 198 scale lengths: the model has no edge."""

BEYOND_THE_CUT = 30.0
"""Radius, in that of the cut of an NFW sphere, beyond which there is no mass."""

CENTRE = 1e-4
"""Radius, in core radii, at which the integration of a King model begins."""


def drawn_hernquist(
    n: int, seed: int, mass: float = 1.0, scale: float = 1.0, G: float = 1.0
) -> DrawnBodies:
    """Return a Hernquist sphere with isotropic velocities, at rest as a whole.

    Its density is proportional to 1 / (r (r + scale)^3): Hernquist, Astrophys. J. 356, 359 (1990).
    """
    model_mass = mass / HERNQUIST_MASS_WITHIN
    units = (scale, float(np.sqrt(G * model_mass / scale)))
    return drawn_sphere(hernquist_sphere(), n, seed, mass / n, units)


def hernquist_density(radius: Floats) -> Floats:
    """Return the density of a Hernquist sphere of mass 1 and scale length 1."""
    density: Floats = 1 / (2 * np.pi * radius * (1 + radius) ** 3)
    return density


@lru_cache(maxsize=1)
def hernquist_sphere() -> IsotropicSphere:
    """Return the inner part of a Hernquist sphere."""
    return inner_part(sphere_of_density(hernquist_density, log_radii(1e5)))


def log_radii(outermost: float) -> Floats:
    """Return radii of a table, in scale lengths."""
    return np.geomspace(1e-5, outermost, NODES)


def inner_part(sphere: IsotropicSphere) -> IsotropicSphere:
    """Return a sphere whose bodies are drawn from the inner part of its mass alone."""
    enclosed = sphere.enclosed / HERNQUIST_MASS_WITHIN
    return IsotropicSphere(sphere.radius, enclosed, sphere.potential, sphere.distribution)


def drawn_nfw(
    n: int,
    seed: int,
    mass: float = 1.0,
    scale: float = 1.0,
    concentration: float = 10.0,
    G: float = 1.0,
) -> DrawnBodies:
    """Return a sphere of Navarro, Frenk & White with isotropic velocities, cut.

    Its density is proportional to sech(r / (concentration scale)) / (r (r + scale)^2), so that its
    mass is finite: McMillan & Dehnen, Mon. Not. R. Astron. Soc. 378, 541 (2007).
    """
    units = (scale, float(np.sqrt(G * mass / scale)))
    return drawn_sphere(nfw_sphere(concentration), n, seed, mass / n, units)


@lru_cache(maxsize=8)
def nfw_sphere(concentration: float) -> IsotropicSphere:
    """Return an NFW sphere cut at a radius of `concentration` scale lengths."""

    def density(radius: Floats) -> Floats:
        found: Floats = 1 / (radius * (1 + radius) ** 2 * np.cosh(radius / concentration))
        return found

    return sphere_of_density(density, log_radii(BEYOND_THE_CUT * concentration))


def drawn_king(
    n: int,
    seed: int,
    mass: float = 1.0,
    scale: float = 1.0,
    central_potential: float = 6.0,
    G: float = 1.0,
) -> DrawnBodies:
    """Return a King model, a cluster with an edge; `scale` is its core radius.

    King, Astron. J. 71, 64 (1966).
    """
    units = (scale, float(np.sqrt(G * mass / scale)))
    return drawn_sphere(king_sphere(central_potential), n, seed, mass / n, units)


@lru_cache(maxsize=8)
def king_sphere(central_potential: float) -> IsotropicSphere:
    """Return the King model whose central potential is that many squares of its dispersion.

    Lengths are in core radii r_0, where r_0^2 = 9 sigma^2 / (4 pi G rho_0).
    """
    radius, depth, slope = _king_profile(central_potential)
    pull = -(radius**2) * slope
    square_of_sigma = 1 / pull[-1]  # the mass within the edge is 1
    potential = square_of_sigma * depth
    return IsotropicSphere(radius, pull / pull[-1], potential, np.expm1(depth))


def _king_profile(central_potential: float) -> tuple[Floats, Floats, Floats]:
    """Return radii up to the edge, the potential over sigma^2 there, and its derivative."""
    central_density = _king_density(central_potential)

    def derivatives(radius: float, state: Floats) -> tuple[float, float]:
        density = _king_density(state[0]) / central_density
        return state[1], -9 * density - 2 * state[1] / radius

    def edge(radius: float, state: Floats) -> float:
        return float(state[0])

    edge.terminal = True  # type: ignore[attr-defined]  # read by solve_ivp
    start = (central_potential - 1.5 * CENTRE**2, -3 * CENTRE)
    found = solve_ivp(
        derivatives, (CENTRE, 1e6), start, events=edge, rtol=1e-10, atol=1e-12, dense_output=True
    )
    radius = np.geomspace(CENTRE, found.t[-1], NODES)
    depth, slope = found.sol(radius)
    return radius, np.maximum(depth, 0), slope


def _king_density(depth: float) -> float:
    """Return the density, up to a factor, where the potential is `depth` squares of sigma."""
    depth = max(depth, 0.0)
    root = np.sqrt(depth)
    return float(np.exp(depth) * erf(root) - 2 * root / np.sqrt(np.pi) * (1 + 2 * depth / 3))
