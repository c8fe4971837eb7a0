"""Timing: what a device does in a row, again and again, the first time left out."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

SHORTEST = 2e-3
"""Seconds that a timing lasts at least, unless `MOST_CALLS` take less: short calls are repeated
within it."""

MOST_CALLS = 200

LONGEST = 0.5
"""Seconds that a call should last at most: slower loops are timed on fewer targets, and their rows
say so."""

FIRST_TARGETS = 32


class Stopped(Exception):
    """The person asked to stop; what has been measured is kept."""


@dataclass(frozen=True)
class Times:
    """Repeated timings of a call.

    Attributes
    ----------
    seconds : tuple of float
        One number a timing: seconds a call.
    calls : int
        Calls in a row that a timing is the mean of.
    """

    seconds: tuple[float, ...]
    calls: int = 1

    @property
    def mean(self) -> float:
        """Mean over the timings."""
        return statistics.fmean(self.seconds)

    @property
    def sd(self) -> float:
        """Standard deviation over the timings; zero for a single one."""
        return statistics.stdev(self.seconds) if len(self.seconds) > 1 else 0.0

    @property
    def median(self) -> float:
        """Median over the timings."""
        return statistics.median(self.seconds)

    @property
    def columns(self) -> dict[str, float]:
        """What a row of a table says of them."""
        return {
            "mean_s": self.mean,
            "sd_s": self.sd,
            "median_s": self.median,
            "repeats": len(self.seconds),
            "calls": self.calls,
        }


def seconds_of(backend, action: Callable) -> float:
    """Return the seconds from the start of `action` to the end of its work on the device."""
    start = backend.mark()
    action()
    return backend.elapsed(start, backend.mark())


def timings(backend, batch: Callable, repeats: int, stop, calls: int = 1) -> Times:
    """Time `batch`, which is warm and does `calls` calls in a row, again and again; parameters as in `timed`."""
    seconds = []
    for _ in range(repeats):
        stop()
        seconds.append(seconds_of(backend, batch) / calls)
    return Times(tuple(seconds), calls)


def timed(backend, action: Callable, repeats: int, stop) -> Times:
    """Time `action` on the device of `backend`, after calls that are not counted.

    Parameters
    ----------
    backend : Backend
        Whose clock is used: CUDA events on a GPU.
    action : callable
        Queues its work and returns; takes no arguments.
    repeats : int
        Timings.
    stop : callable
        Raises `Stopped` when the person asked for it; called before each timing.
    """
    stop()
    action()
    stop()
    calls = calls_for(seconds_of(backend, action))
    batch = BATCHES[backend.kind](backend, action, calls)
    if calls > 1:  # a single call is warm by now
        stop()
        batch()
    return timings(backend, batch, repeats, stop, calls)


def calls_for(seconds: float) -> int:
    """Return how many calls of that many seconds make a timing."""
    return min(max(1, math.ceil(SHORTEST / max(seconds, 1e-9))), MOST_CALLS)


def _one_after_another(backend, action, calls):
    def batch():
        for _ in range(calls):
            action()

    return batch


def _captured(backend, action, calls):
    """Return one launch of a captured graph: the host's time to launch small kernels does not count."""
    return backend.capture(_one_after_another(backend, action, calls))


BATCHES = {"cpu": _one_after_another, "gpu": _captured}


def targets_within(backend, step: Callable, number: int, stop, longest: float = LONGEST) -> int:
    """Return how many of `number` targets a call can do within `longest` seconds; compiles on the way.

    Parameters
    ----------
    step : callable
        Takes a number of targets.
    """
    step(1)
    targets = min(FIRST_TARGETS, number)
    while True:
        stop()
        seconds = seconds_of(backend, lambda count=targets: step(count))
        if targets == number or seconds > longest / 8:
            return min(number, max(1, int(targets * longest / seconds)))
        targets = min(8 * targets, number)
