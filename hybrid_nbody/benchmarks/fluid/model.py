"""``bench fluid``, phases and solvers: runs of the plume, and solves of Poisson's equation."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.timing import seconds_of
from hybrid_nbody.benchmarks.fluid import problems
from hybrid_nbody.benchmarks.fluid.problems import FREE_SLIP, SMALL, Part, Settings
from hybrid_nbody.benchmarks.harness.measure import Row, Stop, Times
from hybrid_nbody.benchmarks.harness.record import Task
from hybrid_nbody.fluid.config import FluidConfig
from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.on_faces import Staggered
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.solvers.relaxation import RedBlack, Sor
from hybrid_nbody.fluid.stencil import POISSON
from hybrid_nbody.parallel.exchange.halo import FullGrid

LONGEST_RUN = 12.0
"""Seconds: longer runs do fewer steps, but at least `FEWEST_STEPS`, after which the fluid moves."""

FEWEST_STEPS = 8
PLUME_STEPS = 100

TOTALS = {
    ("lexicographic", 42): 160074.0,
    ("red-black", 42): 162887.8,
    ("red-black", 84): 119693.7,
    ("red-black", 168): 134588.8,
}
"""Total density at the end of a whole run, from a program of the course's method in float32."""

CHECK_STEPS = 3
CHECKED = (
    "fluid.grid=collocated",
    "fluid.projection=exact",
    "sources.carry_over=false",
    "solver.tolerance=0",
    "sources.events=[{step: 0, density: 8}, {step: 0, velocity: [1, -2, 0.5]}]",
)
CHECK_ITERATIONS = 3


class Phase(NamedTuple):
    """A phase of the course's work: a solver on a device, with some of its threads or all."""

    solver: str
    device: str
    name: str
    threads: int | None = None

    def row(self, repeats: int, backend: Backend, head: Row, rows: list[Row], stop: Stop) -> Row:
        """Return what a run of the plume takes, and how far its results are off."""
        edge = head["cells"]
        error = CHECKS[self.solver](backend)
        run = PlumeRun(backend, (edge,) * 3, self.solver)
        steps = steps_within(run.seconds_of_a_step())
        taken = run.timings(steps, repeats, stop)
        iterations = run.model.kernels.statistics()["iterations"]
        total = run.model.diagnostics()["total_density_with_ghosts"]
        row = {
            "steps": steps,
            **taken.columns,
            "error": error,
            "note": "" if steps == PLUME_STEPS else f"{steps} steps",
            "total": total,
            "cells_per_s": edge**3 / taken.median,
            "iterations": iterations / steps,
        }
        if steps == PLUME_STEPS and (self.solver, edge) in TOTALS:
            row["total_error"] = abs(total / TOTALS[self.solver, edge] - 1)
        return row


PHASES = (
    Phase("lexicographic", "cpu", "lexicographic, one thread", 1),
    Phase("red-black", "cpu", "red-black, one thread", 1),
    Phase("red-black", "cpu", "red-black, all threads"),
    Phase("red-black", "gpu", "red-black, GPU"),
)


class PlumeRun:
    """A run of the plume that can be done again and again."""

    def __init__(self, backend: Backend, cells: problems.Cells, solver: str):
        self.model = problems.plume(backend, cells, f"solver.method={solver}")
        self.backend = backend
        self.rest = np.zeros(tuple(reversed(cells)), self.model.kernels.dtype)
        self.start = self.model.scalars()

    def restart(self) -> None:
        self.model.restore(lambda name: self.rest, self.start)
        self.model.kernels.reset_statistics()
        self.backend.synchronize()

    def timings(self, steps: int, repeats: int, stop: Stop) -> Times:
        """Time whole runs, fewer if they are slow."""
        seconds: list[float] = []
        while len(seconds) < repeats and sum(seconds) * steps < problems.ROW_SECONDS:
            stop()
            self.restart()
            taken = seconds_of(self.backend, lambda: self.model.advance(steps))
            seconds.append(taken / steps)
        return Times(tuple(seconds), steps)

    def seconds_of_a_step(self) -> float:
        """Return the seconds of a step of the moving fluid, the shorter of two; it compiles."""
        self.restart()
        self.model.advance(FEWEST_STEPS - 2)
        return min(seconds_of(self.backend, lambda: self.model.advance(1)) for _ in range(2))


