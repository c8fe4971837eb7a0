"""The sum over pairs of bodies in nearby leaves, for the bodies of one leaf.

Sources are collected from several leaves into one row, about the centre of the target's leaf, so
that vectors of sources are full; two targets at a time meet them, a vector after another. The
leaf's own bodies come first: there a body leaves out itself.

Where softening does not keep bodies from coming so close that the rounding of their places would
count, rows have the low parts of places too.
"""

import numpy as np
from numba import carray

from hybrid_nbody.backends.simd import (
    LANES,
    address_at,
    address_of,
    arange_from,
    broadcast,
    estimate_inverse_root,
    load,
    reduce_add,
    select,
    store,
)
from hybrid_nbody.nbody.kernels.cpu.compilers import linked_inline
from hybrid_nbody.nbody.kernels.cpu.pair_force import cube_over_estimate, root_over_estimate
from hybrid_nbody.nbody.kernels.cpu.tree.translation import allocate_vectors

SOURCES = 1024
"""Sources that are collected at once: their memory stays in the first cache."""

PITCH = SOURCES + 64
"""Length of a component of a row: whole vectors are stored behind its sources."""

MASS, LOW = 3 * PITCH, 4 * PITCH
"""Where in a row masses begin, and low parts of x, y and z."""

ROW = 7 * PITCH
"""Numbers of a row: x, y, z, masses and low parts."""

FAR_AWAY = 2.0**40
"""In units of the kernels: its square and its cube are within the range of float32."""


@linked_inline
def add_near_field(leaf, nearby, near, law, tree, result):
    """Add what the bodies of nearby leaves, this one among them, do to a leaf's bodies.

    Parameters
    ----------
    leaf : int
    nearby : int
    near : array of int32
        The nearby leaves are its first ones, this number of them.
    law : tuple
        Whether potentials are summed, or accelerations; the softening length squared; and whether
        low parts of places count.
    tree : Tree
    result : (N, 4) array of float64
        Sums of m d / r^3 are added to the first columns, or those of m / r to the last one.
    """
    working = tree.bodies.weight.dtype.type
    row = address_of(carray(allocate_vectors(working, ROW), ROW))
    bring_to_front(leaf, near)
    taken = 0  # of the next source
    k = 0
    while k < nearby:
        first_own = tree.cells.first[leaf] + taken  # in this row, if k is 0
        filled = 0
        of_leaf = 0
        while k < nearby and filled < SOURCES:
            source = near[k]
            first = tree.cells.first[source] + taken
            count = min(tree.cells.last[source] - first, SOURCES - filled)
            append(first, count, (leaf, source, law[2]), tree, row, filled)
            filled += count
            of_leaf += count if source == leaf else 0
            taken += count
            if first + count == tree.cells.last[source]:
                k += 1
                taken = 0
        own = (leaf, first_own, of_leaf)
        add_row(own, pad(row, filled, working), row, law, tree, result)


@linked_inline
def bring_to_front(leaf, near):
    """Let a leaf, one of its nearby ones, be the first of them."""
    k = 0
    while near[k] != leaf:
        k += 1
    near[k] = near[0]
    near[0] = leaf


@linked_inline
def add_row(own, end, row, law, tree, result):
    """Add what the first sources of a row do to a leaf's bodies; see `add_accelerations`."""
    if law[0]:
        add_potentials(own, end, row, law, tree, result)
    else:
        add_accelerations(own, end, row, law, tree, result)


@linked_inline
def append(first, count, cells, tree, row, filled):
    """Append bodies of a source to the row, about the centre of a leaf; what follows is undefined.

    `cells` are the leaf, the source and whether low parts are wanted. The row holds x, y, z, masses
    and low parts one after another.
    """
    leaf, source, exact = cells
    working = tree.bodies.weight.dtype.type
    length = tree.bodies.weight.size
    for axis in range(3):
        shift = tree.expansions.centre[source, axis] - tree.expansions.centre[leaf, axis]
        high = broadcast(working(shift))
        offset = address_at(tree.bodies.offset, axis * length)
        low_offset = address_at(tree.bodies.low, axis * length)
        low = broadcast(working(shift - np.float64(working(shift))))
        for k in range(0, count, LANES):
            value = load(offset, first + k)
            total = value + high
            store(row, axis * PITCH + filled + k, total)
            if exact:
                rest = error_of_sum(value, high, total) + (load(low_offset, first + k) + low)
                store(row, LOW + axis * PITCH + filled + k, rest)
    weight = address_of(tree.bodies.weight)
    for k in range(0, count, LANES):
        store(row, MASS + filled + k, load(weight, first + k))


@linked_inline
def error_of_sum(a, b, total):
    """Return what rounding took from a + b (Knuth's two-sum)."""
    of_b = total - a
    of_a = total - of_b
    return (a - of_a) + (b - of_b)


@linked_inline
def pad(row, filled, working):
    """Fill the last vector of a row with sources without mass, far away; return its end."""
    nothing = broadcast(working(0))
    store(row, filled, broadcast(working(FAR_AWAY)))
    for component in range(1, ROW // PITCH):
        store(row, component * PITCH + filled, nothing)
    return -(-filled // LANES) * LANES


# ---- Pairs of bodies -----------------------------------------------------------------------------


@linked_inline
def add_accelerations(own, end, row, law, tree, result):
    """Add the accelerations of a leaf's bodies towards the first sources of a row.

    `own` are the leaf, its first body in the row, and the number of those that the row begins with.
    """
    leaf, first_own, of_leaf = own
    working = tree.bodies.weight.dtype.type
    one = working(1)
    factor = 1 / np.float64(cube_over_estimate(one, one))
    nothing = broadcast(working(0))
    last = tree.cells.last[leaf]
    with_own = -(-of_leaf // LANES) * LANES
    for i in range(tree.cells.first[leaf], last, 2):
        other = min(i + 1, last - 1)
        a = place_of(i, law, tree)
        b = place_of(other, law, tree)
        lane_a = broadcast(working(i - first_own))
        lane_b = broadcast(working(other - first_own))
        total_a = (nothing, nothing, nothing)
        total_b = (nothing, nothing, nothing)
        for start in range(0, with_own, LANES):
            lanes = arange_from(working(start))
            total_a = attracted(row, start, a, lanes == lane_a, total_a)
            total_b = attracted(row, start, b, lanes == lane_b, total_b)
        for start in range(with_own, end, LANES):
            total_a = attracted(row, start, a, None, total_a)
            total_b = attracted(row, start, b, None, total_b)
        for axis in range(3):
            result[i, axis] += factor * np.float64(reduce_add(total_a[axis]))
        if other > i:
            for axis in range(3):
                result[other, axis] += factor * np.float64(reduce_add(total_b[axis]))


@linked_inline
def add_potentials(own, end, row, law, tree, result):
    """Add the potentials of the first sources of a row at a leaf's bodies."""
    leaf, first_own, of_leaf = own
    working = tree.bodies.weight.dtype.type
    one = working(1)
    factor = 1 / np.float64(root_over_estimate(one, one))
    last = tree.cells.last[leaf]
    with_own = -(-of_leaf // LANES) * LANES
    for i in range(tree.cells.first[leaf], last):
        place = place_of(i, law, tree)
        lane = broadcast(working(i - first_own))
        total = broadcast(working(0))
        for start in range(0, with_own, LANES):
            own_lane = arange_from(working(start)) == lane
            total = total + potential(row, start, place, own_lane)
        for start in range(with_own, end, LANES):
            total = total + potential(row, start, place, None)
        result[i, 3] += factor * np.float64(reduce_add(total))


@linked_inline
def place_of(i, law, tree):
    """Return a body's place, its low part, eps^2, whether low parts count, and zeros."""
    working = tree.bodies.weight.dtype.type
    offset = tree.bodies.offset
    low = tree.bodies.low
    place = (broadcast(offset[0, i]), broadcast(offset[1, i]), broadcast(offset[2, i]))
    rest = (broadcast(low[0, i]), broadcast(low[1, i]), broadcast(low[2, i]))
    return place, rest, broadcast(working(law[1])), law[2], broadcast(working(0))


@linked_inline
def difference(row, at, axis, place):
    """Return a component of the vectors from a body to the sources of a row from `at` on."""
    result = load(row, axis * PITCH + at) - place[0][axis]
    if place[3]:
        result = result + (load(row, LOW + axis * PITCH + at) - place[1][axis])
    return result


@linked_inline
def attracted(row, at, place, own, total):
    """Add m d / r^3, up to a constant, of the sources of a row from `at` on to sums."""
    x = difference(row, at, 0, place)
    y = difference(row, at, 1, place)
    z = difference(row, at, 2, place)
    square = x * x + (y * y + (z * z + place[2]))
    estimate = estimate_inverse_root(square)
    weight = load(row, MASS + at) * estimate * cube_over_estimate(square, estimate)
    if own is not None:
        weight = select(own, place[4], weight)
    return total[0] + weight * x, total[1] + weight * y, total[2] + weight * z


@linked_inline
def potential(row, at, place, own):
    """Return m / r up to a constant, of the sources of a row from `at` on."""
    x = difference(row, at, 0, place)
    y = difference(row, at, 1, place)
    z = difference(row, at, 2, place)
    square = x * x + (y * y + (z * z + place[2]))
    estimate = estimate_inverse_root(square)
    value = load(row, MASS + at) * estimate * root_over_estimate(square, estimate)
    if own is not None:
        value = select(own, place[4], value)
    return value
