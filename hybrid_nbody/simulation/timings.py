"""The timings of a run: seconds by name."""

import time
from collections import deque
from collections.abc import Callable

MOST_LATER = 16
"""Pieces of work whose times are added up later, at most."""


class Timings:
    """Seconds added up under names, in the order of their first use."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._later: deque[Callable[[], None]] = deque()

    @property
    def seconds(self) -> dict[str, float]:
        """Return the seconds by name; wait for work that is to be accounted for."""
        self._settle()
        return self._seconds

    def add(self, name: str, seconds: float) -> None:
        """Add `seconds` under `name`."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def add_later(self, name: str, seconds: Callable[[], float]) -> None:
        """Add what `seconds` returns, which waits for work that a device has been given.

        See `later`.
        """
        self.later(lambda: self.add(name, seconds()))

    def later(self, add: Callable[[], None]) -> None:
        """Call `add` later, which waits for work that a device has been given, and adds seconds.

        It is called when `MOST_LATER` more of such work has been given, so that a device never
        waits for the host; or when somebody reads.
        """
        self._later.append(add)
        self._settle(MOST_LATER)

    def _settle(self, left: int = 0) -> None:
        """Add up what is to be added later, but for the newest `left` of it."""
        while len(self._later) > left:
            self._later.popleft()()

    def measure(self, name: str) -> "Measurement":
        """Add the wall-clock time of the block under `name`, also when it raises."""
        return Measurement(self, name)

    def __getitem__(self, name: str) -> float:
        """Return the seconds under `name`, zero if there are none."""
        return self.seconds.get(name, 0.0)


class Measurement:
    """The time of a block; a generator in its place would take longer than an event.

    Parameters
    ----------
    timings : Timings
        To which it is added.
    name : str
        Under which.
    """

    __slots__ = ("timings", "name", "start")

    def __init__(self, timings: Timings, name: str) -> None:
        self.timings = timings
        self.name = name

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.timings.add(self.name, time.perf_counter() - self.start)
