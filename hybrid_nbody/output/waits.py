"""How long a run has waited for the disk."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TOLD_SECONDS = 1.0
"""Seconds of waiting, all together, from which a person should know."""

SLOW_DISK = (
    "the disk does not keep up with the output: the run waits for it; write fewer frames and "
    "checkpoints, or to a faster disk"
)


class DiskWaits:
    """Adds up how long a run waits for the disk, and says so once it is long.

    Parameters
    ----------
    say : callable
        Told in a line.

    Attributes
    ----------
    seconds : float
        Seconds so far.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.seconds = 0.0
        self._say = say
        self._told = False

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Take the time of the block as spent in waiting."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - start
            self._tell()

    def _tell(self) -> None:
        if self.seconds >= TOLD_SECONDS and not self._told:
            self._told = True
            self._say(f"warning: {SLOW_DISK}")
