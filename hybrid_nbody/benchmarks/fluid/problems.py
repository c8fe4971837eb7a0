"""Common parts of ``bench fluid``: settings, tasks, timing, the plume, random fields."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.backends.timing import seconds_of
from hybrid_nbody.benchmarks.harness import measure
from hybrid_nbody.benchmarks.harness.machine import Devices
from hybrid_nbody.benchmarks.harness.measure import Action, Row, Stop, Times, timed
from hybrid_nbody.benchmarks.harness.record import Task
from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.model import FluidModel
from hybrid_nbody.parallel import shares
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import FullGrid
from hybrid_nbody.parallel.one_rank import OneRank
from hybrid_nbody.parallel.placement import Placement
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.start import resolved

ROW_SECONDS = 15.0
"""About as long as the timings of a row may take: slow ones are repeated less often."""

DTYPE = "f4"
FREE_SLIP = Boundary.of_axes(("free-slip",) * 3)

PLUME = Path(__file__).parents[2] / "examples" / "plume_84.yaml"
"""The plume of the course, on one of its grids."""

SMALL = (10, 8, 9)
"""Cells nx, ny, nz on which results are compared with the float64 reference."""

Cells = tuple[int, int, int]


class Settings(NamedTuple):
    """The devices and the options: auto, cpu or gpu, and edges by the option that asks for them."""

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


@dataclass(frozen=True)
class Part:
    """A part of the benchmark: a table for each title, of an edge of the grid and a device.

    `option` asks for the edges, and `sizes` has the default ones for each device. A rung has a
    name, a device, and threads of a CPU (None: all); ``row(repeats, backend, head, rows, stop)``
    returns what is added to its head. Rows that agree in the columns `compared`, if there are any,
    have speed-ups over the first. The name of a row, `row`, stands in the column `also`, too.
    """

    name: str
    option: str
    sizes: Mapping[str, tuple[int, ...]]
    title: str
    rungs: Sequence[Any]
    compared: tuple[str, ...] = ()
    also: str = "rung"
    row: str = "{rung.name}"

    def tasks(self, settings: Settings) -> Iterator[Task]:
        for device in filter(settings.wants, self.sizes):
            for edge in settings.edges(self, device):
                yield from self.table(edge, [device], settings)

    def table(self, edge: int, devices: Sequence[str], settings: Settings) -> Iterator[Task]:
        """Yield the tasks of some devices at one size."""
        section = self.title.format(edge=edge, device=" ".join(devices).upper())
        for rung in self.rungs:
            if rung.device in devices:
                name = self.row.format(rung=rung, edge=edge)
                head = {"part": self.name, "cells": edge, "device": rung.device, "rung": name}
                head[self.also] = name
                yield Task(section, name, partial(self._row, head, rung, settings))

    def _row(self, head: Row, rung: Any, settings: Settings, rows: list[Row], stop: Stop) -> Row:
        backend = settings.devices.gpu
        if rung.device == "gpu" and not backend:
            return head | {"note": "needs a GPU"}
        stop()
        if rung.device == "cpu":  # Numba's threads are those of the last backend
            backend = CpuBackend(rung.threads or settings.devices.cpu.threads)
        head["threads"] = getattr(backend, "threads", None)
        row = head | rung.row(settings.repeats, backend, head, rows, stop)
        return row | (measure.speedup(rows, row, *self.compared) if self.compared else {})


def measured(
    backend: Backend, action: Action, repeats: int, stop: Stop, captured: bool = True
) -> Times:
    """Time `action`, `captured` in a graph unless it waits for it; fewer times if it is slow."""
    stop()
    fitting = measure.affordable(repeats, seconds_of(backend, action), ROW_SECONDS)
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


def plume(backend: Backend, cells: Cells, *settings: str) -> FluidModel:
    """Return the plume on another grid and with other settings, which are as those of ``--set``."""
    config = resolved(PLUME, [f"grid.cells={list(cells)}", *settings])
    placement = Placement(backend, "to be measured", [], False, (backend.name,))
    devices = shares.Devices(assign=lambda *asked: placement)
    builder = MODELS[config.model].builder(config, Communicator(OneRank()), devices)
    model: FluidModel = builder.fresh(builder.initial()).model
    return model


@lru_cache(maxsize=2)
def random_fields(cells: Cells, seed: int = 1) -> tuple[NDArray, NDArray]:
    """Return a random first guess and a right-hand side without average, (nz, ny, nx)."""
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
