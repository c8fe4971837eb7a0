"""The order of the sources of a few bodies that one CPU owns, found in a compiled loop.

`hybrid_nbody.nbody.sources` says what it is, and finds the same with NumPy. That takes longer than
the steps of three bodies between two sorts.
"""

import numpy as np

from hybrid_nbody.nbody.kernels.cpu.compilers import compiled, linked
from hybrid_nbody.nbody.precision import CHUNK
from hybrid_nbody.nbody.sources import BITS, given_order, spread_bits
from hybrid_nbody.nbody.state import State

MOST_BODIES = CHUNK - 1
"""Most bodies of which no chunk ends before it is full."""

TINY = float(np.finfo(float).tiny)
"""Least edge of the cube around the bodies."""

spread_bits_of_one = linked(spread_bits)


class Sorter:
    """Sorts the sources of a state along the Morton curve.

    Parameters
    ----------
    state : State
        Of a rank that owns every body; from 1 to `MOST_BODIES`.
    """

    def __init__(self, state: State) -> None:
        number = len(state.mass)
        self.state = state
        self.starts = given_order(number).starts
        self.keys = np.zeros(number, np.int64)

    def sort(self) -> None:
        """Sort the sources by their current positions, into one chunk."""
        state = self.state
        state.orders[:] += 1
        state.starts[:] = self.starts
        state.chunks[:] = 1
        sort_along_curve(state.position, self.keys, state.order, state.source_index)
        state.own_order[:] = state.order


@compiled
def sort_along_curve(position, keys, order, places):
    """Sort bodies by their keys; those with the same key stay in the order of their rows.

    Parameters
    ----------
    position : (n, 3) array of float64
    keys : (n,) array of int64
        Filled with the keys along the curve, sorted.
    order : (n,) array of int32
        Filled with the bodies along the curve.
    places : (n,) array of int32
        Filled with the place of each body in `order`.
    """
    fill_keys(position, keys)
    for body in range(order.size):
        insert(body, keys, order)
    for place in range(order.size):
        places[order[place]] = place


@linked
def insert(body, keys, order):
    """Insert a body into those before it, which are sorted."""
    key = keys[body]
    place = body
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        order[place] = order[place - 1]
        place -= 1
    keys[place] = key
    order[place] = body


@linked
def fill_keys(position, keys):
    """Fill `keys` with the Morton key of each position, as `sources.morton_keys` does."""
    x = least(position[:, 0])
    y = least(position[:, 1])
    z = least(position[:, 2])
    extent = TINY
    for i in range(keys.size):
        extent = max(extent, position[i, 0] - x, position[i, 1] - y, position[i, 2] - z)
    for i in range(keys.size):
        of_x = digits_of((position[i, 0] - x) / extent)
        of_y = digits_of((position[i, 1] - y) / extent)
        of_z = digits_of((position[i, 2] - z) / extent)
        keys[i] = of_x | of_y << 1 | of_z << 2


@linked
def least(numbers):
    """Return the least of some numbers."""
    found = numbers[0]
    for number in numbers:
        found = min(found, number)
    return found


@linked
def digits_of(share):
    """Return the digits of a share of the edge of the cube, bit k moved to bit 3 k."""
    return spread_bits_of_one(np.int64(share * (2.0**BITS - 1)))
