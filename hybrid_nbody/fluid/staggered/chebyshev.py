"""Chebyshev's iteration, for equations whose eigenvalues lie in a known range.

Conjugate gradients find out about the range by sums over the grid, for which devices and ranks
wait; this iteration needs none (Saad, "Iterative Methods for Sparse Linear Systems", 2003,
algorithm 12.1).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

LEAST = 1e-300
"""The smallest reduction of a residual that is told from none."""


@dataclass(frozen=True)
class Spectrum:
    """The range of the eigenvalues of a symmetric operator.

    Attributes
    ----------
    least, largest : float
        0 < least <= largest.
    """

    least: float
    largest: float

    @property
    def condition(self) -> float:
        """Return the largest eigenvalue over the least."""
        return self.largest / self.least

    @property
    def _centre(self) -> float:
        return 0.5 * (self.least + self.largest)

    @property
    def _radius(self) -> float:
        return 0.5 * (self.largest - self.least)

    def iterations(self, reduction: float) -> int:
        """Return the iterations after which a residual is `reduction` of what it was, or less."""
        if reduction >= 1.0:
            return 0
        if self._radius == 0.0:
            return 1
        growth = math.acosh(self._centre / self._radius)
        return math.ceil(math.acosh(1.0 / max(reduction, LEAST)) / growth)

    def directions(self) -> Iterator[tuple[float, float]]:
        """Yield of what each direction is made: a part of the one before and of the residual."""
        yield 0.0, 1.0 / self._centre
        share = self._radius / self._centre
        ratio = share
        while True:
            following = 1.0 / (2.0 - share * ratio)
            yield following * ratio * share, 2.0 * following / self._centre
            ratio = share * following
