"""The search for the cells near a surface: blocks of cells, divided where a surface may be near.

A signed distance changes by no more than the way that one goes. What it is at the middle of a block
therefore tells whether a surface can be near any of its cells. Blocks start at multiples of their
edge, whatever part of the grid is asked for, so that a cell has the same values in each.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Numbers, Points
from hybrid_nbody.fluid.obstacles.images import Image

Cells = NDArray[np.int64]
"""Indices i, j, k of cells or blocks, shape (n, 3)."""

BLOCKS = (64, 16, 4, 1)
"""Edges of the blocks in cells, from coarse to fine."""

REACH = 3.0
"""Distance in cells up to which a cell belongs to an obstacle."""

HALF_DIAGONAL = 0.5 * math.sqrt(3.0)


@dataclass(frozen=True)
class Region:
    """A box of cells, and the edge of a cell.

    Attributes
    ----------
    low, high : tuple of int
        The first cell i, j, k, and the one after the last.
    h : float
    """

    low: tuple[int, int, int]
    high: tuple[int, int, int]
    h: float

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of arrays of it: planes, rows, cells."""
        x, y, z = (b - a for a, b in zip(self.low, self.high, strict=True))
        return z, y, x

    def within(self, low: Sequence[int], high: Sequence[int]) -> "Region":
        """Return what of it lies in a box of cells."""
        starts = [max(pair) for pair in zip(self.low, low, strict=True)]
        ends = [max(a, min(pair)) for a, *pair in zip(starts, self.high, high, strict=True)]
        (i, j, k), (x, y, z) = starts, ends
        return Region((i, j, k), (x, y, z), self.h)

    def holds(self, blocks: Cells, edge: int = 1) -> NDArray[np.bool_]:
        """Return whether some of the cells of blocks are in it."""
        held = np.ones(len(blocks), np.bool_)
        for places, low, high in zip(blocks.T, self.low, self.high, strict=True):
            starts = places * edge
            held &= (starts + edge > low) & (starts < high)
        return held

    def flat(self, cells: Cells) -> NDArray[np.int64]:
        """Return the places of cells in flattened arrays."""
        i, j, k = (cells - np.array(self.low)).T
        _, rows, columns = self.shape
        places: NDArray[np.int64] = (k * rows + j) * columns + i
        return places

    def part(self, first: Cells, edge: int) -> tuple[slice, ...]:
        """Return the slices of arrays that hold a cube of cells, as far as it is in the region."""
        starts = [max(int(cell) - low, 0) for cell, low in zip(first, self.low, strict=True)]
        ends = [max(int(cell) + edge - low, 0) for cell, low in zip(first, self.low, strict=True)]
        x, y, z = (slice(start, end) for start, end in zip(starts, ends, strict=True))
        return z, y, x


@dataclass(frozen=True)
class Field:
    """The signed distance at the centres of a region's cells, where something is near.

    Attributes
    ----------
    distance : array of float64, shape of the region
        Infinite farther than `REACH` cells from all obstacles, and only a bound as deep within one.
    image : array of int32, shape of the region
        The place of the nearest image, -1 where none is near.
    """

    distance: Numbers
    image: NDArray[np.int32]


@dataclass(frozen=True)
class Reached:
    """An image, and a box that holds all cells that are within its reach or deep within it.

    Attributes
    ----------
    image : Image
    low, high : tuple of int
        The first cell i, j, k, and the one after the last.
    """

    image: Image
    low: tuple[int, int, int]
    high: tuple[int, int, int]

    def meets(self, region: Region) -> bool:
        """Return whether a region holds cells of the box."""
        common = region.within(self.low, self.high)
        return all(a < b for a, b in zip(common.low, common.high, strict=True))


def reached(image: Image, regions: Sequence[Region]) -> Reached | None:
    """Return which cells of regions an image reaches; None if there are none."""
    boxes = [box for region in regions for box in _boxes(image, region)]
    if not boxes:
        return None
    low = np.min([box[0] for box in boxes], axis=0)
    high = np.max([box[1] for box in boxes], axis=0)
    return Reached(image, tuple(low.tolist()), tuple(high.tolist()))


