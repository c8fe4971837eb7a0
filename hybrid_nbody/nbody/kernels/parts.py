"""The parts of a tree that ranks share out, and what ranks send each other of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array

CELL = np.dtype(
    [("start", "i8"), ("size", "i8"), ("child", "i4"), ("children", "i4"), ("level", "i4")]
)
"""A cell: its bodies along the curve are start … start + size - 1; its first child and the number
of children; its level below the root."""


@dataclass(frozen=True)
class Parts:
    """The C cells from the root down to the parts, the same on all ranks.

    Attributes
    ----------
    cells : (C,) array of CELL
        The root is the first.
    parts : (R,) array of int64
        The cells without children here, along the curve.
    owners : (R,) array of int64
        The rank that sums the forces on each part, never less than that of the one before.
    """

    cells: NDArray[Any]
    parts: NDArray[np.int64]
    owners: NDArray[np.int64]

    def of(self, rank: int) -> NDArray[np.int64]:
        """Return the parts of a rank."""
        return self.parts[self.owners == rank]


@dataclass(frozen=True)
class Essential:
    """The cells of one rank that another may open.

    Attributes
    ----------
    cells : (C,) structured array
        A row for each cell, with columns that the kernels of a device choose.
    bodies : (M, 4) array of float64
        Positions and masses of the bodies of leaves.
    """

    cells: Array
    bodies: Array
