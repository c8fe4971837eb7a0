"""Steps in parts: as many as the fluid needs, so that it crosses few cells in each.

What happens during a run, such as a frame, happens between whole steps, at exact times. Within a
step a model takes parts whose lengths follow from the largest speed. That is a maximum over all
ranks, so any number of ranks takes the same parts, and a state between two steps is complete: a run
that goes on from it takes the parts that it would have taken.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hybrid_nbody.errors import NumericalError

MOST_PARTS = 10_000
"""Parts of a step, at most: where more are needed, the speed has no bounds."""

ROUNDING = 1e-9
"""By how much, relatively, a part may be longer than allowed: 0.1 * 3 is three parts of 0.1."""


@dataclass(frozen=True)
class Limits:
    """What limits the length of a part.

    Attributes
    ----------
    cfl : float
        Cells that the fastest fluid may cross in a part.
    longest : float
        Length of a part in any case, at most.
    spacing : float
        Edge of a cell.
    """

    cfl: float
    longest: float
    spacing: float

    def length_at(self, speed: float) -> float:
        """Return the length that a part may have where the fluid moves at `speed` at most.

        Where the speed is no finite number it is the longest one: the guard ends the run.
        """
        if not 0.0 < speed < math.inf:
            return self.longest
        return min(self.longest, self.cfl * self.spacing / speed)


def parts_of(step: float, allowed: Callable[[], float]) -> Iterator[float]:
    """Yield the lengths of the parts of a step, which together are the step.

    What is left is divided into equal parts before each of them, so that none is much shorter than
    those before it.

    Parameters
    ----------
    step : float
        The length of the step.
    allowed : callable
        Returns how long the next part may be, greater than 0 and the same on every rank; called
        before each part.

    Raises
    ------
    NumericalError
        On every rank, if the step needs more than `MOST_PARTS` parts.
    """
    left = step
    for _ in range(MOST_PARTS):
        number = _fewest(left, allowed())
        part = left / number
        yield part
        if number == 1:
            return
        left -= part
    raise _too_many(step)


def _fewest(left: float, allowed: float) -> int:
    """Return into how many equal parts of an allowed length a time is divided."""
    number = left / allowed * (1.0 - ROUNDING)
    if number > MOST_PARTS:
        raise _too_many(left)
    return max(1, math.ceil(number))


def _too_many(step: float) -> NumericalError:
    text = (
        f"the fluid is so fast that a step of {step:g} needs more than {MOST_PARTS} parts; take a "
        "smaller time.dt, or look for what makes it so fast"
    )
    return NumericalError(text).on_all_ranks()
