"""Reading fields on a grid plane by plane: positions of cells, slices, and sums along an axis.

A frame of a large grid need not fit in memory: no more than `BLOCK_BYTES` of it, or one plane, are
read at a time.
"""

from collections.abc import Iterator

import numpy as np

from hybrid_nbody.files.cells import volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array

BLOCK_BYTES = 64 << 20


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
