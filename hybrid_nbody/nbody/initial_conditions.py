"""Initial conditions: one function for each ``bodies.kind``.

A seed gives the same bodies on any number of ranks; G is the gravitational constant of the run.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.bodies import Bodies, centred
from hybrid_nbody.nbody.drawn import BLOCK, DrawnBodies

PLUMMER_SCALE = float(3 * np.pi / 16)
"""Scale radius of a Plummer sphere in standard units: M = 1, E = -1/4 at G = 1 (Heggie & Mathieu
1986)."""

PLUMMER_MASS_WITHIN = 0.999
"""Bodies are drawn from this inner part of the mass: the model has no edge."""


# --- drawn at random, as far as they are asked for ------------------------------------------------


def drawn_plummer(
    n: int, seed: int, mass: float = 1.0, scale: float = PLUMMER_SCALE, G: float = 1.0
) -> DrawnBodies:
    """Return a Plummer sphere, centred, in virial equilibrium; by default in standard units.

    Radii and speeds are drawn as in Aarseth, Hénon & Wielen, Astron. Astrophys. 37, 183 (1974);
    speeds scale with ``sqrt(G mass / scale)``.
    """
    speed = float(np.sqrt(G * mass / scale))
    draw = partial(plummer_block, scale=scale, speed=speed)
    return DrawnBodies(n, seed, mass / n, draw, centred=True)


def plummer_block(random: np.random.Generator, scale: float, speed: float) -> NDArray[np.float64]:
    """Draw positions and velocities of a block, in these units of length and of velocity."""
    enclosed = random.uniform(0, PLUMMER_MASS_WITHIN, BLOCK)
    radius = 1 / np.sqrt(enclosed ** (-2 / 3) - 1)
    escape_speed = np.sqrt(2) * (1 + radius**2) ** -0.25
    position = radius[:, None] * isotropic(random, BLOCK)
    velocity = (escape_speed * _plummer_speeds(random, BLOCK))[:, None] * isotropic(random, BLOCK)
    return np.stack([scale * position, speed * velocity])


def _plummer_speeds(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Draw speeds, in units of the escape speed, from g(q) = q^2 (1 - q^2)^(7/2) by rejection."""
    accepted = np.empty(0)
    while len(accepted) < n:
        q = random.uniform(0, 1, 3 * n)  # 0.43 of them are accepted
        height = random.uniform(0, 0.1, 3 * n)
        rest = 1 - q * q
        accepted = np.append(accepted, q[height < q * q * rest * rest * rest * np.sqrt(rest)])
    return accepted[:n]


def drawn_uniform_sphere(
    n: int,
    seed: int,
    mass: float = 1.0,
    radius: float = 1.0,
    virial_ratio: float = 1.0,
    G: float = 1.0,
) -> DrawnBodies:
    """Return a homogeneous sphere of the given total mass, with isotropic normal velocities.

    The velocity dispersion follows from 2 K = virial_ratio |W| with W = -3 G M^2 / (5 R).
    """
    dispersion = float(np.sqrt(virial_ratio * G * mass / (5 * radius)))
    draw = partial(_sphere_block, radius=radius, dispersion=dispersion)
    return DrawnBodies(n, seed, mass / n, draw, centred=True)


def drawn_cold_sphere(n: int, seed: int, mass: float = 1.0, radius: float = 1.0) -> DrawnBodies:
    """Return a homogeneous sphere at rest, which collapses within 1.11 sqrt(R^3 / (G M))."""
    return drawn_uniform_sphere(n, seed, mass, radius, virial_ratio=0.0)


def _sphere_block(
    random: np.random.Generator, radius: float, dispersion: float
) -> NDArray[np.float64]:
    distance = radius * np.cbrt(random.uniform(0, 1, BLOCK))
    position = distance[:, None] * isotropic(random, BLOCK)
    return np.stack([position, dispersion * random.standard_normal((BLOCK, 3))])


def drawn_random_box(n: int, seed: int, half_width: float = 1.0, mass: float = 1.0) -> DrawnBodies:
    """Return bodies of `mass` each, at rest, uniform in [-half_width, half_width]^3."""
    return DrawnBodies(n, seed, float(mass), partial(_box_block, half_width=half_width))


def _box_block(random: np.random.Generator, half_width: float) -> NDArray[np.float64]:
    both = np.zeros((2, BLOCK, 3))
    both[0] = random.uniform(-half_width, half_width, (BLOCK, 3))
    return both


