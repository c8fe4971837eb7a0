"""Implicit viscosity and diffusion.

They are solved by conjugate gradients; with red-black iterations in a box without obstacles and
outlets, by those of the collocated grid.
"""

from collections.abc import Callable
from functools import cache

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.staggered.boxes import Box, Relaxer, is_plain
from hybrid_nbody.fluid.staggered.ghosts import Ghosts, Kind
from hybrid_nbody.fluid.staggered.grid import Grid, unit_of
from hybrid_nbody.fluid.staggered.memory import Memory
from hybrid_nbody.fluid.staggered.pressure import Accuracy
from hybrid_nbody.fluid.staggered.solids import Solids
from hybrid_nbody.fluid.stencil import diffusion

Operator = Callable[[Array, Array], None]


class Diffusion:
    """Spreads momentum and scalars.

    Parameters
    ----------
    grid : Grid
    ghosts : Ghosts
    solids : Solids
    accuracy : Accuracy
        Its tolerance is of the largest residual over the largest right-hand side.
    memory : Memory
    """

    def __init__(
        self, grid: Grid, ghosts: Ghosts, solids: Solids, accuracy: Accuracy, memory: Memory
    ) -> None:
        self.grid = grid
        self.ghosts = ghosts
        self.solids = solids
        self.accuracy = accuracy
        self.memory = memory
        self.in_boxes = accuracy.method == "red-black" and is_plain(grid, solids.masked)
        self.relaxer = cache(self._relaxer)

    def _relaxer(self, axis: int | None) -> Relaxer:
        """Return what relaxes the elements of a kind of field."""
        return Relaxer(Box(self.grid, axis, self.memory.colours, self.memory.lent))

    def spread(self, field: Array, kind: Kind, region: Region, ratio: float) -> None:
        """Replace a field by the solution of ``(1 - ratio * Laplacian) x = field``.

        Parameters
        ----------
        field : array
            Its ghosts are valid in the end.
        kind : Kind
        region : tuple of int
            The elements that change.
        ratio : float
            Viscosity times time over the square of the edge of a cell.
        """
        self.ghosts.fill(field, kind)
        if self.in_boxes and self.relaxer(kind.axis).box.has_elements:
            self._relax(field, kind, ratio)
        else:
            self._conjugate(field, kind, region, ratio)
        self.ghosts.fill(field, kind)

    def _limit(self, field: Array) -> float:
        """Return the largest residual that may be left."""
        tolerance = self.accuracy.tolerance
        return tolerance and tolerance * self.grid.largest("largest", self.grid.region, field)

    def _relax(self, field: Array, kind: Kind, ratio: float) -> None:
        """Add what red-black iterations make of the change of a step without them."""
        relaxer = self.relaxer(kind.axis)
        box = relaxer.box
        equation = diffusion(ratio, box.ghosts(kind))
        limit = self._limit(field)
        x, b = box.split("spread_in_box", field, ratio)
        is_zero = self.accuracy.tolerance and not limit
        if is_zero and box.largest_residual(x, b, equation) == 0.0:
            return
        relaxer.improve(x, b, equation, limit, self.accuracy.iterations)
        box.merge(x, "add_from_box", field)

    def _conjugate(self, field: Array, kind: Kind, region: Region, ratio: float) -> None:
        """Improve a field by conjugate gradients."""
        grid = self.grid
        self.r, self.direction, self.image = self.memory.own
        limit = self._limit(field)
        self._residual(field, kind, region, ratio)
        self.grid.clear(self.direction)
        grid.program.run("copy", region, self.r, self.direction)
        self.unit = unit_of(grid.largest("largest", region, self.r))
        grade = self._dot(region, self.r, self.r)
        for done in range(self.accuracy.iterations):
            # one at least: what little a small viscosity does adds up over the steps
            small = done and grid.largest("largest", region, self.r) <= limit
            if grade == 0.0 or small:
                break
            self._descend(field, kind, region, ratio, grade)
            following = self._dot(region, self.r, self.r)
            grid.program.run("turn", region, self.direction, self.r, following / grade)
            grade = following

    def _dot(self, region: Region, a: Array, b: Array) -> float:
        """Return the sum of the products of two fields, in the unit of this solve."""
        return self.grid.total("dot", region, a, b, self.unit)

    def _residual(self, field: Array, kind: Kind, region: Region, ratio: float) -> None:
        """Set the residual of the field itself as a first guess: the change of a step without."""
        self.grid.clear(self.r)
        name = "add_diffusion" if kind.axis is None else "add_viscosity"
        self.run(name, (field, self.r), kind, region, ratio)

    def run(
        self, name: str, fields: tuple[Array, Array], kind: Kind, region: Region, ratio: float
    ) -> None:
        """Call a function of a field and one that it changes, which wants to know of walls."""
        field, out = fields
        solids = self.solids
        walls: tuple[Array, ...] = solids.openings
        if kind.axis is not None:
            walls = (solids.openings[kind.axis], solids.reach[kind.axis])
        for part, masked in solids.parts_of(region):
            self.grid.program.run(name, part, field, ratio, masked, *walls, out)

    def _descend(
        self, field: Array, kind: Kind, region: Region, ratio: float, grade: float
    ) -> None:
        """Go to the lowest point along the direction."""
        grid = self.grid
        self.ghosts.fill(self.direction, kind, homogeneous=True)
        self._apply(kind, region, ratio)
        curvature = self._dot(region, self.direction, self.image)
        step = grade / curvature if curvature > 0.0 else 0.0
        grid.program.run("descend", region, field, self.r, self.direction, self.image, step)

    def _apply(self, kind: Kind, region: Region, ratio: float) -> None:
        """Set the image of the direction."""
        name = "diffusive" if kind.axis is None else "viscous"
        self.run(name, (self.direction, self.image), kind, region, ratio)
