"""Equations in a box without obstacles, solved by the kernels of the collocated grid.

Cells, and the faces across an axis, form such a box. The kernels keep its elements by colour and do
several red-black iterations in a pass over the grid. What is solved for is a change, so that walls
give nothing: their values are in the field that changes.
"""

import math
from collections.abc import Callable
from functools import cache, cached_property, partial

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.backends.replays import Replays
from hybrid_nbody.fluid import grid as collocated
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.kernels.colour_contract import First
from hybrid_nbody.fluid.kernels.contract import Kernels
from hybrid_nbody.fluid.solvers.base import Accuracy, Solver
from hybrid_nbody.fluid.solvers.halos import Halo, Onlooker
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.solvers.relaxation import RedBlack
from hybrid_nbody.fluid.staggered.ghosts import Kind
from hybrid_nbody.fluid.staggered.grid import AXES, Grid, Vector
from hybrid_nbody.fluid.stencil import Stencil

AT_ONCE = 10
"""Red-black iterations between two looks at the residual."""

STALLED = 0.8
"""Part of the residual that a cycle of multigrid leaves where rounding holds it: else a tenth."""


class Colours:
    """Memory for a solution and a right-hand side by colour, which boxes use in turn.

    It is made anew for a box whose planes are larger than those before. That is so on all ranks at
    once, as their solvers need: these ask each other for addresses where memory is new.

    Parameters
    ----------
    planes : int
        Planes of the rank; a box of faces across z may have one less.
    """

    def __init__(self, planes: int) -> None:
        self.planes = planes
        self.plane = 0
        self.memory: Array = np.zeros(0)

    def pair(self, kernels: Kernels) -> tuple[Array, Array]:
        """Return both, whose values are old ones."""
        shape = (2, *kernels.colours_shape)
        size = math.prod(shape)
        plane = size // shape[2]
        if plane > self.plane:
            self.plane = plane
            spare = 1 if kernels.slab.planes < self.planes else 0  # for a box of all planes
            self.memory = kernels.colours(2 + spare).reshape(-1)
        x, b = self.memory[:size].reshape(shape)
        return x, b


class Box:
    """The elements of a field that change, in a box without obstacles and outlets.

    Parameters
    ----------
    grid : Grid
    axis : int or None
        Of the faces that are the elements; None for cells.
    colours : Colours
    scratch : callable
        Returns an array of the grid that is free during a solve.
    """

    def __init__(
        self, grid: Grid, axis: int | None, colours: Colours, scratch: Callable[[], Array]
    ) -> None:
        self.grid = grid
        self.axis = axis
        self.colours = colours
        self.scratch = scratch
        self.region: Region = grid.region if axis is None else grid.inner_faces(axis)
        self.walled = axis is not None and not grid.periodic[axis]

    @property
    def cells(self) -> tuple[int, int, int]:
        """Return the elements along x, y and z: a face less than cells between walls."""
        x, y, z = (n - (self.walled and a == self.axis) for a, n in enumerate(self.grid.cells))
        return x, y, z

    @property
    def has_elements(self) -> bool:
        """Return whether any rank has elements."""
        return min(self.cells) > 0

    @cached_property
    def halo(self) -> Halo:
        """Return how ranks see each other's elements."""
        walled_across = self.walled and self.axis == 2
        return self.grid.halo.between_planes() if walled_across else self.grid.halo

    @property
    def idle(self) -> bool:
        """Return whether this rank has no elements: of faces across z, if it has one plane."""
        return self.halo.partition.counts[self.halo.rank] == 0

    @cached_property
    def kernels(self) -> Kernels:
        """Return the kernels of this rank's elements, compiled at the first request."""
        own = self.halo.own
        boundary = _boundary(self.grid)
        slab = collocated.Slab(
            self.cells, boundary, own.start, own.stop - own.start, self.grid.mixed
        )
        return make_kernels(self.grid.backend, slab, self.grid.dtype)

    def ghosts(self, kind: Kind) -> collocated.Ghosts:
        """Return what a change of a field is behind the faces of the box.

        Across the axis of faces it is 0 there; else it is that of the cell, or less that.
        """
        signs = list(map(int, kind.signs))
        if self.axis is not None and self.walled:
            signs[2 * self.axis : 2 * self.axis + 2] = 0, 0
        return collocated.Ghosts(*map(collocated.Ghost, signs))

    @property
    def first(self) -> First:
        """Return where the first element is in fields, along z, y and x."""
        return self.region[0], self.region[2], self.region[4]

    def pair(self) -> tuple[Array, Array]:
        """Return memory for a solution and a right-hand side."""
        if self.idle:
            return self.colours.memory[:0], self.colours.memory[:0]
        return self.colours.pair(self.kernels)

    def spread(self, field: Array, ratio: float) -> tuple[Array, Array]:
        """Return memory for a solution, and what diffusion changes in a step."""
        x, b = self.pair()
        if not self.idle:
            self.kernels.split_spread(field, self.first, ratio, b)
        return x, b

    def divergence(self, velocity: Vector, factor: float) -> tuple[Array, Array]:
        """Return memory for a solution, and a multiple of what flows out of each cell."""
        x, b = self.pair()
        if not self.idle:
            self.kernels.split_divergence(velocity, self.first, factor, b)
        return x, b

    def clear(self, x: Array) -> None:
        """Make zeros of a solution."""
        if not self.idle:
            self.kernels.clear(x)

    def set(self, x: Array, field: Array) -> None:
        """Set elements of a field to a solution."""
        if not self.idle:
            self.kernels.merge_into(x, field, self.first)

    def add(self, x: Array, field: Array) -> None:
        """Add a solution to elements of a field."""
        if not self.idle:
            self.kernels.merge_onto(x, field, self.first)

    def largest_residual(self, x: Array, b: Array, equation: Stencil) -> float:
        """Return the largest residual on any rank."""
        own = 0.0 if self.idle else self.kernels.residual(x, b, equation)
        return self.halo.largest(own)


