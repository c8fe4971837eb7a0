"""The timings of a run: seconds by name."""

import time


class Timings:
    """Seconds added up under names, in the order of their first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Add `seconds` under `name`."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

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

    def __init__(self, timings: Timings, name: str) -> None:
        self.timings = timings
        self.name = name

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.timings.add(self.name, time.perf_counter() - self.start)
