"""The machine that is measured: its devices, its memory, and what figures measured on it depend on."""

import os
import platform
import re
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from hybrid_nbody import __version__
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.benchmarks.ladder.openmp import compiler_version
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.gpu.layout import Layout

PACKAGES = ("numpy", "numba", "llvmlite", "matplotlib")

LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")

HOST_BYTES_PER_BODY = 512
DEVICE_BYTES_PER_BODY = 512
"""Upper bounds on what a size needs: the bodies in float64 and float32, the order of the sources,
work space."""

COMPONENTS = 6
"""Most sums of a target, of which a GPU keeps one for each part: an acceleration and a jerk."""


@dataclass(frozen=True)
class Devices:
    """What there is to measure.

    Attributes
    ----------
    cpu : CpuBackend
        All cores of this process.
    gpu : GpuBackend or None
        The first GPU.
    no_gpu : str
        Why there is no GPU; empty if there is one.
    """

    cpu: CpuBackend
    gpu: GpuBackend | None
    no_gpu: str = ""

    @cached_property
    def facts(self) -> dict:
        """Hardware and versions; asking the machine takes a moment, the C compiler's name above all."""
        return {**_cpu_facts(self.cpu), **(self.gpu.facts() if self.gpu else {}), **_versions()}

    @property
    def description(self) -> str:
        """The machine in one line."""
        facts = self.facts
        cpu = f"{facts['cpu']}, {facts['threads']} thread{'s' if facts['threads'] > 1 else ''}"
        if self.gpu is None:
            return f"{cpu}; no GPU: {self.no_gpu}"
        return f"{cpu}; {facts['gpu']}, {facts['multiprocessors']} multiprocessors"


def cores() -> int:
    """Return the number of cores that this process may run on; ``NUMBA_NUM_THREADS`` can lower it."""
    available = len(os.sched_getaffinity(0))
    allowed = os.environ.get("NUMBA_NUM_THREADS", "")
    return min(available, int(allowed)) if allowed.isdecimal() and int(allowed) else available


def find_devices(asked: str = "auto") -> Devices:
    """Return the devices of this machine.

    Parameters
    ----------
    asked : {"auto", "cpu", "gpu"}
        ``cpu`` leaves a GPU alone; ``gpu`` demands one.

    Raises
    ------
    InputError
        If there is no GPU and one is demanded, or the process is one of several ranks.
    """
    _refuse_ranks()
    cpu = CpuBackend(cores())
    if asked == "cpu":
        return Devices(cpu, None, "not asked for")
    try:
        return Devices(cpu, GpuBackend(0))
    except InputError as error:
        reason = str(error).split(";")[0].removeprefix("no GPU can be used: ")
        if asked == "gpu":
            raise InputError(
                f"no GPU can be used: {reason}; this needs an NVIDIA GPU, its driver and the extra cuda12 or cuda13 "
                "(hybrid-nbody doctor says more)"
            ) from error
        return Devices(cpu, None, reason)


def _refuse_ranks():
    words = [os.environ.get(name, "") for name in LAUNCHERS]
    ranks = max([1, *(int(word) for word in words if word.isdecimal())])
    if ranks > 1:
        raise InputError(
            f"this benchmark runs in one process, not in {ranks}: start it without mpirun"
        )


def check_memory(devices: Devices, sizes, option: str = "--sizes", ranks: int = 1) -> None:
    """Check that the largest size fits in memory.

    Parameters
    ----------
    devices : Devices
    sizes : sequence of int
        Numbers of bodies.
    option : str, optional
        Which one asked for them.
    ranks : int, optional
        Of this node: each holds all bodies.

    Raises
    ------
    InputError
        If it does not, saying how much is needed and how much there is.
    """
    largest = max(sizes)
    _check_fit(largest, HOST_BYTES_PER_BODY * ranks, host_memory(), "in memory", option)
    if devices.gpu:
        partial_sums = Layout.of(largest).parts * COMPONENTS * 8
        _check_fit(
            largest,
            DEVICE_BYTES_PER_BODY + partial_sums,
            devices.gpu.free_memory(),
            "on the GPU",
            option,
        )


def _check_fit(bodies, bytes_per_body, free, where, option):
    needed = bodies * bytes_per_body
    if needed > free:
        raise InputError(
            f"{option}: {bodies} bodies need {needed / 2**30:.3g} GiB {where}, and {free / 2**30:.3g} GiB are free; "
            f"at most {free // bytes_per_body} bodies fit"
        )


def host_memory() -> int:
    """Return the bytes that are available on the host (Linux)."""
    lines = Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable:\s+(\d+) kB", lines)[1]) * 1024


def _cpu_facts(cpu):
    return {
        "cpu": _processor(),
        "cores": cores(),
        "threads": cpu.threads,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "c_compiler": compiler_version(),
    }


def _processor() -> str:
    """Return the name of the processor (Linux tells it for x86; else the architecture)."""
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else platform.machine()


def _versions():
    return {
        "hybrid_nbody": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }
