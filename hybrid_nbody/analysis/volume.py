"""Reading fields on a grid plane by plane: positions of cells, slices, and sums along an axis.

A frame of a large grid need not fit in memory: no more than `BLOCK_BYTES` of it, or one plane, are
read at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array

BLOCK_BYTES = 64 << 20


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


def volume_of(run: Run, name: str) -> Volume:
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
    run: Run, shape: tuple[int, ...]
) -> tuple[tuple[int, int, int], int, Sequence[int] | None]:
    """Return cells of the grid, stride and planes of the frames, from the configuration."""
    config = run.config
    grid = config.get("grid") or {}
    output = config.get("output") or {}
    cells = grid.get("cells") or reversed(shape[1:4])
    return tuple(cells), output.get("stride", 1), output.get("planes")


def slice_of(run: Run, name: str, frame: int, axis: int, index: int) -> Array:
    """Read a plane of a frame.

    Parameters
    ----------
    run : Run
        An open run.
    name : str
        A field on a grid.
    frame : int
        Negative frames count from the end.
    axis : int
        The axis across the plane: 0, 1, 2 for x, y, z.
    index : int
        Index of the stored cells along that axis.

    Returns
    -------
    ndarray
        The other two axes, the later one first: (ny, nx) of a plane of z; velocities have their
        component last.
    """
    where: list[int | slice] = [slice(0, size) for size in run.shape(name)[1:4]]
    where[2 - axis] = index
    return run.part(name, frame, tuple(where))


def blocks(run: Run, name: str, frame: int) -> Iterator[tuple[int, Array]]:
    """Yield a frame a few planes of z at a time.

    Yields
    ------
    first : int
        Index of the first stored plane of the block.
    block : ndarray
        (planes, ny, nx[, 3]), at most `BLOCK_BYTES` or one plane.
    """
    shape = run.shape(name)[1:]
    step = max(1, BLOCK_BYTES // (8 * int(np.prod(shape[1:], dtype=np.int64))))
    for first in range(0, shape[0], step):
        yield first, run.part(name, frame, (slice(first, min(first + step, shape[0])),))


def columns(run: Run, name: str, frame: int) -> list[Array]:
    """Integrate a field of a frame along each axis.

    Parameters
    ----------
    run : Run
        An open run whose frames hold evenly spaced planes.
    name : str
        A field on a grid.
    frame : int
        Negative frames count from the end.

    Returns
    -------
    list of ndarray
        The field times length, float64, along x (nz, ny), along y (nz, nx) and along z (ny, nx).
    """
    volume = volume_of(run, name)
    nx, ny, nz = (len(indices) for indices in volume.stored)
    along_x = np.empty((nz, ny))
    along_y = np.empty((nz, nx))
    along_z = np.zeros((ny, nx))
    for first, block in blocks(run, name, frame):
        rows = slice(first, first + len(block))
        along_x[rows] = block.sum(axis=2, dtype=np.float64)
        along_y[rows] = block.sum(axis=1, dtype=np.float64)
        along_z += block.sum(axis=0, dtype=np.float64)
    lengths = [volume.edge(axis) / number for axis, number in enumerate((nx, ny, nz))]
    return [
        total * length for total, length in zip((along_x, along_y, along_z), lengths, strict=True)
    ]


def column_along_z(run: Run, name: str, frame: int) -> Array:
    """Integrate a field of a frame along z, as `columns` does: (ny, nx) float64."""
    volume = volume_of(run, name)
    total = sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(run, name, frame))
    return np.asarray(total * (volume.edge(2) / len(volume.stored[2])))
