"""Fields on a grid read plane by plane: where their cells are, slices through them, and sums along an axis.

A frame of a large grid need not fit in memory: no more than `BLOCK_BYTES` of it, or one plane, are
held at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.errors import InputError

BLOCK_BYTES = 64 << 20


@dataclass(frozen=True)
class Volume:
    """The cells that the frames of a run hold: every so many of a grid, or some planes of it.

    Attributes
    ----------
    cells : tuple of int
        Cells nx, ny, nz of the whole grid.
    stored : tuple of ndarray
        The indices of the stored cells along x, y and z, each (n,) int64 and ascending.
    evenly : bool
        Whether the stored planes of z are evenly apart; else they are some planes that were chosen.
    """

    cells: tuple[int, int, int]
    stored: tuple[np.ndarray, np.ndarray, np.ndarray]
    evenly: bool

    @property
    def spacing(self) -> float:
        """Edge of a cell of the grid: the longest edge of the box has length 1."""
        return 1.0 / max(self.cells)

    def place(self, axis) -> np.ndarray:
        """Return where the centres of the stored cells lie along an axis, in units of length."""
        return (self.stored[axis] + 0.5) * self.spacing

    def middle(self, axis) -> int:
        """Return which of the stored cells lies nearest to the middle of an axis; of two, the lower one."""
        return int(np.argmin(np.abs(self.stored[axis] - (self.cells[axis] - 1) / 2)))

    def edge(self, axis) -> float:
        """Return the length of the box along an axis."""
        return self.cells[axis] * self.spacing

    def extent(self, plane) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the stored cells in a plane (two axes), each as wide as their gaps."""
        sides = []
        for axis in plane:
            place = self.place(axis)
            gap = place[1] - place[0] if len(place) > 1 else self.spacing
            sides += [float(place[0] - gap / 2), float(place[-1] + gap / 2)]
        return tuple(sides)


def volume_of(run, name) -> Volume:
    """Return where the cells of a field's frames are.

    Parameters
    ----------
    run : Run
        An open run.
    name : str
        A field on a grid; those of one run have the same cells.

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
            f"{run.path}: frames of shape {shape[1:4]} do not fit the configuration stored beside them"
        )
    return Volume(cells, tuple(stored), planes is None)


def _choice(run, shape):
    """Return the cells of the grid, the stride and the planes of the frames as the configuration has them."""
    config = run.config
    grid = config.get("grid") or {}
    output = config.get("output") or {}
    cells = grid.get("cells") or reversed(shape[1:4])
    return tuple(cells), output.get("stride", 1), output.get("planes")


def slice_of(run, name, frame, axis, index) -> np.ndarray:
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
        Which of the stored cells along that axis.

    Returns
    -------
    ndarray
        The other two axes, the later one first: (ny, nx) of a plane of z; velocities have their
        component last.
    """
    where = [slice(0, size) for size in run.shape(name)[1:4]]
    where[2 - axis] = index
    return run.part(name, frame, tuple(where))


def blocks(run, name, frame) -> Iterator[tuple[int, np.ndarray]]:
    """Go through a frame a few planes of z at a time.

    Yields
    ------
    first : int
        Which of the stored planes is the first of the block.
    block : ndarray
        (planes, ny, nx[, 3]), at most `BLOCK_BYTES` or one plane.
    """
    shape = run.shape(name)[1:]
    step = max(1, BLOCK_BYTES // (8 * int(np.prod(shape[1:], dtype=np.int64))))
    for first in range(0, shape[0], step):
        yield first, run.part(name, frame, (slice(first, min(first + step, shape[0])),))


def columns(run, name, frame) -> list[np.ndarray]:
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


def column_along_z(run, name, frame) -> np.ndarray:
    """Integrate a field of a frame along z, as `columns` does: (ny, nx) float64."""
    volume = volume_of(run, name)
    total = sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(run, name, frame))
    return total * (volume.edge(2) / len(volume.stored[2]))
