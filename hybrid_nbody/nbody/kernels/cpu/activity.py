"""Counting on the CPU (Numba); twin of ``gpu``."""

import numpy as np
from numba import njit


@njit(cache=True)
def count(position, counts):
    """Set `counts` to the number of bodies in each cell.

    Parameters
    ----------
    position : (n, 3) array of float64
    counts : (D, D) array of int32
        Row k holds the cells with k <= D y < k + 1, in each of them x grows with the column. The
        last row and the last column hold their far edge, too. A body outside the square, or whose
        place is no number, counts nowhere.
    """
    cells = counts.shape[0]
    counts[:] = 0
    for i in range(position.shape[0]):
        x, y = position[i, 0], position[i, 1]
        if 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0:
            counts[min(int(y * cells), cells - 1), min(int(x * cells), cells - 1)] += 1


class Counter:
    """Counts bodies on one device.

    Parameters
    ----------
    backend : Backend
    cells : int
        Cells along each side of the square.
    """

    def __init__(self, backend, cells: int):
        self.counts = np.zeros((cells, cells), np.int32)

    def count(self, position) -> np.ndarray:
        """Return the bodies in each cell, a (D, D) array of int32 on the host that the next call fills anew."""
        count(position, self.counts)
        return self.counts
