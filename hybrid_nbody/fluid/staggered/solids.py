"""Obstacles in the staggered grid: the open part of every face, and what fields are in the solid.

Paths that end within a solid read what is there. Faces of a no-slip wall have the velocity of the
solid; along a free-slip wall the flow is continued into it, layer by layer, and so are scalars. No
fluid passes a closed face, whatever stands there: its open part is 0.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.kernels.cells.diffusion import FAR
from hybrid_nbody.fluid.kernels.cells.obstacles import BURIED
from hybrid_nbody.fluid.obstacles import Obstacle, Openings
from hybrid_nbody.fluid.obstacles.openings import Near, near_obstacles
from hybrid_nbody.fluid.obstacles.parts import Part
from hybrid_nbody.fluid.staggered.ghosts import Ghosts, Kind
from hybrid_nbody.fluid.staggered.grid import AXES, Grid, Vector, around, common
from hybrid_nbody.fluid.staggered.pockets import FEW_CELLS, Parts, Pocket, close, parts
from hybrid_nbody.fluid.staggered.thin import ThinSolids, find

LAYERS = 3
"""Layers of a solid into which fields are continued."""

HELD_SHARE = 0.5 * (1.0 + 1e-9)
"""Faces of which less is open have the velocity of a wall to which fluid sticks.

