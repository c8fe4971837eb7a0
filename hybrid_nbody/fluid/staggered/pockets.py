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
from hybrid_nbody.fluid.obstacles.openings import Near, Openings
from hybrid_nbody.fluid.obstacles.parts import Part
from hybrid_nbody.fluid.staggered.blocks import Blocks, Labels
from hybrid_nbody.fluid.staggered.grid import AXES, Grid

FEW_CELLS = 8
"""Most cells of a closed pocket that counts as solid where obstacles move."""

Flags = NDArray[np.bool_]


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
    blocks : Blocks
    numbers : array of int64
        That of each block, from 0 on, -1 within a solid.
    pockets : tuple of Pocket
        Those parts that are closed.
    """

    blocks: Blocks
    numbers: Labels
    pockets: tuple[Pocket, ...]


def parts(grid: Grid, near: Near) -> Parts:
    """Return the parts of the fluid on all ranks; collective.

    Raises
    ------
    InputError
        If there is no fluid; on every rank.
    """
    blocks = Blocks.of(grid, near)
    labels, count = _own_labels(grid, blocks)
    everyone = _together(grid, np.array([count]))
    if not everyone.any():
        text = "obstacles: they fill the whole box and leave no fluid; make them smaller"
        raise InputError(text).on_all_ranks()
    first = int(everyone[: _rank(grid)].sum())
    labels = np.where(labels >= 0, labels + first, -1)
    planes = labels[0], labels[-1], blocks.openings[2][0, :-1, :-1]
    ends = _together(grid, np.stack([blocks.plane(array) for array in planes])[None])
    joined = _joined(grid, ends, int(everyone.sum()))
    numbers = np.where(labels >= 0, joined[labels], -1)
    count_of_all = int(joined.max(initial=-1)) + 1
    return Parts(blocks, numbers, tuple(_pockets(grid, blocks, numbers, count_of_all)))


def _own_labels(grid: Grid, blocks: Blocks) -> tuple[Labels, int]:
    """Return numbers of what is joined on this rank, and how many there are."""
    runs = _runs(blocks)
    pairs = [pair for axis in AXES for pair in _pairs(grid, blocks, runs, axis)]
    low, high = (np.concatenate(side) for side in zip(*pairs, strict=True))
    number, labels = _components(low, high, max(int(runs[-1, -1, -1]) + 1, 1))
    fluid = blocks.fluid
    of_fluid = labels[runs[fluid]]
    is_fluid = np.zeros(number, np.bool_)
    is_fluid[of_fluid] = True
    found = np.full(fluid.shape, -1, np.int32)
    found[fluid] = (np.cumsum(is_fluid, dtype=np.int32) - 1)[of_fluid]
    return found, int(is_fluid.sum())


def _runs(blocks: Blocks) -> Labels:
    """Return numbers of runs: blocks that are joined one after another along x."""
    starts = blocks.is_reached()
    starts[..., 1:] &= ~blocks.openings[0][:-1, :-1, 1:-1]
    return (np.cumsum(starts.reshape(-1), dtype=np.int32) - 1).reshape(starts.shape)


def _pairs(grid: Grid, blocks: Blocks, runs: Labels, axis: int) -> Iterator[tuple[Labels, Labels]]:
    """Yield the runs on both sides of the open faces of an axis, as far as the rank owns them."""
    place = 2 - axis
    is_open = np.moveaxis(blocks.openings[axis][:-1, :-1, :-1], place, 0)
    along = np.moveaxis(runs, place, 0)
    if axis > 0:
        yield _once(along[:-1], along[1:], is_open[1:])
    if grid.periodic[axis] and axis < 2:
        yield along[-1][is_open[0]], along[0][is_open[0]]


def _once(low: Labels, high: Labels, is_open: Flags) -> tuple[Labels, Labels]:
    """Return the pairs of runs on both sides of open faces; not the pair of the face before."""
    some = is_open.copy()
    same = (low[..., 1:] == low[..., :-1]) & (high[..., 1:] == high[..., :-1])
    some[..., 1:] &= ~(same & is_open[..., :-1])
    return low[some], high[some]


def _components(low: Labels, high: Labels, count: int) -> tuple[int, Labels]:
    """Return the connected components of pairs among some things, and the one of each."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(low), np.int8), (low, high)), (count, count))
    number, labels = connected_components(graph, directed=False)
    return int(number), labels


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


def _pockets(grid: Grid, blocks: Blocks, numbers: Labels, count: int) -> Iterator[Pocket]:
    """Yield the parts that touch no outlet."""
    outlets = np.bincount(_at_outlets(grid, blocks, numbers), minlength=count)
    sums = np.concatenate((blocks.sums(numbers, count), outlets[None]))
    total = _together(grid, sums[None]).sum(axis=0)
    for number in np.flatnonzero(total[4] == 0.0):
        cells = int(total[0, number])
        x, y, z = (0.5 * grid.spacing * float(s) / cells for s in total[1:4, number])
        yield Pocket(int(number), cells, (x, y, z))


def _at_outlets(grid: Grid, blocks: Blocks, numbers: Labels) -> Labels:
    """Return the numbers of the blocks at open faces of outlets."""
    at_outlets = [np.zeros(0, np.int32)]
    for axis in AXES:
        opening = np.moveaxis(blocks.openings[axis], 2 - axis, 0)[:, :-1, :-1]
        cells = np.moveaxis(numbers, 2 - axis, 0)
        reached = grid.ends if axis == 2 else (True, True)
        for end, face in enumerate(grid.pair(axis)):
            if face.kind == "outflow" and reached[end]:
                at_outlets.append(cells[-end][opening[-end]])
    return np.concatenate(at_outlets)


# --- pockets that count as solid ------------------------------------------------------------------


def close(grid: Grid, near: Near, found: Parts, pockets: Sequence[Pocket]) -> Near:
    """Return what is open where pockets are solid; collective.

    Pockets are few, and may be anywhere: all cells of the rank are looked at.
    """
    if not pockets:
        return near
    nx, ny, _ = grid.cells
    whole = near.spread(Part.of_planes(grid.cells, grid.periodic, grid.first, grid.planes))
    numbers = _with_ghosts(grid, found.blocks.cells(found.numbers))
    _close(whole.openings, np.isin(numbers, [pocket.number for pocket in pockets]))
    return whole


def _with_ghosts(grid: Grid, numbers: Labels) -> Labels:
    """Return numbers with those of the ghosts, -1 beyond the ends of the box; collective."""
    ends = _together(grid, np.stack((numbers[0], numbers[-1]))[None])
    rank = _rank(grid)
    below, above = ends[rank - 1, 1], ends[(rank + 1) % len(ends), 0]
    planes = np.concatenate((below[None], numbers, above[None]))
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


def _close(found: Openings, inside: Flags) -> None:
    """Make cells solid."""
    for array in (found.x, found.y, found.z, found.volume):
        array[inside] = 0.0
    for axis, array in enumerate((found.x, found.y, found.z)):
        high = [slice(None)] * 3
        high[2 - axis] = slice(1, None)
        low = [slice(None)] * 3
        low[2 - axis] = slice(None, -1)
        array[tuple(high)][inside[tuple(low)]] = 0.0
