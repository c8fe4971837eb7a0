"""Bodies counted in cells of a square, on one thread."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend


@njit(cache=True)
def count_bodies(position, counts):
    """Set `counts` to the number of bodies in each cell of the unit square.

    Parameters
    ----------
    position : (n, 3) array of float64
    counts : (D, D) array of int32
        Row k holds the cells with k <= D y < k + 1; within a row, x grows with the column. The last
        row and the last column include their far edge. Bodies outside the square, or at NaN, are
        not counted.
    """
    cells = counts.shape[0]
    counts[:] = 0
    for i in range(position.shape[0]):
        x, y = position[i, 0], position[i, 1]
        if 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0:
            counts[min(int(y * cells), cells - 1), min(int(x * cells), cells - 1)] += 1


class Counter:
    """Counts bodies on one CPU; see `hybrid_nbody.nbody.kernels.contract.ActivityCounter`.

    Parameters
    ----------
    backend : Backend
    cells : int
        Cells along each side of the square.
    """

    def __init__(self, backend: Backend, cells: int) -> None:
        self.counts = np.zeros((cells, cells), np.int32)

    def count(self, position: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the (D, D) counts on the host, valid until the next call."""
        count_bodies(position, self.counts)
        return self.counts
