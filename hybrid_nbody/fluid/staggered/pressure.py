"""The projection: subtracts the gradient of a pressure, so that the divergence vanishes."""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.ghosts import Ghosts
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS, Grid, Vector
from hybrid_nbody.fluid.staggered.multigrid import Multigrid, clear
from hybrid_nbody.fluid.staggered.solids import Solids

OUTLET = 2.0
"""The coefficient of a face at which the pressure is given: it is half a cell away."""

CORRECTIONS = 4
"""Solves of a projection, at most: rounding is taken out by solving for what is left."""


@dataclass(frozen=True)
class Accuracy:
    """When a projection ends.

    Attributes
    ----------
    tolerance : float
        Of the largest divergence times the edge of a cell, over the largest speed.
    iterations : int
        Of conjugate gradients, at most.
    """

    tolerance: float
    iterations: int


class Projection:
    """Makes velocities free of divergence.

    Parameters
    ----------
    grid : Grid
    ghosts : Ghosts
    solids : Solids
    accuracy : Accuracy
    """

    def __init__(self, grid: Grid, ghosts: Ghosts, solids: Solids, accuracy: Accuracy) -> None:
        self.grid = grid
        self.ghosts = ghosts
        self.solids = solids
        self.accuracy = accuracy
        self.x = grid.zeros()
        self.r = grid.zeros()
        self.direction = grid.zeros()
        self.image = grid.zeros()
        self.coefficients = grid.vector()
        set_coefficients(self.coefficients, grid, solids)
        self.multigrid = Multigrid(grid, self.coefficients, grid.zeros())
        self.iterations = 0
        self.solves = 0

    def refresh(self) -> None:
        """Take over what obstacles leave open now."""
        set_coefficients(self.coefficients, self.grid, self.solids)
        self.multigrid.coarsen()

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
        limit = self.accuracy.tolerance * self.grid.largest_speed(velocity)
        left = self.accuracy.iterations
        for _ in range(CORRECTIONS):
            if self.divergence(velocity) <= limit or not left:
                break
            left -= self._solve(velocity, 0.5 * limit, left)
            self._subtract(velocity)
            self.grid.program.run("add_field", self.grid.region, pressure, factor, self.x)
        self.ghosts.fill(pressure, self.ghosts.pressure)

    def divergence(self, velocity: Vector) -> float:
        """Return the largest divergence, times the edge of a cell; the ghosts are valid."""
        given = (*velocity, *self.solids.arguments)
        return self.grid.largest("largest_divergence", self.grid.region, *given)

    def _subtract(self, velocity: Vector) -> None:
        """Subtract the gradient of the potential."""
        self.ghosts.fill(self.x, self.ghosts.pressure)
        run = self.grid.program.run
        for axis in AXES:
            low = tuple(-step for step in STEPS[axis])
            given = (self.x, 1.0, self.solids.masked, self.solids.openings[axis], *low)
            run("subtract_gradient", self.grid.open_faces(axis), velocity[axis], *given)
        self.ghosts.fill_velocity(velocity)

    def _solve(self, velocity: Vector, limit: float, most: int) -> int:
        """Find the potential of a velocity by conjugate gradients; return the iterations.

        They end when no residual exceeds a limit.
        """
        grid = self.grid
        region = grid.region
        clear(self.x)
        grid.program.run("divergence", region, *velocity, *self.solids.arguments, -1.0, self.r)
        self.multigrid.cycle(self.direction, self.r)
        grade = grid.total("dot", region, self.r, self.direction)
        done = 0
        self.solves += 1
        while done < most and grade > 0.0:
            self._descend(grade)
            done += 1
            if grid.largest("largest", region, self.r) <= limit:
                break
            grade = self._turn(grade)
        self.iterations += done
        return done

    def _descend(self, grade: float) -> None:
        """Go to the lowest point along the direction."""
        grid = self.grid
        run = grid.program.run
        grid.fill(self.direction)
        run("apply", grid.region, self.direction, *self.coefficients, self.image)
        curvature = grid.total("dot", grid.region, self.direction, self.image)
        step = grade / curvature if curvature > 0.0 else 0.0
        run("descend", grid.region, self.x, self.r, self.direction, self.image, step)

    def _turn(self, grade: float) -> float:
        """Choose the next direction, conjugate to the last one, and return its grade."""
        grid = self.grid
        self.multigrid.cycle(self.image, self.r)
        following = grid.total("dot", grid.region, self.r, self.image)
        grid.program.run("turn", grid.region, self.direction, self.image, following / grade)
        return following


def set_coefficients(found: Vector, grid: Grid, solids: Solids) -> None:
    """Set the coefficients of the low faces of cells: the open part of each, 2 at outlets."""
    for axis in AXES:
        grid.program.run("copy", grid.everywhere, solids.openings[axis], found[axis])
        _at_ends(grid, axis, found[axis])
        grid.fill(found[axis])


def _at_ends(grid: Grid, axis: int, array: Array) -> None:
    """Give the faces at both ends of an axis their coefficients, unless it is periodic."""
    if grid.periodic[axis]:
        return
    place = 2 - axis
    own = grid.ends if axis == 2 else (True, True)
    for end, face in enumerate(grid.pair(axis)):
        index = [slice(None)] * 3
        index[place] = slice(-1, None) if end else slice(0, 2)
        if own[end]:
            array[tuple(index)] *= OUTLET if face.kind == "outflow" else 0.0
