"""How many threads compute while other processes take cores of this one.

Threads that wait for each other wait for the slowest: beside a process that takes one of two cores,
a short loop on both takes four times as long as on one.
"""

import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.5
"""Seconds between two looks: some tens of the system's ticks."""

STATISTICS = Path("/proc/stat")
"""Where Linux says what each core has done."""

IDLE = slice(3, 5)
"""Columns of a core there: idle, and waiting for a disk."""

COLUMNS = 8
"""Columns of a core that count: those after them are parts of others."""


@dataclass(frozen=True)
class Used:
    """Seconds that cores were in use until some time.

    Attributes
    ----------
    time : float
        When, in seconds.
    by_all : float
        Seconds of all processes, and of other guests of the machine.
    by_this : float
        Seconds of this process.
    """

    time: float
    by_all: float
    by_this: float


def used(cores: Collection[int]) -> Used | None:
    """Return how long some cores were in use so far; None where the system does not say."""
    try:
        lines = STATISTICS.read_text().splitlines()
    except OSError:
        return None
    names = {f"cpu{core}" for core in cores}
    rows = [line.split() for line in lines if line.partition(" ")[0] in names]
    ticks = sum(_ticks_in_use([int(number) for number in row[1:]]) for row in rows)
    spent = os.times()
    return Used(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), spent.user + spent.system)


def _ticks_in_use(columns: list[int]) -> int:
    """Return the ticks in which a core did something."""
    return sum(columns[:COLUMNS]) - sum(columns[IDLE])


class ThreadChoice:
    """Chooses as many threads as there are cores that other processes leave.

    It takes fewer when two looks in a row say so, and more at once.

    Parameters
    ----------
    most : int
        Threads where others take nothing.
    cores : collection of int
        The cores that this process may use.
    look : callable, optional
        Stands for `used`.

    Attributes
    ----------
    threads : int
        The choice.
    taken : float
        Cores that others took between the last two looks.
    """

    def __init__(
        self,
        most: int,
        cores: Collection[int],
        look: Callable[[Collection[int]], Used | None] = used,
    ) -> None:
        self.most = most
        self.cores = cores
        self.threads = most
        self.taken = 0.0
        self._look = look
        self._last: Used | None = None
        self._fitted = most  # by the last look

    @property
    def in_words(self) -> str:
        """Say why there are fewer threads."""
        threads = "1 thread computes" if self.threads == 1 else f"{self.threads} threads compute"
        return (
            f"other processes take {self.taken:.1f} of {len(self.cores)} cores: {threads} until "
            f"they leave them; compute.threads: {self.most} keeps all"
        )

    def update(self) -> int:
        """Look again, and return the choice."""
        now = self._look(self.cores)
        if now and self._last and now.time > self._last.time:
            self.taken = _by_others(self._last, now)
            fitting = self._fitting()
            self.threads = max(fitting, min(self._fitted, self.threads))
            self._fitted = fitting
        self._last = now
        return self.threads

    def _fitting(self) -> int:
        """Return as many threads as fit into what others leave, one at least."""
        left = round(len(self.cores) - self.taken)
        return max(1, min(self.most, left))


def _by_others(before: Used, now: Used) -> float:
    """Return how many cores other processes took."""
    seconds = (now.by_all - before.by_all) - (now.by_this - before.by_this)
    return max(seconds, 0.0) / (now.time - before.time)
