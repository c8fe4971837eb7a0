"""The bodies that the ladders move by one step, and the check of that step against the float64 reference."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybrid_nbody.nbody.initial_conditions import plummer, random_box
from hybrid_nbody.nbody.kernels import reference

OPERATIONS = 20
"""Floating-point operations counted for an interaction."""

POSITION_TOLERANCE = 0.005
"""Largest difference of a coordinate after a step at which it still agrees with the reference."""

FIRST = 32
SPREAD = 96
"""Bodies that are checked: the first ones, which every rung moves, and others spread over the
rest."""


@dataclass(frozen=True)
class Problem:
    """Bodies at rest, and one step of semi-implicit Euler: v += dt a(x), then x += dt v (G = 1).

    Attributes
    ----------
    position : (N, 3) array of float32
    mass : (N,) array of float32
    softening, dt : float
    """

    position: np.ndarray
    mass: np.ndarray
    softening: float
    dt: float

    @property
    def number(self) -> int:
        """Number of bodies."""
        return len(self.mass)

    @property
    def eps2(self) -> np.float32:
        """Softening squared."""
        return np.float32(self.softening**2)

    @cached_property
    def sample(self) -> np.ndarray:
        """The bodies that are checked, in order."""
        return np.unique(
            np.concatenate(
                [np.arange(min(FIRST, self.number)), np.arange(SPREAD) * self.number // SPREAD]
            )
        )

    @cached_property
    def acceleration(self) -> np.ndarray:
        """True accelerations of the sample."""
        return reference.accelerations(
            self.position.astype(float),
            self.mass.astype(float),
            self.softening,
            targets=self.sample,
        )

    def check(self, position, velocity, targets: int) -> dict[str, float]:
        """Compare a step of the first `targets` bodies with the reference.

        Parameters
        ----------
        position, velocity : (N, 3) array
            After the step.

        Returns
        -------
        dict
            Largest difference of a coordinate and the share of bodies within `POSITION_TOLERANCE`;
            median and largest error of the acceleration, relative to its own length.
        """
        done = self.sample[self.sample < targets]
        true = self.acceleration[: len(done)]
        moved = self.position[done].astype(float) + self.dt**2 * true
        offset = np.abs(position[done] - moved).max(axis=1)
        error = np.linalg.norm(velocity[done] / self.dt - true, axis=1) / np.linalg.norm(
            true, axis=1
        )
        return {
            "checked": len(done),
            "position_error": float(offset.max()),
            "within_tolerance": float(np.mean(offset < POSITION_TOLERANCE)),
            "error_median": float(np.median(error)),
            "error_max": float(error.max()),
        }


def box(number: int) -> Problem:
    """Return the bodies of ladder A: random in [-1, 1]^3, unit masses, softening squared 1e-9, dt = 0.01."""
    return _problem(random_box(number, seed=1), 1e-9**0.5, 0.01)


def massive_box(number: int) -> Problem:
    """Return the bodies of ladder C: random in [-5, 5]^3, masses in [1, 10], dt = 1e-5."""
    bodies = random_box(number, seed=1, half_width=5.0)
    bodies.mass[:] = np.random.default_rng(2).uniform(1, 10, number)
    return _problem(bodies, 0.01, 1e-5)


def plummer_sphere(number: int) -> Problem:
    """Return the bodies of ladder E: a Plummer sphere of total mass 1, softening 0.01, dt = 0.01."""
    return _problem(plummer(number, seed=1), 0.01, 0.01)


def _problem(bodies, softening, dt):
    return Problem(bodies.position.astype("f4"), bodies.mass.astype("f4"), softening, dt)
