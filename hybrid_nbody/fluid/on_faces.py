"""The staggered grid of a run: velocities at the faces of cells, pressure at their centres."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cells import Program, make_program
from hybrid_nbody.backends.cells.rehearsal import Rehearsal
from hybrid_nbody.backends.precompile import can_help, helped
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid import config as asked
from hybrid_nbody.fluid import step_memory
from hybrid_nbody.fluid.config_boundary import faces_of
from hybrid_nbody.fluid.config_obstacles import obstacles_of
from hybrid_nbody.fluid.kernels.cells import LOOPS, MODULES
from hybrid_nbody.fluid.obstacles import Obstacle, Sphere
from hybrid_nbody.fluid.parts import Limits
from hybrid_nbody.fluid.scheme import DTYPES, frames_of
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.sources import Event, Sources
from hybrid_nbody.fluid.staggered.faces import Faces
from hybrid_nbody.fluid.staggered.grid import Grid
from hybrid_nbody.fluid.staggered.model import StaggeredModel, Steps
from hybrid_nbody.fluid.staggered.pressure import Accuracy
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.staggered.state import Physics, Span, Three
from hybrid_nbody.fluid.staggered.step import Stepper
from hybrid_nbody.fluid.staggered.windows import planes_in_windows
from hybrid_nbody.parallel.calibrate import fastest_run
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import FullGrid, HaloExchange

ARRAYS = 12
"""Arrays of the grid that a rank holds in any case: the velocity, the next one, the pressure, the
potential of a projection, memory of advection and of solvers; besides scalars."""

OF_COLOURS = 2
"""Of solvers in a box without obstacles and outlets."""

OF_OPEN_FACES = 4
"""Of other solvers: coefficients, and the rank's part of coarse grids."""

OF_COMPLETE_GRIDS = 8
"""Of the finest grid that is complete on every rank, and the next ones: coefficients, a correction,
what it is for and what is left, with ghosts."""

OF_SECOND_ORDER = 3
"""The velocity a step ago."""

OF_OBSTACLES = 9
OF_MOTION = 3
"""What is open, what is known, and whose it is; the velocity of solids."""

WINDOWS = 5
OF_WALLS = 4
"""Of advection, where z is periodic or shared by ranks: of fields, and of obstacles, which are thin
or not."""

HALO_PLANES = 2
"""Planes beyond the ends of a slab in an array, one at each."""

USUAL_DEPTH = 6
"""Planes beyond the ends of a slab that paths reach where a step moves fluid by three cells."""

Cells = tuple[int, int, int]

COMPILE_CELLS = (8, 8, 8)
FEW_ITERATIONS = Accuracy(tolerance=1e-30, iterations=2)
"""Of a rehearsal: enough that all is called."""

NO_ITERATIONS = Accuracy(tolerance=1e-30, iterations=0)
"""Of a rehearsal of all but solvers."""

CALIBRATION_CELLS = (64, 64, 16)
CALIBRATION_STEP = 0.01


MIDDLE = (0.5, 0.5, 0.5)
STAND_IN_RADIUS = 0.25
SLOW = (1e-3, 0.0, 0.0)
REST = (0.0, 0.0, 0.0)


