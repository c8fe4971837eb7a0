"""Blocks of the cells of a rank: single ones near obstacles, large ones where all is fluid.

They are where the planes around all cells near obstacles cut the slab, and so form a grid too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.openings import Near
from hybrid_nbody.fluid.staggered.grid import Grid

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

Labels = NDArray[np.int32]
"""Numbers of parts of the fluid; -1 within a solid."""

Starts = tuple[Numbers, Numbers, Numbers]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Blocks:
    """The blocks of a rank.

    Attributes
    ----------
    starts : tuple of array of int64
        The first cells of blocks along x, y and z of the whole grid, and the one after the last.
    near : tuple of slice
        Blocks near obstacles, along x, y and z: single cells.
    fluid : array of bool, shape (nz, ny, nx)
        Which blocks hold fluid.
    openings : tuple of array of bool, shape (nz + 1, ny + 1, nx + 1)
        Which low faces of blocks are open along x, y and z, those of the ghosts above included.
    """

    starts: Starts
    near: tuple[slice, slice, slice]
    fluid: Flags
    openings: tuple[Flags, Flags, Flags]

    @classmethod
    def of(cls, grid: Grid, near: Near) -> "Blocks":
        """Return the blocks of the planes that a rank owns."""
        nx, ny, _ = grid.cells
        all_cells = ((0, nx), (0, ny), (grid.first, grid.first + grid.planes))
        bounds = list(zip(near.part.low, near.part.high, strict=True))
        x, y, z = (_starts(*pair) for pair in zip(all_cells, bounds, strict=True))
        places = [_places(*pair) for pair in zip((x, y, z), bounds, strict=True)]
        found = near.openings
        shape = (len(z), len(y), len(x))
        arrays = (found.volume, found.x, found.y, found.z)
        fluid, *faces = (_entered(array > 0.0, places, shape) for array in arrays)
        i, j, k = (_but_last(to, len(s)) for s, (to, _) in zip((x, y, z), places, strict=True))
        return cls((x, y, z), (i, j, k), fluid[:-1, :-1, :-1], (faces[0], faces[1], faces[2]))

    def is_reached(self) -> Flags:
        """Return which blocks hold fluid or have an open face."""
        x, y, z = self.openings
        inner = (slice(None, -1),) * 3
        reached: Flags = self.fluid | x[inner] | x[:-1, :-1, 1:]
        reached |= y[inner] | y[:-1, 1:, :-1]
        reached |= z[inner] | z[1:, :-1, :-1]
        return reached

    def plane(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the cells of a plane from those of its blocks."""
        x, y, _ = map(np.diff, self.starts)
        return np.repeat(np.repeat(values, y, axis=0), x, axis=1)

    def cells(self, values: Labels) -> Labels:
        """Return the values of cells from those of blocks."""
        return np.repeat(np.stack([*map(self.plane, values)]), np.diff(self.starts[2]), axis=0)

    def sums(self, values: Labels, count: int) -> NDArray[np.float64]:
        """Return how many cells have each value from 0 on, and the sums of their places.

        Blocks are taken together that have one value one after another along x.

        Returns
        -------
        array of float64, shape (4, count)
            Whole numbers; the sums are those of 2 i + 1, 2 j + 1, 2 k + 1.
        """
        first = np.ones(values.shape, np.bool_)
        first[..., 1:] = values[..., 1:] != values[..., :-1]
        k, j, i = np.nonzero(first)
        end = np.append(i[1:], 0)
        end[end == 0] = values.shape[2]
        value = values[k, j, i]
        some = value >= 0
        bounds = ((i, end), (j, j + 1), (k, k + 1))
        found = np.zeros((4, count))
        for row in range(4):
            of_runs = self._weights(bounds, row - 1)
            found[row] = np.bincount(value[some], of_runs[some], count)
        return found

    def _weights(self, bounds: Sequence[tuple[Places, Places]], axis: int) -> Numbers:
        """Return the cells of boxes of blocks, or the sums of their places along an axis."""
        product = np.ones(1, np.int64)
        for number, (starts, (low, high)) in enumerate(zip(self.starts, bounds, strict=True)):
            places = starts**2 if number == axis else starts
            product = product * (places[high] - places[low])
        return product

    def outside(self, values: Labels) -> Iterator[tuple[int, int, int, int]]:
        """Yield, for each layer of blocks that are not near obstacles, which cells and their value.

        All cells of a layer have one value.

        Yields
        ------
        axis, first, end, value : int
            Cells from the first along an axis to the one before the end.
        """
        for axis, (starts, near) in enumerate(zip(self.starts, self.near, strict=True)):
            along = np.moveaxis(values, 2 - axis, 0)[:, 0, 0]
            if near.start > 0:
                yield axis, int(starts[0]), int(starts[near.start]), int(along[0])
            if near.stop < len(along):
                yield axis, int(starts[near.stop]), int(starts[-1]), int(along[-1])


def _starts(cells: tuple[int, int], bounds: tuple[int, int]) -> Numbers:
    """Return the first cells of blocks along an axis, of which those within bounds are single."""
    low, high = np.clip(bounds, *cells)
    return np.unique(np.concatenate((cells, np.arange(low, high + 1))))


def _places(starts: Numbers, bounds: tuple[int, int]) -> tuple[slice, slice]:
    """Return the blocks within bounds, a ghost above included, and where they are in these."""
    low, high = bounds
    first = max(low, int(starts[0]))
    count = max(min(high, int(starts[-1]) + 1) - first, 0)
    place = int(np.searchsorted(starts, first))
    return slice(place, place + count), slice(first - low, first - low + count)


def _but_last(blocks: slice, count: int) -> slice:
    """Return blocks without the ghost, which is the last of some."""
    return slice(blocks.start, min(blocks.stop, count - 1))


def _entered(flags: Flags, places: list[tuple[slice, slice]], shape: tuple[int, int, int]) -> Flags:
    """Return flags of all blocks from those of cells near obstacles; others are set."""
    found = np.ones(shape, np.bool_)
    to, of = zip(*reversed(places), strict=True)
    found[to] = flags[of]
    return found
