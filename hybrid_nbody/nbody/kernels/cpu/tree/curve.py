"""The order of bodies along a Morton curve through a cube.

A key has 42 digits of three bits, one for each level of the tree, in two words; the second is
computed where more bodies than a leaf holds share the first.
"""

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from hybrid_nbody.nbody.kernels.cpu.compilers import compiled_parallel, linked
from hybrid_nbody.nbody.kernels.cpu.order import spread_bits_of_one
from hybrid_nbody.nbody.kernels.cube import Cube
from hybrid_nbody.nbody.sources import BITS

LEVELS = BITS
"""Levels of the tree that a word of a key has digits for."""


class Curve(NamedTuple):
    """N bodies along the curve.

    Attributes
    ----------
    order : (N,) array of int32
        The bodies; those with the same key stay in their order.
    keys : tuple of (N,) array of uint64
        The words of their keys, one or two.
    """

    order: NDArray[np.int32]
    keys: tuple[NDArray[np.uint64], ...]


def curve_through(position: NDArray[np.float64], cube: Cube, words: int) -> Curve:
    """Return the order of bodies along the curve.

    Parameters
    ----------
    position : (N, 3) array of float64
    cube : Cube
    words : {1, 2}
        The words of the keys by which they are sorted.
    """
    number = len(position)
    order = np.arange(number, dtype=np.int32)
    keys = [np.empty(number, np.uint64) for _ in range(words)]
    if not number:
        return Curve(order, tuple(keys))
    last = words - 1
    fill_keys(position, cube, last, keys[last])
    sort(keys[last], order)
    for word in reversed(range(last)):
        rows = np.arange(number, dtype=np.int32)
        fill_keys(position[order], cube, word, keys[word])
        sort(keys[word], rows)
        order = order[rows]
        keys[word + 1 :] = [later[rows] for later in keys[word + 1 :]]
    return Curve(order, tuple(keys))


def ties(curve: Curve) -> NDArray[np.bool_]:
    """Return whether a body and the next one along the curve have the same key, (N - 1,)."""
    first, *later = [word[1:] == word[:-1] for word in curve.keys]
    for word in later:
        first &= word
    return first


@compiled_parallel
def fill_keys(position, cube, word, keys):
    """Fill `keys` with the first (`word` 0) or second 21 digits of each body's key.

    Parameters
    ----------
    position : (N, 3) array of float64
    cube : Cube
    word : int
    keys : (N,) array of uint64
    """
    places = 2.0 ** (LEVELS * (word + 1))
    scale = places / cube.edge
    for i in prange(position.shape[0]):
        x = digits_of((position[i, 0] - cube.x) * scale, places)
        y = digits_of((position[i, 1] - cube.y) * scale, places)
        z = digits_of((position[i, 2] - cube.z) * scale, places)
        keys[i] = x | y << 1 | z << 2


@linked
def digits_of(number, places):
    """Return the last 21 bits of a whole part below `places`, bit k moved to bit 3 k."""
    return spread_bits_of_one(np.int64(min(number, places - 1)) & (2**LEVELS - 1))


# ---- Sorting -------------------------------------------------------------------------------------

DIGIT = 8
"""Bits of a digit of the radix sort."""


def sort(keys: NDArray[np.uint64], order: NDArray[np.int32]) -> None:
    """Sort keys, and `order` with them; equal keys stay in their order.

    Parameters
    ----------
    keys : (N,) array of uint64
    order : (N,) array of int32
    """
    differing = int(np.bitwise_or.reduce(keys) ^ np.bitwise_and.reduce(keys))
    next_keys = np.empty_like(keys)
    next_order = np.empty_like(order)
    blocks = get_num_threads()
    source = keys, order
    target = next_keys, next_order
    for shift in range(0, 64, DIGIT):
        if differing >> shift & (2**DIGIT - 1):
            sort_by_digit(*source, np.uint64(shift), blocks, *target)
            source, target = target, source
    if source[0] is not keys:
        keys[:] = source[0]
        order[:] = source[1]


@compiled_parallel
def sort_by_digit(keys, order, shift, blocks, sorted_keys, sorted_order):
    """Sort keys and order by one digit, each thread a block of them; equal digits stay."""
    digits = 1 << DIGIT
    mask = np.uint64(digits - 1)
    number = keys.size
    counts = np.zeros((blocks, digits), np.int64)
    for block in prange(blocks):
        for i in range(number * block // blocks, number * (block + 1) // blocks):
            counts[block, np.int64(keys[i] >> shift & mask)] += 1
    total = np.zeros(1, np.int64)
    for digit in range(digits):
        for block in range(blocks):
            count = counts[block, digit]
            counts[block, digit] = total[0]
            total[0] += count
    for block in prange(blocks):
        for i in range(number * block // blocks, number * (block + 1) // blocks):
            value = np.int64(keys[i] >> shift & mask)
            place = counts[block, value]
            counts[block, value] = place + 1
            sorted_keys[place] = keys[i]
            sorted_order[place] = order[i]
