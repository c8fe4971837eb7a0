"""Common parts of ``bench fluid``: settings, tasks, timing, the plume, random fields."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.benchmarks.harness import measure
from hybrid_nbody.benchmarks.harness.machine import Devices
from hybrid_nbody.benchmarks.harness.measure import Action, Row, Stop, Times, timed
from hybrid_nbody.benchmarks.harness.record import Task
from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.model import FluidModel
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.sources import Box, Event, Sources
from hybrid_nbody.fluid.step import Physics
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import FullGrid
from hybrid_nbody.parallel.one_rank import OneRank

ROW_SECONDS = 15.0
"""About as long as the timings of a row may take: slow ones are repeated less often."""

DTYPE = "f4"
FREE_SLIP = Boundary.of_axes(("free-slip",) * 3)

COURSE = Accuracy(iterations=20, tolerance=1e-7)
"""The end of a solve of the course's program."""

PLUME = Physics(dt=0.1, viscosity=1e-4, diffusivity=1e-4, projection="course", carry_over=True)
CLEARED = Physics(dt=0.1, viscosity=1e-4, diffusivity=1e-4)
PLUME_STEPS = 100

PLUME_EVENTS = (
    (0, "density", (8.0,)),
    (5, "velocity", (0.0, 2.0, 0.0)),
    (12, "density", (6.0,)),
    (20, "velocity", (1.0, 0.0, 1.0)),
    (31, "density", (9.0,)),
    (38, "velocity", (0.0, -1.0, 2.0)),
    (46, "density", (5.0,)),
    (55, "velocity", (-2.0, 1.0, 0.0)),
    (63, "density", (10.0,)),
    (71, "velocity", (0.0, 0.0, -3.0)),
    (80, "density", (7.0,)),
    (88, "velocity", (2.0, 2.0, 2.0)),
)
"""Step, field and values, all in the cell at the centre: those of ``input/plume_84.yaml`` and its
fellows."""

SMALL = (10, 8, 9)
"""Cells nx, ny, nz on which results are compared with the float64 reference."""

Cells = tuple[int, int, int]


class Settings(NamedTuple):
    """The options of a benchmark, and the devices that it uses.

    `backend` is auto, cpu or gpu; `asked` has the edges of grids by the option that asked for them.
    """

    devices: Devices
    backend: str
    repeats: int
    asked: Mapping[str, Sequence[int]]

    def edges(self, part: "Part", device: str) -> Sequence[int]:
        """Return the edges of a part's grids; without a GPU, the default ones are the CPU's."""
        return self.asked.get(part.option) or part.sizes[device if self.devices.gpu else "cpu"]

    def wants(self, device: str) -> bool:
        """Return whether rungs of a device belong in the table."""
        return self.backend in ("auto", device)

    def open(self, device: str, threads: int | None = None) -> Any:
        """Return a backend to be measured: Numba's threads are those of the last one opened."""
        if device == "gpu":
            return self.devices.gpu
        return CpuBackend(threads or self.devices.cpu.threads)


@dataclass(frozen=True)
class Part:
    """A part of the benchmark: a table for each device and size.

    `option` says how large its grids are, and `sizes` has their edges by default for each device;
    `title` is that of a table, with its edge and device to be filled in. A rung has a name, a
    device, and the threads of a CPU (None: all); ``row(repeats, backend, head, rows, stop)``
    returns what is added to its head. Its name stands in the column `also`, too.
    """

    name: str
    option: str
    sizes: Mapping[str, tuple[int, ...]]
    title: str
    rungs: Sequence[Any]
    also: str = "rung"

    def tasks(self, settings: Settings) -> Iterator[Task]:
        for device in filter(settings.wants, self.sizes):
            for edge in settings.edges(self, device):
                yield from self.table(edge, [device], settings)

    def table(self, edge: int, devices: Sequence[str], settings: Settings) -> Iterator[Task]:
        """Yield the tasks of some devices at one size."""
        section = self.title.format(edge=edge, device=" ".join(devices).upper())
        for rung in self.rungs:
            if rung.device in devices:
                name = self.row_name(rung, edge)
                head = {"part": self.name, "cells": edge, "device": rung.device, "rung": name}
                head[self.also] = name
                yield Task(section, name, partial(_row, head, rung, settings))

    def row_name(self, rung: Any, edge: int) -> str:
        """Return what a row of the table is called."""
        return str(rung.name)