class Staggered:
    """A run on the staggered grid; see `hybrid_nbody.fluid.scheme.Scheme`.

    Parameters
    ----------
    config : FluidConfig
    """

    def __init__(self, config: asked.FluidConfig) -> None:
        self.config = config
        self.dtype = DTYPES[config.fluid.dtype]
        self._obstacles: tuple[Obstacle, ...] | None = None
        self._programs: dict[Backend, Program] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a process that helps to compile makes the same: from the configuration."""
        return type(self), (self.config,)

    @property
    def periodic(self) -> bool:
        """See `Scheme`."""
        return self._faces(self.config.grid.cells).periodic[2]

    @property
    def arrays(self) -> int:
        """See `Scheme`."""
        return ARRAYS + self._scalars + self._of_solver + self._of_scheme + self._of_solids

    @property
    def _of_solver(self) -> int:
        return OF_COLOURS if self._in_boxes else OF_OPEN_FACES

    @property
    def _in_boxes(self) -> bool:
        plain = not self.config.obstacles and not self._has_outlet
        return plain and self.config.solver.method != "conjugate-gradients"

    @property
    def _has_outlet(self) -> bool:
        return self._faces(self.config.grid.cells).has_outlets

    @property
    def _of_scheme(self) -> int:
        return OF_SECOND_ORDER if self.config.fluid.advection == "maccormack" else 0

    @property
    def _windows(self) -> int:
        return WINDOWS + (OF_WALLS if self.config.obstacles else 0)

    @property
    def _of_solids(self) -> int:
        if not self.config.obstacles:
            return 0
        moves = any(obstacle.moves for obstacle in self.obstacles())
        return OF_OBSTACLES + (OF_MOTION if moves else 0)

    @property
    def saved_arrays(self) -> int:
        """See `Scheme`: components of the velocity, those a step ago, the pressure, scalars."""
        history = 3 if self.config.fluid.advection == "maccormack" else 0
        return 3 + history + 1 + self._scalars

    @property
    def _scalars(self) -> int:
        return 1 + len(self.config.fluid.scalars)

    def check(self) -> None:
        """See `Scheme`: files of inflows and obstacles."""
        self.obstacles()

    def obstacles(self) -> tuple[Obstacle, ...]:
        """Return the obstacles, as their files have them, which are read once."""
        if self._obstacles is None:
            cells = self.config.grid.cells
            periodic = self._faces(cells).periodic
            self._obstacles = obstacles_of(self.config.obstacles, cells, periodic)
        return self._obstacles

    def rank_bytes(self, planes: int) -> int:
        """See `Scheme`."""
        nx, ny, nz = self.config.grid.cells
        needs_windows = planes < nz or self.periodic
        in_windows = self._windows * planes_in_windows(planes, USUAL_DEPTH) if needs_windows else 0
        in_all = self.arrays * (planes + HALO_PLANES) + in_windows
        return int(in_all * (nx + 2) * (ny + 2) * np.dtype(self.dtype).itemsize)

    def complete_bytes(self, message_cells: int) -> int:
        """See `Scheme`."""
        if self.config.solver.method == "red-black":
            return 0
        arrays = step_memory.OF_COMPLETE_GRIDS if self._in_boxes else OF_COMPLETE_GRIDS
        cells = self.config.grid.cells
        return step_memory.complete_bytes(cells, message_cells, self.dtype, arrays)

    def compile(self, device: Backend, mixed: bool) -> None:
        """See `Scheme`: a helper begins with what solvers call, and with the last functions."""
        if can_help(device):
            with helped(partial(self.compile_backwards, mixed=mixed)):
                self._compile(device, self._rehearsed(device, mixed, NO_ITERATIONS))
                self._compile(device, self._rehearsed(device, mixed, FEW_ITERATIONS))
        else:
            self._compile(device, self._rehearsed(device, mixed, FEW_ITERATIONS))

    def compile_backwards(self, device: Backend, mixed: bool) -> None:
        """Compile the same beginning at the other end: kernels of boxes are called first."""
        self._compile(device, self._rehearsed(device, mixed, FEW_ITERATIONS)[::-1])

    def _compile(self, device: Backend, names: list[str]) -> None:
        """Compile functions of cells in this order; what is in the cache is loaded."""
        self.program(device).compile(names, self.config.grid.cells[0])

    def _rehearsed(self, device: Backend, mixed: bool, iterations: Accuracy) -> list[str]:
        """Return the functions of cells that a run calls, found on a small grid.

        Kernels of boxes without obstacles are not rehearsed but called.
        """
        rehearsal = Rehearsal(self.program(device).functions)
        halo = FullGrid(COMPILE_CELLS[2], self.periodic)
        grid = self._grid(rehearsal, device, halo, COMPILE_CELLS, mixed)
        solids = Solids(grid, _stand_ins(self.obstacles()))
        few = replace(iterations, method=self.config.solver.method)
        stepper = Stepper(grid, solids, self._physics_on(grid), few)
        model = self._model(stepper, [])
        for event in self.config.sources.events:
            rehearsal.run("put_sphere" if event.sphere else "put", grid.region)
        with suppress(NumericalError):  # of a formula: the run stops there too
            model.advance(2)
        model.diagnostics()
        for field in model.fields().values():
            field.host(0, 1)
        return rehearsal.names

    def _physics_on(self, grid: Grid) -> Physics:
        """Return physics that spreads as far on a grid, in cells, as that of the run on its own.

        On how far that is depends by which functions it is computed.
        """
        physics = physics_of(self.config)
        factor = (max(self.config.grid.cells) / max(grid.cells)) ** 2
        diffusivity = {name: factor * value for name, value in physics.diffusivity.items()}
        return replace(physics, viscosity=factor * physics.viscosity, diffusivity=diffusivity)

    def speeds(self, device: Backend, communicator: Communicator, mixed: bool) -> list[float]:
        """See `Scheme`."""
        halo = FullGrid(CALIBRATION_CELLS[2], self.periodic)
        stepper = self._stepper(device, halo, CALIBRATION_CELLS, (), mixed)
        stepper.begin(0.0)

        def seconds() -> float:
            start = time.perf_counter()
            stepper.step(Span(0.0, CALIBRATION_STEP, CALIBRATION_STEP))
            device.synchronize()
            return time.perf_counter() - start

        seconds()
        return communicator.gather(1.0 / fastest_run(seconds, communicator))

    def model(
        self, device: Backend, halo: HaloExchange, events: list[Event], mixed: bool
    ) -> StaggeredModel:
        """See `Scheme`."""
        stepper = self._stepper(device, halo, self.config.grid.cells, self.obstacles(), mixed)
        return self._model(stepper, events)

    def _model(self, stepper: Stepper, events: list[Event]) -> StaggeredModel:
        config = self.config
        limits = limits_of(config.time, stepper.grid.spacing)
        steps = Steps(config.time.dt, limits)
        return StaggeredModel(stepper, steps, Sources(events), frames_of(config.output))

    def _stepper(
        self,
        device: Backend,
        halo: Halo,
        cells: tuple[int, int, int],
        obstacles: Sequence[Obstacle],
        mixed: bool,
    ) -> Stepper:
        grid = self._grid(self.program(device), device, halo, cells, mixed)
        solver = self.config.solver
        accuracy = Accuracy(solver.tolerance, solver.max_iterations, solver.method)
        return Stepper(grid, Solids(grid, obstacles), self._physics_on(grid), accuracy)

    def _grid(
        self,
        program: Program,
        device: Backend,
        halo: Halo,
        cells: tuple[int, int, int],
        mixed: bool,
    ) -> Grid:
        return Grid(cells, self._faces(cells), halo, device, program, self.dtype, mixed)

    def program(self, device: Backend) -> Program:
        """Return the functions of cells for a device, made once."""
        if device not in self._programs:
            self._programs[device] = make_program(device, MODULES, self.dtype, LOOPS)
        return self._programs[device]

    def _faces(self, cells: Cells) -> Faces:
        """Return the faces of a grid; for another box than that of the run they are stretched."""
        own = self.config.grid.cells
        faces = faces_of(self.config.fluid.boundary, own)
        if cells == own:
            return faces
        x, y, z = (
            (here / max(own)) / (there / max(cells)) for here, there in zip(own, cells, strict=True)
        )
        return faces.stretched((x, y, z))


def _stand_ins(obstacles: Sequence[Obstacle]) -> tuple[Obstacle, ...]:
    """Return a ball for every kind of obstacle: kernels that are compiled depend on no shape."""
    kinds = {(obstacle.wall, obstacle.moves) for obstacle in obstacles}
    return tuple(
        Sphere(MIDDLE, STAND_IN_RADIUS, wall=wall, velocity=SLOW if moves else REST)
        for wall, moves in sorted(kinds)
    )


def limits_of(asked_time: asked.FluidTime, spacing: float) -> Limits | None:
    """Return what limits the parts of steps; None where steps are taken whole."""
    if asked_time.cfl is None:
        return None
    return Limits(asked_time.cfl, asked_time.longest_part, spacing)


def physics_of(config: asked.FluidConfig) -> Physics:
    """Return what moves the fluid of a configuration."""
    fluid = config.fluid
    diffusivity = {"density": fluid.diffusion}
    buoyancy = {"density": fluid.buoyancy}
    for scalar in fluid.scalars:
        diffusivity[scalar.name] = scalar.diffusion
        buoyancy[scalar.name] = scalar.buoyancy
    return Physics(
        viscosity=fluid.viscosity,
        diffusivity=diffusivity,
        lift={name: _lift(value, fluid.gravity) for name, value in buoyancy.items() if value},
        second_order=fluid.advection == "maccormack",
        confinement=fluid.vorticity_confinement,
        conserve=fluid.conserve,
    )


def _lift(buoyancy: float, gravity: Three) -> Three:
    """Return the acceleration by a unit of a scalar."""
    x, y, z = gravity
    return -buoyancy * x, -buoyancy * y, -buoyancy * z
