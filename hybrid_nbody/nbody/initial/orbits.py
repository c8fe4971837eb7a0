"""Bodies on Kepler orbits: binaries in a cluster, and the planets."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.bodies import Bodies, centred
from hybrid_nbody.nbody.drawn import BLOCK, DrawnBodies
from hybrid_nbody.nbody.initial_conditions import isotropic, plummer_block

Floats = NDArray[np.float64]

ITERATIONS = 60
"""Bisections of Kepler's equation, down to the last bit."""

ELEMENTS = np.array(
    [
        [0.38709927, 0.20563593, 7.00497902, 252.25032350, 77.45779628, 48.33076593],
        [0.72333566, 0.00677672, 3.39467605, 181.97909950, 131.60246718, 76.67984255],
        [1.00000261, 0.01671123, -0.00001531, 100.46457166, 102.93768193, 0.0],
        [1.52371034, 0.09339410, 1.84969142, -4.55343205, -23.94362959, 49.55953891],
        [5.20288700, 0.04838624, 1.30439695, 34.39644051, 14.72847983, 100.47390909],
        [9.53667594, 0.05386179, 2.48599187, 49.95424423, 92.59887831, 113.66242448],
        [19.18916464, 0.04725744, 0.77263783, 313.23810451, 170.95427630, 74.01692503],
        [30.06992276, 0.00859048, 1.77004347, -55.12002969, 44.96476227, 131.78422574],
    ]
)
"""Semi-major axis (au), eccentricity, inclination, mean longitude, longitudes of perihelion and
node (degrees) of Mercury, Venus, Earth and Moon, Mars, Jupiter, Saturn, Uranus and Neptune at
J2000.0, in the ecliptic of that date: Standish, "Keplerian elements for approximate positions of
the major planets", table 1, JPL Solar System Dynamics."""

SUN_OVER_PLANET = np.array(
    [6.0236e6, 4.08523719e5, 328900.5596, 3.09870359e6, 1047.348644, 3497.9018, 22902.98, 19412.26]
)
"""Mass of the Sun over that of each planet: the IAU 2009 system of constants, Luzum et al.,
Celest. Mech. Dyn. Astron. 110, 293 (2011)."""


def eccentric_anomaly(mean_anomaly: Floats, eccentricity: Floats) -> Floats:
    """Return the solution E of Kepler's equation, E - e sin E = M, by bisection.

    Parameters
    ----------
    mean_anomaly : (n,) array of float64
        In radians, from -pi to pi.
    eccentricity : (n,) array of float64
        At least 0, less than 1.
    """
    low = np.full_like(mean_anomaly, -np.pi)
    high = np.full_like(mean_anomaly, np.pi)
    for _ in range(ITERATIONS):
        middle = (low + high) / 2
        is_low = middle - eccentricity * np.sin(middle) < mean_anomaly
        low = np.where(is_low, middle, low)
        high = np.where(is_low, high, middle)
    return (low + high) / 2


def relative_orbit(
    axes: Floats, semi_major_axis: Floats, eccentricity: Floats, mean_anomaly: Floats, pull: Floats
) -> Floats:
    """Return positions and velocities of bodies relative to those that they go around, (2, n, 3).

    Parameters
    ----------
    axes : (2, n, 3) array of float64
        Unit vectors to the pericentre, and in the orbit 90 degrees ahead of it.
    semi_major_axis, eccentricity, mean_anomaly : (n,) arrays of float64
    pull : (n,) array of float64
        G times the mass of both bodies.
    """
    anomaly = eccentric_anomaly(mean_anomaly, eccentricity)
    flatness = np.sqrt(1 - eccentricity**2)
    cosine = np.cos(anomaly)
    sine = np.sin(anomaly)
    speed = np.sqrt(pull / semi_major_axis) / (1 - eccentricity * cosine)
    along = [semi_major_axis * (cosine - eccentricity), -speed * sine]
    across = [semi_major_axis * flatness * sine, speed * flatness * cosine]
    both: Floats = np.stack(along)[:, :, None] * axes[0]
    both += np.stack(across)[:, :, None] * axes[1]
    return both


