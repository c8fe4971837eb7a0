"""The contract of a backend: arrays, transfers, kernels and time on one device."""

import importlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.backends.alarm import PeerAlarm
from hybrid_nbody.downloads import Download, OnHost

Array = Any
"""An array of a device or of the host: NumPy's or CuPy's, which share no type."""

Mark = Any
"""A moment in a device's queue of work: a float, or an event of CUDA."""

Shape = int | tuple[int, ...]


class Backend(ABC):
    """One device of one rank.

    All other packages handle arrays through this class, and call kernels of the package that
    `kernels` returns: none of them asks which device it is on.

    Attributes
    ----------
    name : str
        ``"cpu"``, ``"gpu"`` or ``"hybrid"``; also the name of the sub-packages with this backend's
        kernels.
    identity : str
        Tells two devices of a node apart, whatever numbers a rank sees them under.
    xp : module
        The array namespace: NumPy or CuPy.
    transports : tuple of str
        How ranks can exchange this backend's arrays, the fastest first.
    shares_host_memory : bool
        Whether the arrays are in the memory of the host, which all ranks of a node share.
    threads : int
        CPU threads that compute.
    compiles_for_sizes : bool
        Whether kernels are compiled for the sizes of a problem: those of a small one serve no
        other.
    runs_ahead : bool
        Whether the host may go on while the device works on what is queued.
    makes_way : bool
        Whether `make_way` does anything.
    message_cells : int
        Cells of a grid that the device relaxes in about the time of a message between ranks.
    """

    name: str
    identity: str
    xp: ModuleType
    transports: tuple[str, ...]
    shares_host_memory: bool
    threads = 1
    compiles_for_sizes = False
    runs_ahead = False
    makes_way = False
    message_cells = 1 << 15

    @property
    @abstractmethod
    def description(self) -> str:
        """Return the device in a few words, for tables and logs."""

    @property
    def devices(self) -> tuple["Backend", ...]:
        """Return the devices that compute: this backend itself, unless it is made of several."""
        return (self,)

    @property
    def compiled_beforehand(self) -> list["Backend"]:
        """Return the devices whose kernels can be compiled before the problem is there."""
        return [device for device in self.devices if not device.compiles_for_sizes]

    def finish_compiling(self) -> None:
        """Wait until all kernels that are being compiled are there: no step has to, then."""
        return  # a device that compiles a kernel where it is first called has nothing to wait for

    @property
    def holder(self) -> "Backend":
        """Return the device that holds the arrays: this one, unless it is made of several."""
        return self

    def apart(self) -> "Backend":
        """Return a backend of the same device that keeps its own state.

        For measurements in the middle of a run.
        """
        return self

    def kernels(self, package: str, module: str = "kernels") -> ModuleType:
        """Return a module of the sub-package of `package`, a dotted name, for this backend."""
        return importlib.import_module(f"{package}.{self.name}.{module}")

    @abstractmethod
    def use(self) -> None:
        """Make this the current device, as it is when it is made.

        Another backend may have become the current one since.
        """

    def make_way(self) -> str:
        """Leave other processes the cores that they take, and take back those that they leave.

        Returns
        -------
        str
            What a person should know, the first time; else nothing.
        """
        return ""

    def zeros(self, shape: Shape, dtype: DTypeLike) -> Array:
        """Return an array of zeros on the device."""
        return self.xp.zeros(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array on the device, of no defined values."""
        return self.xp.ndarray(shape, dtype)

    @abstractmethod
    def upload(self, host: Array) -> Array:
        """Return a copy of the NumPy array `host` on the device."""

    @abstractmethod
    def download(self, array: Array) -> Array:
        """Return a NumPy copy of `array`, once all work on it is done."""

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array in one piece into another one of the same shape and type, on the device."""
        target[...] = source

    def start_download(self, *parts: Array) -> Download:
        """Start to copy an array to the host; several are stacked along a new last axis.

        They are copied as the work that is queued so far leaves them; work that is queued later
        neither waits for the copy nor changes it. Here it is done now.
        """
        copies = [self.download(part) for part in parts]
        return OnHost(copies[0] if len(copies) == 1 else np.stack(copies, axis=-1))

    def hand_over(self, array: Array) -> Download:
        """Start to bring an array to the host, as `start_download`, that stays as it is.

        Where the download reads the array itself later, no copy of it is made.
        """
        return self.start_download(array)

    @abstractmethod
    def start_look(self, *arrays: Array) -> Callable[[], list[int]]:
        """Start to look for numbers that are not finite in arrays of float64.

        Returns
        -------
        callable
            Waits for the look, and for nothing that is queued after it. Returns the place of the
            first such number of each array, counted through all rows, or the size of the array.
        """

    @abstractmethod
    def free_memory(self) -> int:
        """Return the free bytes of the memory that this backend's arrays are in."""

    def place(self, array: Array) -> Hashable:
        """Return where the elements of an array are, and its shape."""
        return array.ctypes.data, array.shape

    def recorded(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return a function that repeats `action`: the same work on the same arrays at each call.

        A device with a queue records the work once and replays it without the host.
        """
        return action

    def capture(self, action: Callable[[], None]) -> Callable[[], None]:
        """Return a function that does the work of `action`, as one launch where that is possible.

        A device with a queue calls `action` once, now, to take the work down without doing it.
        """
        return action

    @abstractmethod
    def on_host(self, array: Array, own: slice) -> AbstractContextManager[Array]:
        """Lend `array` to the host for an exchange.

        The rows `own` are valid on entry; the whole array is copied back on exit. A backend whose
        arrays are on the host lends the array itself.
        """

    @abstractmethod
    def to_host(self, rows: Array) -> AbstractContextManager[Array]:
        """Lend contiguous rows to the host, to be sent; changes that the host makes are lost."""

    @abstractmethod
    def from_host(self, rows: Array) -> AbstractContextManager[Array]:
        """Lend the host memory for contiguous rows that it receives; on exit they are uploaded."""

    @abstractmethod
    def pinned(self, shape: Shape, dtype: DTypeLike) -> Array:
        """Return a NumPy array that `fetch` and `send` copy while the host goes on."""

    @abstractmethod
    def fetch(self, array: Array, host: Array) -> Mark:
        """Start to copy `array` into `host`, an array of `pinned`, and return a mark to `wait` for.

        Work that is queued later does not wait for the copy.
        """

    @abstractmethod
    def send(self, host: Array, array: Array) -> None:
        """Copy `host`, an array of `pinned`, into `array` after the work that is queued so far."""

    @abstractmethod
    def wait(self, mark: Mark) -> None:
        """Wait until the device's work has come to a mark."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work of the device is done."""

    @abstractmethod
    def mark(self) -> Mark:
        """Return a mark of the present moment in the device's queue of work."""

    @abstractmethod
    def elapsed(self, start: Mark, end: Mark) -> float:
        """Return the seconds between two marks; wait for the later one."""


class HostWait:
    """Notes since when the host has been waiting for its device or for other ranks.

    A thread that watches over the wait reads it.

    Attributes
    ----------
    since : float or None
        ``time.monotonic()`` at the beginning of the wait; None while the host does not wait.
    alarms : list of PeerAlarm
        Checked at the end of every wait.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self.alarms: list[PeerAlarm] = []

    def __enter__(self) -> None:
        self.since = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self.since = None
        for alarm in self.alarms:
            alarm.check()
