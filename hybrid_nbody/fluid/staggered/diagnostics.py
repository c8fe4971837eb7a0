"""Totals and norms of the staggered fluid, the same bits on any number of ranks."""

from hybrid_nbody.fluid import diagnostics as collocated
from hybrid_nbody.fluid.obstacles.base import name_in_tables
from hybrid_nbody.fluid.staggered.grid import Grid, Vector, unit_of
from hybrid_nbody.fluid.staggered.loads import loads
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.staggered.step import Stepper
from hybrid_nbody.simulation.model import Quantity

LARGEST_DIVERGENCE = 0.05
"""Of what is left after a projection, relative to the largest speed of fluid and obstacles."""

QUANTITIES = {
    "kinetic_energy": Quantity(
        "length^5 / time^2", "sum of |u|^2 / 2 times the volume of a cell, for a fluid of unit mass"
    ),
    "max_speed": Quantity(
        "length / time", "largest component of the velocity, in edges of the box"
    ),
    "cfl": Quantity("1", "cells that the fastest component moves in the last part of a step"),
    "parts": Quantity("1", "parts of the last step"),
    "divergence": Quantity(
        "1",
        "largest divergence of the velocity times the edge of a cell, over the largest speed of "
        "fluid and obstacles",
        limit=LARGEST_DIVERGENCE,
        advice="the pressure is not solved; take more solver.max_iterations",
    ),
    "iterations_per_solve": Quantity(
        "1", "iterations of a solve of the pressure, mean since the last row"
    ),
}

FLOWS = {
    "flow_in": Quantity("length^3 / time", "volume that enters through the faces of the box"),
    "flow_out": Quantity("length^3 / time", "volume that leaves through the faces of the box"),
}
"""Of boxes into which fluid flows, and out of which."""


def total_of(name: str) -> str:
    """Return the name of the total of a scalar."""
    return f"total_{name}"


def error_of(name: str) -> str:
    """Return the name of the advection error of a scalar; that of the density has no suffix."""
    return "advection_error" if name == "density" else f"advection_error_{name}"


def advection_error(name: str, conserves: bool) -> Quantity:
    """Return what steps have made of a scalar, and what that means if it is much."""
    return Quantity(
        "1",
        f"{name} that diffusion and advection have made (lost: less than 0) since the start of the "
        "run, before any correction, relative to its magnitude at each step",
        limit=collocated.ADVECTION_ERROR.limit,
        advice=collocated.advice_on_advection(name, conserves),
    )


def quantities_of(stepper: Stepper) -> dict[str, Quantity]:
    """Return the quantities of a fluid."""
    names = list(stepper.state.scalars)
    found = {total_of(name): Quantity(name, f"sum of the {name} over all cells") for name in names}
    budget = stepper.budget
    if budget.closed:
        found |= {error_of(name): advection_error(name, budget.conserves) for name in names}
    else:
        found |= FLOWS
    return found | QUANTITIES | _quantities_of_obstacles(stepper)


def _quantities_of_obstacles(stepper: Stepper) -> dict[str, Quantity]:
    """Return the force on every obstacle, and its torque."""
    found = {}
    for number, obstacle in enumerate(stepper.solids.obstacles):
        name = name_in_tables(obstacle.name, number)
        found[f"force_{name}"] = Quantity(
            "length^4 / time^2", f"force of the fluid on {name}, over the fluid's density", 3
        )
        found[f"torque_{name}"] = Quantity(
            "length^5 / time^2", f"torque on {name} about its centre, over the fluid's density", 3
        )
    return found


def forces(stepper: Stepper, time: float) -> dict[str, tuple[float, ...]]:
    """Return the forces on all obstacles and their torques; collective."""
    found: dict[str, tuple[float, ...]] = {}
    for number, load in enumerate(loads(stepper, time)):
        name = name_in_tables(load.name, number)
        found[f"force_{name}"] = load.force
        found[f"torque_{name}"] = load.torque
    return found


def measured(stepper: Stepper) -> dict[str, float]:
    """Return the quantities that follow from the state; collective."""
    grid = stepper.grid
    state = stepper.state
    values = {
        total_of(name): grid.total("total", grid.region, field)
        for name, field in state.scalars.items()
    }
    if stepper.budget.closed:
        values |= {error_of(name): made for name, made in stepper.budget.made.items()}
    else:
        values |= _flows(grid, state.velocity, stepper.solids)
    speed = grid.largest_speed(state.velocity)
    unit = unit_of(speed)
    energy = grid.total("energy", grid.region, *state.velocity, unit) / unit**2
    left = stepper.projection.divergence(state.velocity)
    fastest = max(speed, stepper.solids.speed)
    values["kinetic_energy"] = energy * grid.spacing**3
    values["max_speed"] = speed
    values["divergence"] = left / fastest if fastest else 0.0
    return values


def _flows(grid: Grid, velocity: Vector, solids: Solids) -> dict[str, float]:
    """Return the volume that enters the box in a unit of time, and the one that leaves."""
    inwards = [_inwards(grid, velocity, solids, number) for number in range(6)]
    return {
        "flow_in": sum(flow for flow in inwards if flow > 0.0),
        "flow_out": -sum(flow for flow in inwards if flow < 0.0),
    }


def _inwards(grid: Grid, velocity: Vector, solids: Solids, number: int) -> float:
    """Return the volume that enters through the open part of a face of the box.

    It is 0 if the face is periodic.
    """
    axis, high = divmod(number, 2)
    if grid.periodic[axis]:
        return 0.0
    region = _outermost(grid, axis, high)
    if solids.masked:
        along = grid.total("dot", region, velocity[axis], solids.openings[axis], 1.0)
    else:
        along = grid.total("total", region, velocity[axis])
    flow = along * grid.spacing**2
    return -flow if high else flow


def _outermost(grid: Grid, axis: int, high: int) -> tuple[int, int, int, int, int, int]:
    """Return the region of the faces at an end of an axis; empty if they are another rank's."""
    region = list(grid.region)
    start = 4 - 2 * axis
    place = region[start + high]
    is_mine = axis < 2 or (grid.planes > 0 and grid.ends[high])
    region[start : start + 2] = place, place + is_mine
    k0, k1, j0, j1, i0, i1 = region
    return k0, k1, j0, j1, i0, i1
