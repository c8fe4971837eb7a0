"""The machine that is measured: its devices, its memory, and what its GPU can do at most."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybrid_nbody import __version__
from hybrid_nbody.backends.cpu import CpuBackend, available_memory, usable_cores
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.backends.timing import seconds_of
from hybrid_nbody.benchmarks.harness.measure import Action, counted
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.kernels.gpu.layout import Layout
from hybrid_nbody.parallel.launchers import promised_ranks

IN_MEMORY = "in memory"
ON_GPU = "on the GPU"
PACKAGES = ("numpy", "numba", "llvmlite", "matplotlib")

BYTES_PER_BODY = 512
"""Upper bound on what a body needs, on the host and on a GPU: state, order and workspace."""

COMPONENTS = 6
"""Most sums of a target, of which a GPU keeps one for each part: an acceleration and a jerk."""

PEAK_SOURCE = Path(__file__).with_name("peak.cu")
CHAINS = 8
LENGTH = 64
PEAK_MACROS = {"CHAINS": CHAINS, "LENGTH": LENGTH}
BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 8
COPY_BYTES = 512 * 2**20
PEAK_TIMINGS = 5
COPY_TIMINGS = 40
PEAK_SECONDS = 0.02
"""Length of a timing: long enough that the clock settles as it does under a real kernel."""

INSTRUCTIONS = 13
"""Issue slots of an interaction in single precision, unequal masses; others: ``limits.py``."""


@dataclass(frozen=True)
class Devices:
    """The devices to measure: all cores of this process, the first GPU, or why there is none."""

    cpu: CpuBackend
    gpu: Any  # GpuBackend or None
    no_gpu: str = ""

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Hardware and versions; it takes a moment to find them, the C compiler's above all."""
        host = {**self.cpu.facts(), "cores": usable_cores(), "c_compiler": compiler_version()}
        versions = {"hybrid_nbody": __version__, "python": platform.python_version()}
        packages = {name: metadata.version(name) for name in PACKAGES}
        return {**host, **(self.gpu.facts() if self.gpu else {}), **versions, **packages}

    def wanted(self, asked: str) -> list[Any]:
        """Return the devices to measure of those that there are: ``auto`` asks for all."""
        there = filter(None, (self.cpu, self.gpu))
        return [device for device in there if asked in ("auto", device.name)]

    @property
    def description(self) -> str:
        facts = self.facts
        cpu = f"{facts['cpu']}, {counted(facts['threads'], 'thread')}"
        if self.gpu is None:
            return f"{cpu}; no GPU: {self.no_gpu}"
        return f"{cpu}; {facts['gpu']}, {facts['multiprocessors']} multiprocessors"


def find_devices(asked: str = "auto", remedy: str = "") -> Devices:
    """Return the devices of this machine: ``cpu`` leaves a GPU alone, ``gpu`` demands one."""
    if promised_ranks() > 1:
        what = f"one process, not in {promised_ranks()}"
        raise InputError(f"this benchmark runs in {what}: start it without mpirun")
    cpu = CpuBackend(usable_cores())
    if asked == "cpu":
        return Devices(cpu, None, "not asked for")
    try:
        return Devices(cpu, GpuBackend(0))
    except InputError as error:
        reason = str(error).split(";")[0].removeprefix("no GPU can be used: ")
        if asked == "gpu":
            raise InputError(
                f"no GPU can be used: {reason}; this needs an NVIDIA GPU, its driver and the "
                f"extra cuda12 or cuda13 (hybrid-nbody doctor says more){remedy}"
            ) from error
        return Devices(cpu, None, reason)


def check_memory(
    devices: Devices, sizes: Sequence[int], option: str = "--sizes", ranks: int = 1
) -> None:
    """Raise `InputError` if the largest number of bodies does not fit, on each rank of a node."""
    largest = max(sizes)
    partial_sums = Layout.of(largest).parts * COMPONENTS * 8
    bytes_per_body = {IN_MEMORY: BYTES_PER_BODY * ranks, ON_GPU: BYTES_PER_BODY + partial_sums}
    for where, free in memories(devices):
        each = bytes_per_body[where]
        what = f"{option}: {largest} bodies need"
        check_fit(what, largest * each, where, free, f"; at most {free // each} bodies fit")


