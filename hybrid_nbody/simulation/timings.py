"""The timings of a run: seconds by name."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timings:
    """Seconds added up under names, in the order of their first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Add `seconds` under `name`."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the wall-clock time of the block under `name`, also when it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - start)

    def __getitem__(self, name: str) -> float:
        """Return the seconds under `name`, zero if there are none."""
        return self.seconds.get(name, 0.0)