def _boxes(image: Image, region: Region) -> Iterator[tuple[Cells, Cells]]:
    """Yield boxes around the blocks of a region that an image reaches, of each size."""
    blocks = _first_blocks(region)
    for edge, finer in zip(BLOCKS[:-1], BLOCKS[1:], strict=True):
        level = Level(blocks, edge, finer)
        distances = image.distance(centres(blocks, region.h, edge)) / region.h
        held = distances <= (level.reach if finer == 1 else -level.reach)
        if held.any():
            yield blocks[held].min(axis=0) * edge, (blocks[held].max(axis=0) + 1) * edge
        if finer > 1:
            blocks = _parts(blocks[np.abs(distances) <= level.reach], level, region)


def field(images: Sequence[Reached], region: Region) -> Field:
    """Return the signed distance at the centres of cells, and to which image."""
    found = Field(np.full(region.shape, np.inf), np.full(region.shape, -1, np.int32))
    for number, one in enumerate(images):
        image = one.image
        blocks = _first_blocks(region.within(one.low, one.high))
        for edge, finer in zip(BLOCKS[:-1], BLOCKS[1:], strict=True):
            blocks = _divided(image, number, region, Level(blocks, edge, finer), found)
        distances = image.distance(centres(blocks, region.h))
        near = distances <= REACH * region.h
        _enter(found, region, blocks[near], distances[near], number)
    return found


def centres(cells: Cells, h: float, edge: int = 1) -> Points:
    """Return the centres of cells, or of blocks of an edge."""
    points: Points = (cells + np.float64(0.5)) * (edge * h)
    return points


@dataclass(frozen=True)
class Level:
    """Blocks of an edge, to be divided into blocks of a finer one."""

    blocks: Cells
    edge: int
    finer: int

    @property
    def reach(self) -> float:
        """Return the distance in cells from the middle of a block within which a surface counts."""
        return HALF_DIAGONAL * self.edge + REACH

    @cached_property
    def parts(self) -> Cells:
        """Return the places of the finer blocks in a block."""
        return _lattice((0, 0, 0), (self.edge // self.finer,) * 3)


def _divided(image: Image, number: int, region: Region, level: Level, found: Field) -> Cells:
    """Return the finer blocks that may be near the surface; enter those deep within the solid."""
    reach = level.reach * region.h
    distances = image.distance(centres(level.blocks, region.h, level.edge))
    deep = distances < -reach
    bounds = distances[deep] + (reach - REACH * region.h)
    if level.finer == 1:
        cells = _all_parts(level.blocks[deep], level)
        held = region.holds(cells)
        _enter(found, region, cells[held], np.repeat(bounds, len(level.parts))[held], number)
    else:
        for block, bound in zip(level.blocks[deep] * level.edge, bounds, strict=True):
            _fill(found, region.part(block, level.edge), bound, number)
    return _parts(level.blocks[np.abs(distances) <= reach], level, region)


def _all_parts(blocks: Cells, level: Level) -> Cells:
    """Return the finer blocks within blocks."""
    parts: Cells = blocks[:, None] * (level.edge // level.finer) + level.parts
    return parts.reshape(-1, 3)


def _parts(blocks: Cells, level: Level, region: Region) -> Cells:
    """Return the finer blocks within blocks that hold cells of a region."""
    parts = _all_parts(blocks, level)
    return parts[region.holds(parts, level.finer)]


def _fill(found: Field, part: tuple[slice, ...], bound: float, number: int) -> None:
    """Enter cells deep within an image, where they are deeper in it than in those so far."""
    deeper = bound < found.distance[part]
    found.distance[part][deeper] = bound
    found.image[part][deeper] = number


def _first_blocks(region: Region) -> Cells:
    """Return the coarsest blocks that hold cells of a region."""
    edge = BLOCKS[0]
    x, y, z = (-(-cell // edge) for cell in region.high)
    i, j, k = (cell // edge for cell in region.low)
    return _lattice((i, j, k), (x, y, z))


def _lattice(low: Sequence[int], high: Sequence[int]) -> Cells:
    """Return all indices from low to high, high not included."""
    k, j, i = np.meshgrid(
        *(np.arange(a, b, dtype=np.int64) for a, b in zip(low[::-1], high[::-1], strict=True)),
        indexing="ij",
    )
    return np.stack((i.ravel(), j.ravel(), k.ravel()), axis=1)


def _enter(found: Field, region: Region, cells: Cells, distances: Numbers, number: int) -> None:
    """Enter the distances of an image that are less than those so far."""
    places = region.flat(cells)
    flat = found.distance.reshape(-1)
    nearer = distances < flat[places]
    flat[places[nearer]] = distances[nearer]
    found.image.reshape(-1)[places[nearer]] = number
