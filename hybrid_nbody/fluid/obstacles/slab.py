"""Slabs of a grid: some planes of it, and the cells around them that decide on their openings."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Vector
from hybrid_nbody.fluid.obstacles.images import Periodic
from hybrid_nbody.fluid.obstacles.search import Region

PIECE = 2_000_000
"""Cells that are worked on at a time."""

MARGIN = 2
"""Cells beyond the grid that are looked at: a ghost, and the one whose low face is its high one."""


@dataclass(frozen=True)
class Slab:
    """Some planes of a grid.

    Attributes
    ----------
    cells : tuple of int
        nx, ny, nz of the whole grid.
    periodic : tuple of bool
    first, planes : int
    """

    cells: tuple[int, int, int]
    periodic: Periodic
    first: int
    planes: int

    @property
    def h(self) -> float:
        """Return the edge of a cell."""
        return 1.0 / max(self.cells)

    @property
    def edges(self) -> Vector:
        """Return the edges of the box."""
        x, y, z = (count * self.h for count in self.cells)
        return x, y, z

    def pieces(self) -> Iterator["Slab"]:
        """Yield slabs that together hold its planes, each small enough to be worked on."""
        nx, ny, _ = self.cells
        height = max(1, PIECE // (nx * ny))
        for start in range(0, self.planes, height):
            planes = min(height, self.planes - start)
            yield Slab(self.cells, self.periodic, self.first + start, planes)

    def regions(self) -> Iterator[Region]:
        """Yield the planes with `MARGIN` planes beyond, brought into the box if they wrap."""
        planes = self.places()[2]
        (x0, x1), (y0, y1) = self._range(0), self._range(1)
        for run in np.split(planes, np.flatnonzero(np.diff(planes) != 1) + 1):
            yield Region((x0, y0, int(run[0])), (x1, y1, int(run[-1]) + 1), self.h)

    def _range(self, axis: int) -> tuple[int, int]:
        """Return the first cell along an axis, and the one after the last; periodic ones wrap."""
        margin = 0 if self.periodic[axis] else MARGIN
        return -margin, self.cells[axis] + margin

    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices i, j, k of its cells with `MARGIN` beyond, wrapped if they wrap."""
        starts = (0, 0, self.first)
        counts = (self.cells[0], self.cells[1], self.planes)
        i, j, k = (
            self._wrapped(np.arange(start - MARGIN, start + count + MARGIN), axis)
            for axis, (start, count) in enumerate(zip(starts, counts, strict=True))
        )
        return i, j, k

    def _wrapped(self, places: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """Return indices along an axis, wrapped if it is periodic."""
        return places % self.cells[axis] if self.periodic[axis] else places

    def padding(self) -> list[tuple[int, int]]:
        """Return the layers along z, y, x that arrays of its regions lack because they wrap."""
        layers = [(MARGIN, MARGIN) if self.periodic[axis] else (0, 0) for axis in (1, 0)]
        return [(0, 0), *layers]
