"""The hybrid backend: a device whose work CPU threads share."""

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager

from numpy.typing import DTypeLike

from hybrid_nbody.backends.base import Array, Backend, Mark, Shape
from hybrid_nbody.downloads import Download


class HybridBackend(Backend):
    """Two devices of one rank: arrays are on the main one, which does all transfers; see `Backend`.

    Its kernels, in the sub-package ``hybrid`` of a package, let the helper compute a share at the
    same time.

    Parameters
    ----------
    main : Backend
        Holds the arrays and computes most, or all: a `GpuBackend`.
    helper : Backend
        Computes a share on arrays of the host: a `CpuBackend`.
    cpu_share : "auto" or float
        The helper's share of a rank's own bodies, 0 to 1; with ``auto`` the kernels measure which
        is the fastest.

    Attributes
    ----------
    helping : bool
        Whether the helper has a share at present; set by the kernels.
    """

    name = "hybrid"

    def __init__(self, main: Backend, helper: Backend, cpu_share: str | float = "auto"):
        self.main = main
        self.helper = helper
        self.cpu_share = cpu_share
        self.helping = True
        self.identity = main.identity
        self.xp = main.xp
        self.transports = main.transports
        self.shares_host_memory = main.shares_host_memory
        self.message_cells = main.message_cells

    @property
    def description(self) -> str:
        """Return both devices in a few words."""
        return f"{self.main.description} + {self.helper.description}"

    @property
    def devices(self) -> tuple[Backend, ...]:
        """Return the two devices."""
        return self.main, self.helper

    def finish_compiling(self) -> None:
        """See `Backend`; the helper compiles nothing by itself."""
        self.main.finish_compiling()

    @property
    def holder(self) -> Backend:
        """Return the main device."""
        return self.main

    def use(self) -> None:
        """Use both devices."""
        self.main.use()
        self.helper.use()

    def apart(self) -> "HybridBackend":
        """See `Backend`; the state is whether the helper has a share."""
        return HybridBackend(self.main, self.helper, self.cpu_share)

    def place(self, array: Array) -> Hashable:
        """See `Backend`."""
        return self.main.place(array)

    def recorded(self, action: Callable[[], None]) -> Callable[[], None]:
        """See `Backend`; work of the helper cannot be replayed."""
        replay = self.main.recorded(action)

        def run() -> None:
            if self.helping:
                action()
            else:
                replay()

        return run

    def zeros(self, shape: Shape, dtype: DTypeLike) -> Array:
        """See `Backend`."""
        return self.main.zeros(shape, dtype)

    def upload(self, host: Array) -> Array:
        """See `Backend`."""
        return self.main.upload(host)

    def download(self, array: Array) -> Array:
        """See `Backend`."""
        return self.main.download(array)

    def copy(self, source: Array, target: Array) -> None:
        """See `Backend`."""
        self.main.copy(source, target)

    def start_download(self, *parts: Array) -> Download:
        """See `Backend`."""
        return self.main.start_download(*parts)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """See `Backend`."""
        return self.main.empty(shape, dtype)

    def hand_over(self, array: Array) -> Download:
        """See `Backend`."""
        return self.main.hand_over(array)

    def start_look(self, *arrays: Array) -> Callable[[], list[int]]:
        """See `Backend`."""
        return self.main.start_look(*arrays)

    def free_memory(self) -> int:
        """See `Backend`."""
        return self.main.free_memory()

    def on_host(self, array: Array, own: slice) -> AbstractContextManager[Array]:
        """See `Backend`."""
        return self.main.on_host(array, own)

    def to_host(self, rows: Array) -> AbstractContextManager[Array]:
        """See `Backend`."""
        return self.main.to_host(rows)

    def from_host(self, rows: Array) -> AbstractContextManager[Array]:
        """See `Backend`."""
        return self.main.from_host(rows)

    def pinned(self, shape: Shape, dtype: DTypeLike) -> Array:
        """See `Backend`."""
        return self.main.pinned(shape, dtype)

    def fetch(self, array: Array, host: Array) -> Mark:
        """See `Backend`."""
        return self.main.fetch(array, host)

    def send(self, host: Array, array: Array) -> None:
        """See `Backend`."""
        self.main.send(host, array)

    def wait(self, mark: Mark) -> None:
        """See `Backend`."""
        self.main.wait(mark)

    def synchronize(self) -> None:
        """See `Backend`."""
        self.main.synchronize()

    def mark(self) -> Mark:
        """See `Backend`."""
        return self.main.mark()

    def elapsed(self, start: Mark, end: Mark) -> float:
        """See `Backend`."""
        return self.main.elapsed(start, end)
