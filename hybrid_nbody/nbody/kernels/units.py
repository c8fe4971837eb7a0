"""The units in which kernels hold lengths, masses and velocities.

They are near those of the problem, so that no unit of its author leaves the range of float32, and
powers of two, so that no digit changes: positions, masses and velocities are divided by them in
float64 before they are rounded, and sums are multiplied by them in float64. Results therefore scale
exactly with any power of two.

With masses of about 1, contributions m / r^3 are within the range of float32 for distances from
2e-13 to 4e12 of the unit of length. The unit is a typical distance of two bodies, not the extent of
all: a few bodies far away leave the others where they are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST_POWER = 1000
"""Largest exponent of a unit: sums of what is larger are infinite in any unit."""

SCALARS = {"length": "unit_of_length", "mass": "unit_of_mass", "speed": "unit_of_speed"}
"""Names of the units among the numbers of a checkpoint."""


@dataclass(frozen=True)
class Units:
    """Powers of two by which a problem's lengths, masses and velocities are divided.

    Attributes
    ----------
    length, mass, speed : float
    """

    length: float = 1.0
    mass: float = 1.0
    speed: float = 1.0

    def accelerations(self, G: float) -> float:
        """Return the factor of summed m d / r^3, for a gravitational constant."""
        length, mass, _ = self._powers()
        return _scaled(G, mass - 2 * length)

    def potentials(self, G: float) -> float:
        """Return the factor of summed m / r."""
        length, mass, _ = self._powers()
        return _scaled(G, mass - length)

    def jerks(self, G: float) -> float:
        """Return the factor of the summed time derivatives of m d / r^3."""
        length, mass, speed = self._powers()
        return _scaled(G, mass + speed - 3 * length)

    def _powers(self) -> tuple[int, int, int]:
        """Return the exponents of length, mass and speed."""
        return _power(self.length), _power(self.mass), _power(self.speed)

    def scalars(self) -> dict[str, float]:
        """Return the units as numbers of a checkpoint."""
        return {name: getattr(self, unit) for unit, name in SCALARS.items()}

    @classmethod
    def of_scalars(cls, scalars: Mapping[str, float]) -> "Units | None":
        """Return the units of a checkpoint; None where it has none."""
        if not all(name in scalars for name in SCALARS.values()):
            return None
        return cls(**{unit: float(scalars[name]) for unit, name in SCALARS.items()})


def measured(
    position: NDArray[np.float64],
    velocity: NDArray[np.float64],
    mass: NDArray[np.float64],
    softening: float = 0.0,
    G: float = 1.0,
) -> Units:
    """Return the units of bodies: their typical distance, heaviest mass and largest speed.

    Parameters
    ----------
    position, velocity : (n, 3) array of float64
        Of all bodies, or of many.
    mass : (N,) array of float64
        Of all bodies.
    softening : float
        Softening length: the unit of length is not below it.
    G : float
        Gravitational constant, which tells the speeds that bodies at rest are going to have.
    """
    length = _length_power(position, softening)
    heaviest = _power(float(np.max(mass, initial=0.0))) + 1
    speeds = [_power(_largest(velocity)) + 1] if _largest(velocity) > 0 else []
    total = float(np.sum(mass))
    if total > 0:
        speeds.append((_power(G) + _power(total) - length) // 2 + 1)
    speed = max(speeds, default=0)
    return Units(_unit(length), _unit(heaviest), _unit(speed))


def typical_distance(position: NDArray[np.float64]) -> float:
    """Return the geometric mean of the distances of bodies to the next in line, to a power of two.

    It is 0 where all bodies are at one place.
    """
    distances = _distances(position)
    if not len(distances):
        return 0.0
    return math.ldexp(1.0, round(float(np.mean(np.frexp(distances)[1] - 1))))


def _length_power(position: NDArray[np.float64], softening: float) -> int:
    """Return the exponent of the unit of length."""
    largest = max(typical_distance(position), softening)
    return _power(largest) if largest > 0 else 0


@np.errstate(over="ignore", invalid="ignore")  # the guard reports what is too large
def _distances(position: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest component of each step from a body to the next, where it is none of 0."""
    steps: NDArray[np.float64] = np.abs(np.diff(position, axis=0)).max(axis=1, initial=0.0)
    return steps[np.isfinite(steps) & (steps > 0)]


def _largest(values: NDArray[np.float64]) -> float:
    """Return the largest magnitude of the finite values; 0 where there is none."""
    magnitude = np.abs(values)
    return float(np.max(magnitude, initial=0.0, where=np.isfinite(magnitude)))


def power_of_two(value: float) -> float:
    """Return the largest power of two up to a positive number; 1 where there is none."""
    return _unit(_power(value))


def _unit(power: int) -> float:
    """Return a power of two, or the nearest one whose inverse is finite, too."""
    return math.ldexp(1.0, max(-LARGEST_POWER, min(power, LARGEST_POWER)))


def _power(value: float) -> int:
    """Return the exponent of the power of two that is at most a value; 0 for what has none."""
    return math.frexp(value)[1] - 1 if math.isfinite(value) and value > 0 else 0


def _scaled(value: float, power: int) -> float:
    """Return a value times a power of two; infinite where it overflows."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(value, power))
