"""Vorticity confinement: a force that restores the eddies that a grid damps.

It is ``strength * h * N x curl u``, where N is the direction in which the vorticity grows and h the
edge of a cell (Fedkiw, Stam and Jensen, "Visual simulation of smoke", 2001).
"""

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.staggered.ghosts import Ghosts
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS, Grid, Vector


class Confinement:
    """Adds the force.

    Parameters
    ----------
    grid : Grid
    ghosts : Ghosts
    forces : tuple of array
        Memory for the force at the centres of cells.
    length : array
        Memory for the size of the vorticity.
    """

    def __init__(self, grid: Grid, ghosts: Ghosts, forces: Vector, length: Array) -> None:
        self.grid = grid
        self.ghosts = ghosts
        self.forces = forces
        self.length = length

    def add(
        self, velocity: Vector, strength: float, out: Vector, regions: tuple[Region, ...]
    ) -> None:
        """Add the force of a flow's eddies to a velocity.

        Parameters
        ----------
        velocity : tuple of array
            The flow; its ghosts are valid.
        strength : float
            Times the duration of the force.
        out : tuple of array
        regions : tuple of tuple
            The elements of each component of `out`.
        """
        grid = self.grid
        run = grid.program.run
        run("curl_length", grid.region, *velocity, 1.0, self.length)
        self.ghosts.fill(self.length, self.ghosts.free)
        run("confinement", grid.region, *velocity, self.length, strength, *self.forces)
        for axis in AXES:
            force = self.forces[axis]
            self.ghosts.fill(force, self.ghosts.free)
            low = tuple(-step for step in STEPS[axis])
            run("add_between", regions[axis], out[axis], force, 1.0, *low)
