"""Coefficients of the equation of the pressure: one for each face of a grid of cells."""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.kernels.cells.poisson import TILE
from hybrid_nbody.fluid.staggered.grid import AXES, Grid, Vector
from hybrid_nbody.fluid.staggered.solids import Solids

OUTLET = 2.0
"""The coefficient of a face at which the pressure is given: it is half a cell away."""


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of a grid.

    Attributes
    ----------
    faces : tuple of array
        Of the low faces of cells along x, y and z.
    plain : array, shape (planes + 2, ny + 2, tiles)
        1 for each tile of a row, `TILE` cells, all of whose faces have the coefficient `even`: they
        are not read one by one.
    even : float
    """

    faces: Vector
    plain: Array
    even: float

    @classmethod
    def empty(cls, grid: Grid, even: float) -> "Coefficients":
        """Return coefficients to be set."""
        planes, rows, _ = grid.shape
        tiles = -(-grid.cells[0] // TILE)
        plain = grid.backend.zeros((planes, rows, tiles), grid.dtype)
        return cls(grid.vector(), plain, even)

    @property
    def arguments(self) -> tuple[Array, Array, Array, Array, float]:
        """Return what functions of a cell want to know."""
        return (*self.faces, self.plain, self.even)

    def part_from_themselves(self, grid: Grid) -> None:
        """Close the faces between a cell and itself, on a periodic axis of one cell.

        They change no equation, but a relaxation would take them for a neighbour's.
        """
        for axis in AXES:
            if grid.periodic[axis] and grid.cells[axis] == 1:
                self.faces[axis][...] = 0.0

    def mark_plain(self, grid: Grid) -> None:
        """Find the tiles whose faces are alike."""
        k0, k1, j0, j1, *_ = grid.region
        region = (k0, k1, j0, j1, 0, self.plain.shape[2])
        grid.program.run("mark_plain", region, self.plain, *self.faces, self.even)


def set_coefficients(found: Coefficients, grid: Grid, solids: Solids) -> None:
    """Set the coefficients of the low faces of cells: the open part of each, 2 at outlets."""
    for axis in AXES:
        array = found.faces[axis]
        if solids.masked:
            grid.program.run("copy", grid.everywhere, solids.openings[axis], array)
        else:
            grid.program.run("set_to", grid.everywhere, array, 1.0)
        _at_ends(grid, axis, array)
        grid.fill(array)
    found.part_from_themselves(grid)
    found.mark_plain(grid)


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
