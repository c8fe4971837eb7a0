"""The section `fluid` of a configuration: properties, boundary conditions, schemes, scalars."""

from typing import Annotated, Literal

from pydantic import Field

from hybrid_nbody.config.sections import Section
from hybrid_nbody.config.values import Allowed, NonNegative, Number, Switch
from hybrid_nbody.fluid.config_boundary import Boundaries
from hybrid_nbody.fluid.config_values import ScalarName, Vector


class Scalar(Section):
    """A scalar that the flow carries."""

    name: ScalarName = Field(description="Its name in events, frames and diagnostics.")
    diffusion: NonNegative = Field(
        1e-4, description="Its diffusivity, in units of length^2 / time."
    )
    buoyancy: Number = Field(
        0.0, description="Its lift: the acceleration is -buoyancy * value * gravity."
    )


Scalars = Annotated[
    tuple[Scalar, ...],
    Allowed(
        "list", f"a list of scalars, each a mapping of the keys {', '.join(Scalar.model_fields)}"
    ),
]


class Fluid(Section):
    """Properties of the fluid, boundary conditions and numerical schemes."""

    viscosity: NonNegative = Field(
        1e-4, description="Kinematic viscosity, in units of length^2 / time."
    )
    diffusion: NonNegative = Field(
        1e-4, description="Diffusion of the density, in units of length^2 / time."
    )
    grid: Literal["collocated", "staggered"] = Field(
        "staggered",
        description="staggered: velocities at the faces of cells, pressure and scalars at their "
        "centres; a projection leaves no divergence, and there may be inlets, outlets, walls that "
        "move, obstacles, and any number of scalars. collocated: all at the centres, as the "
        "program of the course has it. Default collocated where a key of these is given: "
        "projection, sources.carry_over, solver.criterion change, or solver.method red-black, sor "
        "or lexicographic.",
    )
    boundary: Boundaries = Field(
        "free-slip",
        validate_default=True,
        description="Boundary conditions at the six faces. free-slip: a wall along which the fluid "
        "slides; no-slip: a wall at which it is at rest; periodic: what leaves at one end enters "
        "at the other. One word for all axes, a list of one for each, or a mapping of faces x-, "
        "x+, y- ... (x: both faces of that axis, all: all others). On the staggered grid a face "
        "may also be outflow, {moving: [1, 0, 0]}, a wall that moves along itself, or {inflow: "
        "[1, 0, 0]}, with numbers or formulas of x, y, z, t in quotes, or the name of a table; "
        "profile: parabolic, and values of scalars that come in, such as density: 1, are further "
        "keys of an inflow.",
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
        "limiter, keeps details longer at about twice the cost of advection. On the staggered grid "
        "maccormack also makes the whole step one of second order in time.",
    )
    conserve: Switch = Field(
        True,
        description="Conservation of the total density: what diffusion and advection have made is "
        "taken from the cells that gained, what they have lost is given back to those that lost, "
        "in proportion to the change of each (see the diagnostic advection_error). Default false "
        "with projection course or sources.carry_over. On the staggered grid it holds for every "
        "scalar of a box without inlets and outlets.",
    )
    buoyancy: Number = Field(
        0.0,
        description="Lift of the density: the acceleration is -buoyancy * density * gravity. "
        "Greater than 0, dense smoke rises against gravity.",
    )
    gravity: Vector = Field(
        (0.0, -1.0, 0.0), description="Direction and strength of gravity, for buoyancy alone."
    )
    scalars: Scalars = Field(
        (),
        description="Further scalars that the flow carries, such as a temperature, beside the "
        "density; for the staggered grid.",
    )
    vorticity_confinement: NonNegative = Field(
        0.0,
        description="Strength of the force that restores eddies damped by the grid. 0: none.",
    )
