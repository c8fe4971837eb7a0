"""Exact sums over pairs: their order changes no bit.

Lengths are scaled once more so that the softening is about 2^-30, masses so that the heaviest is
about 1: weights m / r^3 down to r = 2^72 softening lengths are within the range of float32.

The contribution of a tile of pairs to a body is rounded to a multiple of a unit, the rest to a
multiple of a smaller one, and so on. Float64 adds up to 2^53 multiples of one unit without
rounding. Softening bounds any sum, whatever the positions, and the bound gives the units: 2^-49 of
it at most, 2^-84, 2^-119 and 2^-154. In a system of radius R with softening eps the rounding of
float32 remains the larger one: for accelerations, which have three units, as long as
eps / R > 3e-15, and for jerks, which have four, as long as it is > 4e-13. The method is that of
Demmel and Nguyen ("Parallel reproducible summation", IEEE Transactions on Computers 64, 2015), with
bounds that are known beforehand.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.contract import PairForce

BACKENDS = {"gpu"}
"""Backends that have symmetric kernels."""

LEAST_BODIES = 1 << 14
"""Fewer bodies have too few tiles for all warps of a GPU."""

MOST_BODIES = 1 << 24
"""Most bodies: with more tiles a sum might exceed 2^53 multiples of its unit."""

SOFTENING_BITS = 30
"""The softening is between 2^-30 and 2^-29 of the unit of length."""

LARGEST_EXPONENT = 110
"""Units between 2^-110 and 2^110, and quotients by them, are within the range of float32."""

FIRST_BITS = 51
"""Bits from a bound down to the first unit."""

FINER_BITS = 35
"""Bits from a unit down to the next one: each of 2^18 tiles adds up to 2^34 multiples of it."""


@dataclass(frozen=True)
class ExactUnits:
    """Factors of lengths and masses: powers of two, so that no digit changes.

    Attributes
    ----------
    length, mass : float
    """

    length: float
    mass: float

    @classmethod
    def of(cls, softening: float, heaviest: float) -> "ExactUnits":
        """Return the factors for a softening length and the largest mass, both greater than 0.

        Both are in units of the kernels.
        """
        shift = math.frexp(softening)[1] - 1
        size = math.frexp(heaviest)[1]
        return cls(2.0 ** -(shift + SOFTENING_BITS), 2.0**-size)

    @property
    def weights(self) -> float:
        """Return the factor of accelerations by unit masses."""
        return 1.0 / self.length**2

    @property
    def accelerations(self) -> float:
        """Return the factor of accelerations for G = 1."""
        return self.mass * self.weights

    @property
    def potentials(self) -> float:
        """Return the factor of potentials."""
        return self.mass / self.length


def bounds(number: int, softening: float) -> dict[str, float]:
    """Return bounds on the sums of each kernel, for masses up to 1 and G = 1.

    A pair accelerates by m d / (d^2 + eps^2)^(3/2), at most 2 / (3 sqrt(3)) m / eps^2, has the
    potential m / eps at most, and a jerk of at most 4 m u / eps^3, with u the relative speed: at
    most 4, as no component of a velocity exceeds 1.

    Parameters
    ----------
    number : int
        Bodies.
    softening : float
        Not zero.
    """
    steepest = number * 2 / (3 * math.sqrt(3)) / softening**2
    return {
        "accelerations": steepest,
        "accelerations_of_equal_masses": steepest,
        "accelerations_and_jerks": max(steepest, 16 * number / softening**3),
        "potentials": number / softening,
    }


def is_applicable(
    backends: Sequence[str], pair_force: PairForce, masses: NDArray[np.float64]
) -> bool:
    """Return whether the symmetric pair force can be summed exactly and is the faster one.

    Parameters
    ----------
    backends : sequence of str
        The `Backend.name` of each rank.
    pair_force : PairForce
    masses : (N,) array of float64
        Of all bodies.
    """
    if not set(backends) <= BACKENDS or pair_force.precision != "single":
        return False
    if not LEAST_BODIES <= len(masses) <= MOST_BODIES:
        return False
    softening = pair_force.softening / pair_force.units.length
    heaviest = masses.max() / pair_force.units.mass
    if softening <= 0 or heaviest <= 0:
        return False
    exact = ExactUnits.of(softening, heaviest)
    return all(abs(math.log2(unit)) <= LARGEST_EXPONENT for unit in (exact.length, exact.mass))


def rounders(bound: float) -> NDArray[np.float64]:
    """Return the numbers that round to each unit of a bound: (4,) array of float64.

    A number plus and minus its rounder is rounded to a multiple of the unit: numbers between 2^52
    and 2^53 units have no digits below the unit. Rounding may exceed the bound by one bit.
    """
    first = math.frexp(bound)[1] + 1 - FIRST_BITS
    return np.ldexp(1.5, first + 52 - FINER_BITS * np.arange(4))