class Relaxer:
    """Red-black iterations in a box.

    Parameters
    ----------
    box : Box
    """

    def __init__(self, box: Box) -> None:
        self.box = box
        self.solver = cache(self._solver)

    def _solver(self, iterations: int, first: bool) -> Solver:
        """Return what does a number of iterations, the first ones or others."""
        if self.box.idle:
            return Onlooker(self.box.halo)
        return RedBlack(self.box.kernels, self.box.halo, Accuracy(iterations, 0.0), first)

    def prepare(self) -> None:
        """Begin to compile the kernels; a GPU goes on with that in the background."""
        self.solver(AT_ONCE, True)

    def improve(self, x: Array, b: Array, equation: Stencil, limit: float, most: int) -> int:
        """Solve until no residual exceeds a limit, from zeros on; return the iterations.

        With a limit of 0 they are `most`.
        """
        if not most:
            self.box.clear(x)
        done = 0
        while done < most:
            now = min(AT_ONCE, most - done) if limit else most
            self.solver(now, done == 0).solve(x, b, equation, self.box.scratch().reshape(-1))
            done += now
            if limit and self.box.largest_residual(x, b, equation) <= limit:
                break
        return done


class Cycler:
    """Cycles of multigrid in a box; parameters are those of `Relaxer`."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.replays = Replays(box.grid.backend)

    @cached_property
    def multigrid(self) -> Multigrid:
        """Return the grids; collective where they are asked for first."""
        return Multigrid(self.box.kernels, self.box.halo, Accuracy(1, 0.0))

    def prepare(self) -> None:
        """Begin to compile the kernels, as `Relaxer.prepare`; collective."""
        _ = self.multigrid

    def improve(self, x: Array, b: Array, equation: Stencil, limit: float, most: int) -> int:
        """Solve until no residual exceeds a limit, or rounding holds it there, from zeros on.

        Returns the cycles.
        """
        self.box.clear(x)
        scratch = self.box.scratch()
        self.multigrid.prepare(equation, scratch.reshape(-1))
        self.box.kernels.begin_solve()
        residual = math.inf
        done = 0
        while done < most:
            self._cycle((x, b, scratch), equation)
            done += 1
            if not limit:
                continue
            before = residual
            residual = self.box.largest_residual(x, b, equation)
            if residual <= limit or residual > STALLED * before:
                break
        return done

    def _cycle(self, arrays: tuple[Array, Array, Array], equation: Stencil) -> None:
        """Improve a solution by a cycle; a device with a queue repeats it as one launch."""
        x, b, _ = arrays
        if self.box.halo.recordable:
            action = partial(self.multigrid.improve, x, b, equation)
            self.replays.repeat(action, arrays, equation)
        else:
            self.multigrid.improve(x, b, equation)


def is_plain(grid: Grid, masked: int) -> bool:
    """Return whether a box has neither obstacles nor outlets."""
    return not masked and not grid.faces.has_outlets


def _boundary(grid: Grid) -> collocated.Boundary:
    """Return the conditions of a change of the velocity."""
    kinds = (face.kind for axis in AXES for face in grid.pair(axis))
    a, b, c, d, e, f = map(collocated.Face, kinds)
    return collocated.Boundary((a, b, c, d, e, f))
