"""The timings of a run: seconds by name."""

import time


class Timings:
    """Seconds added up under names, in the order of their first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Add `seconds` under `name`."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def measure(self, name: str) -> "Span":
        """Add the wall-clock time of the block under `name`, also when it raises."""
        return Span(self, name)

    def __getitem__(self, name: str) -> float:
        """Return the seconds under `name`, zero if there are none."""
        return self.seconds.get(name, 0.0)


class Span:
    """A block whose time is measured; a generator in its place would take longer than an event.

    Parameters
    ----------
    timings : Timings
        Take the time.
    name : str
        The name of it there.
    """

    def __init__(self, timings: Timings, name: str) -> None:
        self.timings = timings
        self.name = name

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.timings.add(self.name, time.perf_counter() - self.start)
