"""The contract of a backend: arrays, transfers, kernels and time on one device."""

import importlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

Array = Any
"""An array of a device: NumPy's or CuPy's, which share no type."""


class Backend(ABC):
    """One device of one rank.

    Everything above this room handles arrays through this class and calls kernels through the twin
    that `kernels` returns, so that nothing else asks which device it is on.

    Attributes
    ----------
    kind : str
        ``"cpu"``, ``"gpu"`` or ``"hybrid"``; also the name of the sub-packages that hold this
        backend's kernels.
    identity : str
        What tells two devices of a node apart, whatever numbers a rank sees them under.
    xp : module
        The array namespace: NumPy or CuPy.
    transports : tuple of str
        How ranks can exchange this backend's arrays, the fastest first.
    """

    kind: str
    identity: str
    xp: ModuleType
    transports: tuple[str, ...]

    @property
    @abstractmethod
    def description(self) -> str:
        """The device in a few words, for tables and logs."""

    @property
    def devices(self) -> tuple["Backend", ...]:
        """What computes: this backend itself, unless it is made of several."""
        return (self,)

    def apart(self) -> "Backend":
        """Return a backend of the same device for a trial in the middle of a run: what it remembers is its own."""
        return self

    def kernels(self, package: str, module: str = "kernels") -> ModuleType:
        """Return a module of the sub-package of `package` (a dotted name) that runs on this backend."""
        return importlib.import_module(f"{package}.{self.kind}.{module}")

    @abstractmethod
    def use(self) -> None:
        """Compute on this device from here on, as when it was made: another backend may have been made since."""

    def zeros(self, shape, dtype):
        """Return an array of zeros on the device."""
        return self.xp.zeros(shape, dtype)

    @abstractmethod
    def upload(self, host):
        """Return a copy of the NumPy array `host` on the device."""

    @abstractmethod
    def download(self, array):
        """Return a NumPy copy of `array`, its values complete."""

    @abstractmethod
    def free_memory(self) -> int:
        """Return the bytes that are free where this backend's arrays are."""

    @abstractmethod
    def on_host(self, array, own: slice) -> AbstractContextManager:
        """Lend `array` to the host for an exchange.

        The rows `own` are valid on entry; the whole array is taken back on exit. A backend whose
        arrays live on the host lends the array itself.
        """

    def recorded(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return a function that does what `action` does, which is the same work on the same arrays at each call.

        A device with a queue records it once and replays it without the host; others do it anew.
        """
        return action

    @abstractmethod
    def to_host(self, rows) -> AbstractContextManager:
        """Lend contiguous rows to the host, to be sent; what the host does to them is lost."""

    @abstractmethod
    def from_host(self, rows) -> AbstractContextManager:
        """Lend the host room for contiguous rows that it receives; they are taken to the device on exit."""

    @abstractmethod
    def pinned(self, shape, dtype):
        """Return a NumPy array that `fetch` and `send` copy to and from while the host goes on."""

    @abstractmethod
    def fetch(self, array, host):
        """Copy `array` into `host`, from `pinned`, beside what is queued later; return a mark to `wait` for."""

    @abstractmethod
    def send(self, host, array) -> None:
        """Copy `host`, from `pinned`, into `array` once what was queued before is done."""

    @abstractmethod
    def wait(self, mark) -> None:
        """Wait until the device's work has come to a mark."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything asked of the device is done."""

    @abstractmethod
    def mark(self):
        """Return a mark of the present moment in the device's queue of work."""

    @abstractmethod
    def elapsed(self, start, end) -> float:
        """Return the seconds between two marks; waits for the later one."""


class HostWait:
    """Notes since when the host has been waiting for its device or for other ranks.

    A thread that watches over the wait reads it.

    Attributes
    ----------
    since : float or None
        ``time.monotonic()`` at the beginning of the wait; None while the host does not wait.
    """

    def __init__(self) -> None:
        self.since: float | None = None

    def __enter__(self) -> None:
        self.since = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self.since = None
