"""What expansions an accuracy takes: their order, the error of one of them, and the leaves.

The figures in ``choices`` of each device were found on spheres, clumps, discs, pairs of galaxies
and unequal masses. There the rms of all errors was 0.4 to 1.5 times the error allowed for one
expansion, and 99.9 % of them at most 12 times. `tests/nbody/kernels/test_tree.py` checks some.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

LARGEST = 1e-2
SMALLEST = 1e-7

LEADING = 2
"""Largest sum of the orders of two terms whose product is in float64 where expansions are: each
order is smaller than the one before by the ratio of the cells' sizes to their distance, and so is
the rounding of its products."""

Pairs = Literal["single", "mixed", "either", "double"]


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
        Whether expansions are summed in float64, those of low orders; see `LEADING`.
    pairs : {"single", "mixed", "either", "double"}
        How nearby bodies are summed: in float32, with the low parts of places where the rounding of
        these to float32 would count, or always ("mixed"); in float64; or in float64 where the
        rounding of forces to float32 would count, and else as "single" ("either").
    wide : float
        A cell is divided if its edge is this number of times the radius which expansions bear
        there.
    """

    order: int
    capacity: int
    error: float
    double: bool
    pairs: Pairs
    wide: float = 2.0


class Choice(NamedTuple):
    """The expansions from an accuracy on.

    Attributes
    ----------
    least : float
        The smallest accuracy for which they are taken.
    order : int
    capacity : int
        Most bodies of a leaf.
    share : float
        The error allowed for one expansion, for an accuracy of 1.
    """

    least: float
    order: int
    capacity: int
    share: float


class Choices(NamedTuple):
    """The expansions that are fastest on a device.

    Attributes
    ----------
    rows : tuple of Choice
        From the largest accuracy to the smallest.
    least_of_float32 : float
        Accuracy below which the rounding of float32 would count in expansions.
    least_of_float32_pairs : float
        The same for the forces of nearby bodies.
    wide : float
        See `Expansion`.
    """

    rows: tuple[Choice, ...]
    least_of_float32: float
    least_of_float32_pairs: float
    wide: float


def expansion_for(accuracy: float, precision: str, choices: Choices) -> Expansion:
    """Return the expansions for an accuracy.

    Parameters
    ----------
    accuracy : float
        The rms error of accelerations over their rms.
    precision : {"single", "mixed", "double"}
        Of the pair force. Expansions are as exact as the accuracy needs with any of them.
    choices : Choices
        Those of the device.
    """
    chosen = next(row for row in choices.rows if accuracy >= row.least)
    return Expansion(
        order=chosen.order,
        capacity=chosen.capacity,
        error=chosen.share * accuracy,
        double=accuracy < choices.least_of_float32,
        pairs=pairs_for(accuracy, precision, choices),
        wide=choices.wide,
    )


def pairs_for(accuracy: float, precision: str, choices: Choices) -> Pairs:
    """Return how nearby bodies are summed for an accuracy and a precision of the pair force."""
    if precision == "double":
        return "double"
    if accuracy < choices.least_of_float32_pairs:
        return "either"
    return "mixed" if precision == "mixed" else "single"


ANGLE = 0.8
"""Largest ratio of two cells' radii to their distance. Expansions diverge at 1, and near it the
error of a single body at the rim of a large cell, which its multipoles do not show, is out of
bounds."""

FIRST_ANGLE = 0.6
"""The same as long as no accelerations are known to which errors could be compared."""


MOST_EDGES = 64.0
"""Edges of either cell over their distance, at most: the powers of more would leave the range of
float32."""

MANY = 8192
"""Bodies that are faster met one by one than through the expansions of their cells."""

FEW = 98304
"""Up to this many bodies, a leaf sums one by one those that no expansion represents well enough.
With more that would take too long, and where leaves are divided little is left of such errors."""

HOPELESS = 2.0
"""By how much the estimated error of a source is too large, at least, where it is of no use to open
it."""

SMALL = 0.5
"""Its radius over that of the target, at most, for the same: then it is the target that is too
large, and the parts of the source, together, are as wrong as the whole."""


class Limits(NamedTuple):
    """When an expansion is accurate enough.

    Attributes
    ----------
    error : float
        Largest estimated error, relative to the acceleration.
    angle : float
        Largest ratio of two cells' radii to their distance.
    hopeless : float
        `HOPELESS`, or infinite where sources are opened in any case.
    """

    error: float
    angle: float
    hopeless: float


def limits_of(expansion: Expansion, known: bool, number: int) -> Limits:
    """Return when expansions are accurate enough.

    Parameters
    ----------
    expansion : Expansion
    known : bool
        Whether accelerations are known, to which errors can be compared.
    number : int
        Of all bodies.
    """
    hopeless = HOPELESS if number <= FEW else math.inf
    if known:
        return Limits(expansion.error, ANGLE, hopeless)
    return Limits(math.inf, FIRST_ANGLE, hopeless)


def width_of_cells(expansion: Expansion, error: float, mass: float) -> float:
    """Return the largest width of a cell of bodies with an acceleration of 1.

    About a body with acceleration a most mass M is at least ``sqrt(M / a)`` away, and seen from a
    cell of radius r no expansion of order p, however small its source, has an error below
    ``8 (r / distance)^p``. Bodies in wider cells would have to meet all others one by one.

    Parameters
    ----------
    expansion : Expansion
    error : float
        Of `Limits`.
    mass : float
        Of all bodies.
    """
    return expansion.wide * (error / 8) ** (1 / expansion.order) * math.sqrt(mass)
