"""The configuration of `model: fluid`, stable fluids in three dimensions."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from annotated_types import Le
from pydantic import (
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from hybrid_nbody.config.sections import (
    Compute,
    Every,
    ExclusiveSection,
    ModelConfig,
    Output,
    Section,
    Time,
)
from hybrid_nbody.config.values import (
    Allowed,
    AtLeastOne,
    InputFile,
    Line,
    NonNegative,
    Number,
    Positive,
    Switch,
)
from hybrid_nbody.fluid import config_checks as fluid_checks
from hybrid_nbody.fluid import config_defaults as defaults
from hybrid_nbody.fluid.config_values import (
    Boundaries,
    Box,
    Cell,
    Count,
    FieldNames,
    Grid3,
    Omega,
    Planes,
    Steps,
    Vector,
)

MOST_ITERATIONS = 10**6


class Grid(Section):
    """The cells of the box: cubes, the longest edge of the box has length 1."""

    cells: Grid3 = Field(
        description="Number of cells along x, y and z: [nx, ny, nz], or one for all three."
    )

    @property
    def centre(self) -> tuple[int, int, int]:
        """Return the central cell, counted from 0: cell n // 2 of each axis, counted from 1."""
        nx, ny, nz = self.cells
        return nx // 2 - 1, ny // 2 - 1, nz // 2 - 1


class Fluid(Section):
    """Properties of the fluid, boundary conditions and numerical schemes."""

    viscosity: NonNegative = Field(
        1e-4, description="Kinematic viscosity, in units of length^2 / time."
    )
    diffusion: NonNegative = Field(
        1e-4, description="Diffusion of the density, in units of length^2 / time."
    )
    boundary: Boundaries = Field(
        "free-slip",
        validate_default=True,
        description="Boundary conditions at the two ends of an axis. free-slip: a wall along which "
        "the fluid slides; no-slip: a wall at which it is at rest; periodic: what leaves at one "
        "end enters at the other. One word for all axes, or one for each.",
    )
    dtype: Literal["float32", "float64"] = Field(
        "float32", description="Type of the numbers on the grid."
    )
    projection: Literal["exact", "course"] = Field(
        "exact",
        description="Subtraction of the pressure gradient. exact: so that the divergence vanishes; "
        "course: without its factor 1/h (h is the edge of a cell), and with diffusion started from "
        "zero, as the program of the course does; its published totals depend on it. With course, "
        "other keys have other defaults: solver.method red-black, solver.tolerance 1e-7, "
        "solver.criterion change, fluid.conserve false.",
    )
    advection: Literal["semi-lagrangian", "maccormack"] = Field(
        "semi-lagrangian",
        description="semi-lagrangian: first order, never unstable; maccormack: second order with a "
        "limiter, keeps details longer at about twice the cost of advection.",
    )
    conserve: Switch = Field(
        True,
        description="Conservation of the total density: what diffusion and advection have made is "
        "taken from the cells that gained, what they have lost is given back to those that lost, "
        "in proportion to the change of each (see the diagnostic advection_error). Default false "
        "with projection course or sources.carry_over.",
    )
    buoyancy: Number = Field(
        0.0,
        description="Lift of the density: the acceleration is -buoyancy * density * gravity. "
        "Greater than 0, dense smoke rises against gravity.",
    )
    gravity: Vector = Field(
        (0.0, -1.0, 0.0), description="Direction and strength of gravity, for buoyancy alone."
    )
    vorticity_confinement: NonNegative = Field(
        0.0,
        description="Strength of the force that restores eddies damped by the grid. 0: none.",
    )


class Solver(Section):
    """Solver of the linear systems of diffusion and pressure."""

    method: Literal["lexicographic", "red-black", "sor", "multigrid"] = Field(
        "multigrid",
        description="multigrid: V-cycles, the only one that solves the pressure of large grids in "
        "a few iterations; red-black: Gauss-Seidel, first the cells of one colour of a "
        "chessboard, then the others; sor: the same with over-relaxation; lexicographic: "
        "Gauss-Seidel cell after cell, always max_iterations, for comparison on one CPU thread. "
        "Default red-black with fluid.projection course.",
    )
    max_iterations: Annotated[AtLeastOne, Le(MOST_ITERATIONS)] = Field(
        10,
        description="Most iterations (both colours; cycles of multigrid) of a solve. Default 20 "
        "with another method than multigrid.",
    )
    tolerance: NonNegative = Field(
        1e-4,
        description="A solve stops when the measure named by criterion is at most this. 0: always "
        "max_iterations. Default 1e-7 with fluid.projection course.",
    )
    criterion: Literal["change", "residual"] = Field(
        "residual",
        description="residual: the largest residual over the largest right-hand side, whatever "
        "the units; change: the largest change of a cell in an iteration, in the units of "
        "velocity, density or pressure. Default change with fluid.projection course.",
    )
    omega: Omega = Field(
        "auto",
        description="Relaxation factor of sor; with 1 it is red-black except in cells at walls. "
        "auto: the optimum for the smoothest mode.",
    )


class Sphere(Section):
    """The cells whose centres lie within a sphere."""

    centre: Vector = Field(
        description="Centre, in cells counted from 0: [i, j, k] is the centre of that cell."
    )
    radius: Positive = Field(description="Radius, in cells.")