class Curve(Part):
    """A part with one table a device, a row for each size."""

    def row_name(self, rung: Any, edge: int) -> str:
        """Return the size."""
        return f"{edge}^3"


def _row(head: Row, rung: Any, settings: Settings, rows: list[Row], stop: Stop) -> Row:
    if rung.device == "gpu" and not settings.devices.gpu:
        return head | {"note": "needs a GPU"}
    stop()
    backend = settings.open(rung.device, rung.threads)
    head["threads"] = getattr(backend, "threads", None)
    return head | rung.row(settings.repeats, backend, head, rows, stop)


def measured(
    backend: Backend, action: Action, repeats: int, stop: Stop, captured: bool = True
) -> Times:
    """Time `action`, fewer times if it is slow.

    Where it waits for the device, it cannot be `captured` in a graph.
    """
    stop()
    fitting = measure.affordable(repeats, measure.seconds_of(backend, action), ROW_SECONDS)
    if captured and fitting == repeats:
        return timed(backend, action, repeats, stop)
    return measure.timings(backend, action, fitting, stop)


def per(taken: Times, number: int) -> Times:
    """Return the times of one of `number` things that were timed in a row."""
    seconds = tuple(one / number for one in taken.seconds)
    return replace(taken, seconds=seconds, calls=taken.calls * number)


def make_grid(backend: Backend, cells: Cells, dtype: str = DTYPE) -> tuple[Any, FullGrid]:
    """Return the kernels and the halo of a grid of cells nx, ny, nz within free-slip walls."""
    halo = FullGrid(cells[2], periodic=False)
    return make_kernels(backend, Slab.whole(cells, FREE_SLIP), dtype), halo


def centre(cells: Cells) -> Box:
    """Return the cell at the centre, as the course's program numbers it."""
    return Box.cell(*(number // 2 - 1 for number in cells))


def make_model(
    backend: Backend, cells: Cells, solver: Callable, physics: Physics, events: Sequence
) -> FluidModel:
    """Return a fluid at rest.

    ``solver(kernels, halo, accuracy)`` returns a solver; events are (step, field, values) in the
    cell at the centre.
    """
    kernels, halo = make_grid(backend, cells)
    box = centre(cells)
    sources = Sources([Event(step, step, field, values, box) for step, field, values in events])
    method = solver(kernels, halo, COURSE)
    alone = Communicator(OneRank())
    return FluidModel(kernels, halo, alone, method, physics, sources, Frames(), COURSE.iterations)


@lru_cache(maxsize=2)
def random_fields(cells: Cells, seed: int = 1) -> tuple[NDArray, NDArray]:
    """Return a first guess and a right-hand side without average, random; the last ones are kept.

    Both are (nz, ny, nx) arrays of float32.
    """
    random = np.random.default_rng(seed)
    x, b = random.standard_normal((2, *reversed(cells)), np.float32)
    return x, b - b.mean()


def smooth_field(edge: int, waves: int = 4, seed: int = 1) -> NDArray:
    """Return a cube of random cosines, 1 to `waves` half waves along each edge; average zero."""
    number = np.arange(1, waves + 1)
    cosines = np.cos(np.pi * number[:, None] * (np.arange(edge) + 0.5) / edge)
    weight = np.random.default_rng(seed).standard_normal((waves,) * 3)
    field = np.einsum("abc,az,by,cx->zyx", weight, cosines, cosines, cosines, optimize=True)
    return field.astype(np.float32)


def relative_error(found: NDArray, expected: NDArray) -> float:
    """Return the largest difference over the largest value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())
