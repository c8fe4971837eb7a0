"""When work is shared out anew among ranks; all of them come to the same answer."""

import numpy as np
from numpy.typing import NDArray

FIRST_FORCES = 3
FORCES_BETWEEN = 64
"""Work is shared out anew for each of the first forces, and later after this number of them."""

LEAST_FORCES = 16
MOST_SHIFTED = 0.02
"""It is shared out earlier, but not before `LEAST_FORCES` forces, if the number of bodies that a
rank takes has changed by more than this share."""


class Resharing:
    """Tells for which forces work is shared out anew.

    Attributes
    ----------
    force : int
        The number of the present force.
    """

    def __init__(self) -> None:
        self.force = 0
        self._next = 0
        self._last = 0
        # of bodies that each rank took when the present shares were first taken again
        self._numbers: NDArray[np.int64] | None = None

    @property
    def is_due(self) -> bool:
        """Return whether work is shared out anew for the present force."""
        return self.force == self._next

    @property
    def counts_work(self) -> bool:
        """Return whether the work of this force is to be counted: the next shares it out anew."""
        return self._coming == self.force + 1

    @property
    def _coming(self) -> int:
        """Return the number of the next force, after the present one, for which it is."""
        if not self.is_due:
            return self._next
        return self.force + (1 if self.force + 1 < FIRST_FORCES else FORCES_BETWEEN)

    def go_on(self) -> None:
        """Go on to the next force; what was due has been done."""
        coming = self._coming
        if self.is_due:
            self._last = self.force
        self._next = coming
        self.force += 1

    def forget(self) -> None:
        """Take note that shares begin at other places."""
        self._numbers = None

    def note(self, numbers: NDArray[np.int64]) -> None:
        """Note how many bodies each rank takes; if that has changed much, work is shared next."""
        if self._numbers is None:
            self._numbers = numbers
        shifted = np.abs(numbers - self._numbers) > MOST_SHIFTED * self._numbers
        if shifted.any() and self.force - self._last >= LEAST_FORCES:
            self._next = self.force + 1