class PhasesPart(Part):
    """The phases: all devices stand in one table."""

    def tasks(self, settings: Settings) -> Iterator[Task]:
        wanted = filter(settings.wants, self.sizes)
        edges = {device: settings.edges(self, device) for device in wanted}
        for edge in sorted(set().union(*edges.values())):
            devices = [device for device in edges if edge in edges[device]]
            yield from self.table(edge, devices, settings)


PHASES_PART = PhasesPart(
    "phases",
    "--sizes",
    {"cpu": (42, 84), "gpu": (42, 84, 168, 336)},
    "Phases, {edge}^3 cells: a step of the plume, at most 20 iterations a solve",
    PHASES,
    compared=("part", "cells"),
)


def steps_within(seconds_of_a_step: float) -> int:
    """Return the steps of a run: all, or as many as `LONGEST_RUN` allows."""
    return max(FEWEST_STEPS, min(PLUME_STEPS, int(LONGEST_RUN / seconds_of_a_step)))


def error_of_steps(backend: Backend) -> float:
    """Return how far a few steps on a small grid, of red-black solves, are from the reference."""
    model = problems.plume(backend, SMALL, *CHECKED)
    model.advance(CHECK_STEPS)
    arrays = (*model.state.velocity, model.state.density)
    found = [backend.download(array[1:-1]) for array in arrays]
    return max(map(problems.relative_error, found, _reference_steps()))