With a half, what they lack in the balance of momentum is as much as others have too much.
"""

FLUID = 1.0
HELD = 0.5
GIVEN = 0.0

WORTHWHILE = 1 << 17
"""Cells far from obstacles, at least, for which functions are called apart."""

SHORT = 64
"""How many times as many it takes for short functions, where a launch on a GPU takes longer."""

NOBODY = -1.0
"""The owner of a cell far from all obstacles."""


class Solids:
    """What obstacles leave open.

    Parameters
    ----------
    grid : Grid
    obstacles : sequence of Obstacle
    time : float, optional
        At which they are placed first.

    Attributes
    ----------
    masked : int
        1 if there are obstacles, else 0, and the arrays are of one plane that nobody reads.
    moving : int
        1 if any of them moves.
    slips : bool
        Whether fluid slides along any of them.
    openings : tuple of array
        The open part of the low faces of cells along x, y and z.
    velocity : tuple of array
        That of the solid at the same faces.
    speed : float
        The largest component of these velocities, on all ranks.
    reach : tuple of array
        What is known at the same faces; see `hybrid_nbody.fluid.kernels.cells.obstacles`.
    of_cells : array
        The same of cells: more than 0 if a face of the cell is open.
    owner : array
        The place among the obstacles of the one nearest to a cell; -1 far from all.
    pockets : tuple of Pocket
        The closed parts of the fluid.
    pocket : array
        The number of the one to which a cell belongs; that of other cells is not among them.
    thin : ThinSolids
        Where interpolation would reach across a solid.
    near : tuple of int
        A region, ghosts included, outside which all is fluid.
    """

    def __init__(self, grid: Grid, obstacles: Sequence[Obstacle], time: float = 0.0) -> None:
        self.grid = grid
        self.obstacles = tuple(obstacles)
        self.masked = int(bool(self.obstacles))
        self.moving = int(any(obstacle.moves for obstacle in self.obstacles))
        self.slips = any(obstacle.wall == "free-slip" for obstacle in self.obstacles)
        nothing = grid.backend.zeros((1, *grid.shape[1:]), grid.dtype)
        same = (nothing, nothing, nothing)
        self.openings: Vector = grid.vector() if self.masked else same
        self.reach: Vector = grid.vector() if self.masked else same
        self.velocity: Vector = grid.vector() if self.moving else same
        self.speed = 0.0
        self.of_cells, self.owner, self.pocket = grid.vector() if self.masked else same
        self.pockets: tuple[Pocket, ...] = ()
        self.thin = ThinSolids()
        self.near = grid.everywhere
        self.place(time)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return what functions of a cell want to know."""
        return self.arguments_where(self.masked)

    def arguments_where(self, masked: int) -> tuple[Any, ...]:
        """Return the same for a part of the cells, with what is masked there."""
        return (*self.openings, *self.velocity, masked, self.moving)

    # --- where they are ---------------------------------------------------------------------------

    def place(self, time: float) -> None:
        """Put the obstacles where they are at a time."""
        if not self.masked:
            return
        grid = self.grid
        whole = Part.of_planes(grid.cells, grid.periodic, grid.first, grid.planes)
        near = self._find_pockets(near_obstacles(self.obstacles, whole, time))
        self.thin = find(grid, near)
        before = self.near
        self.slices = near.part.within(whole)
        self.near = region_of(self.slices)
        self._enter_all(near.openings, before)
        if self.moving:
            self.speed = grid.largest_speed(self.velocity)
        for array in (self.of_cells, *self.reach):
            self._deepen(array)

    def _enter_all(self, found: Openings, before: Region) -> None:
        """Take over openings; where obstacles were before, all is fluid but for those."""
        for axis, values in enumerate((found.x, found.y, found.z)):
            self._enter(self.openings[axis], values, before, 1.0)
            self._enter(self.reach[axis], self._reach_of_faces(found, axis), before, FLUID)
        of_cells = np.where(found.volume > 0.0, FLUID, -BURIED)
        self._enter(self.of_cells, of_cells, before, FLUID)
        self._enter(self.owner, found.owner, before, NOBODY)
        for axis, solid in enumerate((found.solid_u, found.solid_v, found.solid_w)):
            if solid is not None:
                self._enter(self.velocity[axis], solid, before, 0.0)

    def _enter(self, array: Array, values: np.ndarray, before: Region, outside: float) -> None:
        """Set an array near obstacles, and to one value where they were before."""
        self.grid.program.run("set_to", before, array, outside)
        self._upload(array[self.slices], values)

    def _find_pockets(self, near: Near) -> Near:
        """Find the closed parts of the fluid; make those of few cells solid if obstacles move."""
        found = parts(self.grid, near)
        least = FEW_CELLS if self.moving else 0
        self.pockets = tuple(pocket for pocket in found.pockets if pocket.cells > least)
        if self.pockets:
            self._number_pockets(found)
        return close(self.grid, near, found, [p for p in found.pockets if p.cells <= least])

    def _number_pockets(self, found: Parts) -> None:
        """Set the numbers of the parts of the fluid."""
        blocks = found.blocks
        for axis, first, end, number in blocks.outside(found.numbers):
            self.grid.program.run("set_to", self._layer(axis, first, end), self.pocket, number)
        x, y, z = blocks.near
        starts = zip(blocks.starts, blocks.near, (1, 1, 1 - self.grid.first), strict=True)
        i, j, k = (int(s[some.start]) + shift for s, some, shift in starts)
        values = found.numbers[z, y, x]
        planes, rows, columns = values.shape
        self._upload(self.pocket[k : k + planes, j : j + rows, i : i + columns], values)

    def _layer(self, axis: int, first: int, end: int) -> Region:
        """Return the cells that the rank owns between two places along an axis."""
        region = list(self.grid.region)
        shift = 1 - (self.grid.first if axis == 2 else 0)
        region[4 - 2 * axis : 6 - 2 * axis] = first + shift, end + shift
        return tuple(region)  # type: ignore[return-value]  # six numbers

    def _reach_of_faces(self, found: Openings, axis: int) -> np.ndarray:
        """Return what is known at the faces of an axis, before layers are counted."""
        opening = (found.x, found.y, found.z)[axis]
        slides = np.array([o.wall == "free-slip" for o in self.obstacles] + [False])[found.owner]
        held = (opening > 0.0) & (opening < HELD_SHARE) & ~slides
        cases = [held, opening > 0.0, slides]
        return np.select(cases, [HELD, FLUID, -BURIED], GIVEN)

    def _deepen(self, reach: Array) -> None:
        """Number the layers below the surface."""
        self.grid.fill(reach)
        for layer in range(1, LAYERS + 1):
            self._run_near("deepen", self.grid.region, reach, float(-layer))
            self.grid.fill(reach)

    def parts_of(self, region: Region, scale: int = 1) -> Iterator[tuple[Region, int]]:
        """Yield regions that together are one, each with what is masked there.

        Functions of cells need not look at walls in those parts that are far from obstacles, where
        enough cells lie: `WORTHWHILE` times `scale`.
        """
        near = common(region, self.near)
        if not self.masked or cells_of(region) - cells_of(near) < scale * WORTHWHILE:
            yield region, self.masked
            return
        if near is not None:
            yield near, self.masked
        for part in around(near, region) if near else (region,):
            yield part, FAR

    def _run_near(self, name: str, region: Region, *arguments: Any) -> None:
        """Call a function for those cells of a region that are near obstacles."""
        near = common(region, self.near)
        if near is not None:
            self.grid.program.run(name, near, *arguments)

    def _upload(self, array: Array, values: np.ndarray) -> None:
        """Set an array on the device."""
        array[...] = self.grid.backend.upload(np.ascontiguousarray(values, self.grid.dtype))

    # --- what fields are within them --------------------------------------------------------------

    def fill_solid(self, velocity: Vector, ghosts: Ghosts) -> None:
        """Give a velocity its values within obstacles, and fill its ghosts."""
        for axis in AXES:
            self._impose(velocity[axis], axis)
        ghosts.fill_velocity(velocity)
        for axis in AXES:
            self._slip(velocity[axis], axis, ghosts)

    def fill_solid_component(self, array: Array, axis: int, ghosts: Ghosts) -> None:
        """Give a component of the velocity its values within obstacles, and fill its ghosts."""
        self._impose(array, axis)
        ghosts.fill(array, ghosts.velocity[axis])
        self._slip(array, axis, ghosts)

    def _impose(self, array: Array, axis: int) -> None:
        """Give a component of the velocity that of obstacles within them."""
        if self.masked:
            given = (array, self.reach[axis], self.moving, self.velocity[axis])
            self._run_near("impose_solid", self.grid.everywhere, *given)

    def _slip(self, array: Array, axis: int, ghosts: Ghosts) -> None:
        """Continue a component, whose ghosts are valid, into obstacles along which it slides."""
        if self.slips:
            self._extend(array, self.reach[axis], ghosts.velocity[axis], ghosts)

    def stick(self, velocity: Vector) -> None:
        """Give faces that are mostly closed the velocity of walls to which fluid sticks."""
        for axis in AXES:
            given = (velocity[axis], self.reach[axis], self.moving, self.velocity[axis])
            self._run_near("stick", self.grid.region, *given)

    def drag_along(self, velocity: Vector, ratio: float, regions: Sequence[Region]) -> None:
        """Add to a velocity what viscosity does beside walls, by how they move where they are.

        Parameters
        ----------
        velocity : tuple of array
        ratio : float
            Viscosity times time over the square of the edge of a cell.
        regions : sequence of Region
            The faces of each axis that change.
        """
        for axis in AXES if self.moving else ():
            walls = (self.openings[axis], self.reach[axis])
            given = (self.velocity[axis], ratio, *walls, velocity[axis])
            self._run_near("add_motion", regions[axis], *given)

    def extend(self, field: Array, kind: Kind, ghosts: Ghosts) -> None:
        """Continue a field at centres, whose ghosts are valid, into obstacles."""
        if self.masked:
            self._extend(field, self.of_cells, kind, ghosts)

    def _extend(self, field: Array, reach: Array, kind: Kind, ghosts: Ghosts) -> None:
        """Set the elements of each layer from those above it."""
        for layer in range(1, LAYERS + 1):
            self._run_near("extend", self.grid.region, field, reach, float(-layer))
            ghosts.fill(field, kind)

    def blank(self, field: Array) -> None:
        """Set a field at centres to 0 within obstacles."""
        if self.masked:
            self._run_near("blank", self.grid.region, field, self.of_cells)


def region_of(slices: tuple[slice, slice, slice]) -> Region:
    """Return the region of the elements in slices of an array."""
    z, y, x = slices
    return z.start, z.stop, y.start, y.stop, x.start, x.stop


def cells_of(region: Region | None) -> int:
    """Return the number of elements of a region."""
    if region is None:
        return 0
    k0, k1, j0, j1, i0, i1 = region
    return (k1 - k0) * (j1 - j0) * (i1 - i0)
