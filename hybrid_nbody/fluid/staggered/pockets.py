"""Closed pockets: parts of the fluid that no open face joins to an outlet of the box.

Their volume cannot change. What obstacles push into a pocket beyond rounding, or an inlet that ends
in one, has no solution and is refused; pockets of a few cells between moving obstacles, which come
and go, count as solid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid.obstacles import Openings
from hybrid_nbody.fluid.staggered.grid import AXES, Grid

FEW_CELLS = 8
"""Most cells of a closed pocket that counts as solid where obstacles move."""

Labels = NDArray[np.int64]
"""For each cell the number of its part of the fluid; -1 within a solid."""

INNER = (slice(1, -1),) * 3


@dataclass(frozen=True)
class Pocket:
    """A closed pocket.

    Attributes
    ----------
    number : int
        That of its cells.
    cells : int
        How many it has, on all ranks.
    centre : tuple of float
        Their mean place, in units of the box.
    """

    number: int
    cells: int
    centre: tuple[float, float, float]

    def __str__(self) -> str:
        x, y, z = self.centre
        return f"the pocket of {self.cells} cells about ({x:.3g}, {y:.3g}, {z:.3g})"


@dataclass(frozen=True)
class Parts:
    """The parts of the fluid.

    Attributes
    ----------
    numbers : array of int64, shape (planes + 2, ny + 2, nx + 2)
        Of each cell, from 0 on, -1 within a solid; ghosts included.
    pockets : tuple of Pocket
        Those parts that are closed.
    """

    numbers: Labels
    pockets: tuple[Pocket, ...]


def parts(grid: Grid, found: Openings) -> Parts:
    """Return the parts of the fluid on all ranks; collective.

    Raises
    ------
    InputError
        If there is no fluid; on every rank.
    """
    labels, count = _own_labels(grid, found)
    everyone = _together(grid, np.array([count]))
    if not everyone.any():
        text = "obstacles: they fill the whole box and leave no fluid; make them smaller"
        raise InputError(text).on_all_ranks()
    first = int(everyone[: _rank(grid)].sum())
    labels = np.where(labels >= 0, labels + first, -1)
    below = found.z[1, 1:-1, 1:-1] > 0.0
    ends = _together(grid, np.stack((labels[0], labels[-1], below))[None])
    joined = _joined(grid, ends, int(everyone.sum()))
    numbers = _with_ghosts(grid, labels, ends)
    numbers = np.where(numbers >= 0, joined[numbers], -1)
    count_of_all = int(joined.max(initial=-1)) + 1
    return Parts(numbers, tuple(_pockets(grid, found, numbers, count_of_all)))


def _own_labels(grid: Grid, found: Openings) -> tuple[Labels, int]:
    """Return numbers of what is joined on this rank, and how many there are."""
    fluid = found.volume[INNER] > 0.0
    cells = np.arange(fluid.size).reshape(fluid.shape)
    pairs = [pair for axis in AXES for pair in _pairs(grid, found, cells, axis)]
    low, high = (np.concatenate(side) for side in zip(*pairs, strict=True))
    _, labels = _components(low, high, fluid.size)
    names, own = np.unique(labels[fluid.reshape(-1)], return_inverse=True)
    numbers = np.full(fluid.shape, -1, np.int64)
    numbers[fluid] = own
    return numbers, len(names)


def _pairs(
    grid: Grid, found: Openings, cells: Labels, axis: int
) -> Iterator[tuple[Labels, Labels]]:
    """Yield the cells on both sides of the open faces of an axis, as far as the rank owns them."""
    place = 2 - axis
    is_open = np.moveaxis((found.x, found.y, found.z)[axis][INNER] > 0.0, place, 0)
    along = np.moveaxis(cells, place, 0)
    yield along[:-1][is_open[1:]], along[1:][is_open[1:]]
    if grid.periodic[axis] and axis < 2:
        yield along[-1][is_open[0]], along[0][is_open[0]]


def _components(low: Labels, high: Labels, count: int) -> tuple[int, Labels]:
    """Return the connected components of pairs among some things, and the one of each."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(low), np.int8), (low, high)), (count, count))
    number, labels = connected_components(graph, directed=False)
    return int(number), labels.astype(np.int64)