def memories(devices: Devices) -> list[tuple[str, int]]:
    """Return the memories of the host and of a GPU, and the bytes that are free there."""
    found = [(IN_MEMORY, available_memory())]
    return found + ([(ON_GPU, devices.gpu.free_memory())] if devices.gpu else [])


def check_fit(what: str, needed: float, where: str, free: float, remedy: str = "") -> None:
    """Raise `InputError` if something needs more memory than is free."""
    if needed > free:
        needs, has = (f"{size / 2**30:.3g} GiB" for size in (needed, free))
        raise InputError(f"{what} {needs} {where}, and {has} are free{remedy}")


def compiler() -> str | None:
    """Return the C compiler of the machine: ``$CC``, gcc or cc; None where there is none."""
    names = filter(None, (os.environ.get("CC"), "gcc", "cc"))
    return next(filter(None, map(shutil.which, names)), None)


def compiler_version() -> str:
    """Return the first line of what the compiler says of itself; empty where there is none."""
    found = compiler()
    if found is None:
        return ""
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    return said.partition("\n")[0]


class Peak(NamedTuple):
    """The most that a GPU can do in a second, as measured in this process.

    Multiply-adds in float32 and float64; reciprocal roots in float32; bytes read and written.
    """

    single: float
    double: float
    roots: float
    copy: float

    def ceiling(self, instructions: int = INSTRUCTIONS) -> float:
        """Return interactions a second in single precision if every issue slot did useful work."""
        return self.single / instructions

    @property
    def description(self) -> str:
        return (
            f"peak: {self.single * 2e-12:.1f} TFLOP/s float32, {self.double * 2e-12:.1f} float64, "
            f"{self.roots * 1e-12:.2f} T reciprocal roots/s, copies {self.copy * 1e-12:.2f} TB/s; "
            f"ceiling of single: {self.ceiling() * 1e-9:.0f} G interactions/s"
        )


def measure_peak(backend: GpuBackend) -> Peak:
    """Return the peak of a GPU; takes about a second."""
    module = CudaModule(backend, PEAK_SOURCE, PEAK_MACROS)
    return Peak(
        _rate(backend, module, "single_multiply_add", "f4"),
        _rate(backend, module, "double_multiply_add", "f8"),
        _rate(backend, module, "reciprocal_roots", "f4"),
        copy_rate(backend),
    )


def _rate(backend: GpuBackend, module: CudaModule, name: str, dtype: str) -> float:
    """Return the instructions of a kernel, counted a thread, that the device does in a second."""
    threads = _threads(backend)
    result = backend.zeros(1, dtype)

    def launch(rounds: int) -> None:
        module.launch(name, threads, BLOCK, np.int32(rounds), result)

    launch(1)
    short = seconds_of(backend, lambda: launch(100))
    rounds = max(100, int(100 * PEAK_SECONDS / short))
    best = fastest(backend, lambda: launch(rounds))
    return threads * rounds * CHAINS * LENGTH / best


def fastest(backend: Any, action: Action, timings: int = PEAK_TIMINGS) -> float:
    """Return the seconds of the fastest of several calls."""
    return min(seconds_of(backend, action) for _ in range(timings))


def copy_rate(backend: GpuBackend) -> float:
    """Return the bytes a second that a GPU reads and writes in a copy by a kernel or by CUDA."""
    module = CudaModule(backend, PEAK_SOURCE, PEAK_MACROS)
    numbers = min(COPY_BYTES, backend.free_memory() // 8) // 16 * 4
    source = backend.zeros(numbers, "f4")
    target = backend.zeros(numbers, "f4")
    arguments = np.int32(numbers // 4), source, target
    by_kernel = partial(module.launch, "copy", _threads(backend), BLOCK, *arguments)
    by_cuda = partial(backend.xp.copyto, target, source)
    seconds = []
    for copy in (by_kernel, by_cuda):
        copy()
        seconds.append(fastest(backend, copy, COPY_TIMINGS))
    return 2 * source.nbytes / min(seconds)


def _threads(backend: GpuBackend) -> int:
    return BLOCK * BLOCKS_PER_MULTIPROCESSOR * backend.facts()["multiprocessors"]
