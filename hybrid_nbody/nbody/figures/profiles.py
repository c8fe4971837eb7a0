"""Lagrangian radii, and profiles of density and dispersion, about the centre of mass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.files.views import Array

FRACTIONS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Fractions of the mass within the Lagrangian radii."""

BODIES_OF_A_SHELL = 100
"""Fewest bodies in a shell of a profile: its density is then known to about 10 %."""

MOST_SHELLS = 40
"""Most shells of a profile."""


@dataclass(frozen=True)
class Profile:
    """Spherical averages in shells of equally many bodies.

    Attributes
    ----------
    radius : ndarray
        (S,) float64, the median distance of the bodies of each shell, in the units of length.
    density : ndarray
        (S,) float64, mass per volume.
    dispersion : ndarray
        (S,) float64, the velocity dispersion in one dimension, in the units of velocity.
    """

    radius: Array
    density: Array
    dispersion: Array


def distances(positions: Array, mass: Array) -> Array:
    """Return the distances from the centre of mass: (N,) float64; NaN without mass."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        centre = mass @ positions / mass.sum()
        result: Array = np.linalg.norm(positions - centre, axis=1)
    return result


def lagrangian_radii(
    positions: Array, mass: Array, fractions: Sequence[float] = FRACTIONS
) -> Array:
    """Return the radii about the centre of mass that hold given fractions of the mass.

    Parameters
    ----------
    positions : ndarray
        (N, 3) float64, in the units of length; bodies at NaN or infinity are left out.
    mass : ndarray
        (N,) float64, in the units of mass.
    fractions : sequence of float
        F fractions, each greater than 0 and at most 1.

    Returns
    -------
    ndarray
        (F,) float64: the distance of the first body with which the fraction is reached; NaN without
        mass.
    """
    there = np.isfinite(positions).all(axis=1)
    positions = positions[there]
    mass = mass[there]
    if not mass.sum() > 0:
        return np.full(len(fractions), np.nan)
    radius = distances(positions, mass)
    order = np.argsort(radius, kind="stable")
    within = np.cumsum(mass[order])
    # A fraction that the sum misses by a rounding error counts as reached.
    reached = np.searchsorted(within, np.asarray(fractions) * within[-1] * (1 - 1e-12))
    radii: Array = radius[order[reached]]
    return radii


def profile_of(positions: Array, velocities: Array, mass: Array) -> Profile:
    """Return the profiles of density and velocity dispersion about the centre of mass.

    Parameters
    ----------
    positions, velocities : ndarray
        (N, 3) float64; bodies at NaN or infinity are left out.
    mass : ndarray
        (N,) float64.

    Returns
    -------
    Profile
        At most `MOST_SHELLS` shells of at least `BODIES_OF_A_SHELL` bodies, or one.
    """
    there = np.isfinite(positions).all(axis=1) & np.isfinite(velocities).all(axis=1)
    positions = positions[there]
    velocities = velocities[there]
    mass = mass[there]
    radius = distances(positions, mass)
    order = np.argsort(radius, kind="stable")
    number = int(np.clip(len(order) // BODIES_OF_A_SHELL, 1, MOST_SHELLS))
    shells = np.array_split(order, number)
    edges = _edges(radius, shells)
    volume = 4 / 3 * np.pi * np.diff(edges**3)
    with np.errstate(invalid="ignore", divide="ignore"):
        density = np.array([mass[shell].sum() for shell in shells]) / volume
    middle = np.array([np.median(radius[shell]) if len(shell) else np.nan for shell in shells])
    return Profile(
        middle,
        density,
        np.array([dispersion_of(velocities[shell], mass[shell]) for shell in shells]),
    )


def _edges(radius: Array, shells: Sequence[Array]) -> Array:
    """Return the boundaries of the shells, half-way between the bodies on either side."""
    inner = [radius[shell[0]] if len(shell) else 0.0 for shell in shells]
    outer = [radius[shell[-1]] if len(shell) else 0.0 for shell in shells]
    return np.array(
        [0.0, *((a + b) / 2 for a, b in zip(outer[:-1], inner[1:], strict=True)), outer[-1]]
    )


def dispersion_of(velocities: Array, mass: Array) -> float:
    """Return the velocity dispersion in one dimension, weighted by mass; NaN without mass.

    It is the root of a third of the mean square of the velocity about its mean, as for an isotropic
    distribution.
    """
    if not mass.sum() > 0:
        return np.nan
    mean = np.average(velocities, axis=0, weights=mass)
    square = ((velocities - mean) ** 2).sum(axis=1)
    return float(np.sqrt(np.average(square, weights=mass) / 3))
