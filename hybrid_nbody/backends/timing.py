"""The time that work takes on a device, by marks in its queue."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hybrid_nbody.backends.base import Backend, Mark


def seconds_of(backend: Backend, action: Callable[[], object]) -> float:
    """Return the seconds from the start of `action` to the end of its work on the device."""
    return begin(backend, action)()


def begin(backend: Backend, action: Callable[[], object]) -> Callable[[], float]:
    """Queue the work of `action`; return what waits for it and returns its seconds."""
    start = backend.mark()
    action()
    end = backend.mark()
    return lambda: backend.elapsed(start, end)


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
