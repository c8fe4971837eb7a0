"""Obstacles in the staggered grid: the open part of every face, and how the solid moves."""

from dataclasses import dataclass
from typing import Any

from hybrid_nbody.fluid.staggered.grid import Grid, Vector


@dataclass(frozen=True)
class Solids:
    """What obstacles leave open.

    Attributes
    ----------
    masked : int
        1 if there are obstacles, else 0, and the arrays hold ones that nobody reads.
    moving : int
        1 if any of them moves.
    openings : tuple of array
        The open part of the low faces of cells along x, y and z.
    velocity : tuple of array
        That of the solid at the same faces.
    """

    masked: int
    moving: int
    openings: Vector
    velocity: Vector

    @classmethod
    def none(cls, grid: Grid) -> "Solids":
        """Return no obstacles."""
        ones = grid.zeros()
        ones[...] = 1
        return cls(0, 0, (ones, ones, ones), (ones, ones, ones))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return what functions of a cell want to know."""
        return (*self.openings, *self.velocity, self.masked, self.moving)
