"""The tree: cells of an octree as flat arrays, grown level by level from sorted keys.

A cell that is divided has a child for each of its octants that holds a body. The children of a
cell follow one another, and so do its bodies along the curve.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.cpu.compilers import compiled_parallel
from hybrid_nbody.nbody.kernels.cpu.tree.curve import LEVELS

Integers = NDArray[np.int32]
Keys = NDArray[np.uint64]


Rule = Callable[[Integers, Integers, int], NDArray[np.bool_]]
"""Says which cells of a level are divided, by their bodies: first … last - 1."""


class Cells(NamedTuple):
    """C cells; no cell comes before its parent.

    Attributes
    ----------
    first, last : (C,) array of int32
        The bodies of a cell are first … last - 1.
    child, children : (C,) array of int32
        The first child, and the number of children: 0 for a leaf.
    level : (C,) array of int32
        Level below the root.
    """

    first: Integers
    last: Integers
    child: Integers
    children: Integers
    level: Integers


def joined(several: Sequence[Cells]) -> Cells:
    """Return the cells of several groups, one after another."""
    return Cells(*(np.concatenate(arrays) for arrays in zip(*several, strict=True)))


def grown(roots: Cells, keys: tuple[Keys, ...], must_split: Rule) -> Cells:
    """Return cells and all those below them, level by level.

    Parameters
    ----------
    roots : Cells
        Cells without children.
    keys : tuple of (N,) array of uint64
        The words of each body's key, sorted; the second is missing where no level needs it.
    must_split : callable
        ``must_split(first, last, level)`` says which cells of a level are divided.
    """
    if not len(roots.first):
        return roots
    cells = roots
    for level in range(deepest_level(keys)):
        here = np.flatnonzero(cells.level == level)
        first = cells.first[here]
        last = cells.last[here]
        split = must_split(first, last, level)
        if split.any():
            bounds = child_bounds(first[split], last[split], level, keys)
            cells = _with_children(cells, here[split], bounds)
        elif not np.any(cells.level > level):
            break
    return cells


def deepest_level(keys: tuple[Keys, ...]) -> int:
    """Return the level below the root on which a cell may hold any number of bodies."""
    return LEVELS * len(keys)


def child_bounds(first: Integers, last: Integers, level: int, keys: tuple[Keys, ...]) -> Integers:
    """Return where the octants of cells of a level begin, and where the last one ends: (C, 9)."""
    bounds = np.empty((len(first), 9), np.int32)
    bit = np.uint64(3 * (LEVELS - 1 - level % LEVELS))
    find_child_bounds(first, last, keys[level // LEVELS], bit, bounds)
    return bounds


def _with_children(cells: Cells, split: NDArray[np.intp], bounds: Integers) -> Cells:
    """Return cells, and behind them the children of some of them."""
    filled = np.diff(bounds, axis=1) > 0
    counts = filled.sum(axis=1, dtype=np.int32)
    number = int(counts.sum())
    below = Cells(
        first=bounds[:, :8][filled],
        last=bounds[:, 1:][filled],
        child=np.zeros(number, np.int32),
        children=np.zeros(number, np.int32),
        level=np.repeat(cells.level[split] + 1, counts).astype(np.int32),
    )
    parents = cells._replace(child=cells.child.copy(), children=cells.children.copy())
    parents.child[split] = len(cells.first) + np.cumsum(counts) - counts
    parents.children[split] = counts
    return joined([parents, below])


@compiled_parallel
def find_child_bounds(first, last, keys, bit, bounds):
    """Fill row k of `bounds` with where the octants of bodies first[k] … last[k] - 1 begin.

    The digit of an octant is at `bit` of the keys; the last column is ``last[k]``.
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


@compiled_parallel
def find_least(first, last, values, least):
    """Fill `least` with the smallest of values[first[k]] … values[last[k] - 1] for each k."""
    for k in prange(first.size):
        least[k] = np.inf
        for i in range(first[k], last[k]):
            least[k] = min(least[k], values[i])
