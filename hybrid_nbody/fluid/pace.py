"""How long a run of a fluid takes, measured on a small grid before it has taken a step."""

import time
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.fluid.config import FluidConfig
from hybrid_nbody.fluid.schemes import scheme_of
from hybrid_nbody.parallel.exchange.halo import FullGrid, HaloExchange
from hybrid_nbody.progress import duration
from hybrid_nbody.simulation.model import Model

SAMPLE = {"cpu": 64, "gpu": 128}
"""Most cells along an axis of the grid that is measured, by device."""

WORTH_MEASURING = {"cpu": 1e8, "gpu": 3e9}
"""Cells stepped in a run from which on it is measured, by device: fewer take seconds."""

WORTH_SAYING = 10.0
"""Seconds from which on a run says at its start how long it takes."""

REPEATS = 3
WAVES = 1


def is_long(config: FluidConfig, device: Backend) -> bool:
    """Return whether a run is worth a measurement, which takes a quarter of a second."""
    return _cells(config) * config.time.total_steps >= WORTH_MEASURING[device.name]


def cells_a_second(config: FluidConfig, device: Backend) -> float:
    """Return how many cells a device steps in a second, on a small grid with eddies.

    It is 0 where a formula or a file is for the grid of the run alone.

    Parameters
    ----------
    config : FluidConfig
    device : Backend
        This rank's.
    """
    try:
        return _measured(config, device)
    except HybridNBodyError:
        return 0.0


def _measured(config: FluidConfig, device: Backend) -> float:
    small = _sample(config, SAMPLE[device.name])
    scheme = scheme_of(small)
    halo = FullGrid(small.grid.cells[2], scheme.periodic)
    model: Any = scheme.model(device, cast(HaloExchange, halo), [], False)
    model.begin(_eddies(small))
    seconds = min(_seconds(model, device) for _ in range(REPEATS))
    return _cells(small) / seconds


def _seconds(model: Model, device: Backend) -> float:
    start = time.perf_counter()
    model.advance(1)
    device.synchronize()
    return time.perf_counter() - start


def _sample(config: FluidConfig, most: int) -> FluidConfig:
    """Return the configuration of a small grid, whose frames hold whatever there is."""
    grid = config.grid.model_copy(update={"cells": tuple(min(n, most) for n in config.grid.cells)})
    output = config.output.model_copy(update={"planes": None, "stride": 1})
    return config.model_copy(update={"grid": grid, "output": output})


def _eddies(config: FluidConfig) -> dict[str, NDArray[np.float64]]:
    """Return a flow that crosses a cell in a step, and what it carries."""
    nx, ny, nz = config.grid.cells
    phase = [2 * np.pi * WAVES * (np.arange(n) + 0.5) / max(nx, ny, nz) for n in (nz, ny, nx)]
    z, y, x = np.meshgrid(*phase, indexing="ij")
    speed = 1.0 / (max(nx, ny, nz) * config.time.dt)
    velocity = speed * np.stack([np.sin(y) * np.cos(z), np.sin(z) * np.cos(x), np.sin(x)], axis=-1)
    return {"velocity": velocity, "density": 1.0 + np.sin(x) * np.sin(y) * np.sin(z)}


def _cells(config: FluidConfig) -> int:
    nx, ny, nz = config.grid.cells
    return nx * ny * nz


def seconds_of_step(config: FluidConfig, rate: float) -> float:
    """Return the seconds of a step of the whole grid, given the cells a second of all ranks."""
    return _cells(config) / rate


def in_words(config: FluidConfig, rate: float, steps: int) -> str:
    """Return how long some steps take."""
    once = seconds_of_step(config, rate)
    return f"about {duration(once * steps)}, {once:.2g} s a step, without output"


def expected_lines(config: FluidConfig, rate: float, steps: int) -> list[str]:
    """Return a line on the seconds that a run still takes; none where they are few."""
    if seconds_of_step(config, rate) * steps < WORTH_SAYING:
        return []
    return [f"expected: {in_words(config, rate, steps)}"]
