"""Positions of the cells in the frames of a run on a grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.views import Array

if TYPE_CHECKING:
    from hybrid_nbody.files.run import Run


@dataclass(frozen=True)
class Volume:
    """The cells in the frames of a run: those at a stride of a grid, or some planes of it.

    Attributes
    ----------
    cells : tuple of int
        Cells nx, ny, nz of the whole grid.
    stored : tuple of ndarray
        The indices of the stored cells along x, y and z, each (n,) int64 and ascending.
    evenly : bool
        Whether the stored planes of z are equidistant; if not, they were chosen one by one.
    """

    cells: tuple[int, int, int]
    stored: tuple[Array, Array, Array]
    evenly: bool

    @property
    def spacing(self) -> float:
        """Edge of a cell of the grid; the longest edge of the box has length 1."""
        return 1.0 / max(self.cells)

    def centres(self, axis: int) -> Array:
        """Return the coordinates of the centres of the stored cells along an axis."""
        return (self.stored[axis] + 0.5) * self.spacing

    def middle(self, axis: int) -> int:
        """Return the index of the stored cell nearest to the middle, the lower of two."""
        return int(np.argmin(np.abs(self.stored[axis] - (self.cells[axis] - 1) / 2)))

    def edge(self, axis: int) -> float:
        """Return the length of the box along an axis."""
        return self.cells[axis] * self.spacing

    def extent(self, plane: tuple[int, int]) -> tuple[float, float, float, float]:
        """Return left, right, bottom and top of the stored cells in a plane (two axes)."""
        return (*self._ends(plane[0]), *self._ends(plane[1]))

    def _ends(self, axis: int) -> tuple[float, float]:
        """Return where the stored cells begin and end along an axis."""
        centres = self.centres(axis)
        gap = centres[1] - centres[0] if len(centres) > 1 else self.spacing
        return float(centres[0] - gap / 2), float(centres[-1] + gap / 2)


def volume_of(run: "Run", name: str) -> Volume:
    """Return the positions of the cells in the frames of a field.

    Parameters
    ----------
    run : Run
        An open run.
    name : str
        A field on a grid; all fields of a run have the same cells.

    Raises
    ------
    InputError
        The run holds no such frames.
    """
    shape = run.shape(name)
    cells, stride, planes = _choice(run, shape)
    stored = [np.arange(0, number, stride, dtype=np.int64) for number in cells]
    if planes is not None:
        stored[2] = np.array(sorted(planes), dtype=np.int64)
    if tuple(len(indices) for indices in reversed(stored)) != shape[1:4]:
        raise InputError(
            f"{run.path}: frames of shape {shape[1:4]} do not fit the configuration "
            "stored beside them"
        )
    x, y, z = stored
    return Volume(cells, (x, y, z), planes is None)


def _choice(
    run: "Run", shape: tuple[int, ...]
) -> tuple[tuple[int, int, int], int, Sequence[int] | None]:
    """Return cells of the grid, stride and planes of the frames, from the configuration."""
    config = run.config
    grid = config.get("grid") or {}
    output = config.get("output") or {}
    cells = grid.get("cells") or reversed(shape[1:4])
    return tuple(cells), output.get("stride", 1), output.get("planes")