@dataclass(frozen=True)
class Orbits:
    """The distribution of the orbits of binaries.

    Attributes
    ----------
    semi_major_axes : tuple of 2 floats
        The smallest and the largest, between which their logarithms are uniform.
    max_eccentricity : float
        Squares of eccentricities are uniform up to that of this.
    """

    semi_major_axes: tuple[float, float]
    max_eccentricity: float


def drawn_binaries(
    n: int, seed: int, mass: float = 1.0, scale: float = 1.0, G: float = 1.0, **orbits: Any
) -> DrawnBodies:
    """Return a Plummer sphere of binaries; the bodies 2 k and 2 k + 1 go around each other.

    Parameters
    ----------
    n, seed : int
        Number of bodies, twice that of binaries, and the seed.
    mass, scale : float
        Of the cluster.
    G : float
        Gravitational constant.
    **orbits
        Attributes of `Orbits`.
    """
    draw = partial(
        _binaries_block,
        orbits=Orbits(**orbits),
        pull=2 * G * mass / n,
        units=(scale, float(np.sqrt(G * mass / scale))),
    )
    return DrawnBodies(n, seed, mass / n, draw, centred=True)


def _binaries_block(
    random: np.random.Generator,
    orbits: Orbits,
    pull: float,
    units: tuple[float, float],
) -> Floats:
    pairs = BLOCK // 2
    centres = plummer_block(random, *units)[:, :pairs]
    smallest, largest = np.log(orbits.semi_major_axes)
    sizes = np.exp(random.uniform(smallest, largest, pairs))
    eccentricity = orbits.max_eccentricity * np.sqrt(random.uniform(0, 1, pairs))
    anomaly = random.uniform(-np.pi, np.pi, pairs)
    axes = _random_axes(random, pairs)
    apart = relative_orbit(axes, sizes, eccentricity, anomaly, np.full(pairs, pull))
    both = np.stack([centres - apart / 2, centres + apart / 2], axis=2)
    return both.reshape(2, BLOCK, 3)


def _random_axes(random: np.random.Generator, n: int) -> Floats:
    """Return pairs of random unit vectors at right angles, (2, n, 3)."""
    first = isotropic(random, n)
    other = isotropic(random, n)
    across = np.cross(first, other)
    length = np.sqrt((across * across).sum(axis=1))
    return np.stack([first, across / length[:, None]])


def solar_system(G: float = 1.0) -> Bodies:
    """Return the Sun and its eight planets at J2000.0, about their centre of mass.

    Lengths are in astronomical units, masses in those of the Sun, and G decides on the unit of
    time: with 4 pi^2 it is a year. The plane z = 0 is the ecliptic.
    """
    mass = 1 / SUN_OVER_PLANET
    degrees = np.radians(ELEMENTS[:, 2:])
    inclination, longitude, perihelion, node = degrees.T
    mean_anomaly = np.remainder(longitude - perihelion + np.pi, 2 * np.pi) - np.pi
    axes = _axes(inclination, node, perihelion - node)
    found = relative_orbit(axes, ELEMENTS[:, 0], ELEMENTS[:, 1], mean_anomaly, G * (1 + mass))
    with_sun = np.concatenate([np.zeros((2, 1, 3)), found], axis=1)
    return centred(with_sun[0], with_sun[1], np.append(1.0, mass))


def _axes(inclination: Floats, node: Floats, argument: Floats) -> Floats:
    """Return unit vectors to the pericentre of orbits, and 90 degrees ahead, (2, n, 3)."""
    to_node = np.stack([np.cos(node), np.sin(node), 0 * node], axis=1)
    ahead = np.stack(
        [
            -np.sin(node) * np.cos(inclination),
            np.cos(node) * np.cos(inclination),
            np.sin(inclination),
        ],
        axis=1,
    )
    cosine = np.cos(argument)[:, None]
    sine = np.sin(argument)[:, None]
    return np.stack([cosine * to_node + sine * ahead, -sine * to_node + cosine * ahead])
