"""Totals and norms of the fluid: summed plane by plane, so that bits do not depend on the ranks."""

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from hybrid_nbody.simulation.model import Quantity

ADVECTION_ERROR = Quantity(
    "1",
    "density that diffusion and advection have made (lost: less than 0) since the start of the "
    "run, relative to that of each step",
    limit=0.01,
)

QUANTITIES = {
    "total_density": Quantity("density", "sum of the density over all cells"),
    "total_density_with_ghosts": Quantity(
        "density", "sum of the density over all cells and the ghosts behind walls"
    ),
    "advection_error": ADVECTION_ERROR,
    "kinetic_energy": Quantity(
        "length^5 / time^2", "sum of |u|^2 / 2 times the volume of a cell, for a fluid of unit mass"
    ),
    "max_speed": Quantity(
        "length / time", "largest component of the velocity, in edges of the box"
    ),
    "cfl": Quantity("1", "cells that the fastest component moves in a step"),
    "divergence_before": Quantity(
        "1 / time", "largest divergence before the last projection of the step"
    ),
    "divergence_after": Quantity("1 / time", "largest divergence of the velocity"),
    "poisson_residual": Quantity(
        "1",
        "largest residual over largest right-hand side of the last pressure",
        limit=0.05,
        advice="the pressure is not solved; take solver.method multigrid, or more "
        "solver.max_iterations",
    ),
    "iterations_per_solve": Quantity("1", "iterations of a linear solve, mean since the last row"),
    "early_share": Quantity(
        "1", "share of the solves since the last row that stopped before their last iteration"
    ),
}


def quantities_of(projection: str, conserve: bool, summed: bool) -> dict[str, Quantity]:
    """Return the quantities with the limits that hold for a fluid.

    Parameters
    ----------
    projection : {"exact", "course"}
        That of the course leaves the divergence as it is, however the pressure is solved.
    conserve : bool
        Whether what advection makes or loses is taken back.
    summed : bool
        Whether that is summed at all.
    """
    found = dict(QUANTITIES)
    if projection == "course":
        found["poisson_residual"] = replace(found["poisson_residual"], limit=math.inf)
    if summed:
        advice = advice_on_advection("density", conserve)
        found["advection_error"] = replace(ADVECTION_ERROR, advice=advice)
    else:
        del found["advection_error"]
    return found


def advice_on_advection(name: str, conserves: bool) -> str:
    """Return what a large error of advection means for a scalar, and what reduces it."""
    made = f"diffusion and advection made or lost this part of the {name}"
    remedy = "more cells or a smaller time.dt reduce it"
    if conserves:
        made += ", which fluid.conserve took back: the total is right, details may not be"
        return f"{made}; {remedy}"
    return f"{made}; fluid.conserve takes it back; {remedy}"


class Ranks(Protocol):
    """The ranks whose planes are summed; a `Communicator`."""

    def concatenate(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of all ranks, in their order."""


def total(planes: np.ndarray, communicator: Ranks) -> float:
    """Return the sum over the planes of all ranks; `planes` are the sums of this rank's planes."""
    return float(np.sum(communicator.concatenate(planes)))


def total_with_ghosts(planes: np.ndarray, walled: bool, communicator: Ranks) -> float:
    """Return the sum with ghosts: at walls of z, the first and the last plane count twice."""
    sums = communicator.concatenate(planes)
    return float(np.sum(sums) + (sums[0] + sums[-1] if walled else 0.0))
