"""The projection: subtracts the gradient of a pressure, so that the divergence vanishes."""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.staggered.ghosts import Ghosts
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS, Grid, Vector
from hybrid_nbody.fluid.staggered.multigrid import Multigrid
from hybrid_nbody.fluid.staggered.pockets import Pocket
from hybrid_nbody.fluid.staggered.solids import Solids

OUTLET = 2.0
"""The coefficient of a face at which the pressure is given: it is half a cell away."""

CORRECTIONS = 4
"""Solves of a projection, at most: rounding is taken out by solving for what is left."""

LEAK = 1e-4
"""Mean divergence of a closed pocket, relative to the largest speed, that is refused."""


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
        speed = self.grid.largest_speed(velocity)
        limit = self.accuracy.tolerance * speed + 2.0 * self._unbalanced(velocity, speed)
        left = self.accuracy.iterations
        for _ in range(CORRECTIONS):
            if self.divergence(velocity) <= limit or not left:
                break
            left -= self._solve(velocity, 0.5 * limit, left)
            self._subtract(velocity)
            self.grid.program.run("add_field", self.grid.region, pressure, factor, self.x)
        self.ghosts.fill(pressure, self.ghosts.pressure)

    def _unbalanced(self, velocity: Vector, speed: float) -> float:
        """Return the largest mean divergence of a closed pocket, which no pressure takes away.

        Raises
        ------
        NumericalError
            If more than rounding flows into one; on every rank.
        """
        if not self.solids.pockets:
            return 0.0
        self._set_divergence(velocity)
        means = {pocket: self._mean(pocket) for pocket in self.solids.pockets}
        worst = max(means, key=lambda pocket: abs(means[pocket]))
        if abs(means[worst]) > LEAK * speed:
            raise squeezed(worst, means[worst]).on_all_ranks()
        return abs(means[worst])

    def _mean(self, pocket: Pocket) -> float:
        """Return the mean of the right-hand side in a pocket."""
        given = (self.r, self.solids.pocket, float(pocket.number))
        return self.grid.total("total_in", self.grid.region, *given) / pocket.cells

    def _set_divergence(self, velocity: Vector) -> None:
        """Set the right-hand side."""
        given = (*velocity, *self.solids.arguments, -1.0, self.r)
        self.grid.program.run("divergence", self.grid.region, *given)

    def _balance(self) -> None:
        """Take the mean of the right-hand side out of every pocket."""
        for pocket in self.solids.pockets:
            given = (self.r, self.solids.pocket, float(pocket.number), -self._mean(pocket))
            self.grid.program.run("add_in", self.grid.region, *given)

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
        self.grid.clear(self.x)
        self._set_divergence(velocity)
        self._balance()
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


def squeezed(pocket: Pocket, inflow: float) -> NumericalError:
    """Return the error of a pocket whose volume would change."""
    what = "more fluid flows in than out" if inflow > 0.0 else "more fluid flows out than in"
    return NumericalError(
        f"obstacles: {pocket} is closed, and {what}: it would have to change its volume; leave a "
        "gap of a cell beside what moves, keep inlets and outlets in one part of the fluid, or "
        "make a face of the box outflow"
    )


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
