"""``bench fluid``, layouts, blocks and convergence: red-black iterations of Poisson's equation.

Layouts and blocks are far larger than the caches, and compared with a copy within the memory.
Convergence shows what it costs to test each iteration for changes. No test is ever met.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.benchmarks.fluid import problems, sweeps
from hybrid_nbody.benchmarks.fluid.problems import FREE_SLIP, SMALL, Part
from hybrid_nbody.benchmarks.harness.machine import COPY_BYTES, COPY_TIMINGS, copy_rate, fastest
from hybrid_nbody.benchmarks.harness.measure import Row, Stop, only
from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.kernels.gpu.red_black import LONGEST_PASS
from hybrid_nbody.fluid.stencil import POISSON

ITERATIONS = 20
CHECKED_ITERATIONS = 4
"""In a row, as a solve does them, and those of a check."""

BLOCKS = (
    sweeps.BEST_BLOCK,
    (16, 16, 1),
    (64, 4, 1),
    (128, 2, 1),
    (256, 1, 1),
    (8, 8, 4),
    (8, 8, 8),
    (32, 4, 2),
    (32, 8, 4),
)

INTERLEAVED = 24
APART = 12
"""Bytes that an iteration moves for a cell: reads of x and b, and writes of x."""

COPY = "copy"


class Copy(NamedTuple):
    """A rung: a copy within the memory of a device."""

    device: str
    name: str = COPY
    threads: int | None = None

    def row(self, repeats: int, backend: Any, head: Row, rows: list[Row], stop: Stop) -> Row:
        rate = copy_rate(backend) if self.device == "gpu" else copy_rate_of_memory(backend)
        return {"bytes_per_cell": 2 * np.dtype("f4").itemsize, "bytes_per_s": rate}


class Layout(NamedTuple):
    """A rung: one of `sweeps`, which moves some bytes a cell, 0 if it is compared with no copy."""

    name: str
    device: str
    make: Callable[[Any, problems.Cells], Any]
    bytes_per_cell: float = 0
    threads: int | None = None

    def row(self, repeats: int, backend: Any, head: Row, rows: list[Row], stop: Stop) -> Row:
        edge = head["cells"]
        cells = edge + edge % 2, edge, edge
        checked = check(self.make, backend)
        made = self.make(backend, cells)
        made.load(*problems.random_fields(cells))
        made.iterate(2)  # compiles
        iterate = partial(made.iterate, ITERATIONS)
        several = problems.measured(backend, iterate, repeats, stop, made.captured)
        taken = problems.per(several, ITERATIONS)
        rate = int(np.prod(cells)) / taken.median
        row = {**taken.columns, **checked, "updates_per_s": rate}
        if not self.bytes_per_cell:
            return row
        moved = rate * self.bytes_per_cell
        row |= {"bytes_per_cell": self.bytes_per_cell, "bytes_per_s": moved}
        copies = [copy["bytes_per_s"] for copy in only(rows, rung=COPY, device=self.device)]
        return row | ({"share_of_copy": moved / copies[-1]} if copies and copies[-1] else {})


MANY = "{} iterations in one pass (model)"
LAYOUTS = (
    Layout("interleaved, two half sweeps", "cpu", sweeps.InterleavedLoops, INTERLEAVED),
    Layout("colours apart, a sweep each", "cpu", sweeps.ModelSweeps, APART),
    Layout("both colours in one pass", "cpu", partial(sweeps.passes_on_cpu, longest=1), APART),
    Layout(MANY.format(sweeps.CPU_PASS), "cpu", sweeps.passes_on_cpu, APART / sweeps.CPU_PASS),
    Layout("interleaved, two half sweeps", "gpu", sweeps.PlainKernels, INTERLEAVED),
    Layout("colours apart, a sweep each", "gpu", sweeps.ModelSweeps, APART),
    Layout("both colours in one pass", "gpu", partial(sweeps.model_passes, longest=1), APART),
    Layout(MANY.format(LONGEST_PASS), "gpu", sweeps.model_passes, APART / LONGEST_PASS),
)

SHAPES = tuple(
    Layout("x".join(map(str, shape)), "gpu", partial(sweeps.PlainKernels, block=shape), INTERLEAVED)
    for shape in BLOCKS
)

single = partial(Layout, threads=1)
STRATEGIES = (
    single("never", "cpu", partial(sweeps.ColourLoops, note="nothing")),
    single("changed cells counted, an integer", "cpu", partial(sweeps.ColourLoops, note="count")),
    single("largest change, a float", "cpu", partial(sweeps.ColourLoops, note="largest")),
    Layout("never", "gpu", sweeps.PlainKernels),
    Layout("one flag, every thread writes", "gpu", partial(sweeps.OneFlag, "flag_of_threads")),
    Layout("one flag, once a block (model)", "gpu", partial(sweeps.OneFlag, "flag_of_blocks")),
    Layout("a flag a block, folded", "gpu", sweeps.BlockFlags),
    Layout("largest change, read by the host", "gpu", sweeps.ReadByHost),
)

LARGE = {"cpu": (256,), "gpu": (512,)}
ODD = 333, 501, 513, 701, 1001
EDGES = {"cpu": (32, 64, 96, 128, 192, 256), "gpu": (*range(128, 1025, 64), *ODD)}
PARTS = (
    Part(
        "layouts",
        "--large",
        LARGE,
        "Layouts, {edge}^3 cells, {device}: a red-black iteration",
        (Copy("cpu"), Copy("gpu"), *LAYOUTS),
    ),
    Part(
        "convergence",
        "--sizes",
        {"cpu": (84,), "gpu": (84, 168, 336)},
        "Convergence, {edge}^3 cells, {device} (a CPU: one thread): "
        f"an iteration of {ITERATIONS} in a row",
        STRATEGIES,
        compared=("part", "cells", "device"),
    ),
    Part(
        "blocks",
        "--large",
        LARGE,
        "Blocks, interleaved arrays, {edge}^3 cells, {device}: a red-black iteration",
        SHAPES,
        also="block",
    ),
    Part(
        "edges",
        "--sizes",
        EDGES,
        "Edges, {device}: a red-black iteration, as the model relaxes a whole grid",
        [Layout("model", device, sweeps.ModelRelax) for device in EDGES],
        row="{edge}^3",
    ),
)


def check(make: Callable, backend: Backend) -> Row:
    """Compare a few iterations on a small grid with the float64 reference and the model's bits."""
    found = _small_result(make(backend, SMALL))
    same = np.array_equal(found, _small_result(sweeps.ModelRelax(backend, SMALL)))
    x, b = (field.astype(float) for field in problems.random_fields(SMALL))
    truth = reference.relax(x, b, POISSON, FREE_SLIP, CHECKED_ITERATIONS)[0]
    error = problems.relative_error(found, truth)
    return {"error": error, "same_bits": "same" if same else "different"}


def _small_result(made: Any) -> NDArray:
    made.load(*problems.random_fields(SMALL))
    made.iterate(CHECKED_ITERATIONS)
    return made.result()


def copy_rate_of_memory(backend: Any) -> float:
    """Return the bytes that all threads read and write a second when they copy an array."""
    source = np.ones((backend.threads, COPY_BYTES // 4 // backend.threads), np.float32)
    target = np.zeros_like(source)
    with ThreadPoolExecutor(backend.threads) as pool:

        def copy() -> None:
            list(pool.map(np.copyto, target, source))

        copy()
        return 2 * source.nbytes / fastest(backend, copy, COPY_TIMINGS)
