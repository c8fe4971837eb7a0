"""``bench fluid``, solvers: Poisson's equation within walls, a random smooth right-hand side, to a given residual."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hybrid_nbody.benchmarks.fluid.problems import FREE_SLIP, make_halo, make_slab, smooth_field
from hybrid_nbody.benchmarks.fluid.rows import measured
from hybrid_nbody.benchmarks.harness.record import Task
from hybrid_nbody.fluid.kernels import make_kernels, reference
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.solvers.relaxation import RedBlack, Sor
from hybrid_nbody.fluid.stencil import POISSON

SIZES = {"cpu": (64,), "gpu": (64, 128)}

RESIDUAL = 1e-3
"""The largest, relative to the largest right-hand side, at which a solve ends."""

DTYPE = "f8"
"""Of the numbers: in float32 the solution of a large grid is not exact enough for smaller
residuals."""

CHUNK = 500
"""Iterations between two looks whether the person wants to stop."""

MOST_ITERATIONS = 40000


@dataclass(frozen=True)
class Solver:
    """A solver: its name, and what makes it of kernels, halo and `Accuracy`."""

    name: str
    make: Callable


SOLVERS = (
    Solver("red-black", RedBlack),
    Solver("sor", Sor),
    Solver("multigrid", Multigrid),
)


class Problem:
    """Poisson's equation on a cube of cells."""

    def __init__(self, backend, edge: int):
        cells = (edge,) * 3
        self.backend = backend
        self.kernels = make_kernels(backend, make_slab(cells), DTYPE)
        self.halo = make_halo(cells)
        self.x, self.b, self.field = (
            self.kernels.colours(),
            self.kernels.colours(),
            self.kernels.field(),
        )
        self.room = backend.zeros(2 * self.field.size, DTYPE)
        self.right_side = smooth_field(edge).astype(DTYPE)
        self.field[1:-1] = backend.upload(self.right_side)
        self.kernels.split(self.field, self.b)

    def solver(self, solver: Solver, iterations: int):
        """Return a solver of at most so many iterations."""
        return solver.make(self.kernels, self.halo, Accuracy(iterations, RESIDUAL, "residual"))

    def iterations(self, solver: Solver, stop) -> int:
        """Solve from zero; return the iterations needed, or `MOST_ITERATIONS`."""
        self.kernels.fill(self.x, 0.0)
        self.kernels.reset_statistics()
        part = self.solver(solver, CHUNK)
        while True:
            stop()
            part.solve(self.x, self.b, POISSON, self.room)
            counts = self.kernels.statistics()
            if counts["early"] or counts["iterations"] >= MOST_ITERATIONS:
                return counts["iterations"]

    def residual(self) -> float:
        """Return the largest residual over the largest right-hand side, in float64."""
        self.kernels.merge(self.x, self.field)
        x = self.backend.download(self.field[1:-1]).astype(float)
        b = self.right_side.astype(float)
        return float(np.abs(reference.residual(x, b, POISSON, FREE_SLIP)).max() / np.abs(b).max())


def edges(settings, device: str):
    """Return the edges of the grids of a device."""
    return settings.edges(settings.poisson, SIZES, device)


def tasks(settings):
    """Yield a task for each solver of each device and size."""
    for device in SIZES:
        for edge in edges(settings, device) if settings.wants(device) else ():
            section = f"Solvers, {edge}^3 cells, {device.upper()}: Poisson's equation to a relative residual of {RESIDUAL:g}"
            for solver in SOLVERS:
                head = {"part": "solvers", "cells": edge, "rung": solver.name, "device": device}
                yield Task(section, solver.name, partial(_row, head, solver, settings))


def _row(head, solver, settings, rows, stop):
    if missing := settings.missing(head["device"]):
        return head | {"note": missing}
    backend = settings.open(head["device"])
    edge = head["cells"]
    problem = Problem(backend, edge)
    needed = problem.iterations(solver, stop)
    whole = problem.solver(solver, needed)

    def solve():
        problem.kernels.fill(problem.x, 0.0)
        whole.solve(problem.x, problem.b, POISSON, problem.room)

    taken = measured(backend, solve, settings.repeats, stop)
    row = head | {
        "threads": getattr(backend, "threads", None),
        **taken.columns,
        "iterations": needed,
    }
    keys = ("part", "cells", "device")
    first = next((other for other in rows if all(other[key] == row[key] for key in keys)), row)
    return row | {"residual": problem.residual(), "speedup": first["median_s"] / taken.median}
