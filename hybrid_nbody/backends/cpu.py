"""The CPU backend: NumPy arrays, Numba threads."""

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hybrid_nbody import __version__
from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.backends.caches import digest_of_kernels, replace_unwritable_cache
from hybrid_nbody.backends.crowding import ThreadChoice
from hybrid_nbody.backends.finite import first_bad
from hybrid_nbody.downloads import Download, OnHost
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.memory import available_memory

SPINS = 10_000
"""Times that an idle thread looks for work before it sleeps: for 0.3 ms on an AMD EPYC. With a
tenth of that, steps of small fluids take 1.3 to 1.5 times as long."""


class CpuBackend(Backend):
    """The processor cores of one rank.

    Parameters
    ----------
    threads : int
        Threads of this rank.
    makes_way : bool
        Whether `make_way` may use fewer: for the only rank of a run.
    oversubscribed : bool
        Whether the threads of all ranks outnumber the cores. One that looks for work keeps another
        one from a core then, for whose loop it waits.

    Raises
    ------
    InputError
        If Numba was started with fewer threads than asked for.
    """

    name = "cpu"
    identity = "cpu"
    xp = np
    transports = ("host",)
    shares_host_memory = True

    def __init__(self, threads: int = 1, makes_way: bool = False, oversubscribed: bool = False):
        self.threads = threads
        self.makes_way = makes_way and threads > 1
        self._choice = ThreadChoice(threads, os.sched_getaffinity(0))
        self._told = False
        prepare_numba(threads)
        # read when the first loop is shared among threads
        os.environ.setdefault("GOMP_SPINCOUNT", "0" if oversubscribed else str(SPINS))
        import_numba()
        available = _numba_threads()
        if threads > available:
            raise InputError(
                f"compute.threads: {threads} threads asked for, but Numba was started with "
                f"{available}; set the environment variable NUMBA_NUM_THREADS to {threads} or more"
            )
        self.use()

    def use(self) -> None:
        """Let Numba use these threads."""
        import numba

        numba.set_num_threads(self._choice.threads)

    def make_way(self) -> str:
        """See `Backend`."""
        before = self._choice.threads
        now = self._choice.update()
        if now != before:
            self.use()
        if now >= before or self._told:
            return ""
        self._told = True
        return self._choice.in_words

    @property
    def description(self) -> str:
        """Return the device in a few words."""
        return f"CPU, {self.threads} {'thread' if self.threads == 1 else 'threads'}"

    def facts(self) -> dict[str, Any]:
        """Return the properties of this machine on which timings depend."""
        model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())  # x86
        return {
            "cpu": model[1].strip() if model else platform.machine(),
            "threads": self.threads,
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": platform.platform(),
        }

    def upload(self, host: Array) -> NDArray[Any]:
        """Return a copy of `host`."""
        return np.array(host, order="C")

    def download(self, array: Array) -> NDArray[Any]:
        """Return a copy of `array`."""
        copy: NDArray[Any] = array.copy()
        return copy

    def start_download(self, *parts: Array) -> Download:
        """See `Backend`."""
        return OnHost(parts[0].copy() if len(parts) == 1 else np.stack(parts, axis=-1))

    def hand_over(self, array: Array) -> Download:
        """See `Backend`; it is there already."""
        return OnHost(array)

    def start_look(self, *arrays: Array) -> Callable[[], list[int]]:
        """Look at once."""
        found = [first_bad(array) for array in arrays]
        return lambda: found

    def free_memory(self) -> int:
        """Return the bytes of memory that are free on this machine, for all its ranks together."""
        return available_memory()

    @contextmanager
    def on_host(self, array: Array, own: slice) -> Iterator[Array]:
        """Lend the array itself: it is on the host already."""
        yield array

    @contextmanager
    def to_host(self, rows: Array) -> Iterator[Array]:
        """Lend the rows themselves."""
        yield rows

    from_host = to_host

    def pinned(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros."""
        return np.zeros(shape, dtype)

    def fetch(self, array: Array, host: Array) -> float:
        """Copy at once."""
        np.copyto(host, array)
        return self.mark()

    def send(self, host: Array, array: Array) -> None:
        """Copy at once."""
        np.copyto(array, host)

    def wait(self, mark: float) -> None:
        """Return at once."""

    def synchronize(self) -> None:
        """Return at once: CPU kernels are done when they return."""

    def mark(self) -> float:
        """Return the time now, in seconds."""
        return time.perf_counter()

    def elapsed(self, start: float, end: float) -> float:
        """Return the seconds between two marks."""
        return end - start


def usable_cores() -> int:
    """Return the cores that this process may use; ``NUMBA_NUM_THREADS`` can lower them."""
    available = len(os.sched_getaffinity(0))
    allowed = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(available, int(allowed)) if allowed.isdecimal() and int(allowed) else available


def prepare_numba(threads: int) -> None:
    """Choose Numba's threads and cache folder, which it reads when it is first imported."""
    os.environ.setdefault("NUMBA_NUM_THREADS", str(max(threads, len(os.sched_getaffinity(0)))))
    # omp needs libgomp on the machine
    os.environ.setdefault("NUMBA_THREADING_LAYER_PRIORITY", "omp tbb workqueue")
    if "NUMBA_CACHE_DIR" not in os.environ:
        folder = node_local_cache() / f"numba-{digest_of_kernels()}"
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
    replace_unwritable_cache("NUMBA_CACHE_DIR", os.environ["NUMBA_CACHE_DIR"])
    if "NUMBA_CPU_FEATURES" not in os.environ:
        os.environ["NUMBA_CPU_FEATURES"] = features_with_widest_vectors()


def import_numba() -> None:
    """Import Numba without its support of BLAS, which no kernel uses.

    ``numba.np.arraymath`` looks for BLAS by importing ``scipy.linalg``, and no setting turns that
    off. SciPy takes a fifth of a second, a sixth of the start of a run.
    """
    with without_package("scipy"):
        import_module("numba.np.arraymath")  # the module that looks for BLAS
    import_module("hybrid_nbody.backends.compilation").compile_once()


@contextmanager
def without_package(name: str) -> Iterator[None]:
    """Let the first import of a package fail in this block as if it were not installed.

    A package that was imported before stays as it is, and so does the cache of modules.
    """
    finder = _Refusal(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Refusal(MetaPathFinder):
    """An import hook that refuses one package."""

    def __init__(self, name: str):
        self.name = name

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for the package; leave all others to the next finder."""
        if fullname == self.name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _numba_threads() -> int:
    """Return the most threads that Numba can use in this process."""
    import numba

    return int(numba.config.NUMBA_NUM_THREADS)


def features_with_widest_vectors() -> str:
    """Return the features of this machine's processor for the compiler, its widest vectors allowed.

    For many processors LLVM prefers half of AVX-512, which suits programs that use vectors now and
    then. The loops over pairs consist of vector code.
    """
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    found: str = features.flatten()
    return found + (",-prefer-256-bit" if features.get("avx512f") else "")


def node_local_cache() -> Path:
    """Return this user's folder for compiled kernels on this node.

    Home folders of clusters are network file systems, on which Numba's cache files race between
    nodes. Every version has its own: Numba cannot read files that name types it does not know.

    Raises
    ------
    InputError
        If the folder belongs to another user: its content would be executed.
    """
    folder = Path(tempfile.gettempdir()) / f"hybrid_nbody-{os.getuid()}"
    with suppress(OSError):  # what cannot be written is told once for all caches
        folder.mkdir(mode=0o700, exist_ok=True)
    if folder.exists() and folder.stat().st_uid != os.getuid():
        raise InputError(
            f"{folder}: belongs to another user; set NUMBA_CACHE_DIR to a folder of your own"
        )
    own = folder / __version__
    with suppress(OSError):
        own.mkdir(exist_ok=True)
    return own
