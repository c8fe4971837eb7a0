"""The seconds that the parts of a step take, by marks in the queue of a device."""

from typing import Protocol

from hybrid_nbody.backends.base import Backend, Mark


class Timer(Protocol):
    """Takes note of the end of each part of a step."""

    def record(self, part: str) -> None:
        """Count what was queued since the last call under `part`."""


class StepTimer:
    """Times the parts of a step on a device.

    Parameters
    ----------
    backend : Backend
        The device; the first part begins now.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.marks: list[Mark] = [backend.mark()]
        self.parts: list[str] = []

    def record(self, part: str) -> None:
        """Count what was queued since the last call under `part`."""
        if self.parts[-1:] == [part]:  # one interval: to ask a device for its seconds takes a while
            self.marks.pop()
        else:
            self.parts.append(part)
        self.marks.append(self.backend.mark())

    def seconds(self, part: str) -> float:
        """Return the seconds counted under `part`; wait for the last of them."""
        intervals = zip(self.parts, self.marks, self.marks[1:], strict=False)
        return sum(
            self.backend.elapsed(start, end) for name, start, end in intervals if name == part
        )


class NullTimer:
    """Times nothing: for work that is recorded to be replayed, or that no one asks about."""

    def record(self, part: str) -> None:
        """Do nothing."""
