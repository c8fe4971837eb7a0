"""What expansions an accuracy takes: their order, the error of one of them, and the leaves.

The figures were found on spheres, clumps, discs, pairs of galaxies and unequal masses of 65536
bodies. There the rms of all errors was 0.4 to 1.5 times the error allowed for one expansion, and
99.9 % of them at most 12 times. `tests/nbody/kernels/test_tree.py` checks some of them.
"""

from dataclasses import dataclass

LARGEST = 1e-2
SMALLEST = 1e-7


@dataclass(frozen=True)
class Expansion:
    """A choice of expansions.

    Attributes
    ----------
    order : int
        Largest order of the terms.
    capacity : int
        Most bodies of a leaf.
    error : float
        Largest estimated error of one expansion, relative to the acceleration of the target.
    double : bool
        Whether expansions and nearby bodies are summed in float64.
    """

    order: int
    capacity: int
    error: float
    double: bool


CHOICES = (
    # from this accuracy on: order, bodies of a leaf, errors of an expansion for one of the sum
    (3e-3, 3, 48, 1.0),
    (3e-4, 4, 64, 1.0),
    (3e-5, 5, 64, 0.8),
    (3e-6, 6, 64, 0.5),
    (0.0, 8, 96, 0.8),
)

LEAST_OF_FLOAT32 = 2e-6
"""Accuracy below which the rounding of float32 would count."""


def expansion_for(accuracy: float, precision: str) -> Expansion:
    """Return the expansions for an accuracy.

    Parameters
    ----------
    accuracy : float
        The rms error of accelerations over their rms.
    precision : {"single", "mixed", "double"}
        Of the pair force.
    """
    order, capacity, share = next(
        (order, capacity, share) for least, order, capacity, share in CHOICES if accuracy >= least
    )
    double = precision != "single" or accuracy < LEAST_OF_FLOAT32
    return Expansion(order, capacity, share * accuracy, double)
