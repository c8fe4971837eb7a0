"""Counting what a job has done, over all its passes through the frames."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count


def counter(progress, total) -> Callable[[], None]:
    """Return a function to be called after each part of a job.

    Parameters
    ----------
    progress : callable or None
        Called with the number of parts done, and to be done.
    total : int
        Parts of the whole job.
    """
    if progress is None:
        return no_step
    done = count(1)
    return lambda: progress(next(done), total)


def no_step() -> None:
    """Count nothing: nobody asks."""


def counted(items: Iterable, step: Callable[[], None]) -> Iterator:
    """Go through `items` and call `step` after each, when it has been dealt with."""
    for item in items:
        yield item
        step()
