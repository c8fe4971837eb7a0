"""From the expansion of a cell to those of its children, and to its bodies, a lane each."""

import numpy as np

from hybrid_nbody.backends.simd import LANES, broadcast, load, store
from hybrid_nbody.nbody.kernels.cpu.compilers import linked_inline
from hybrid_nbody.nbody.kernels.cpu.tree.layout import EDGE
from hybrid_nbody.nbody.kernels.cpu.tree.translation import allocate_vectors
from hybrid_nbody.nbody.kernels.cpu.tree.upward import (
    PLACES,
    VECTORS_OF_TERMS,
    fill_terms,
    set_offsets_of_bodies,
    set_offsets_of_children,
)


@linked_inline
def shift_to_children(cell, tree):
    """Fill the expansions of a cell's children with that of the cell."""
    edge = np.float64(tree.expansions.summary[cell, EDGE])
    tables = tree.tables
    local = tree.expansions.local
    offset = allocate_vectors(np.float64, PLACES)
    terms = allocate_vectors(np.float64, VECTORS_OF_TERMS)
    shifted = allocate_vectors(np.float64, VECTORS_OF_TERMS)
    set_offsets_of_children(cell, edge, tree, offset)
    fill_terms(offset, tree, terms)
    for k in range(tables.orders.size):
        store(shifted, LANES * k, broadcast(0.0))
    for k in range(tables.orders.size):
        own = broadcast(local[cell, k])
        for term in range(tables.starts[k], tables.starts[k + 1]):
            place = LANES * tables.source[term]
            power = load(terms, LANES * tables.power[term])
            store(shifted, place, load(shifted, place) + own * power)
    first = tree.cells.child[cell]
    for child in range(tree.cells.children[cell]):
        for k in range(tables.orders.size):
            local[first + child, k] = tables.halves[k] * shifted[LANES * k + child]


@linked_inline
def evaluate(leaf, potentials, tree, result):
    """Fill the result of a leaf's bodies from its expansion."""
    edge = np.float64(tree.expansions.summary[leaf, EDGE])
    offset = allocate_vectors(np.float64, PLACES)
    terms = allocate_vectors(np.float64, VECTORS_OF_TERMS)
    sums = allocate_vectors(np.float64, PLACES)
    last = tree.cells.last[leaf]
    for first in range(tree.cells.first[leaf], last, LANES):
        count = min(LANES, last - first)
        set_offsets_of_bodies(first, count, leaf, edge, tree, offset)
        fill_terms(offset, tree, terms)
        if potentials:
            store(sums, 0, potential_of(leaf, tree, terms))
            for lane in range(count):
                result[first + lane, 3] = sums[lane]
        else:
            fill_gradient(leaf, tree, terms, sums)
            for lane in range(count):
                for axis in range(3):
                    result[first + lane, axis] = sums[LANES * axis + lane] / edge


@linked_inline
def potential_of(leaf, tree, terms):
    """Return the value of a leaf's expansion at some bodies."""
    total = broadcast(0.0)
    for k in range(tree.tables.orders.size):
        own = broadcast(tree.expansions.local[leaf, k])
        total = total + own * load(terms, LANES * k)
    return total


@linked_inline
def fill_gradient(leaf, tree, terms, sums):
    """Fill `sums` with vectors of the derivatives of a leaf's expansion by x, y and z."""
    local = tree.expansions.local
    gradient = tree.tables.gradient
    x = broadcast(0.0)
    y = broadcast(0.0)
    z = broadcast(0.0)
    for k in range(gradient.shape[0]):
        term = load(terms, LANES * k)
        x = x + broadcast(local[leaf, gradient[k, 0]]) * term
        y = y + broadcast(local[leaf, gradient[k, 1]]) * term
        z = z + broadcast(local[leaf, gradient[k, 2]]) * term
    store(sums, 0, x)
    store(sums, LANES, y)
    store(sums, 2 * LANES, z)