def _reference_steps() -> tuple:
    """Return velocity and density, in float64, after the same."""
    fields: Any = np.zeros((4, *reversed(SMALL)))
    *velocity, density = fields
    x0, y0, z0 = (number // 2 - 1 for number in SMALL)
    for array, value in zip((density, *velocity), (8.0, 1.0, -2.0, 0.5), strict=True):
        array[z0, y0, x0] = value
    moving = 0.1, 1e-4, 1e-4, FREE_SLIP, 0.5 * max(SMALL)  # dt, viscosity, diffusivity
    for _ in range(CHECK_STEPS):
        velocity, density = reference.step(
            velocity, density, *moving, iterations=20, tolerance=1e-7
        )
    return *velocity, density


def error_in_order(backend: Backend) -> float:
    """Return how far a few lexicographic iterations on a small grid are from the reference."""
    kernels, _ = problems.make_grid(backend, SMALL)
    x, b = problems.random_fields(SMALL)
    field = kernels.field()
    right_side = kernels.field()
    field[1:-1] = x
    right_side[1:-1] = b
    kernels.relax_lexicographic(field, right_side, POISSON, CHECK_ITERATIONS)
    truth = x.astype(float), b.astype(float), POISSON, FREE_SLIP, CHECK_ITERATIONS
    return problems.relative_error(field[1:-1], reference.relax_lexicographic(*truth))


CHECKS = {"lexicographic": error_in_order, "red-black": error_of_steps}

RESIDUAL = 1e-3
"""The largest, relative to the largest right-hand side, at which a solve ends."""

DTYPE = "f8"
"""Of the numbers: float32 is not exact enough on a large grid."""

CHUNK = 500
MOST_ITERATIONS = 40000
"""Iterations after which a request to stop is heard, and most of a solve."""

SOLVERS: Mapping[str, Callable] = {"red-black": RedBlack, "sor": Sor, "multigrid": Multigrid}
"""The solvers by name: each is made with kernels, a halo and `Accuracy`."""


class Poisson:
    """Poisson's equation on a cube of cells."""

    def __init__(self, backend: Backend, edge: int):
        self.backend = backend
        self.kernels, self.halo = problems.make_grid(backend, (edge,) * 3, DTYPE)
        self.x = self.kernels.colours()
        self.b = self.kernels.colours()
        self.field = self.kernels.field()
        self.workspace = backend.zeros(2 * self.field.size, DTYPE)
        self.right_side = problems.smooth_field(edge).astype(DTYPE)
        self.field[1:-1] = backend.upload(self.right_side)
        self.kernels.split(self.field, self.b)

    def solver(self, name: str, iterations: int):
        """Return a solver that does no more iterations than these."""
        accuracy = Accuracy(iterations, RESIDUAL, "residual")
        return SOLVERS[name](self.kernels, self.halo, accuracy)

    def iterations(self, name: str, stop: Stop) -> int:
        """Solve from zero; return the iterations needed, or `MOST_ITERATIONS`."""
        self.kernels.fill(self.x, 0.0)
        self.kernels.reset_statistics()
        part = self.solver(name, CHUNK)
        while True:
            stop()
            part.solve(self.x, self.b, POISSON, self.workspace)
            counts = self.kernels.statistics()
            if counts["early"] or counts["iterations"] >= MOST_ITERATIONS:
                return counts["iterations"]

    def residual(self) -> float:
        """Return the largest residual over the largest right-hand side, in float64."""
        self.kernels.merge(self.x, self.field)
        x = self.backend.download(self.field[1:-1]).astype(float)
        b = self.right_side.astype(float)
        return float(np.abs(reference.residual(x, b, POISSON, FREE_SLIP)).max() / np.abs(b).max())


class Solver(NamedTuple):
    """A rung: one of `SOLVERS` on a device."""

    name: str
    device: str
    threads: int | None = None

    def row(self, repeats: int, backend: Backend, head: Row, rows: list[Row], stop: Stop) -> Row:
        problem = Poisson(backend, head["cells"])
        needed = problem.iterations(self.name, stop)
        whole = problem.solver(self.name, needed)

        def solve() -> None:
            problem.kernels.fill(problem.x, 0.0)
            whole.solve(problem.x, problem.b, POISSON, problem.workspace)

        taken = problems.measured(backend, solve, repeats, stop)
        return {**taken.columns, "iterations": needed, "residual": problem.residual()}


BALL = {"sphere": {"centre": [0.5, 0.5, 0.5], "radius": 0.2}}


class Projection(NamedTuple):
    """A rung: a projection on the staggered grid of a ball of fluid that moves."""

    name: str
    device: str
    obstacles: tuple[dict[str, Any], ...] = ()
    threads: int | None = None

    def row(self, repeats: int, backend: Backend, head: Row, rows: list[Row], stop: Stop) -> Row:
        stepper = self.stepper(backend, head["cells"])
        velocity = stepper.state.velocity
        moving = [backend.upload(a) for a in map(backend.download, velocity)]
        projection = stepper.projection

        def project() -> None:
            for array, start in zip(velocity, moving, strict=True):
                array[...] = start
            projection.iterations = 0
            projection.project(velocity, stepper.state.pressure, 1.0)

        taken = problems.measured(backend, project, repeats, stop, captured=False)
        left = projection.divergence(velocity) / stepper.grid.largest_speed(velocity)
        return {**taken.columns, "iterations": projection.iterations, "residual": left}

    def stepper(self, backend: Backend, edge: int) -> Any:
        """Return a fluid of which a ball moves, with all its divergence."""
        config = FluidConfig.model_validate(
            {
                "model": "fluid",
                "grid": {"cells": edge},
                "obstacles": self.obstacles,
                "fluid": {"dtype": "float64"},
                "solver": {"tolerance": RESIDUAL},
                "time": {"dt": 0.5 / edge, "steps": 1},
            }
        )
        halo: Any = FullGrid(edge, periodic=False)
        stepper = Staggered(config).model(backend, halo, [], False).stepper
        ball = (((np.indices((edge + 2,) * 3) - edge / 2) ** 2).sum(0) < edge**2 / 16).astype(DTYPE)
        for array in stepper.state.velocity:
            array[...] = backend.upload(ball)
        stepper.fill()
        return stepper


def rungs_on(device: str) -> list[Solver | Projection]:
    """Return what is solved on a device."""
    projections = Projection("staggered", device), Projection("staggered, a ball", device, (BALL,))
    return [*(Solver(name, device) for name in SOLVERS), *projections]


SOLVERS_PART = Part(
    "solvers",
    "--poisson",
    {"cpu": (64,), "gpu": (64, 128)},
    "Solvers, {edge}^3 cells, {device}: "
    f"Poisson's equation to a relative residual of {RESIDUAL:g}",
    [rung for device in ("cpu", "gpu") for rung in rungs_on(device)],
    compared=("part", "cells", "device"),
)
