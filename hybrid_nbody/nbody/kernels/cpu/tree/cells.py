"""The tree: cells of an octree as flat arrays, level by level, made from sorted keys.

A cell with more than `capacity` bodies has a child for each of its eighths that holds a body. The
children of a cell follow one another, and so do its bodies along the curve.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.cpu.tree.curve import LEVELS

MOST_LEVELS = 2 * LEVELS
"""Levels below the root: a cell there may hold any number of bodies."""

Integers = NDArray[np.int32]
Keys = NDArray[np.uint64]


class Cells(NamedTuple):
    """C cells; the root is the first.

    Attributes
    ----------
    first, last : (C,) array of int32
        The bodies of a cell are first … last - 1.
    child, children : (C,) array of int32
        The first child, and the number of children: 0 for a leaf.
    level : (C,) array of int32
        Level below the root.
    starts : (levels + 1,) array of int64
        First cell of each level.
    """

    first: Integers
    last: Integers
    child: Integers
    children: Integers
    level: Integers
    starts: NDArray[np.int64]


class Level(NamedTuple):
    """The cells of one level; see `Cells`."""

    first: Integers
    last: Integers
    child: Integers
    children: Integers


def make_cells(keys: Keys, lower: Keys | None, capacity: int) -> Cells:
    """Return the cells of bodies.

    Parameters
    ----------
    keys : (N,) array of uint64
        The first word of each body's key, sorted.
    lower : (N,) array of uint64 or None
        The second word, by which bodies that share the first are sorted; None where no level needs
        it: the tree then ends at level 21.
    capacity : int
        Most bodies of a leaf.
    """
    deepest = LEVELS if lower is None else MOST_LEVELS
    first = np.zeros(1, np.int32)
    last = np.full(1, len(keys), np.int32)
    levels: list[Level] = []
    start = 0
    while len(first):
        split = last - first > capacity if len(levels) < deepest else np.zeros(len(first), bool)
        parents = np.flatnonzero(split)
        bounds = np.empty((len(parents), 9), np.int32)
        word = keys if lower is None or len(levels) < LEVELS else lower
        bit = np.uint64(3 * (LEVELS - 1 - len(levels) % LEVELS))
        find_eighths(first[parents], last[parents], word, bit, bounds)
        filled = np.diff(bounds, axis=1) > 0
        children = np.zeros(len(first), np.int32)
        children[parents] = filled.sum(axis=1)
        start += len(first)
        child = start + np.cumsum(children, dtype=np.int32) - children
        levels.append(Level(first, last, child.astype(np.int32), children))
        first, last = bounds[:, :8][filled], bounds[:, 1:][filled]
    return _joined(levels)


def _joined(levels: list[Level]) -> Cells:
    """Return the cells of all levels."""
    counts = [len(level.first) for level in levels]
    depth = np.repeat(np.arange(len(levels), dtype=np.int32), counts)
    return Cells(
        first=np.concatenate([level.first for level in levels]),
        last=np.concatenate([level.last for level in levels]),
        child=np.concatenate([level.child for level in levels]),
        children=np.concatenate([level.children for level in levels]),
        level=depth,
        starts=np.concatenate([[0], np.cumsum(counts)]),
    )


@njit(cache=True, error_model="numpy", parallel=True)
def find_eighths(first, last, keys, bit, bounds):
    """Fill row k of `bounds` with where the eighths of bodies first[k] … last[k] - 1 begin.

    The digit of an eighth is at `bit` of the keys; the last column is ``last[k]``.
    """
    for k in prange(first.size):
        bounds[k, 0] = first[k]
        bounds[k, 8] = last[k]
        for digit in range(1, 8):
            low = bounds[k, digit - 1]
            high = last[k]
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] >> bit & np.uint64(7) < np.uint64(digit):
                    low = middle + 1
                else:
                    high = middle
            bounds[k, digit] = low
