"""The units of sums over pairs: those in which bodies are held, and those in which sums are counted.

Lengths are held in units in which the softening is about 2^-30, masses in units of about the
heaviest one: whatever units a user has, float32 then has room for weights m / r^3 down to r = 2^72
softening lengths.

What a tile of pairs adds to a body is rounded to a multiple of a unit, and the rest to a multiple
of a smaller one, and so on. Float64 adds multiples of one unit without rounding up to 2^53 of them.
Softening bounds any sum, whatever the positions, and the bound gives the units: 2^-49 of it at
most, 2^-84, 2^-119 and 2^-154. In a system of radius R with softening eps that leaves the rounding
of float32 the larger one: of accelerations, which have three units, as long as eps / R > 3e-15, and
of jerks, which have four, as long as it is > 4e-13. The method is that of Demmel and Nguyen
("Parallel reproducible summation", IEEE Transactions on Computers 64, 2015), with bounds that are
known beforehand.
"""

import math
from dataclasses import dataclass

import numpy as np

KINDS = {"gpu"}
"""Of backends that have a module here."""

LEAST_BODIES = 1 << 14
"""With fewer bodies there are not enough tiles for all warps of a GPU."""

MOST_BODIES = 1 << 24
"""With more, so many tiles might add to a body that the count of a unit would not fit."""

SOFTENING_BITS = 30
"""The softening is between 2^-30 and 2^-29 of the unit of length."""

LARGEST_EXPONENT = 110
"""Units between 2^-110 and 2^110, and what they divide, are numbers of float32."""

FIRST_BITS = 51
FINER_BITS = 35
"""From a bound down to the first unit, and from each to the next one, of which 2^18 tiles may add
2^34 each."""


@dataclass(frozen=True)
class Units:
    """What lengths and masses are multiplied with: powers of two, so that no digit changes.

    Attributes
    ----------
    length, mass : float
    """

    length: float
    mass: float

    @classmethod
    def of(cls, softening: float, heaviest: float) -> "Units":
        """Return the units for a softening length and the largest mass, both greater than 0."""
        shift = math.frexp(softening)[1] - 1
        size = math.frexp(heaviest)[1]
        return cls(2.0 ** -(shift + SOFTENING_BITS), 2.0**-size)

    @property
    def weights(self) -> float:
        """What accelerations by unit masses are multiplied with."""
        return 1.0 / self.length**2

    @property
    def accelerations(self) -> float:
        """What accelerations for G = 1 are multiplied with."""
        return self.mass * self.weights

    @property
    def potentials(self) -> float:
        """What potentials are multiplied with."""
        return self.mass / self.length


def bounds(number: int, softening: float) -> dict[str, float]:
    """Return the most that the sums of each kernel may come to, for masses up to 1 and G = 1.

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


def suits(kinds, precision: str, masses: np.ndarray, softening: float) -> bool:
    """Return whether sums over the pairs of bodies can be counted, and are faster than those of each by itself.

    Parameters
    ----------
    kinds : sequence of str
        The kinds of the backends that compute.
    precision : {"single", "mixed", "double"}
    masses : (N,) array of float64
        Of all bodies.
    softening : float
    """
    if not set(kinds) <= KINDS or precision != "single":
        return False
    if not LEAST_BODIES <= len(masses) <= MOST_BODIES or softening <= 0 or masses.max() <= 0:
        return False
    units = Units.of(softening, masses.max())
    return all(abs(math.log2(unit)) <= LARGEST_EXPONENT for unit in (units.length, units.mass))


def rounders(bound: float) -> np.ndarray:
    """Return what rounds to each unit of a bound when it is added and subtracted again, (4,) array of float64.

    Rounding may add one bit to what a bound allows; numbers between 2^52 and 2^53 units have no
    digits below the unit.
    """
    first = math.frexp(bound)[1] + 1 - FIRST_BITS
    return np.ldexp(1.5, first + 52 - FINER_BITS * np.arange(4))
