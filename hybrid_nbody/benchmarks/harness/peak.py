"""What a GPU can do at most, measured in this process: multiply-adds, reciprocal roots, copies."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybrid_nbody.benchmarks.harness.measure import seconds_of

SOURCE = Path(__file__).with_name("peak.cu")
CHAINS = 8
LENGTH = 64
DEFINES = {"CHAINS": CHAINS, "LENGTH": LENGTH}
BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 8
COPY_BYTES = 512 * 2**20
TRIALS = 5
SECONDS = 0.02
"""Length of a timing: long enough that the clock settles as it does under a real kernel."""

INSTRUCTIONS = 13
"""Issue slots of an interaction in single precision, unequal masses; ``limits.py`` derives those of
every kernel."""


@dataclass(frozen=True)
class Peak:
    """The most that was measured.

    Attributes
    ----------
    single, double : float
        Multiply-adds a second in float32 and float64; twice that are floating-point operations.
    roots : float
        Reciprocal roots a second in float32.
    copy : float
        Bytes read and written a second by a copy within the device's memory.
    """

    single: float
    double: float
    roots: float
    copy: float

    def ceiling(self, instructions: int = INSTRUCTIONS) -> float:
        """Return the interactions a second of single precision if every issue slot did useful work."""
        return self.single / instructions

    @property
    def description(self) -> str:
        """The figures in one line."""
        return (
            f"peak: {self.single * 2e-12:.1f} TFLOP/s float32, {self.double * 2e-12:.1f} float64, "
            f"{self.roots * 1e-12:.2f} T reciprocal roots/s, copies {self.copy * 1e-12:.2f} TB/s; "
            f"ceiling of single: {self.ceiling() * 1e-9:.0f} G interactions/s"
        )


def measure_peak(backend) -> Peak:
    """Return the peak of a GPU; takes about a second."""
    module = backend.compile(SOURCE, DEFINES)
    return Peak(
        _rate(backend, module.get_function("single_multiply_add"), "f4"),
        _rate(backend, module.get_function("double_multiply_add"), "f8"),
        _rate(backend, module.get_function("reciprocal_roots"), "f4"),
        copy_rate(backend),
    )


def _rate(backend, kernel, kind) -> float:
    """Return how many of a kernel's instructions, counted a thread, the device does in a second."""
    blocks = BLOCKS_PER_MULTIPROCESSOR * backend.facts()["multiprocessors"]
    result = backend.zeros(1, kind)

    def launch(rounds):
        kernel((blocks,), (BLOCK,), (np.int32(rounds), result))

    launch(1)
    short = seconds_of(backend, lambda: launch(100))
    rounds = max(100, int(100 * SECONDS / short))
    best = min(seconds_of(backend, lambda: launch(rounds)) for _ in range(TRIALS))
    return blocks * BLOCK * rounds * CHAINS * LENGTH / best


def copy_rate(backend) -> float:
    """Return the bytes that a GPU reads and writes a second when it copies an array within its memory."""
    kernel = backend.compile(SOURCE, DEFINES).get_function("copy")
    numbers = min(COPY_BYTES, backend.free_memory() // 8) // 16 * 4
    source = backend.zeros(numbers, "f4")
    target = backend.zeros(numbers, "f4")
    blocks = BLOCKS_PER_MULTIPROCESSOR * backend.facts()["multiprocessors"]

    def launch():
        kernel((blocks,), (BLOCK,), (np.int32(numbers // 4), source, target))

    launch()
    return 2 * source.nbytes / min(seconds_of(backend, launch) for _ in range(TRIALS))
