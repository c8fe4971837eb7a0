"""The sum over pairs of bodies in nearby leaves, for the bodies of one leaf.

Sources are collected from several leaves into one row, about the centre of the target's leaf, so
that vectors of sources are full; each target meets them in blocks.
"""

import math

import numpy as np
from numba import carray, njit

from hybrid_nbody.backends.simd import (
    BLOCK,
    LANES,
    VECTOR_MATH,
    address_at,
    address_of,
    block_scalars,
    block_vectors,
    broadcast,
    load,
    load_scalar,
    store,
)
from hybrid_nbody.nbody.kernels.cpu.pair_force import (
    clear,
    cube_over_estimate,
    inlined,
    root_over_estimate,
    soften,
)
from hybrid_nbody.nbody.kernels.cpu.tree.translation import allocate_vectors

SOURCES = 1024
"""Sources that are collected at once: their memory stays in the first cache."""

PITCH = SOURCES + 64
"""Length of a component of a row: whole vectors are stored behind its sources."""

ROW = 4 * PITCH
"""Numbers of a row: x, y, z and masses."""

FAR_AWAY = 2.0**40
"""In units of the kernels: its square and its cube are within the range of float32."""

linked = njit(
    error_model="numpy",
    fastmath=VECTOR_MATH,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    forceinline=True,
)


@linked
def add_near_field(leaf, nearby, near, law, tree, result):
    """Add what the bodies of nearby leaves, this one among them, do to a leaf's bodies.

    Parameters
    ----------
    leaf : int
    nearby : int
    near : array of int32
        The nearby leaves are its first ones, this number of them.
    law : tuple
        Whether potentials are summed, or accelerations; and the softening length squared.
    tree : Tree
    result : (N, 4) array of float64
        Sums of m d / r^3 are added to the first columns, or those of m / r to the last one.
    """
    working = tree.bodies.weight.dtype.type
    row = carray(allocate_vectors(working, ROW), ROW)
    taken = 0  # of the next source
    k = 0
    while k < nearby:
        filled = 0
        while k < nearby and filled < SOURCES:
            source = near[k]
            first = tree.cells.first[source] + taken
            count = min(tree.cells.last[source] - first, SOURCES - filled)
            if source != leaf:
                append(first, count, (leaf, source), tree, row, filled)
                filled += count
            taken += count
            if first + count == tree.cells.last[source]:
                k += 1
                taken = 0
        add_row(leaf, filled, row, law, tree, result)
    add_leaf_itself(leaf, law, tree, result)


@linked
def append(first, count, cells, tree, row, filled):
    """Append bodies of a source to the row, about the centre of a leaf; what follows is undefined.

    `cells` are the leaf and the source. The row holds x, y, z and masses one after another.
    """
    leaf, source = cells
    working = tree.bodies.weight.dtype.type
    to = address_of(row)
    for axis in range(3):
        shift = working(tree.expansions.centre[source, axis] - tree.expansions.centre[leaf, axis])
        offset = address_at(tree.bodies.offset, axis * tree.bodies.weight.size)
        for k in range(0, count, LANES):
            value = load(offset, first + k) + broadcast(shift)
            store(to, axis * PITCH + filled + k, value)
    weight = address_of(tree.bodies.weight)
    for k in range(0, count, LANES):
        store(to, 3 * PITCH + filled + k, load(weight, first + k))


