"""The time that work takes on a device, by marks in its queue."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hybrid_nbody.backends.base import Backend, Mark


def seconds_of(backend: Backend, action: Callable[[], object]) -> float:
    """Return the seconds from the start of `action` to the end of its work on the device."""
    start = backend.mark()
    action()
    return backend.elapsed(start, backend.mark())


class Spans:
    """Marks before and after each piece of some work.

    Parameters
    ----------
    backend : Backend
        The device.
    """

    def __init__(self, backend: Backend):
        self.backend = backend
        self.marks: list[tuple[Mark, Mark]] = []

    @contextmanager
    def span(self) -> Iterator[None]:
        """Mark the beginning and the end of what is done within, or by the function below."""
        start = self.backend.mark()
        yield
        self.marks.append((start, self.backend.mark()))

    def seconds(self) -> float:
        """Wait for the device; return the time within all pieces."""
        return sum(self.backend.elapsed(start, end) for start, end in self.marks)
