"""A galaxy: an exponential disc that turns in a Hernquist halo.

Units are such that G, the mass of disc and halo together, and the scale length of the disc are 1.
Moments of the velocities are those of Hernquist, Astrophys. J. Suppl. Ser. 86, 389 (1993).
"""

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e, i1e, k0e, k1e

from hybrid_nbody.nbody.components import number_in_disc
from hybrid_nbody.nbody.drawn import BLOCK, DrawnBodies
from hybrid_nbody.nbody.initial.models import (
    HERNQUIST_MASS_WITHIN,
    hernquist_density,
    inner_part,
    log_radii,
)
from hybrid_nbody.nbody.initial.spheres import IsotropicSphere, drawn_sphere, sphere_of_density

Floats = NDArray[np.float64]

STABLE_RADIUS = 2.5
"""Radius, in scale lengths, where the disc has the Toomre parameter that is asked for."""

RMS_HEIGHT = np.pi / np.sqrt(12)
"""Root mean square of z / height where the density falls as sech^2(z / height)."""

DISC_RADII = np.geomspace(1e-4, 100, 1000)
"""Radii of the tables of a disc: beyond is no body in 10^40."""

FLATTEST = 1 - 1e-15
"""Less than 1, whose arctanh is infinite."""

DISC = 1
HALO = 2
"""Second numbers of the seeds, so that each has random numbers of its own."""


@dataclass(frozen=True)
class Galaxy:
    """The shape of a galaxy.

    Attributes
    ----------
    disc_mass : float
        Share of the mass in the disc.
    height : float
        Of the disc, whose density falls as sech^2(z / height).
    halo_scale : float
        Scale length of the halo.
    toomre_q : float
        Of the disc at `STABLE_RADIUS`.
    disc_bodies : float
        Share of the bodies in the disc, which has one of them at least, as has the halo.
    """

    disc_mass: float = 0.1
    height: float = 0.1
    halo_scale: float = 3.0
    toomre_q: float = 1.5
    disc_bodies: float = 0.5

    def disc_within(self, radius: Floats) -> Floats:
        """Return the mass of the disc within a distance from its axis."""
        mass: Floats = self.disc_mass * -(np.expm1(-radius) + radius * np.exp(-radius))
        return mass

    @property
    def halo_mass(self) -> float:
        """Return the mass of the halo, the outer part without bodies included."""
        return (1 - self.disc_mass) / HERNQUIST_MASS_WITHIN

    def surface_density(self, radius: Floats) -> Floats:
        """Return the surface density of the disc."""
        density: Floats = self.disc_mass / (2 * np.pi) * np.exp(-radius)
        return density

    def halo_frequency(self, radius: Floats) -> Floats:
        """Return the square of the angular velocity of a circle in the halo alone.

        The circle is as far from the plane as the bodies of the disc, in root mean square.
        """
        distance = np.hypot(radius, RMS_HEIGHT * self.height)
        frequency: Floats = self.halo_mass / (distance * (distance + self.halo_scale) ** 2)
        return frequency

    def frequency(self, radius: Floats) -> Floats:
        """Return the square of the angular velocity of a circle.

        That of the disc is Freeman's: Astrophys. J. 160, 811 (1970).
        """
        y = radius / 2
        bessel = i0e(y) * k0e(y) - i1e(y) * k1e(y)
        found: Floats = self.disc_mass / 2 * bessel + self.halo_frequency(radius)
        return found


@dataclass(frozen=True)
class DiscMotion:
    """Means and dispersions of the velocities of a disc at `DISC_RADII`, each an array.

    Attributes
    ----------
    rotation : ndarray
        Mean azimuthal velocity.
    radial, azimuthal, vertical : ndarray
        Dispersions.
    """

    rotation: Floats
    radial: Floats
    azimuthal: Floats
    vertical: Floats

    @classmethod
    def of(cls, galaxy: Galaxy) -> "DiscMotion":
        """Return the motion of the disc of a galaxy."""
        circular = galaxy.frequency(DISC_RADII)
        epicycle = _epicycle(circular)
        radial = _radial_dispersion(galaxy, epicycle) ** 2
        azimuthal = radial * epicycle / (4 * circular)
        drift = radial - azimuthal - 2 * DISC_RADII * radial
        rotation = np.sqrt(np.maximum(DISC_RADII**2 * circular + drift, 0))
        return cls(rotation, np.sqrt(radial), np.sqrt(azimuthal), _vertical_dispersion(galaxy))


