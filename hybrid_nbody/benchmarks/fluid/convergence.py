"""``bench fluid``, convergence: what it costs to test after each iteration whether any cell has changed.

On a GPU interleaved arrays are relaxed in two half sweeps; on one thread of a CPU colours in
separate arrays, where the test decides whether a loop becomes vector code. No test is ever met, so
that all do the same iterations.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from hybrid_nbody.benchmarks.fluid.layouts import ITERATIONS, check, iteration_times
from hybrid_nbody.benchmarks.fluid.sweeps import (
    BlockFlags,
    ColourLoops,
    CountingLoops,
    LargestLoops,
    OneFlag,
    OneFlagOncePerBlock,
    PlainKernels,
    ReadByHost,
)
from hybrid_nbody.benchmarks.harness.record import Task

SIZES = {"cpu": (84,), "gpu": (84, 168, 336)}


PLACES = {"cpu": "one thread of the CPU", "gpu": "GPU"}


@dataclass(frozen=True)
class Strategy:
    """A way to test; attributes as of `hybrid_nbody.benchmarks.fluid.layouts.Layout`."""

    name: str
    device: str
    make: object


STRATEGIES = (
    Strategy("never", "cpu", ColourLoops),
    Strategy("changed cells counted, an integer", "cpu", CountingLoops),
    Strategy("largest change, a float", "cpu", LargestLoops),
    Strategy("never", "gpu", PlainKernels),
    Strategy("one flag, every thread writes", "gpu", OneFlag),
    Strategy("one flag, once a block (model)", "gpu", OneFlagOncePerBlock),
    Strategy("a flag a block, folded", "gpu", BlockFlags),
    Strategy("largest change, read by the host", "gpu", ReadByHost),
)


def edges(settings, device: str):
    """Return the edges of the grids of a device."""
    return settings.edges(settings.sizes, SIZES, device)


def tasks(settings):
    """Yield a task for each strategy of each device and size."""
    for device in SIZES:
        for edge in edges(settings, device) if settings.wants(device) else ():
            section = f"Convergence, {edge}^3 cells, {PLACES[device]}: an iteration of {ITERATIONS} in a row"
            for strategy in (strategy for strategy in STRATEGIES if strategy.device == device):
                head = {
                    "part": "convergence",
                    "cells": edge,
                    "rung": strategy.name,
                    "device": device,
                }
                yield Task(section, strategy.name, partial(_row, head, strategy, settings))


def _row(head, strategy, settings, rows, stop):
    if missing := settings.missing(strategy.device):
        return head | {"note": missing}
    stop()
    backend = settings.open(strategy.device, threads=1)
    edge = head["cells"]
    cells = (edge + edge % 2, edge, edge)
    checked = check(strategy.make, backend)
    taken = iteration_times(strategy.make(backend, cells), cells, settings.repeats, stop)
    row = head | {"threads": getattr(backend, "threads", None), **taken.columns, **checked}
    keys = ("part", "cells", "device")
    first = next((other for other in rows if all(other[key] == row[key] for key in keys)), row)
    return row | {
        "updates_per_s": int(np.prod(cells)) / taken.median,
        "speedup": first["median_s"] / taken.median,
    }
