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
"""Seconds between two looks at least: some tens of the system's ticks."""

FRESH = 10
"""A look that comes after as many times the usual time says nothing of the present."""

STATISTICS = Path("/proc/stat")
"""Where Linux says what each core has done."""

USER, NICE, SYSTEM, IDLE, DISK, INTERRUPT, LATER, STOLEN = range(8)
"""Columns of a core there, the first one after its name being 0; those after them are parts of
others."""

AT_ONCE = (USER, SYSTEM, INTERRUPT, LATER, STOLEN)
"""What a thread of the usual priority has to wait for: those of a lower one wait for it."""


@dataclass(frozen=True)
class Used:
    """Seconds that cores were in use until some time.

    Attributes
    ----------
    time : float
        When, in seconds.
    by_all : float
        Seconds of all processes whose priority is not lower, and of other guests of the machine.
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
    columns = _columns()
    ticks = sum(int(row[1 + column]) for row in rows for column in columns)
    spent = os.times()
    return Used(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), spent.user + spent.system)


def _columns() -> tuple[int, ...]:
    """Return what counts: work of low priority where that of this process is such, too."""
    is_low = os.getpriority(os.PRIO_PROCESS, 0) > 0
    return (*AT_ONCE, NICE) if is_low else AT_ONCE


class ThreadChoice:
    """Chooses as many threads as there are cores that other processes leave.

    It takes fewer when two looks in a row say so, and more at once. Others take more when there are
    fewer threads: what they took beside all threads says how many there are at least.

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
        self._interval = LOOK_SECONDS  # between the last two looks
        self._fitted = most  # by the last look
        self._least = most

    @property
    def in_words(self) -> str:
        """Say why there are fewer threads."""
        threads = "1 thread computes" if self.threads == 1 else f"{self.threads} threads compute"
        return (
            f"others take {self.taken:.1f} of {len(self.cores)} cores: {threads} until they leave "
            f"them; compute.threads: {self.most} keeps all"
        )

    def update(self) -> int:
        """Look again, if it is time to, and return the choice."""
        last = self._last
        if last and time.monotonic() < last.time + LOOK_SECONDS:
            return self.threads
        now = self._look(self.cores)
        if now and last:
            self._choose(last, now)
        self._last = now
        return self.threads

    def _choose(self, last: Used, now: Used) -> None:
        """Choose by what others took between two looks, unless these are too far apart."""
        interval = now.time - last.time
        is_fresh = interval <= FRESH * max(LOOK_SECONDS, self._interval)
        self._interval = interval
        if not is_fresh:
            self._fitted = self.most
            return
        self.taken = _by_others(last, now)
        fitting = self._fitting()
        if self.threads == self.most:
            self.threads = self._least = max(fitting, self._fitted)
        else:
            self.threads = max(fitting, self._least)
        self._fitted = fitting

    def _fitting(self) -> int:
        """Return as many threads as fit into what others leave, one at least."""
        left = round(len(self.cores) - self.taken)
        return max(1, min(self.most, left))


def _by_others(before: Used, now: Used) -> float:
    """Return how many cores other processes took."""
    seconds = (now.by_all - before.by_all) - (now.by_this - before.by_this)
    return max(seconds, 0.0) / (now.time - before.time)