def _epicycle(circular: Floats) -> Floats:
    """Return the squares of the frequencies of epicycles from those of circles."""
    slope = np.gradient(np.log(circular), np.log(DISC_RADII))
    squares: Floats = circular * (4 + slope)
    return squares


def _radial_dispersion(galaxy: Galaxy, epicycle: Floats) -> Floats:
    """Return a dispersion whose square falls as the surface density does."""
    marginal = 3.36 * galaxy.surface_density(DISC_RADII) / np.sqrt(epicycle)
    at_stable = galaxy.toomre_q * np.interp(STABLE_RADIUS, DISC_RADII, marginal)
    dispersion: Floats = at_stable * np.exp(-(DISC_RADII - STABLE_RADIUS) / 2)
    return dispersion


def _vertical_dispersion(galaxy: Galaxy) -> Floats:
    """Return the dispersion of a sheet that holds itself together, and that a halo pulls."""
    own = np.pi * galaxy.surface_density(DISC_RADII) * galaxy.height
    halo = galaxy.halo_frequency(DISC_RADII) * (RMS_HEIGHT * galaxy.height) ** 2
    dispersion: Floats = np.sqrt(own + halo)
    return dispersion


def drawn_galaxy(
    n: int,
    seed: int,
    mass: float = 1.0,
    scale: float = 1.0,
    G: float = 1.0,
    **shape: float,
) -> dict[str, DrawnBodies]:
    """Return the disc of a galaxy and its halo, each at rest as a whole.

    Parameters
    ----------
    n, seed : int
        Number of bodies of both, and the seed.
    mass, scale : float
        Mass of both, and scale length of the disc.
    G : float
        Gravitational constant.
    **shape : float
        Attributes of a `Galaxy`.
    """
    galaxy = Galaxy(**shape)
    units = (scale, float(np.sqrt(G * mass / scale)))
    in_disc = number_in_disc(n, galaxy.disc_bodies)
    in_halo = n - in_disc
    draw = partial(_disc_block, height=galaxy.height, motion=DiscMotion.of(galaxy), units=units)
    mass_in_disc = galaxy.disc_mass * mass
    body_of_disc = mass_in_disc / in_disc
    disc = DrawnBodies(in_disc, (seed, DISC), body_of_disc, draw, centred=True, in_place=True)
    body_of_halo = (mass - mass_in_disc) / in_halo
    halo = drawn_sphere(halo_sphere(galaxy), in_halo, (seed, HALO), body_of_halo, units)
    return {"disc": disc, "halo": halo}


@lru_cache(maxsize=8)
def halo_sphere(galaxy: Galaxy) -> IsotropicSphere:
    """Return the inner part of the halo, in its own potential and that of the disc made round."""
    scale = galaxy.halo_scale
    whole = sphere_of_density(
        lambda radius: hernquist_density(radius / scale),
        scale * log_radii(1e5),
        galaxy.halo_mass,
        galaxy.disc_within,
    )
    return inner_part(whole)


def _disc_block(
    random: np.random.Generator, height: float, motion: DiscMotion, units: tuple[float, float]
) -> Floats:
    uniform = 1 - random.uniform(0, 1, (2, BLOCK))
    radius = -np.log(uniform[0] * uniform[1])  # R exp(-R) is the density of such sums
    angle = random.uniform(0, 2 * np.pi, BLOCK)
    z = height * np.arctanh(FLATTEST * random.uniform(-1, 1, BLOCK))
    normal = random.standard_normal((3, BLOCK))
    outwards = normal[0] * np.interp(radius, DISC_RADII, motion.radial)
    around = normal[1] * np.interp(radius, DISC_RADII, motion.azimuthal)
    around += np.interp(radius, DISC_RADII, motion.rotation)
    upwards = normal[2] * np.interp(radius, DISC_RADII, motion.vertical)
    x = np.cos(angle)
    y = np.sin(angle)
    position = np.column_stack([radius * x, radius * y, z])
    velocity = np.column_stack([outwards * x - around * y, outwards * y + around * x, upwards])
    return np.stack([units[0] * position, units[1] * velocity])