@linked
def add_row(leaf, filled, row, law, tree, result):
    """Add what the sources in a row do to a leaf's bodies."""
    potentials, softening2 = law
    eps2 = tree.bodies.weight.dtype.type(softening2)
    end = -(-filled // BLOCK) * BLOCK
    for k in range(filled, end):  # without mass, and nowhere near a body
        row[k] = FAR_AWAY
        row[PITCH + k] = 0
        row[2 * PITCH + k] = 0
        row[3 * PITCH + k] = 0
    # by its address: an index of an array could be negative, and vectors would be gathered
    if potentials:
        add_row_potentials(leaf, end, address_of(row), eps2, tree, result)
    else:
        add_row_accelerations(leaf, end, address_of(row), eps2, tree, result)


@linked
def add_row_accelerations(leaf, end, row, eps2, tree, result):
    """Add the accelerations of a leaf's bodies towards the first sources of a row."""
    working = tree.bodies.weight.dtype.type
    factor = 1 / np.float64(cube_over_estimate(working(1), working(1)))
    difference = block_vectors(working)
    square = block_scalars(working)
    estimate = block_scalars(working)
    total = block_vectors(working)
    for i in range(tree.cells.first[leaf], tree.cells.last[leaf]):
        clear(total)
        for start in range(0, end, BLOCK):
            subtract(i, start, row, tree, difference)
            soften(difference, eps2, square, estimate)
            for lane in range(BLOCK):
                weight = load_scalar(row, 3 * PITCH + start + lane) * estimate[lane]
                weight *= cube_over_estimate(square[lane], estimate[lane])
                total[0, lane] += weight * difference[0, lane]
                total[1, lane] += weight * difference[1, lane]
                total[2, lane] += weight * difference[2, lane]
        result[i, 0] += factor * sum_of(total, 0)
        result[i, 1] += factor * sum_of(total, 1)
        result[i, 2] += factor * sum_of(total, 2)


@linked
def add_row_potentials(leaf, end, row, eps2, tree, result):
    """Add the potentials of the first sources of a row at a leaf's bodies."""
    working = tree.bodies.weight.dtype.type
    factor = 1 / np.float64(root_over_estimate(working(1), working(1)))
    difference = block_vectors(working)
    square = block_scalars(working)
    estimate = block_scalars(working)
    total = block_vectors(working)
    for i in range(tree.cells.first[leaf], tree.cells.last[leaf]):
        clear(total)
        for start in range(0, end, BLOCK):
            subtract(i, start, row, tree, difference)
            soften(difference, eps2, square, estimate)
            for lane in range(BLOCK):
                inverse = estimate[lane] * root_over_estimate(square[lane], estimate[lane])
                mass = load_scalar(row, 3 * PITCH + start + lane)
                total[0, lane] += mass * inverse if mass > 0 else working(0)
        result[i, 3] += factor * sum_of(total, 0)


@inlined
def subtract(i, start, row, tree, difference):
    """Fill `difference` with vectors from a body to the sources of a row from `start` on."""
    x = tree.bodies.offset[0, i]
    y = tree.bodies.offset[1, i]
    z = tree.bodies.offset[2, i]
    for lane in range(BLOCK):
        difference[0, lane] = load_scalar(row, start + lane) - x
        difference[1, lane] = load_scalar(row, PITCH + start + lane) - y
        difference[2, lane] = load_scalar(row, 2 * PITCH + start + lane) - z


@inlined
def sum_of(total, component):
    """Return the sum of the lanes of a component."""
    result = np.float64(0)
    for lane in range(BLOCK):
        result += total[component, lane]
    return result


@linked
def add_leaf_itself(leaf, law, tree, result):
    """Add what a leaf's bodies do to one another, in float64."""
    potentials, eps2 = law
    position = tree.bodies.position
    mass = tree.bodies.mass
    for i in range(tree.cells.first[leaf], tree.cells.last[leaf]):
        for j in range(tree.cells.first[leaf], i):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + (dy * dy + (dz * dz + eps2))
            inverse = 1 / math.sqrt(square)
            if potentials:
                result[i, 3] += mass[j] * inverse
                result[j, 3] += mass[i] * inverse
            else:
                cube = inverse / square
                result[i, 0] += mass[j] * cube * dx
                result[i, 1] += mass[j] * cube * dy
                result[i, 2] += mass[j] * cube * dz
                result[j, 0] -= mass[i] * cube * dx
                result[j, 1] -= mass[i] * cube * dy
                result[j, 2] -= mass[i] * cube * dz
