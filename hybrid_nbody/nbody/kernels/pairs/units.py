"""The units in which sums over pairs are counted, so that they are exact and do not depend on their order.

What a tile of pairs adds to a body is rounded to a multiple of a coarse unit, and the rest to a multiple of a fine one.
Float64 adds multiples of one unit without rounding up to 2^53 of them. Softening bounds any sum, whatever the
positions, and the bound gives the units: 2^-49 and 2^-84 of it at most. The method is that of Demmel and Nguyen
("Parallel reproducible summation", IEEE Transactions on Computers 64, 2015), with bounds that are known beforehand.
"""

import math

import numpy as np

from hybrid_nbody.nbody.kernels.precision import PRECISIONS, leaves_out_self

LEAST_BODIES = 1 << 14
"""With fewer bodies there are not enough tiles for all warps of a GPU."""

COARSE_BITS, FINE_BITS = 51, 35
"""From a bound down to the coarse unit, and from there to the fine one, of which 2^18 tiles may add 2^34 each."""


def bounds(number: int, heaviest: float, eps2: float) -> dict[str, float]:
    """Return the most that the sums of each kernel may come to, for G = 1.

    A pair accelerates by m d / (d^2 + eps^2)^(3/2), at most 2 / (3 sqrt(3)) m / eps^2, has the potential m / eps at
    most, and a jerk of at most 4 m u / eps^3, with u the relative speed: at most 4 times the largest component of all
    velocities.

    Parameters
    ----------
    number : int
        Bodies.
    heaviest : float
        Their largest mass.
    eps2 : float
        Softening squared, in the working type; not zero.
    """
    mass, eps = number * heaviest, math.sqrt(eps2)
    steepest = 2 / (3 * math.sqrt(3)) / eps**2
    return {
        "accelerations": mass * steepest,
        "accelerations_of_equal_masses": number * steepest,
        "accelerations_and_jerks": mass * steepest,
        "potentials": mass / eps,
        "jerks per speed": 16 * mass / eps**3,
    }


def suits(precision: str, masses: np.ndarray, softening: float) -> bool:
    """Return whether sums over the pairs of bodies can be counted, and are faster than those of each by itself.

    Parameters
    ----------
    precision : {"single", "mixed", "double"}
    masses : (N,) array of float64
        Of all bodies.
    softening : float
    """
    eps2, heaviest = PRECISIONS[precision].working(softening**2), float(masses.max(initial=0.0))
    if precision != "single" or len(masses) < LEAST_BODIES or eps2 == 0 or leaves_out_self(heaviest, eps2):
        return False
    return all(0 < bound < math.inf for bound in bounds(len(masses), heaviest, float(eps2)).values())


def rounders(bound: float) -> np.ndarray:
    """Return what rounds to the units of a bound when it is added and subtracted again, (2,) array of float64.

    Rounding may add one bit to what a bound allows; numbers between 2^52 and 2^53 units have no digits below the unit.
    """
    coarse = math.frexp(bound)[1] + 1 - COARSE_BITS
    return np.ldexp(1.5, [coarse + 52, coarse - FINE_BITS + 52])
