"""Implicit viscosity and diffusion, solved by conjugate gradients."""

from collections.abc import Callable

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.staggered.ghosts import Ghosts, Kind
from hybrid_nbody.fluid.staggered.grid import Grid
from hybrid_nbody.fluid.staggered.pressure import Accuracy
from hybrid_nbody.fluid.staggered.solids import Solids

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
    memory : sequence of array
        Three arrays that are free meanwhile.
    """

    def __init__(
        self, grid: Grid, ghosts: Ghosts, solids: Solids, accuracy: Accuracy, memory: list[Array]
    ) -> None:
        self.grid = grid
        self.ghosts = ghosts
        self.solids = solids
        self.accuracy = accuracy
        self.r, self.direction, self.image = memory

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
        grid = self.grid
        self.ghosts.fill(field, kind)
        limit = self.accuracy.tolerance * grid.largest("largest", grid.region, field)
        self._residual(field, kind, region, ratio)
        self.grid.clear(self.direction)
        grid.program.run("copy", region, self.r, self.direction)
        grade = grid.total("dot", region, self.r, self.r)
        for _ in range(self.accuracy.iterations):
            if grade == 0.0 or grid.largest("largest", region, self.r) <= limit:
                break
            self._descend(field, kind, region, ratio, grade)
            following = grid.total("dot", region, self.r, self.r)
            grid.program.run("turn", region, self.direction, self.r, following / grade)
            grade = following
        self.ghosts.fill(field, kind)

    def _residual(self, field: Array, kind: Kind, region: Region, ratio: float) -> None:
        """Set the residual of the field itself as a first guess: the change of a step without."""
        self.grid.clear(self.r)
        if kind.axis is None:
            openings = self.solids.openings
            given = (field, ratio, self.solids.masked, *openings, self.r)
            self.grid.program.run("add_diffusion", region, *given)
            return
        of_faces = (field, ratio, *self._walls(kind.axis), self.r)
        self.grid.program.run("add_viscosity", region, *of_faces)

    def _descend(
        self, field: Array, kind: Kind, region: Region, ratio: float, grade: float
    ) -> None:
        """Go to the lowest point along the direction."""
        grid = self.grid
        self.ghosts.fill(self.direction, kind, homogeneous=True)
        self._apply(kind, region, ratio)
        curvature = grid.total("dot", region, self.direction, self.image)
        step = grade / curvature if curvature > 0.0 else 0.0
        grid.program.run("descend", region, field, self.r, self.direction, self.image, step)

    def _apply(self, kind: Kind, region: Region, ratio: float) -> None:
        """Set the image of the direction."""
        openings = self.solids.openings
        masked = self.solids.masked
        if kind.axis is None:
            of_scalar = (self.direction, ratio, masked, *openings, self.image)
            self.grid.program.run("diffusive", region, *of_scalar)
            return
        of_faces = (self.direction, ratio, *self._walls(kind.axis), self.image)
        self.grid.program.run("viscous", region, *of_faces)

    def _walls(self, axis: int) -> tuple[int, Array, Array]:
        """Return what viscosity wants to know of walls at the faces of an axis."""
        solids = self.solids
        return solids.masked, solids.openings[axis], solids.reach[axis]
