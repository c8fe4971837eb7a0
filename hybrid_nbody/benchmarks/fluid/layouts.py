"""``bench fluid``, layouts, blocks and convergence: red-black iterations of Poisson's equation.

Layouts and blocks are far larger than the caches, and compared with a copy within the memory.
Convergence shows what it costs to test after each iteration whether any cell has changed: on a GPU
interleaved arrays are relaxed in two half sweeps; on one thread of a CPU colours in separate
arrays, where the test decides whether a loop becomes vector code. No test is ever met, so that all
do the same iterations.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.benchmarks.fluid import problems, sweeps
from hybrid_nbody.benchmarks.fluid.problems import SMALL, Part, Settings, task
from hybrid_nbody.benchmarks.harness.machine import copy_rate, fastest
from hybrid_nbody.benchmarks.harness.measure import Row, Stop
from hybrid_nbody.benchmarks.harness.record import Task
from hybrid_nbody.fluid.kernels.gpu.red_black import LONGEST_PASS

ITERATIONS = 20
"""In a row, as a solve does them."""

CHECKED_ITERATIONS = 4

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

COPY_BYTES = 512 * 2**20
COPY_TIMINGS = 40
COPY = "copy"


class Layout(NamedTuple):
    """A rung: a way to relax, or to test for convergence.

    ``make(backend, cells)`` returns one of `sweeps`. An iteration is assumed to move some bytes per
    cell; 0 if it is not compared with a copy.
    """

    name: str
    device: str
    make: Callable[[Any, problems.Cells], Any]
    bytes_per_cell: float = 0

    def row(self, repeats: int, backend: Any, head: Row, rows: list[Row], stop: Stop) -> Row:
        """Return times, rate and check of the iterations."""
        edge = head["cells"]
        cells = edge + edge % 2, edge, edge
        checked = check(self.make, backend)
        taken = iteration_times(self.make(backend, cells), cells, repeats, stop)
        rate = int(np.prod(cells)) / taken.median
        row = {**taken.columns, **checked, "updates_per_s": rate}
        if not self.bytes_per_cell:
            return row | problems.speedup(rows, head, taken.median, "part", "cells", "device")
        moved = rate * self.bytes_per_cell
        row |= {"bytes_per_cell": self.bytes_per_cell, "bytes_per_s": moved}
        copies = [other for other in rows if other["rung"] == COPY]
        rates = [other["bytes_per_s"] for other in copies if other["device"] == self.device]
        return row | ({"share_of_copy": moved / rates[-1]} if rates and rates[-1] else {})


LAYOUTS = (
    Layout("interleaved, two half sweeps", "cpu", sweeps.InterleavedLoops, INTERLEAVED),
    Layout("colours apart, a sweep each", "cpu", sweeps.ModelSweeps, APART),
    Layout("both colours in one pass", "cpu", sweeps.one_pass_on_cpu, APART),
    Layout(
        f"{sweeps.CPU_PASS} iterations in one pass (model)",
        "cpu",
        sweeps.passes_on_cpu,
        APART / sweeps.CPU_PASS,
    ),
    Layout("interleaved, two half sweeps", "gpu", sweeps.PlainKernels, INTERLEAVED),
    Layout("colours apart, a sweep each", "gpu", sweeps.ModelSweeps, APART),
    Layout("both colours in one pass", "gpu", sweeps.fused_colours, APART),
    Layout(
        f"{LONGEST_PASS} iterations in one pass (model)",
        "gpu",
        sweeps.model_passes,
        APART / LONGEST_PASS,
    ),
)

STRATEGIES = (
    Layout("never", "cpu", partial(sweeps.ColourLoops, note="nothing")),
    Layout("changed cells counted, an integer", "cpu", partial(sweeps.ColourLoops, note="count")),
    Layout("largest change, a float", "cpu", partial(sweeps.ColourLoops, note="largest")),
    Layout("never", "gpu", sweeps.PlainKernels),
    Layout("one flag, every thread writes", "gpu", partial(sweeps.OneFlag, "flag_of_threads")),
    Layout("one flag, once a block (model)", "gpu", partial(sweeps.OneFlag, "flag_of_blocks")),
    Layout("a flag a block, folded", "gpu", sweeps.BlockFlags),
    Layout("largest change, read by the host", "gpu", sweeps.ReadByHost),
)

PLACES = {"cpu": "one thread of the CPU", "gpu": "GPU"}


def layout_tasks(part: Part, settings: Settings) -> Iterator[Task]:
    """Yield a task for the copy and for each layout of each device."""
    for device in filter(settings.wants, part.sizes):
        (edge,) = settings.edges(part, device)
        section = f"Layouts, {edge}^3 cells, {device.upper()}: a red-black iteration"
        head = {"part": "layouts", "cells": edge, "device": device}
        yield task(section, head | {"rung": COPY}, copy_row, settings)
        for layout in LAYOUTS:
            if layout.device == device:
                measure = partial(layout.row, settings.repeats)
                yield task(section, head | {"rung": layout.name}, measure, settings)


def block_tasks(part: Part, settings: Settings) -> Iterator[Task]:
    """Yield a task for each shape of block."""
    (edge,) = settings.edges(part, "gpu")
    section = f"Blocks, interleaved arrays, {edge}^3 cells, GPU: a red-black iteration"
    for shape in BLOCKS if settings.wants("gpu") else ():
        name = "x".join(map(str, shape))
        layout = Layout(name, "gpu", partial(sweeps.PlainKernels, block=shape), INTERLEAVED)
        head = {"part": "blocks", "cells": edge, "device": "gpu", "rung": name, "block": name}
        yield task(section, head, partial(layout.row, settings.repeats), settings)


def convergence_tasks(part: Part, settings: Settings) -> Iterator[Task]:
    """Yield a task for each strategy of each device and size."""
    for device in filter(settings.wants, part.sizes):
        for edge in settings.edges(part, device):
            where = f"Convergence, {edge}^3 cells, {PLACES[device]}"
            section = f"{where}: an iteration of {ITERATIONS} in a row"
            for strategy in STRATEGIES:
                if strategy.device == device:
                    head = {"part": "convergence", "cells": edge, "rung": strategy.name}
                    head["device"] = device
                    measure = partial(strategy.row, settings.repeats)
                    yield task(section, head, measure, settings, threads=1)


LAYOUTS_PART = Part("--large", {"cpu": (256,), "gpu": (512,)}, layout_tasks)
BLOCKS_PART = Part("--large", LAYOUTS_PART.sizes, block_tasks)
CONVERGENCE_PART = Part("--sizes", {"cpu": (84,), "gpu": (84, 168, 336)}, convergence_tasks)


def iteration_times(made: Any, cells: problems.Cells, repeats: int, stop: Stop):
    """Return the times of an iteration of sweeps that were made for some cells."""
    made.load(*fields(cells))
    made.iterate(2)  # compiles
    iterate = partial(made.iterate, ITERATIONS)
    taken = problems.measured(made.backend, iterate, repeats, stop, made.captured)
    return problems.per(taken, ITERATIONS)


@lru_cache(maxsize=1)
def fields(cells: problems.Cells) -> tuple[NDArray, NDArray]:
    """Return `random_fields`; the last ones are kept."""
    return problems.random_fields(cells)


def check(make: Callable, backend: Backend) -> Row:
    """Compare a few iterations on a small grid with the float64 reference and the model's bits."""
    found = _small_result(make(backend, SMALL))
    same = np.array_equal(found, _small_result(sweeps.ModelRelax(backend, SMALL)))
    error = problems.relative_error(found, _truth())
    return {"error": error, "same_bits": "same" if same else "different"}


