"""The table of ``bench fluid``: what all its parts share."""

from dataclasses import dataclass, replace

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.benchmarks.harness.machine import Devices
from hybrid_nbody.benchmarks.harness.measure import Times, timed, timings
from hybrid_nbody.benchmarks.harness.results import Column, digits, times, timing_columns

ROW_SECONDS = 15.0
"""About as long as the timings of a row may take: slow ones are repeated less often."""

COLUMNS = (
    Column("part", "part of the benchmark"),
    Column("device", "cpu or gpu"),
    Column(
        "cells",
        "cells along an edge of the grid; along x an even number, but for phases and solvers",
    ),
    Column("rung", "what was measured", "Rung", note="note"),
    Column("note", "what the machine lacks for this rung, or what was cut short"),
    Column("threads", "threads of a CPU"),
    Column("block", "threads of a block along x, y and z"),
    Column("steps", "steps of the run, from the first one on"),
    *timing_columns(" of a step, an iteration or a solve", "steps, iterations or solves", rank=4)[
        :-1
    ],
    Column("cells_per_s", "cells of a step a second", "M cells\n/s", times(1e-6, digits(3))),
    Column("updates_per_s", "cell-iterations a second", "G cells\n/s", times(1e-9, digits(3))),
    Column(
        "iterations",
        "iterations of the solver: of a step, or of a solve",
        "itera-\ntions",
        digits(3),
    ),
    Column("speedup", "speed-up over the first rung of the table", "× first", digits(3)),
    Column(
        "bytes_per_cell",
        "bytes that a cell and iteration are assumed to move",
        "bytes a\ncell",
        "{:g}".format,
    ),
    Column("bytes_per_s", "bytes a second, as assumed", "GB/s", times(1e-9, digits(3))),
    Column(
        "share_of_copy",
        "of the bytes that a copy moves a second in the same run",
        "of a\ncopy",
        "{:.0%}".format,
    ),
    Column(
        "residual",
        "largest residual over the largest right-hand side, in float64",
        "residual",
        "{:.1e}".format,
    ),
    Column(
        "total", "total density at the end, ghosts included", "total\ndensity", digits(7), rank=2
    ),
    Column(
        "total_error",
        "its relative difference from the known total",
        "off by",
        "{:.0e}".format,
        rank=2,
    ),
    Column(
        "error",
        "difference from float64 on a small grid, over the largest value",
        "error",
        "{:.0e}".format,
        rank=1,
    ),
    Column(
        "same_bits",
        "whether the model's kernels give the same bits on a small grid",
        "bits",
        "{}".format,
        rank=3,
    ),
)


@dataclass(frozen=True)
class Settings:
    """What was asked for, and what there is.

    Attributes
    ----------
    devices : Devices
    backend : {"auto", "cpu", "gpu"}
    repeats : int
    sizes, poisson : list of int or None
        Edges of the grids of phases and convergence, and of solvers; None for what suits.
    large : int or None
        Edge of the grid of layouts and blocks; None for what suits.
    """

    devices: Devices
    backend: str
    repeats: int
    sizes: list[int] | None = None
    poisson: list[int] | None = None
    large: int | None = None

    def edges(self, asked, default: dict, device: str):
        """Return the edges that were asked for, or the defaults of a device; without a GPU, those of the CPU."""
        return asked or default[device if self.devices.gpu else "cpu"]

    def wants(self, device: str) -> bool:
        """Return whether rungs of a device belong in the table."""
        return self.backend in ("auto", device)

    def missing(self, device: str) -> str:
        """Return what the machine lacks for a device."""
        return "needs a GPU" if device == "gpu" and not self.devices.gpu else ""

    def open(self, device: str, threads: int | None = None):
        """Return a backend, ready to be measured: the threads of Numba are those of the last one that was opened."""
        return (
            self.devices.gpu if device == "gpu" else CpuBackend(threads or self.devices.cpu.threads)
        )


def measured(backend, action, repeats: int, stop, captured: bool = True) -> Times:
    """Time `action`, fewer times if it is slow; where it waits for the device, it cannot be `captured` in a graph."""
    stop()
    start = backend.mark()
    action()
    seconds = backend.elapsed(start, backend.mark())
    affordable = max(1, min(repeats, int(ROW_SECONDS / max(seconds, 1e-9))))
    if captured and affordable == repeats:
        return timed(backend, action, repeats, stop)
    return timings(backend, action, affordable, stop)


def per(taken: Times, number: int) -> Times:
    """Return the times of one of `number` things that were timed in a row."""
    return replace(
        taken, seconds=tuple(s / number for s in taken.seconds), calls=taken.calls * number
    )
