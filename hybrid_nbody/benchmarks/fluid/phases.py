"""``bench fluid``, phases: whole runs of the plume by one thread, by all threads and by a GPU."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from hybrid_nbody.benchmarks.fluid.problems import (
    CLEARED,
    COURSE,
    DTYPE,
    FREE_SLIP,
    PLUME,
    PLUME_EVENTS,
    PLUME_STEPS,
    SMALL,
    centre,
    make_model,
    make_slab,
    random_fields,
    relative_error,
)
from hybrid_nbody.benchmarks.fluid.rows import ROW_SECONDS
from hybrid_nbody.benchmarks.harness.measure import Times, seconds_of
from hybrid_nbody.benchmarks.harness.record import Task
from hybrid_nbody.fluid.kernels import make_kernels, reference
from hybrid_nbody.fluid.solvers.lexicographic import Lexicographic
from hybrid_nbody.fluid.solvers.relaxation import RedBlack
from hybrid_nbody.fluid.stencil import POISSON

SIZES = {"cpu": (42, 84), "gpu": (42, 84, 168, 336)}

LONGEST_RUN = 12.0
"""Seconds: longer runs do fewer steps, but at least `FEWEST_STEPS`, after which the fluid moves."""

FEWEST_STEPS = 8

TOTALS = {
    ("lexicographic", 42): 160074.0,
    ("red-black", 42): 162887.8,
    ("red-black", 84): 119693.7,
    ("red-black", 168): 134588.8,
}
"""Total density at the end of a whole run, from a program of the course's method in float32, summed
in float64."""

CHECK_STEPS = 3
CHECK_EVENTS = ((0, "density", (8.0,)), (0, "velocity", (1.0, -2.0, 0.5)))
CHECK_ITERATIONS = 3


@dataclass(frozen=True)
class Phase:
    """A phase of the course's work.

    Attributes
    ----------
    solver : {"lexicographic", "red-black"}
    device : {"cpu", "gpu"}
    name : str
    threads : int or None
        None for all.
    """

    solver: str
    device: str
    name: str
    threads: int | None = None


PHASES = (
    Phase("lexicographic", "cpu", "lexicographic, one thread", 1),
    Phase("red-black", "cpu", "red-black, one thread", 1),
    Phase("red-black", "cpu", "red-black, all threads"),
    Phase("red-black", "gpu", "red-black, GPU"),
)

SOLVERS = {"lexicographic": Lexicographic, "red-black": RedBlack}


class PlumeRun:
    """A run of the plume that can be done again and again."""

    def __init__(self, backend, cells, solver):
        self.model = make_model(backend, cells, SOLVERS[solver], PLUME, PLUME_EVENTS)
        self.rest = np.zeros(tuple(reversed(cells)), self.model.kernels.dtype)
        self.start = self.model.scalars()

    def restart(self):
        """Go back to the fluid at rest."""
        self.model.restore(lambda name: self.rest, self.start)
        self.model.kernels.reset_statistics()
        self.model.backend.synchronize()

    def seconds(self, steps: int) -> float:
        """Return the seconds that the first steps take."""
        self.restart()
        return seconds_of(self.model.backend, lambda: self.model.advance(steps))

    def seconds_of_a_step(self) -> float:
        """Return the seconds of a step of the moving fluid, the shorter of two; compiles on the way."""
        self.restart()
        self.model.advance(FEWEST_STEPS - 2)
        return min(seconds_of(self.model.backend, lambda: self.model.advance(1)) for _ in range(2))


def edges(settings, device: str):
    """Return the edges of the grids of a device."""
    return settings.edges(settings.sizes, SIZES, device)


def tasks(settings):
    """Yield a task for each phase of each size."""
    for edge in sorted({edge for device in SIZES for edge in edges(settings, device)}):
        section = f"Phases, {edge}^3 cells: a step of the plume, at most {COURSE.iterations} iterations a solve"
        for phase in PHASES:
            if settings.wants(phase.device) and edge in edges(settings, phase.device):
                head = {"part": "phases", "cells": edge, "rung": phase.name, "device": phase.device}
                yield Task(section, phase.name, partial(_row, head, phase, settings))


def _row(head, phase, settings, rows, stop):
    if missing := settings.missing(phase.device):
        return head | {"note": missing}
    stop()
    backend = settings.open(phase.device, phase.threads)
    edge = head["cells"]
    error = CHECKS[phase.solver](backend)
    run = PlumeRun(backend, (edge,) * 3, phase.solver)
    steps = steps_within(run.seconds_of_a_step())
    taken = _timings(run, steps, settings.repeats, stop)
    found = run.model.diagnostics()["total_density_with_ghosts"]
    known = TOTALS.get((phase.solver, edge)) if steps == PLUME_STEPS else None
    row = head | {
        "threads": getattr(backend, "threads", None),
        "steps": steps,
        **taken.columns,
        "error": error,
    }
    row |= {"note": "" if steps == PLUME_STEPS else f"{steps} steps", "total": found}
    row |= {"total_error": abs(found / known - 1)} if known else {}
    row |= {"cells_per_s": edge**3 / taken.median, "iterations": run.iterations / steps}
    return row | {"speedup": _first(rows, row)["median_s"] / taken.median}


def steps_within(seconds_of_a_step: float) -> int:
    """Return how many steps a run does: all, or as many as `LONGEST_RUN` allows."""
    return max(FEWEST_STEPS, min(PLUME_STEPS, int(LONGEST_RUN / seconds_of_a_step)))


def _timings(run, steps, repeats, stop) -> Times:
    """Time whole runs, and note the iterations of the last one."""
    seconds = []
    while len(seconds) < repeats and (not seconds or sum(seconds) * steps < ROW_SECONDS):
        stop()
        seconds.append(run.seconds(steps) / steps)
    run.iterations = run.model.kernels.statistics()["iterations"]
    return Times(tuple(seconds), steps)


def _first(rows, row):
    """Return the first measured row of the same table."""
    same = [
        other for other in rows if (other["part"], other["cells"]) == (row["part"], row["cells"])
    ]
    return next((other for other in same if other.get("median_s")), row)


# --- against float64 ------------------------------------------------------------------------------


def error_of_steps(backend) -> float:
    """Return how far a few steps on a small grid, of red-black solves, are from the reference."""
    model = make_model(backend, SMALL, RedBlack, CLEARED, CHECK_EVENTS)
    model.advance(CHECK_STEPS)
    found = [
        backend.download(array[1:-1]) for array in (*model.state.velocity, model.state.density)
    ]
    return max(relative_error(*pair) for pair in zip(found, _reference_steps(), strict=True))


def _reference_steps():
    """Return velocity and density, in float64, after the same."""
    *velocity, density = np.zeros((4, *reversed(SMALL)))
    x0, _, y0, _, z0, _ = centre(SMALL).edges
    for array, value in zip((density, *velocity), (8.0, 1.0, -2.0, 0.5), strict=True):
        array[z0, y0, x0] = value
    factor = 0.5 * max(SMALL)
    accuracy = {"iterations": COURSE.iterations, "tolerance": COURSE.tolerance}
    for _ in range(CHECK_STEPS):
        moving = CLEARED.dt, CLEARED.viscosity, CLEARED.diffusivity
        velocity, density = reference.step(
            velocity, density, *moving, FREE_SLIP, factor, **accuracy
        )
    return *velocity, density


def error_in_order(backend) -> float:
    """Return how far a few lexicographic iterations on a small grid are from the reference."""
    kernels, (x, b) = make_kernels(backend, make_slab(SMALL), DTYPE), random_fields(SMALL)
    field = kernels.field()
    right_side = kernels.field()
    field[1:-1] = x
    right_side[1:-1] = b
    kernels.relax_lexicographic(field, right_side, POISSON, CHECK_ITERATIONS)
    truth = x.astype(float), b.astype(float), POISSON, FREE_SLIP, CHECK_ITERATIONS
    return relative_error(field[1:-1], reference.relax_in_order(*truth))


CHECKS = {"lexicographic": error_in_order, "red-black": error_of_steps}
