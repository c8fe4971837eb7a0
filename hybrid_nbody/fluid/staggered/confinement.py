"""Vorticity confinement: a force that restores the eddies that a grid damps.

It is ``strength * h * N x curl u``, where N is the direction in which the vorticity grows and h the
edge of a cell (Fedkiw, Stam and Jensen, "Visual simulation of smoke", 2001).
"""

from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.staggered.ghosts import Ghosts
from hybrid_nbody.fluid.staggered.grid import AXES, STEPS, Grid, Vector
from hybrid_nbody.fluid.staggered.memory import Memory


class Confinement:
    """Adds the force.

    Parameters
    ----------
    grid : Grid
    ghosts : Ghosts
    memory : Memory
        That besides the next velocity, where the force is added.
    """

    def __init__(self, grid: Grid, ghosts: Ghosts, memory: Memory) -> None:
        self.grid = grid
        self.ghosts = ghosts
        self.memory = memory

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
        length = self.memory.cell_scratch
        forces = self.memory.own
        run("curl_length", grid.region, *velocity, length)
        self.ghosts.fill(length, self.ghosts.free)
        run("confinement", grid.region, *velocity, length, strength, *forces)
        for axis, force in zip(AXES, forces, strict=True):
            self.ghosts.fill(force, self.ghosts.free)
            low = tuple(-step for step in STEPS[axis])
            run("add_between", regions[axis], out[axis], force, 1.0, *low)
