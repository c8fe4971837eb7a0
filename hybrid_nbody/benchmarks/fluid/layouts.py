"""``bench fluid``, layouts and blocks: a red-black iteration beyond the caches, against a copy within the memory."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np

from hybrid_nbody.benchmarks.fluid.problems import SMALL, random_fields, relative_error, relaxed
from hybrid_nbody.benchmarks.fluid.rows import measured, per
from hybrid_nbody.benchmarks.fluid.sweeps import (
    BEST_BLOCK,
    CPU_PASS,
    FusedColours,
    InterleavedLoops,
    ModelPasses,
    ModelRelax,
    ModelSweeps,
    OnePassOnCpu,
    PassesOnCpu,
    PlainKernels,
)
from hybrid_nbody.benchmarks.harness.measure import seconds_of
from hybrid_nbody.benchmarks.harness.peak import copy_rate
from hybrid_nbody.benchmarks.harness.record import Task
from hybrid_nbody.fluid.kernels.gpu.red_black import LONGEST_PASS

LARGE = {"cpu": (256,), "gpu": (512,)}
"""Cells along an edge: far more than fits in the caches."""

ITERATIONS = 20
"""In a row, as a solve does them."""

CHECKED_ITERATIONS = 4

BLOCKS = (
    BEST_BLOCK,
    (16, 16, 1),
    (64, 4, 1),
    (128, 2, 1),
    (256, 1, 1),
    (8, 8, 4),
    (8, 8, 8),
    (32, 4, 2),
    (32, 8, 4),
)

INTERLEAVED_BYTES = 24
APART_BYTES = 12
COPY_BYTES = 512 * 2**20
COPY_TRIALS = 40
COPY = "copy"


@dataclass(frozen=True)
class Layout:
    """A rung.

    Attributes
    ----------
    name : str
    device : {"cpu", "gpu"}
    bytes_per_cell : float
        That an iteration moves: reads of x and b, and writes of x.
    make : callable
        Takes a backend and cells nx, ny, nz; returns sweeps, such as `InterleavedLoops`.
    """

    name: str
    device: str
    bytes_per_cell: float
    make: object


LAYOUTS = (
    Layout("interleaved, two half sweeps", "cpu", INTERLEAVED_BYTES, InterleavedLoops),
    Layout("colours apart, a sweep each", "cpu", APART_BYTES, ModelSweeps),
    Layout("both colours in one pass", "cpu", APART_BYTES, OnePassOnCpu),
    Layout(
        f"{CPU_PASS} iterations in one pass (model)", "cpu", APART_BYTES / CPU_PASS, PassesOnCpu
    ),
    Layout("interleaved, two half sweeps", "gpu", INTERLEAVED_BYTES, PlainKernels),
    Layout("colours apart, a sweep each", "gpu", APART_BYTES, ModelSweeps),
    Layout("both colours in one pass", "gpu", APART_BYTES, FusedColours),
    Layout(
        f"{LONGEST_PASS} iterations in one pass (model)",
        "gpu",
        APART_BYTES / LONGEST_PASS,
        ModelPasses,
    ),
)


def edges(settings, device: str):
    """Return the edge of the grid of a device, in a list."""
    return settings.edges(settings.large and [settings.large], LARGE, device)


def layout_tasks(settings):
    """Yield a task for the copy and for each layout of each device."""
    for device in LARGE:
        if settings.wants(device):
            section, head = _table("layouts", "Layouts", settings, device)
            yield Task(section, COPY, partial(_copy_row, head | {"rung": COPY}, settings))
            for layout in (layout for layout in LAYOUTS if layout.device == device):
                yield Task(
                    section,
                    layout.name,
                    partial(_row, head | {"rung": layout.name}, layout, settings),
                )


def block_tasks(settings):
    """Yield a task for each shape of block."""
    section, head = _table("blocks", "Blocks, interleaved arrays", settings, "gpu")
    for shape in BLOCKS if settings.wants("gpu") else ():
        name = "x".join(map(str, shape))
        make = partial(PlainKernels, block=shape)
        row = partial(
            _row,
            head | {"rung": name, "block": name},
            Layout(name, "gpu", INTERLEAVED_BYTES, make),
            settings,
        )
        yield Task(section, name, row)


def _table(part, title, settings, device):
    (edge,) = edges(settings, device)
    section = f"{title}, {edge}^3 cells, {device.upper()}: a red-black iteration"
    return section, {"part": part, "cells": edge, "device": device}


def _copy_row(head, settings, rows, stop):
    if missing := settings.missing(head["device"]):
        return head | {"note": missing}
    stop()
    backend = settings.open(head["device"])
    rate = COPY_RATES[head["device"]](backend)
    size = {"bytes_per_cell": 2 * np.dtype("f4").itemsize}
    return head | size | {"threads": getattr(backend, "threads", None), "bytes_per_s": rate}


def _row(head, layout, settings, rows, stop):
    if missing := settings.missing(layout.device):
        return head | {"note": missing}
    stop()
    backend = settings.open(layout.device)
    edge = head["cells"]
    cells = (edge + edge % 2, edge, edge)
    checked = check(layout.make, backend)
    taken = iteration_times(layout.make(backend, cells), cells, settings.repeats, stop)
    row = head | {"threads": getattr(backend, "threads", None), **taken.columns, **checked}
    rate = int(np.prod(cells)) / taken.median
    moved = {"bytes_per_cell": layout.bytes_per_cell, "bytes_per_s": rate * layout.bytes_per_cell}
    copies = [
        other["bytes_per_s"]
        for other in rows
        if (other["rung"], other["device"]) == (COPY, layout.device)
    ]
    share = {"share_of_copy": moved["bytes_per_s"] / copies[-1]} if copies and copies[-1] else {}
    return row | {"updates_per_s": rate, **moved, **share}


def iteration_times(sweeps, cells, repeats, stop):
    """Return the times of an iteration of sweeps that were made for some cells."""
    sweeps.load(*fields(cells))
    sweeps.iterate(2)  # compiles
    taken = measured(
        sweeps.backend, lambda: sweeps.iterate(ITERATIONS), repeats, stop, sweeps.captured
    )
    return per(taken, ITERATIONS)


@lru_cache(maxsize=1)
def fields(cells):
    """Return `random_fields`; the last ones are kept."""
    return random_fields(cells)


# --- checks ---------------------------------------------------------------------------------------


def check(make, backend) -> dict:
    """Compare a few iterations on a small grid with the float64 reference, and with the bits of the model."""
    found = _small_result(make(backend, SMALL))
    same = np.array_equal(found, _small_result(ModelRelax(backend, SMALL)))
    return {"error": relative_error(found, _truth()), "same_bits": "same" if same else "different"}


def _small_result(sweeps):
    sweeps.load(*random_fields(SMALL))
    sweeps.iterate(CHECKED_ITERATIONS)
    return sweeps.result()


@cache
def _truth():
    return relaxed(SMALL, CHECKED_ITERATIONS)


# --- copies ---------------------------------------------------------------------------------------


def copy_rate_of_memory(backend) -> float:
    """Return the bytes that all threads read and write a second when they copy an array."""
    source = np.ones((backend.threads, COPY_BYTES // 4 // backend.threads), np.float32)
    target = np.zeros_like(source)

    with ThreadPoolExecutor(backend.threads) as pool:

        def copy():
            list(pool.map(np.copyto, target, source))

        copy()
        return 2 * source.nbytes / min(seconds_of(backend, copy) for _ in range(COPY_TRIALS))


def copy_rate_of_gpu(backend) -> float:
    """Return the same of a GPU's memory: by a kernel, or by CUDA's own copy, whichever is faster."""
    source = backend.zeros(COPY_BYTES // 4, "f4")
    target = backend.zeros(COPY_BYTES // 4, "f4")

    def copy():
        backend.xp.copyto(target, source)

    copy()
    by_cuda = 2 * source.nbytes / min(seconds_of(backend, copy) for _ in range(COPY_TRIALS))
    return max(by_cuda, copy_rate(backend))


COPY_RATES = {"cpu": copy_rate_of_memory, "gpu": copy_rate_of_gpu}
