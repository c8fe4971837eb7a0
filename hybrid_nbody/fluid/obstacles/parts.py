"""Parts of a grid: boxes of cells, and the cells around them that decide on their openings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Vector
from hybrid_nbody.fluid.obstacles.images import Periodic
from hybrid_nbody.fluid.obstacles.search import Region

PIECE = 48
"""Edge of the cubes of cells that are worked on at a time."""

GHOST = 1
"""Cells beyond the grid of which openings are wanted."""

MARGIN = 1
"""Cells beyond a part that are looked at: its faces are theirs too."""

Place = tuple[int, int, int]


@dataclass(frozen=True)
class Part:
    """A box of cells of a grid.

    Attributes
    ----------
    cells : tuple of int
        nx, ny, nz of the whole grid.
    periodic : tuple of bool
    low, high : tuple of int
        The first cell i, j, k, and the one after the last. Ghosts count: -1 is the one before the
        first cell.
    """

    cells: Place
    periodic: Periodic
    low: Place
    high: Place

    @classmethod
    def of_planes(cls, cells: Place, periodic: Periodic, first: int, planes: int) -> "Part":
        """Return some planes of a grid with their ghosts."""
        nx, ny, _ = cells
        low = (-GHOST, -GHOST, first - GHOST)
        return cls(cells, periodic, low, (nx + GHOST, ny + GHOST, first + planes + GHOST))

    @property
    def h(self) -> float:
        """Return the edge of a cell."""
        return 1.0 / max(self.cells)

    @property
    def edges(self) -> Vector:
        """Return the edges of the box."""
        x, y, z = (count * self.h for count in self.cells)
        return x, y, z

    @property
    def shape(self) -> Place:
        """Return the shape of arrays of it: planes, rows, cells."""
        x, y, z = (b - a for a, b in zip(self.low, self.high, strict=True))
        return z, y, x

    def within(self, outer: "Part") -> tuple[slice, slice, slice]:
        """Return the slices of arrays of another part that hold this one."""
        starts = [a - b for a, b in zip(self.low, outer.low, strict=True)]
        ends = [a - b for a, b in zip(self.high, outer.low, strict=True)]
        x, y, z = (slice(start, end) for start, end in zip(starts, ends, strict=True))
        return z, y, x

    def between(self, low: Place, high: Place) -> "Part":
        """Return what of it lies in a box of cells; nothing if that is empty."""
        starts = np.maximum(low, self.low)
        ends = np.minimum(high, self.high)
        if (starts >= ends).any():
            ends = starts
        i, j, k = starts.tolist()
        x, y, z = ends.tolist()
        return replace(self, low=(i, j, k), high=(x, y, z))

    def pieces(self) -> Iterator["Part"]:
        """Yield parts that together hold its cells, each small enough for the cache."""
        for i, j, k in product(*map(range, self.low, self.high, (PIECE,) * 3)):
            yield self.between((i, j, k), (i + PIECE, j + PIECE, k + PIECE))

    def cover(self) -> list[Region]:
        """Return its planes with `MARGIN` beyond, of whole rows and columns where they wrap."""
        (x0, x1), (y0, y1) = self._range(0), self._range(1)
        return [Region((x0, y0, z0), (x1, y1, z1), self.h) for z0, z1 in self._runs(2)]

    def regions(self) -> list[Region]:
        """Return its cells with `MARGIN` beyond, brought into the box if they wrap.

        Those along x come first, then those along y.
        """
        runs = product(self._runs(2), self._runs(1), self._runs(0))
        return [Region((x0, y0, z0), (x1, y1, z1), self.h) for (z0, z1), (y0, y1), (x0, x1) in runs]

    def joined(self, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the arrays of its regions as one, of its cells with `MARGIN` beyond."""
        y, x = (len(self._runs(axis)) for axis in (1, 0))
        rows = [list(arrays[first : first + x]) for first in range(0, len(arrays), x)]
        planes = [rows[first : first + y] for first in range(0, len(rows), y)]
        found = np.block(planes) if len(arrays) > 1 else arrays[0]
        for axis, places in enumerate(self.places()):
            if self._is_whole(axis):
                found = found.take(places, 2 - axis)
        return found

    def _runs(self, axis: int) -> list[tuple[int, int]]:
        """Return the first cell and the one after the last, of each run that it looks at."""
        if self._is_whole(axis):
            return [(0, self.cells[axis])]
        places = self.places()[axis]
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
        return [(int(run[0]), int(run[-1]) + 1) for run in runs]

    def _is_whole(self, axis: int) -> bool:
        """Return whether it looks at a whole axis: a short one, around which it reaches."""
        return self.cells[axis] <= PIECE and self._wraps(axis)

    def _wraps(self, axis: int) -> bool:
        """Return whether cells that it looks at are those of the other end of the box."""
        low = self.low[axis] - MARGIN
        high = self.high[axis] + MARGIN
        return self.periodic[axis] and (low < 0 or high > self.cells[axis])

    def _range(self, axis: int) -> tuple[int, int]:
        """Return the first cell along an axis, and the one after the last; all where it wraps."""
        if self._wraps(axis):
            return 0, self.cells[axis]
        return self.low[axis] - MARGIN, self.high[axis] + MARGIN

    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices i, j, k of its cells with `MARGIN` beyond, wrapped if they wrap."""
        i, j, k = (
            self._wrapped(np.arange(low - MARGIN, high + MARGIN), axis)
            for axis, (low, high) in enumerate(zip(self.low, self.high, strict=True))
        )
        return i, j, k

    def _wrapped(self, places: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """Return indices along an axis, wrapped if it is periodic."""
        return places % self.cells[axis] if self.periodic[axis] else places
