"""The CPU backend: NumPy arrays, Numba threads."""

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np

from hybrid_nbody import __version__
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import InputError

SPINS = 10_000
"""Looks that a thread takes for work, some ten microseconds, before it sleeps: more would keep
others of a busy machine from working, and each loop would wait for a time slice."""


class CpuBackend(Backend):
    """The processor cores of one rank.

    Parameters
    ----------
    threads : int
        Threads of this rank.

    Raises
    ------
    InputError
        If Numba was started with fewer threads than asked for.
    """

    kind = "cpu"
    identity = "cpu"
    xp = np
    transports = ("host",)

    def __init__(self, threads: int = 1):
        self.threads = threads
        prepare_numba(threads)
        _import_without_blas()
        import numba

        if threads > numba.config.NUMBA_NUM_THREADS:
            raise InputError(
                f"compute.threads: {threads} threads asked for, but Numba was started with "
                f"{numba.config.NUMBA_NUM_THREADS}; set the environment variable NUMBA_NUM_THREADS to {threads} or more"
            )
        self.use()

    def use(self):
        """Let Numba use these threads."""
        import numba

        numba.set_num_threads(self.threads)

    @property
    def description(self) -> str:
        """The device in a few words."""
        return f"CPU, {self.threads} thread{'s' if self.threads != 1 else ''}"

    def upload(self, host):
        """Return a copy of `host`."""
        return np.array(host, order="C")

    def download(self, array):
        """Return a copy of `array`."""
        return array.copy()

    def free_memory(self):
        """Return the bytes of memory that are free on this machine, for all its ranks together."""
        return available_memory()

    @contextmanager
    def on_host(self, array, own):
        """Lend the array itself: it is on the host already."""
        yield array

    @contextmanager
    def to_host(self, rows):
        """Lend the rows themselves."""
        yield rows

    from_host = to_host

    def pinned(self, shape, dtype):
        """Return an array of zeros."""
        return np.zeros(shape, dtype)

    def fetch(self, array, host):
        """Copy at once."""
        np.copyto(host, array)
        return self.mark()

    def send(self, host, array):
        """Copy at once."""
        np.copyto(array, host)

    def wait(self, mark):
        """Return at once."""

    def synchronize(self):
        """Return at once: CPU kernels are done when they return."""

    def mark(self):
        """Return the time now, in seconds."""
        return time.perf_counter()

    def elapsed(self, start, end):
        """Return the seconds between two marks."""
        return end - start


def available_memory() -> int:
    """Return the bytes of memory that programs on this machine can still have."""
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) * 1024


def prepare_numba(threads: int) -> None:
    """Choose Numba's threads and cache folder, which it reads when it is first imported."""
    os.environ.setdefault("NUMBA_NUM_THREADS", str(max(threads, len(os.sched_getaffinity(0)))))
    os.environ.setdefault(
        "NUMBA_THREADING_LAYER_PRIORITY", "omp tbb workqueue"
    )  # omp needs libgomp on the machine
    os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))
    if "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(node_local_cache())
    if "NUMBA_CPU_FEATURES" not in os.environ:
        os.environ["NUMBA_CPU_FEATURES"] = features_with_widest_vectors()


def _import_without_blas() -> None:
    """Import Numba while there is no SciPy: it looks there for BLAS, which no kernel uses, for a fifth of a second."""
    if "numba.np.arraymath" in sys.modules or "scipy" in sys.modules:
        return
    sys.modules["scipy"] = None
    try:
        import_module("numba.np.arraymath")
    finally:
        del sys.modules["scipy"]


def features_with_widest_vectors() -> str:
    """Return the features of this machine's processor for the compiler, its widest vectors allowed.

    For many processors LLVM prefers half of AVX-512, for the sake of programs that use vectors now
    and then. The loops over pairs do nothing else.
    """
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    return features.flatten() + (",-prefer-256-bit" if features.get("avx512f") else "")


def node_local_cache() -> Path:
    """Return this user's folder for compiled kernels on this node.

    Home folders of clusters are network file systems, on which Numba's cache files race between
    nodes. Every version has its own: Numba cannot read what names types that are gone.

    Raises
    ------
    InputError
        If the folder exists but belongs to somebody else: its contents would be executed.
    """
    folder = Path(tempfile.gettempdir()) / f"hybrid_nbody-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise InputError(
            f"{folder}: belongs to another user; set NUMBA_CACHE_DIR to a folder of your own"
        )
    own = folder / __version__
    own.mkdir(exist_ok=True)
    return own