class Event(ExclusiveSection):
    """Density or velocity given to some cells at the beginning of a step."""

    exactly_one = (("step", "steps"), ("density", "velocity"))
    at_most_one = (("cell", "box", "sphere"),)

    step: Count | None = Field(
        None,
        description="The step at whose beginning it happens; the first step is 0. Give either this "
        "or steps.",
    )
    steps: Steps | None = Field(
        None,
        description="The first and the last of the steps at which it happens. Give either this or "
        "step.",
    )
    density: Number | None = Field(
        None, description="Density given to the cells. Give either this or velocity."
    )
    velocity: Vector | None = Field(
        None, description="Velocity given to the cells. Give either this or density."
    )
    cell: Cell | None = Field(
        None,
        description="The cell, counted from 0. Where neither cell nor box nor sphere is given, it "
        "is the one at the centre, n // 2 - 1 along each axis.",
    )
    box: Box | None = Field(
        None, description="All cells of a box: [[x0, x1], [y0, y1], [z0, z1]], the ends excluded."
    )
    sphere: Sphere | None = Field(None, description="All cells whose centres lie within a sphere.")
    mode: Literal["set", "add"] = Field(
        "set",
        description="set: replaces the values of the cells; add: is added to them at each step.",
    )

    @property
    def first(self) -> int:
        """First step at which it happens."""
        return self._range[0]

    @property
    def last(self) -> int:
        """Last step at which it happens."""
        return self._range[1]

    @property
    def _range(self) -> tuple[int, int]:
        """First and last step."""
        if self.steps is not None:
            return self.steps
        assert self.step is not None  # exactly one of the two is given
        return self.step, self.step


Events = Annotated[
    tuple[Event, ...],
    Allowed(
        "list", f"a list of events, each a mapping of the keys {', '.join(Event.model_fields)}"
    ),
]


class Sources(Section):
    """Density and velocity given to cells during a run; all is at rest and empty at first."""

    carry_over: Switch = Field(
        False,
        description="Start each step as the program of the course does, which never cleared its "
        "scratch arrays: what the step before left there is added to velocity and density, times "
        "dt, and solves start from it. Only for its published totals.",
    )
    events: Events = Field(
        (), description="Events; those of one step happen in this order, before those of file."
    )
    file: InputFile | None = Field(
        None,
        description="A file of events in the format of the course: the number of steps, then lines "
        "`source d t` and `force x y z t`. A relative path starts at the folder of the YAML file; "
        "with --set, at the folder in which the command runs.",
    )


class FluidTime(Time):
    """Time step and end of the run."""

    dt: Positive = Field(
        description="Time step, in units of time. Any step is stable; details are lost where the "
        "fluid crosses many cells in a step (see the diagnostic cfl)."
    )


class FluidCompute(Compute):
    """Devices of the ranks, shares of the work, and exchange of planes."""

    exchange: Literal["auto", "halo"] = Field(
        "auto",
        description="Exchange of planes between ranks. halo: neighbours exchange their outermost "
        "ones; auto: halo.",
    )

    @field_validator("exchange", mode="before")
    @classmethod
    def _for_planes(cls, exchange: Any) -> Any:
        """Say of an exchange of bodies that it is one."""
        if exchange in ("allgather", "ring"):
            raise ValueError(f"{exchange} is for bodies, not for a fluid; leave it at auto")
        return exchange


class FluidOutput(Output):
    """Files of the run: trajectory, diagnostics and checkpoints."""

    trajectory: Every | None = Field(
        Every(every_steps=10),
        description="Interval of the frames, which hold the chosen fields. null: no frames.",
    )
    diagnostics: Every | None = Field(
        Every(every_steps=10),
        description="Interval of the diagnostics, such as total density. null: no diagnostics.",
    )
    fields: FieldNames = Field(("density", "velocity"), description="Fields that a frame holds.")
    stride: AtLeastOne = Field(
        1,
        description="A frame holds every n-th cell along each axis; with planes, of x and y.",
    )
    planes: Planes | None = Field(
        None, description="Planes of z, counted from 0, that a frame holds. null: all (see stride)."
    )


class FluidConfig(ModelConfig):
    """Stable fluids in three dimensions."""

    model: Literal["fluid"] = Field(
        description="Physics of the run. fluid: smoke in a box, by stable fluids."
    )
    title: Line = Field("", description="A name for pictures and summaries.")
    grid: Grid = Field(description="The cells of the box.")
    fluid: Fluid = Field(Fluid(), description="Fluid properties and numerical schemes.")
    solver: Solver = Field(Solver(), description="Solver of the linear systems.")
    sources: Sources = Field(
        Sources(),
        description="Density and velocity added during the run; the fluid is at rest and empty at "
        "first.",
    )
    time: FluidTime = Field(description="Time step and end of the run.")
    compute: FluidCompute = Field(FluidCompute(), description="Devices of the ranks.")
    output: FluidOutput = Field(FluidOutput(), description="Files of the run.")

    @model_validator(mode="wrap")
    @classmethod
    def _check_together(cls, data: Any, handler: Callable[[Any], Self]) -> Self:
        """Report what single keys cannot tell, each fault at its own key."""
        config = handler(defaults.completed(data))
        if faults := list(fluid_checks.faults(config)):
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return config
