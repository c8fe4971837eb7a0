"""Solvers of the equation of the pressure."""

import math
from typing import Protocol

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Total
from hybrid_nbody.fluid.staggered.boxes import Box, Cycler, Relaxer
from hybrid_nbody.fluid.staggered.coefficients import Coefficients, set_coefficients
from hybrid_nbody.fluid.staggered.grid import Grid, Vector, unit_of
from hybrid_nbody.fluid.staggered.memory import Memory
from hybrid_nbody.fluid.staggered.multigrid import Multigrid
from hybrid_nbody.fluid.staggered.right_side import RightSide
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.stencil import POISSON

AT_ONCE = 10
"""Red-black iterations between two looks at the residual."""


class PressureSolver(Protocol):
    """Finds the potential whose gradient has the divergence of a velocity."""

    def prepare(self) -> None:
        """Begin to compile what functions of a cell do not do; collective."""

    def refresh(self) -> None:
        """Take over what obstacles leave open now."""

    def solve(self, velocity: Vector, limit: float, most: int) -> int:
        """Set the potential; return the iterations.

        Parameters
        ----------
        velocity : tuple of array
            Its ghosts are valid.
        limit : float
            No residual is larger in the end, unless `most` iterations are done before, or further
            ones would change nothing; 0: all are done.
        most : int
        """


class InBox:
    """Solves in a box without obstacles and outlets.

    Parameters
    ----------
    box : Box
        Of the cells.
    improver : Relaxer or Cycler
    x : array
        For the potential.
    """

    def __init__(self, box: Box, improver: Relaxer | Cycler, x: Array) -> None:
        self.box = box
        self.improver = improver
        self.x = x

    def prepare(self) -> None:
        """See `PressureSolver`."""
        self.improver.prepare()

    def refresh(self) -> None:
        """See `PressureSolver`; there are no obstacles."""

    def solve(self, velocity: Vector, limit: float, most: int) -> int:
        """See `PressureSolver`."""
        x, b = self.box.divergence(velocity, -1.0)
        done = self.improver.improve(x, b, POISSON, limit, most)
        self.box.set(x, self.x)
        return done


class OpenFaces:
    """What solvers have in common whose coefficients are the open parts of faces.

    Parameters
    ----------
    grid : Grid
    solids : Solids
    memory : Memory
        Holds the potential; the rest of it is free during a solve.
    """

    def __init__(self, grid: Grid, solids: Solids, memory: Memory) -> None:
        self.grid = grid
        self.solids = solids
        self.memory = memory
        self.x = memory.potential
        self.right_side = RightSide(grid, solids)
        self.coefficients = Coefficients.empty(grid, 1.0)
        set_coefficients(self.coefficients, grid, solids)

    def prepare(self) -> None:
        """See `PressureSolver`; functions of a cell do all."""

    def refresh(self) -> None:
        """See `PressureSolver`."""
        set_coefficients(self.coefficients, self.grid, self.solids)

    def begin(self, velocity: Vector, r: Array) -> None:
        """Set the residual of a potential of zero."""
        self.grid.clear(self.x)
        self.right_side.set(velocity, r)
        self.right_side.balance(r)

    def largest(self, r: Array) -> float:
        """Return the largest residual."""
        return self.grid.largest("largest", self.grid.region, r)


class RedBlack(OpenFaces):
    """Gauss-Seidel, cells of one colour after those of the other."""

    def solve(self, velocity: Vector, limit: float, most: int) -> int:
        """See `PressureSolver`."""
        b, r, _ = self.memory.own
        self.begin(velocity, b)
        self.grid.fill(self.x)
        done = 0
        while done < most:
            now = min(AT_ONCE, most - done) if limit else most
            self._relax(b, now)
            done += now
            if limit and self._residual(b, r) <= limit:
                break
        return done

    def _relax(self, b: Array, iterations: int) -> None:
        grid = self.grid
        for half in range(2 * iterations):
            parity = (grid.first + half) % 2
            given = (self.x, b, *self.coefficients.arguments)
            grid.program.run("relax", grid.region, *given, parity=parity)
            grid.fill(self.x)

    def _residual(self, b: Array, r: Array) -> float:
        """Return the largest residual."""
        given = (self.x, b, *self.coefficients.arguments, r)
        self.grid.program.run("residual", self.grid.region, *given)
        return self.largest(r)


class Cycles(OpenFaces):
    """Cycles of multigrid, each as far along its correction as lowers the energy most.

    Parameters
    ----------
    grid, solids, memory
        See `OpenFaces`.
    """

    conjugate = False

    def __init__(self, grid: Grid, solids: Solids, memory: Memory) -> None:
        super().__init__(grid, solids, memory)
        self.multigrid = Multigrid(grid, self.coefficients, memory.cell_scratch)
        self.unit = 1.0

    def refresh(self) -> None:
        """See `PressureSolver`."""
        super().refresh()
        self.multigrid.coarsen()

    def solve(self, velocity: Vector, limit: float, most: int) -> int:
        """See `PressureSolver`."""
        self.r, self.direction, self.image = self.memory.own
        self.begin(velocity, self.r)
        wait = self.grid.largest_ahead(("largest", self.grid.region, self.r))
        self.multigrid.cycle(self.direction, self.r)
        self.unit = unit_of(*wait())
        grade = self._dot(self.r, self.direction)
        self.left = math.inf
        done = 0
        while done < most:
            self._descend(grade)
            done += 1
            if done == most or (limit and self._is_enough(limit)):
                break
            grade = self._turn(grade)
        return done

    def _is_enough(self, limit: float) -> bool:
        """Return whether the residual is small, NaN, or what it was before the last iteration."""
        before = self.left
        self.left = self.largest(self.r)
        return not limit < self.left < math.inf or self.left == before

    def _dot(self, a: Array, b: Array) -> Total:
        """Return the sum of the products of two fields, in the unit of this solve."""
        return self.grid.total_ahead("dot", self.grid.region, a, b, self.unit)

    def _descend(self, grade: Total) -> None:
        """Go to the lowest point along the direction."""
        grid = self.grid
        run = grid.program.run
        grid.fill(self.direction)
        given = (self.direction, *self.coefficients.arguments, self.image)
        run("apply", grid.region, *given)
        curvature = self._dot(self.direction, self.image)
        fields = (self.x, self.r, self.direction, self.image)
        run("descend", grid.region, *fields, grade, curvature)

    def _turn(self, grade: Total) -> Total:
        """Choose the next direction, and return its grade."""
        if not self.conjugate:
            self.multigrid.cycle(self.direction, self.r)
            return self._dot(self.r, self.direction)
        self.multigrid.cycle(self.image, self.r)
        following = self._dot(self.r, self.image)
        given = (self.direction, self.image, following, grade)
        self.grid.program.run("turn", self.grid.region, *given)
        return following


class ConjugateGradients(Cycles):
    """Conjugate gradients, for which a cycle of multigrid is the preconditioner."""

    conjugate = True
