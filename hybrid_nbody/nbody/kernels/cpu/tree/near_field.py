"""The sum over pairs of bodies in nearby leaves, for the bodies of one leaf.

Sources are collected from several leaves into one row, about the centre of the target's leaf, so
that vectors of sources are full; two targets at a time meet them, a vector after another. The
leaf's own bodies come first: there a body leaves out itself.

A row is in float32 or float64. Where softening does not keep bodies from coming so close that the
rounding of their offsets to float32 would count, it has the low parts of offsets too.
"""

from typing import Any, NamedTuple

import numpy as np

from hybrid_nbody.backends.simd import (
    LANES,
    address_at,
    arange_from,
    broadcast,
    converted,
    estimate_inverse_root,
    load,
    reduce_add,
    select,
    store,
)
from hybrid_nbody.nbody.kernels.cpu.compilers import linked_inline
from hybrid_nbody.nbody.kernels.cpu.pair_force import cube_over_estimate, root_over_estimate

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


class Law(NamedTuple):
    """What is summed over pairs.

    Attributes
    ----------
    potentials : bool
        Whether potentials are, or accelerations.
    eps2 : float
        The softening length squared.
    exact : bool
        Whether low parts of offsets count.
    """

    potentials: bool
    eps2: float
    exact: bool


class Target(NamedTuple):
    """A body of the leaf, every number in all lanes of a vector.

    Attributes
    ----------
    offset, low : tuple of vector
        From the centre of the leaf, and what rounding took from that.
    eps2 : vector
        The softening length squared.
    nothing : vector
        Zeros.
    exact : bool
        Whether low parts of offsets count.
    """

    offset: Any
    low: Any
    eps2: Any
    nothing: Any
    exact: bool


@linked_inline
def add_near_field(leaf, near, law, row, tree, result):
    """Add what the bodies of nearby leaves, this one among them, do to a leaf's bodies.

    Parameters
    ----------
    leaf : int
    near : array of int32
        The nearby leaves.
    law : Law
    row : (ROW,) array of float32 or float64
        Scratch memory, in the type in which pairs are computed.
    tree : Tree
    result : (N, 4) array of float64
        Sums of m d / r^3 are added to the first columns, or those of m / r to the last one.
    """
    bring_to_front(leaf, near)
    taken = 0  # of the next source
    k = 0
    while k < near.size:
        first_own = tree.cells.first[leaf] + taken  # in this row, if k is 0
        filled = 0
        of_leaf = 0
        while k < near.size and filled < SOURCES:
            source = near[k]
            first = tree.cells.first[source] + taken
            count = min(tree.cells.last[source] - first, SOURCES - filled)
            append((first, count), leaf, law.exact, tree, row, filled)
            filled += count
            of_leaf += count if source == leaf else 0
            taken += count
            if first + count == tree.cells.last[source]:
                k += 1
                taken = 0
        own = (leaf, first_own, of_leaf)
        add_row(own, pad(row, filled), row, law, tree, result)


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
    if law.potentials:
        add_potentials(own, end, row, law, tree, result)
    else:
        add_accelerations(own, end, row, law, tree, result)


@linked_inline
def append(bodies, leaf, exact, tree, row, filled):
    """Append bodies to the row, about the centre of a leaf; what follows is undefined.

    `bodies` are the first one and their number; with `exact` low parts are appended, too. The row
    holds x, y, z, masses and low parts one after another.
    """
    first, count = bodies
    working = row.dtype.type
    end = tree.bodies.columns.shape[1]
    for axis in range(3):
        centre = broadcast(tree.expansions.centre[leaf, axis])
        column = address_at(tree.bodies.columns, axis * end)
        for k in range(0, count, LANES):
            offset = load(column, first + k) - centre
            high = converted(offset, working)
            store(row, axis * PITCH + filled + k, high)
            if exact:
                low = converted(offset - converted(high, np.float64), working)
                store(row, LOW + axis * PITCH + filled + k, low)
    mass = address_at(tree.bodies.columns, 3 * end)
    for k in range(0, count, LANES):
        store(row, MASS + filled + k, converted(load(mass, first + k), working))


@linked_inline
def pad(row, filled):
    """Fill the last vector of a row with sources without mass, far away; return its end."""
    working = row.dtype.type
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
    working = row.dtype.type
    one = working(1)
    factor = 1 / np.float64(cube_over_estimate(one, one))
    nothing = broadcast(working(0))
    last = tree.cells.last[leaf]
    with_own = -(-of_leaf // LANES) * LANES
    for i in range(tree.cells.first[leaf], last, 2):
        other = min(i + 1, last - 1)
        a = target_of(i, leaf, law, tree, working)
        b = target_of(other, leaf, law, tree, working)
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
    working = row.dtype.type
    one = working(1)
    factor = 1 / np.float64(root_over_estimate(one, one))
    last = tree.cells.last[leaf]
    with_own = -(-of_leaf // LANES) * LANES
    for i in range(tree.cells.first[leaf], last):
        target = target_of(i, leaf, law, tree, working)
        lane = broadcast(working(i - first_own))
        total = broadcast(working(0))
        for start in range(0, with_own, LANES):
            own_lane = arange_from(working(start)) == lane
            total = total + potential(row, start, target, own_lane)
        for start in range(with_own, end, LANES):
            total = total + potential(row, start, target, None)
        result[i, 3] += factor * np.float64(reduce_add(total))


@linked_inline
def target_of(i, leaf, law, tree, working):
    """Return a body as a target in the working type."""
    x, x_low = split(tree.bodies.position[i, 0] - tree.expansions.centre[leaf, 0], working)
    y, y_low = split(tree.bodies.position[i, 1] - tree.expansions.centre[leaf, 1], working)
    z, z_low = split(tree.bodies.position[i, 2] - tree.expansions.centre[leaf, 2], working)
    eps2 = broadcast(working(law.eps2))
    return Target((x, y, z), (x_low, y_low, z_low), eps2, broadcast(working(0)), law.exact)


@linked_inline
def split(value, working):
    """Return vectors of a number in the working type and of what rounding took from it."""
    high = working(value)
    return broadcast(high), broadcast(working(value - np.float64(high)))


@linked_inline
def difference(row, at, axis, target):
    """Return a component of the vectors from a body to the sources of a row from `at` on."""
    result = load(row, axis * PITCH + at) - target.offset[axis]
    if target.exact:
        result = result + (load(row, LOW + axis * PITCH + at) - target.low[axis])
    return result


@linked_inline
def attracted(row, at, target, own, total):
    """Add m d / r^3, up to a constant, of the sources of a row from `at` on to sums."""
    x = difference(row, at, 0, target)
    y = difference(row, at, 1, target)
    z = difference(row, at, 2, target)
    square = x * x + (y * y + (z * z + target.eps2))
    estimate = estimate_inverse_root(square)
    weight = load(row, MASS + at) * estimate * cube_over_estimate(square, estimate)
    if own is not None:
        weight = select(own, target.nothing, weight)
    return total[0] + weight * x, total[1] + weight * y, total[2] + weight * z


@linked_inline
def potential(row, at, target, own):
    """Return m / r up to a constant, of the sources of a row from `at` on."""
    x = difference(row, at, 0, target)
    y = difference(row, at, 1, target)
    z = difference(row, at, 2, target)
    square = x * x + (y * y + (z * z + target.eps2))
    estimate = estimate_inverse_root(square)
    value = load(row, MASS + at) * estimate * root_over_estimate(square, estimate)
    if own is not None:
        value = select(own, target.nothing, value)
    return value
