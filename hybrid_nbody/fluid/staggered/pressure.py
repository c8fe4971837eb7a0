"""The projection: subtracts the gradient of a pressure, so that the divergence vanishes."""

from dataclasses import dataclass
from functools import partial

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.boxes import Box, Cycler, Relaxer, is_plain
from hybrid_nbody.fluid.staggered.ghosts import Ghosts
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS, Grid, Vector
from hybrid_nbody.fluid.staggered.memory import Memory
from hybrid_nbody.fluid.staggered.repeats import Repeats
from hybrid_nbody.fluid.staggered.right_side import RightSide
from hybrid_nbody.fluid.staggered.solids import SHORT, Solids
from hybrid_nbody.fluid.staggered.solvers import (
    ConjugateGradients,
    Cycles,
    InBox,
    PressureSolver,
    RedBlack,
)

CORRECTIONS = 4
"""Solves of a projection, at most: rounding is taken out by solving for what is left."""


@dataclass(frozen=True)
class Accuracy:
    """How equations are solved, and when that ends.

    Attributes
    ----------
    tolerance : float
        Of the largest divergence times the edge of a cell, over the largest speed of the fluid and
        obstacles. 0: all iterations are done.
    iterations : int
        At most.
    method : {"conjugate-gradients", "multigrid", "red-black"}
    """

    tolerance: float
    iterations: int
    method: str = "conjugate-gradients"


class Projection:
    """Makes velocities free of divergence.

    Parameters
    ----------
    repeats : Repeats
    ghosts : Ghosts
    solids : Solids
    accuracy : Accuracy
    memory : Memory
    """

    def __init__(
        self, repeats: Repeats, ghosts: Ghosts, solids: Solids, accuracy: Accuracy, memory: Memory
    ) -> None:
        grid = ghosts.grid
        self.grid = grid
        self.repeats = repeats
        self.ghosts = ghosts
        self.solids = solids
        self.accuracy = accuracy
        self.memory = memory
        self.right_side = RightSide(grid, solids)
        self.x = memory.potential
        self.solver = solver_of(accuracy.method, grid, solids, memory)
        self.iterations = 0
        self.solves = 0

    def refresh(self) -> None:
        """Take over what obstacles leave open now."""
        self.solver.refresh()

    def project(self, velocity: Vector, pressure: Array, factor: float) -> None:
        """Subtract a gradient from a velocity, and add a multiple of the potential to a pressure.

        Parameters
        ----------
        velocity : tuple of array
            Its ghosts are valid, also in the end.
        pressure : array
        factor : float
            The pressure changes by `factor` times the potential, whose difference of two cells is
            what the velocity between them changes by.
        """
        limit = self._limit(velocity)
        left = self.accuracy.iterations
        for _ in range(CORRECTIONS):
            enough = self.accuracy.tolerance and self.divergence(velocity) <= limit
            if not left or enough:
                break
            done = self.solver.solve(velocity, 0.5 * limit, left)
            left -= done
            self.iterations += done
            self.solves += 1
            change = partial(self._change, velocity, pressure, factor)
            self.repeats.do(change, (*velocity, pressure), "change", factor)
        self.repeats.do(partial(self._fill, pressure), (pressure,), "fill")

    def _change(self, velocity: Vector, pressure: Array, factor: float) -> None:
        """Change a velocity and a pressure by what was found."""
        self.ghosts.fill(self.x, self.ghosts.pressure)
        self._subtract(velocity, pressure, factor)
        self.ghosts.fill_velocity(velocity)

    def _fill(self, pressure: Array) -> None:
        """Fill the ghosts of a pressure."""
        self.ghosts.fill(pressure, self.ghosts.pressure)

    def _limit(self, velocity: Vector) -> float:
        """Return the largest divergence that may be left; 0: all iterations are done."""
        if not self.accuracy.tolerance:
            return 0.0
        speed = max(self.grid.largest_speed(velocity), self.solids.speed)
        unbalanced = self.right_side.unbalanced(velocity, speed, self.x)
        return self.accuracy.tolerance * speed + 2.0 * unbalanced

    def divergence(self, velocity: Vector) -> float:
        """Return the largest divergence, times the edge of a cell; the ghosts are valid."""
        given = (*velocity, *self.solids.arguments)
        return self.grid.largest("largest_divergence", self.grid.region, *given)

    def _subtract(self, velocity: Vector, pressure: Array, factor: float) -> None:
        """Subtract the gradient of the potential, and add a multiple of this to a pressure."""
        run, region = self.grid.program.run, self.grid.region
        first = first_faces(self.solids)
        if first:
            run("subtract_potential", region, *velocity, self.x, pressure, factor, *first)
        else:
            subtract_gradient(self.solids, velocity, self.x, 1.0)
            run("add_field", region, pressure, factor, self.x)


def first_faces(solids: Solids) -> tuple[int, int, int] | None:
    """Return where open faces begin along z, y and x, if all low faces of cells from there on are.

    None if obstacles close some, or if faces of an outlet beyond the last cells of the box are
    open, too: on all ranks, which so call the functions that a rehearsal on one rank finds.
    """
    grid = solids.grid
    has_high_outlets = any(grid.pair(axis)[1].kind == "outflow" for axis in AXES)
    if solids.masked or has_high_outlets:
        return None
    in_x, in_y, in_z = (grid.open_faces(axis) for axis in AXES)
    return in_z[0], in_y[2], in_x[4]


def subtract_gradient(solids: Solids, velocity: Vector, potential: Array, factor: float) -> None:
    """Subtract a multiple of a gradient from a velocity, at faces that are open."""
    grid = solids.grid
    first = first_faces(solids)
    if first:
        grid.program.run("subtract_gradients", grid.region, *velocity, potential, factor, *first)
        return
    for axis in AXES:
        _subtract_from_component(solids, axis, velocity[axis], potential, factor)


def _subtract_from_component(
    solids: Solids, axis: int, component: Array, potential: Array, factor: float
) -> None:
    """Subtract a multiple of a gradient from a component of a velocity."""
    low = tuple(-step for step in STEPS[axis])
    region = solids.grid.open_faces(axis)
    for part, masked in solids.parts_of(region, SHORT):
        given = (potential, factor, masked, solids.openings[axis], *low)
        solids.grid.program.run("subtract_gradient", part, component, *given)


def solver_of(method: str, grid: Grid, solids: Solids, memory: Memory) -> PressureSolver:
    """Return the solver of a method; in a box without obstacles that of the collocated grid."""
    if method == "conjugate-gradients":
        return ConjugateGradients(grid, solids, memory)
    if is_plain(grid, solids.masked):
        box = Box(grid, None, memory.colours, memory.lent)
        improver = Relaxer(box) if method == "red-black" else Cycler(box)
        return InBox(box, improver, memory.potential)
    if method == "red-black":
        return RedBlack(grid, solids, memory)
    return Cycles(grid, solids, memory)
