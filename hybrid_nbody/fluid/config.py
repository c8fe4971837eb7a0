"""The configuration of `model: fluid`, stable fluids in three dimensions."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from annotated_types import Le
from pydantic import Field, ValidationError, field_validator, model_validator

from hybrid_nbody.config.sections import Compute, Every, ModelConfig, Output, Section
from hybrid_nbody.config.values import AtLeastOne, Line, NonNegative
from hybrid_nbody.fluid import config_checks as fluid_checks
from hybrid_nbody.fluid import config_defaults as defaults
from hybrid_nbody.fluid.config_obstacles import Obstacles
from hybrid_nbody.fluid.config_properties import Fluid, Scalar
from hybrid_nbody.fluid.config_sources import Event, Sources
from hybrid_nbody.fluid.config_time import DividedTime
from hybrid_nbody.fluid.config_values import FieldNames, Grid3, Omega, Planes

__all__ = ["Event", "Fluid", "FluidConfig", "FluidOutput", "FluidTime", "Scalar", "Solver"]

MOST_ITERATIONS = 10**6

Method = Literal["lexicographic", "red-black", "sor", "multigrid", "conjugate-gradients"]


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


class Solver(Section):
    """Solver of the linear systems of diffusion and pressure."""

    method: Method = Field(
        "multigrid",
        description="multigrid: V-cycles, the only one that solves the pressure of large grids in "
        "a few iterations; red-black: Gauss-Seidel, first the cells of one colour of a "
        "chessboard, then the others; sor: the same with over-relaxation; lexicographic: "
        "Gauss-Seidel cell after cell, always max_iterations, for comparison on one CPU thread; "
        "conjugate-gradients: preconditioned by a V-cycle, for the staggered grid, which knows "
        "multigrid too, and red-black with fluid.grid: staggered. Default red-black with "
        "fluid.projection course, conjugate-gradients with obstacles or outlets.",
    )
    max_iterations: Annotated[AtLeastOne, Le(MOST_ITERATIONS)] = Field(
        10,
        description="Most iterations (both colours; cycles of multigrid) of a solve. Default 20 "
        "with another method than multigrid, 100 on the staggered grid.",
    )
    tolerance: NonNegative = Field(
        1e-4,
        description="A solve stops when the measure named by criterion is at most this. 0: always "
        "max_iterations. Default 1e-7 with fluid.projection course. On the staggered grid a "
        "projection stops when the largest divergence times the edge of a cell, over the largest "
        "speed of fluid and obstacles, is at most this; 1e-6 is reached in float32, 1e-12 in "
        "float64.",
    )
    criterion: Literal["change", "residual"] = Field(
        "residual",
        description="residual: the largest residual over the largest right-hand side, whatever "
        "the units; change: the largest change of a cell in an iteration, in the units of "
        "velocity, density or pressure, with fluid.projection course alone, whose default it is.",
    )
    omega: Omega = Field(
        "auto",
        description="Relaxation factor of sor; with 1 it is red-black except in cells at walls. "
        "auto: the optimum for the smoothest mode.",
    )


class FluidTime(DividedTime):
    """Time step, its parts, and end of the run."""


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
    fields: FieldNames = Field(
        ("density", "velocity"),
        description="Fields that a frame holds: density and velocity; on the staggered grid also "
        "pressure, and other scalars by their names. Velocities are at the centres of cells.",
    )
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
    obstacles: Obstacles = Field(
        (),
        description="Solids in the fluid, at rest or in motion, for the staggered grid. Lengths "
        "are in units of the longest edge of the box.",
    )
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