def drawn_random_square(n: int, seed: int) -> DrawnBodies:
    """Return bodies of mass 1/n each, at rest, uniform in the unit square of the plane z = 0."""
    return DrawnBodies(n, seed, 1 / n, _square_block)


def _square_block(random: np.random.Generator) -> NDArray[np.float64]:
    both = np.zeros((2, BLOCK, 3))
    both[0, :, :2] = random.uniform(0, 1, (BLOCK, 2))
    return both


DRAWN: dict[str, Callable[..., DrawnBodies]] = {
    "plummer": drawn_plummer,
    "uniform-sphere": drawn_uniform_sphere,
    "cold-sphere": drawn_cold_sphere,
    "random-box": drawn_random_box,
    "random-square": drawn_random_square,
}
"""The kinds of bodies that are drawn at random."""


# --- all of them ----------------------------------------------------------------------------------


def plummer(n: int, seed: int, G: float = 1.0) -> Bodies:
    """Return all bodies of `drawn_plummer` in standard units."""
    return drawn_plummer(n, seed, G=G).all()


def uniform_sphere(
    n: int,
    seed: int,
    mass: float = 1.0,
    radius: float = 1.0,
    virial_ratio: float = 1.0,
    G: float = 1.0,
) -> Bodies:
    """Return all bodies of `drawn_uniform_sphere`."""
    return drawn_uniform_sphere(n, seed, mass, radius, virial_ratio, G).all()


def cold_sphere(n: int, seed: int, mass: float = 1.0, radius: float = 1.0) -> Bodies:
    """Return all bodies of `drawn_cold_sphere`."""
    return drawn_cold_sphere(n, seed, mass, radius).all()


def random_box(n: int, seed: int, half_width: float = 1.0, mass: float = 1.0) -> Bodies:
    """Return all bodies of `drawn_random_box`."""
    return drawn_random_box(n, seed, half_width, mass).all()


def random_square(n: int, seed: int) -> Bodies:
    """Return all bodies of `drawn_random_square`."""
    return drawn_random_square(n, seed).all()


# --- a few, given by formulas ---------------------------------------------------------------------


def two_body(
    masses: tuple[float, float] = (1.0, 1.0),
    semi_major_axis: float = 1.0,
    eccentricity: float = 0.0,
    G: float = 1.0,
) -> Bodies:
    """Return two bodies on a Kepler orbit about their centre of mass.

    The orbit lies in the x-y plane, and the bodies start at pericentre on the x axis.
    """
    mass = np.array(masses, dtype=float)
    distance = semi_major_axis * (1 - eccentricity)
    speed = np.sqrt(G * mass.sum() * (1 + eccentricity) / distance)
    position = np.zeros((2, 3))
    velocity = np.zeros((2, 3))
    position[1, 0] = distance
    velocity[1, 1] = speed
    return centred(position, velocity, mass)


def figure_eight(G: float = 1.0) -> Bodies:
    """Return three unit masses that follow each other along a figure eight.

    Chenciner & Montgomery, Ann. Math. 152, 881 (2000); the values are Simó's.
    """
    first = np.array([0.97000436, -0.24308753, 0.0])
    third = np.array([-0.93240737, -0.86473146, 0.0])
    position = np.array([first, -first, np.zeros(3)])
    velocity = np.sqrt(G) * np.array([-third / 2, -third / 2, third])
    return Bodies(position, velocity, np.ones(3))


def lagrange_triangle(side: float = 1.0, mass: float = 1.0, G: float = 1.0) -> Bodies:
    """Return three equal masses on an equilateral triangle; omega = sqrt(3 G m / side^3)."""
    angle = 2 * np.pi * np.arange(3) / 3
    radius = side / np.sqrt(3)
    omega = np.sqrt(3 * G * mass / side**3)
    position = radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(3)])
    velocity = omega * radius * np.column_stack([-np.sin(angle), np.cos(angle), np.zeros(3)])
    return Bodies(position, velocity, np.full(3, float(mass)))


def isotropic(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Return n random unit vectors, an (n, 3) array."""
    height = random.uniform(-1, 1, n)
    angle = random.uniform(0, 2 * np.pi, n)
    ring = np.sqrt(1 - height**2)
    return np.column_stack([ring * np.cos(angle), ring * np.sin(angle), height])