def _small_result(made: Any) -> NDArray:
    made.load(*problems.random_fields(SMALL))
    made.iterate(CHECKED_ITERATIONS)
    return made.result()


@cache
def _truth() -> NDArray:
    return problems.relaxed(SMALL, CHECKED_ITERATIONS)


def copy_row(backend: Any, head: Row, rows: list[Row], stop: Stop) -> Row:
    """Return what a copy within the memory moves."""
    rate = COPY_RATES[backend.name](backend)
    return {"bytes_per_cell": 2 * np.dtype("f4").itemsize, "bytes_per_s": rate}


def copy_rate_of_memory(backend: Any) -> float:
    """Return the bytes that all threads read and write a second when they copy an array."""
    source = np.ones((backend.threads, COPY_BYTES // 4 // backend.threads), np.float32)
    target = np.zeros_like(source)
    with ThreadPoolExecutor(backend.threads) as pool:

        def copy() -> None:
            list(pool.map(np.copyto, target, source))

        copy()
        return 2 * source.nbytes / fastest(backend, copy, COPY_TIMINGS)


def copy_rate_of_gpu(backend: Any) -> float:
    """Return the same of a GPU's memory: by a kernel, or by CUDA's own copy if that is faster."""
    source = backend.zeros(COPY_BYTES // 4, "f4")
    target = backend.zeros(COPY_BYTES // 4, "f4")
    copy = partial(backend.xp.copyto, target, source)
    copy()
    by_cuda = 2 * source.nbytes / fastest(backend, copy, COPY_TIMINGS)
    return max(by_cuda, copy_rate(backend))


COPY_RATES = {"cpu": copy_rate_of_memory, "gpu": copy_rate_of_gpu}
