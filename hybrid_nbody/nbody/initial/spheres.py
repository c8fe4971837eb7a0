"""Spheres with isotropic velocities, from tables of their potential and distribution function.

Units are such that G, the mass of the model and its scale length are 1. Potentials are relative:
positive, and falling to 0 at the edge or at infinity. Binney & Tremaine, Galactic Dynamics (2008),
section 4.3.1, is the source of the formulas.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.drawn import BLOCK, DrawnBodies, Seed
from hybrid_nbody.nbody.initial_conditions import isotropic

Floats = NDArray[np.float64]
Profile = Callable[[Floats], Floats]
"""A quantity at each radius."""

NODES = 1000
"""Radii in a table."""

SPEEDS = 200
"""Speeds among which the most likely one is looked for."""

MARGIN = 1.05
"""Factor on the largest probability found in a table, which another speed may exceed a little."""


@dataclass(frozen=True)
class IsotropicSphere:
    """A sphere whose distribution function depends on the energy alone.

    Attributes
    ----------
    radius : (n,) array of float64
        Ascending.
    enclosed : (n,) array of float64
        Share of the mass within each radius, 1 at the last.
    potential : (n,) array of float64
        Relative potential at each radius.
    distribution : (n,) array of float64
        Distribution function, up to a factor, at the energies that `potential` lists.
    """

    radius: Floats
    enclosed: Floats
    potential: Floats
    distribution: Floats

    @property
    def peaks(self) -> Floats:
        """Return a bound of q^2 f at each radius, q being the speed over the escape speed."""
        q = np.linspace(0, 1, SPEEDS) ** 2  # bodies in a cusp are slow
        at_speeds = self.at_energy(self.potential[:, None] * (1 - q * q))
        peaks: Floats = MARGIN * (q * q * at_speeds).max(axis=1)
        return peaks

    def at_energy(self, energy: Floats) -> Floats:
        """Return the distribution function at some energies."""
        return np.interp(energy, self.potential[::-1], self.distribution[::-1])


def drawn_sphere(
    sphere: IsotropicSphere, number: int, seed: Seed, mass: float, units: tuple[float, float]
) -> DrawnBodies:
    """Return bodies of a sphere, at rest as a whole, the centre of the model at the origin.

    Parameters
    ----------
    sphere : IsotropicSphere
    number : int
    seed : int or sequence of int
    mass : float
        Of each body.
    units : tuple of 2 floats
        A unit of length, and one of velocity, of the model.
    """
    draw = partial(_block, sphere=sphere, peaks=sphere.peaks, units=units)
    return DrawnBodies(number, seed, mass, draw, centred=True, in_place=True)


def _block(
    random: np.random.Generator,
    sphere: IsotropicSphere,
    peaks: Floats,
    units: tuple[float, float],
) -> Floats:
    enclosed = 1 - random.uniform(0, 1, BLOCK)
    log_radius = np.interp(np.log(enclosed), np.log(sphere.enclosed), np.log(sphere.radius))
    position = np.exp(log_radius)[:, None] * isotropic(random, BLOCK)
    potential = np.interp(log_radius, np.log(sphere.radius), sphere.potential)
    peak = np.interp(log_radius, np.log(sphere.radius), peaks)
    speed = np.sqrt(2 * potential) * _relative_speeds(random, sphere, potential, peak)
    velocity = speed[:, None] * isotropic(random, BLOCK)
    return np.stack([units[0] * position, units[1] * velocity])


def _relative_speeds(
    random: np.random.Generator, sphere: IsotropicSphere, potential: Floats, peak: Floats
) -> Floats:
    """Draw speeds over the escape speed, from q^2 f(potential (1 - q^2)) by rejection."""
    speeds = np.empty(len(potential))
    left = np.arange(len(potential))
    while len(left):
        q = random.uniform(0, 1, len(left))
        height = peak[left] * random.uniform(0, 1, len(left))
        accepted = height <= q * q * sphere.at_energy(potential[left] * (1 - q * q))
        speeds[left[accepted]] = q[accepted]
        left = left[~accepted]
    return speeds


# --- tables ---------------------------------------------------------------------------------------


def sphere_of_density(
    density: Profile, radius: Floats, mass: float = 1.0, other_mass: Profile | None = None
) -> IsotropicSphere:
    """Return the isotropic sphere of a density in its own potential and that of another mass.

    Parameters
    ----------
    density : callable
        Of the sphere, up to a factor.
    radius : (n,) array of float64
        Radii of the tables, with equal ratios, from the innermost to beyond all the mass.
    mass : float
        Of the sphere.
    other_mass : callable, optional
        Mass within each radius that is not of the sphere.
    """
    enclosed = _enclosed(density, radius)
    factor = mass / enclosed[-1]
    total = factor * enclosed
    if other_mass is not None:
        total = total + other_mass(radius)
    potential = _potential(total, radius)
    slope = np.gradient(np.log(density(radius)), np.log(radius))
    by_potential = -slope * density(radius) * radius / total  # d density / d potential
    distribution = eddington(potential, by_potential)
    return IsotropicSphere(radius, enclosed / enclosed[-1], potential, distribution)


def eddington(potential: Floats, slope: Floats) -> Floats:
    """Return the distribution function at each of some energies, which are those of `potential`.

    It is the integral of d(slope) / sqrt(energy - potential) over lower potentials, divided by
    sqrt(8) pi^2, where slope = d density / d potential is linear between two nodes.

    Parameters
    ----------
    potential : (n,) array of float64
        Descending; below the last, the slope falls to 0 with the potential.
    slope : (n,) array of float64
    """
    nodes = np.append(potential, 0.0)
    rates = np.diff(np.append(slope, 0.0)) / np.diff(nodes)
    roots = np.sqrt(np.maximum(potential[:, None] - nodes, 0))
    integral: Floats = 2 * (rates * np.diff(roots, axis=1)).sum(axis=1)
    factor = 1 / (np.sqrt(8) * np.pi**2)
    found: Floats = factor * np.maximum(integral, 0)
    return found


def _enclosed(density: Profile, radius: Floats) -> Floats:
    """Return the mass within each radius, by Simpson's rule in the logarithm of the radius."""
    step = np.log(radius[1] / radius[0])
    middle = np.sqrt(radius[1:] * radius[:-1])
    ends = 4 * np.pi * radius**3 * density(radius)
    middles = 4 * np.pi * middle**3 * density(middle)
    shells = step / 6 * (ends[:-1] + 4 * middles + ends[1:])
    inner_slope = np.log(ends[1] / ends[0]) / step  # a power law within the innermost radius
    return np.cumsum(np.append(ends[0] / inner_slope, shells))


def _potential(mass: Floats, radius: Floats) -> Floats:
    """Return the relative potential of the mass within each radius, all of it within the last."""
    step = np.log(radius[1] / radius[0])
    field = mass / radius
    trapezoids = step / 2 * (field[1:] + field[:-1])
    shells = trapezoids - step / 12 * np.diff(np.gradient(field))  # of fourth order
    outwards = np.cumsum(np.append(field[-1], shells[::-1]))
    return outwards[::-1]
