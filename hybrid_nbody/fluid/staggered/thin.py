"""Where thin solids are in the box: there, paths are followed from cell to cell."""

import math
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.backends.cells import Region
from hybrid_nbody.fluid.obstacles.openings import Near
from hybrid_nbody.fluid.obstacles.thin import thin_cells
from hybrid_nbody.fluid.staggered.grid import AXES, Grid

Bounds = tuple[int, int]
"""The first cell along an axis, and the one after the last."""


@dataclass(frozen=True)
class ThinSolids:
    """The smallest box around all cells beside thin solids, the same on all ranks.

    Attributes
    ----------
    bounds : tuple of tuple of int
        Of x, y and z, in cells of the whole grid; empty if there are none.
    """

    bounds: tuple[Bounds, ...] = ()

    def region(self, grid: Grid, reach: int) -> Region | None:
        """Return this rank's cells within a distance of the box; None if there are none.

        Parameters
        ----------
        grid : Grid
        reach : int
            In cells.
        """
        if not self.bounds:
            return None
        x, y, z = (self._within(grid, axis, reach) for axis in AXES)
        start = max(z[0] - grid.first, 0)
        end = min(z[1] - grid.first, grid.planes)
        if start >= end:
            return None
        return start + 1, end + 1, y[0] + 1, y[1] + 1, x[0] + 1, x[1] + 1

    def _within(self, grid: Grid, axis: int, reach: int) -> Bounds:
        """Return the cells within a distance along an axis; all of them if that wraps around."""
        low, high = self.bounds[axis]
        cells = grid.cells[axis]
        wraps = low - reach < 0 or high + reach > cells
        if grid.periodic[axis] and wraps:
            return 0, cells
        return max(low - reach, 0), min(high + reach, cells)


def find(grid: Grid, near: Near) -> ThinSolids:
    """Return where thin solids are; collective.

    Parameters
    ----------
    grid : Grid
    near : Near
        Of the planes of this rank.
    """
    places = np.argwhere(thin_cells(near.openings))[:, ::-1] + np.array(near.part.low) + 1
    lowest = [grid.halo.largest(_largest(-places[:, axis])) for axis in AXES]
    highest = [grid.halo.largest(_largest(places[:, axis])) for axis in AXES]
    if highest[0] == -math.inf:
        return ThinSolids()
    pairs = zip(lowest, highest, strict=True)
    return ThinSolids(tuple((-int(low), int(high) + 1) for low, high in pairs))


def _largest(values: np.ndarray) -> float:
    return float(np.max(values.astype(np.float64), initial=-math.inf))
