"""Memory that the parts of a step of the staggered fluid use in turn."""

from functools import cached_property

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.boxes import Colours
from hybrid_nbody.fluid.staggered.grid import Grid, Vector


class Memory:
    """Arrays of a step that hold nothing between its parts.

    Parameters
    ----------
    grid : Grid

    Attributes
    ----------
    next : tuple of array
        The next velocity; after a step, what it was before.
    cell_scratch : array
        Of advection, and of coarse grids.
    potential : array
        What a projection subtracts the gradient of; during advection, a field as it was before,
        such as the scalar that `Scalars.carry` carries.
    colours : Colours
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.next: Vector = grid.vector()
        self.cell_scratch = grid.zeros()
        self.potential = grid.zeros()
        self.colours = Colours(grid.planes)

    @cached_property
    def own(self) -> Vector:
        """Return three arrays besides the next velocity, which solvers use too."""
        return self.grid.vector()

    def lent(self) -> Array:
        """Return an array that a solver may use."""
        return self.cell_scratch