def _rank(grid: Grid) -> int:
    ranks = grid.halo.communicator
    return 0 if ranks is None else ranks.rank


def _together(grid: Grid, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of all ranks, one rank after another."""
    ranks = grid.halo.communicator
    return rows if ranks is None else ranks.concatenate(rows)


def _joined(grid: Grid, ends: Labels, count: int) -> Labels:
    """Return for each number of a rank that of the part on all ranks to which it belongs.

    Parameters
    ----------
    grid : Grid
    ends : array of int64, shape (ranks, 3, ny, nx)
        Of the lowest and the highest plane of each rank, and whether the faces below it are open.
    count : int
        Numbers in all.
    """
    bottom, top, opened = ends.swapaxes(0, 1)
    beneath = np.roll(top, 1, axis=0)
    is_open = opened > 0
    is_open[0] &= grid.periodic[2]
    is_open &= (bottom >= 0) & (beneath >= 0)
    return _components(beneath[is_open], bottom[is_open], count)[1]


def _with_ghosts(grid: Grid, labels: Labels, ends: Labels) -> Labels:
    """Return numbers with those of the ghosts, -1 beyond the ends of the box."""
    rank = _rank(grid)
    below, above = ends[rank - 1, 1], ends[(rank + 1) % len(ends), 0]
    planes = np.concatenate((below[None], labels, above[None]))
    for end, place in enumerate((0, -1)):
        if grid.ends[end]:
            planes[place] = -1
    for axis in (0, 1):
        layers = [(0, 0)] * 3
        layers[2 - axis] = (1, 1)
        if grid.periodic[axis]:
            planes = np.pad(planes, layers, mode="wrap")
        else:
            planes = np.pad(planes, layers, constant_values=-1)
    return planes


def _pockets(grid: Grid, found: Openings, numbers: Labels, count: int) -> Iterator[Pocket]:
    """Yield the parts that touch no outlet."""
    own = numbers[INNER]
    wet = own >= 0
    places = np.nonzero(wet)
    sums = np.zeros((5, count))
    of_cells = own[wet]
    sums[0] = np.bincount(of_cells, minlength=count)
    for axis, place in enumerate(reversed(places)):
        first = grid.first if axis == 2 else 0
        sums[1 + axis] = np.bincount(of_cells, 2 * (place + first) + 1, count)
    sums[4] = np.bincount(_at_outlets(grid, found, own), minlength=count)
    total = _together(grid, sums[None]).sum(axis=0)
    for number in np.flatnonzero(total[4] == 0.0):
        cells = int(total[0, number])
        x, y, z = (0.5 * grid.spacing * float(s) / cells for s in total[1:4, number])
        yield Pocket(int(number), cells, (x, y, z))


def _at_outlets(grid: Grid, found: Openings, own: Labels) -> Labels:
    """Return the numbers of the cells at open faces of outlets."""
    at_outlets = [np.zeros(0, np.int64)]
    for axis in AXES:
        opening = np.moveaxis((found.x, found.y, found.z)[axis], 2 - axis, 0)[:, 1:-1, 1:-1]
        cells = np.moveaxis(own, 2 - axis, 0)
        reached = grid.ends if axis == 2 else (True, True)
        for end, (face, place) in enumerate(zip(grid.pair(axis), (1, -1), strict=True)):
            if face.kind == "outflow" and reached[end]:
                at_outlets.append(cells[-end][opening[place] > 0.0])
    return np.concatenate(at_outlets)


def close(found: Openings, numbers: Labels, pockets: Sequence[Pocket]) -> None:
    """Make cells of pockets solid."""
    inside = np.isin(numbers, [pocket.number for pocket in pockets])
    for array in (found.x, found.y, found.z, found.volume):
        array[inside] = 0.0
    for axis, array in enumerate((found.x, found.y, found.z)):
        high = [slice(None)] * 3
        high[2 - axis] = slice(1, None)
        low = [slice(None)] * 3
        low[2 - axis] = slice(None, -1)
        array[tuple(high)][inside[tuple(low)]] = 0.0
