"""From the bodies to the multipoles of all cells, the leaves first."""

import math

import numpy as np
from numba import prange

from hybrid_nbody.backends.simd import LANES, broadcast, load, reduce_add, store
from hybrid_nbody.nbody.kernels.cpu.compilers import compiled_parallel, linked_inline
from hybrid_nbody.nbody.kernels.cpu.tree.layout import (
    EDGE,
    MOST_TERMS,
    RADIUS,
    Tree,
    pitch_of,
)
from hybrid_nbody.nbody.kernels.cpu.tree.translation import allocate_vectors

PLACES = 3 * LANES
VECTORS_OF_TERMS = LANES * MOST_TERMS
"""Numbers of three vectors, and of as many as an expansion has terms."""

BLOCKS = 64
"""Parts of a level that threads take."""


@compiled_parallel
def find_multipoles(which, cube_edge, cells, bodies, expansions, tables):
    """Fill the expansions of some cells of a level.

    Parameters
    ----------
    which : (K,) array of int64
        The cells; those below them are done.
    cube_edge : float
        The edge of the root, in units of length.
    cells : Cells
    bodies : SortedBodies
    expansions : Expansions
    tables : Tables
    """
    terms = tables.orders.size
    for block in prange(BLOCKS):
        tree = Tree(cells, bodies, expansions, tables)
        total = np.empty(terms)
        end = which.size * (block + 1) // BLOCKS
        for cell in which[which.size * block // BLOCKS : end]:
            edge = math.ldexp(cube_edge, -cells.level[cell])
            total[:] = 0
            if cells.children[cell] == 0:
                measure_leaf(cell, tree)
                add_bodies(cell, edge, tree, total)
            else:
                measure_parent(cell, tree)
                add_children(cell, edge, tree, total)
            store_multipoles(cell, total, tree)
            summarize(cell, edge, total, tree)


@linked_inline
def measure_leaf(cell, tree):
    """Find the box, centre, radius and tolerance of a leaf."""
    first = tree.cells.first[cell]
    last = tree.cells.last[cell]
    position = tree.bodies.position
    box = tree.expansions.box
    clear_box(cell, tree)
    mass = 0.0
    squares = 0.0
    for i in range(first, last):
        mass += tree.bodies.mass[i]
        squares += tree.bodies.acceleration[i] ** 2
    tree.expansions.tolerance[cell] = math.sqrt(squares / (last - first))
    for axis in range(3):
        moment = 0.0
        for i in range(first, last):
            moment += tree.bodies.mass[i] * position[i, axis]
            box[cell, axis] = min(box[cell, axis], position[i, axis])
            box[cell, 3 + axis] = max(box[cell, 3 + axis], position[i, axis])
        place_centre(cell, axis, mass, moment, tree)
    radius2 = 0.0
    for i in range(first, last):
        square = 0.0
        for axis in range(3):
            offset = position[i, axis] - tree.expansions.centre[cell, axis]
            square += offset * offset
        radius2 = max(radius2, square)
    tree.expansions.summary[cell, RADIUS] = rounded_up(math.sqrt(radius2))


@linked_inline
def clear_box(cell, tree):
    """Make the box of a cell one of nothing."""
    for axis in range(3):
        tree.expansions.box[cell, axis] = np.inf
        tree.expansions.box[cell, 3 + axis] = -np.inf


@linked_inline
def measure_parent(cell, tree):
    """Find the box, centre, radius and tolerance of a cell from its children."""
    first = tree.cells.child[cell]
    last = first + tree.cells.children[cell]
    box = tree.expansions.box
    clear_box(cell, tree)
    mass = 0.0
    tolerance = np.inf
    for child in range(first, last):
        mass += np.float64(tree.expansions.multipole[row_of(child, tree)])
        tolerance = min(tolerance, tree.expansions.tolerance[child])
    tree.expansions.tolerance[cell] = tolerance
    for axis in range(3):
        moment = 0.0
        for child in range(first, last):
            weight = np.float64(tree.expansions.multipole[row_of(child, tree)])
            moment += weight * tree.expansions.centre[child, axis]
            box[cell, axis] = min(box[cell, axis], box[child, axis])
            box[cell, 3 + axis] = max(box[cell, 3 + axis], box[child, 3 + axis])
        place_centre(cell, axis, mass, moment, tree)
    radius = 0.0
    for child in range(first, last):
        distance = distance_of(cell, child, tree)
        radius = max(radius, distance + np.float64(tree.expansions.summary[child, RADIUS]))
    tree.expansions.summary[cell, RADIUS] = rounded_up(min(radius, farthest_corner(cell, tree)))


@linked_inline
def row_of(cell, tree):
    """Return where the row of a cell's multipoles starts."""
    return cell * pitch_of(tree.tables.orders.size)


@linked_inline
def place_centre(cell, axis, mass, moment, tree):
    """Set a coordinate of a cell's centre: that of its mass, or of its box where it has none."""
    lowest = tree.expansions.box[cell, axis]
    highest = tree.expansions.box[cell, 3 + axis]
    centre = moment / mass if mass > 0 else (lowest + highest) / 2
    # rounding could leave the box, and so the range of radii
    tree.expansions.centre[cell, axis] = min(max(centre, lowest), highest)
    tree.expansions.centre[cell, 3] = 0


@linked_inline
def distance_of(cell, other, tree):
    """Return the distance of the centres of two cells."""
    square = 0.0
    for axis in range(3):
        square += (tree.expansions.centre[cell, axis] - tree.expansions.centre[other, axis]) ** 2
    return math.sqrt(square)


@linked_inline
def farthest_corner(cell, tree):
    """Return the distance from the centre of a cell to the farthest corner of its box."""
    box = tree.expansions.box
    square = 0.0
    for axis in range(3):
        centre = tree.expansions.centre[cell, axis]
        square += max(box[cell, 3 + axis] - centre, centre - box[cell, axis]) ** 2
    return math.sqrt(square)


@linked_inline
def rounded_up(radius):
    """Return a radius in single precision that is not below it."""
    return np.float32(radius * (1 + 2.0**-22))


# ---- Sums over bodies and children, a lane each --------------------------------------------------


@linked_inline
def fill_monomials(offset, tree, monomials):
    """Fill `monomials` with vectors of x^i y^j z^k for all multi-indices.

    `offset` holds a vector of x, one of y and one of z.
    """
    store(monomials, 0, broadcast(1.0))
    for k in range(1, tree.tables.parent.size):
        below = load(monomials, LANES * tree.tables.parent[k])
        store(monomials, LANES * k, below * load(offset, LANES * tree.tables.axis[k]))


@linked_inline
def fill_terms(offset, tree, terms):
    """Fill `terms` with vectors of x^i y^j z^k over the factorial of each multi-index."""
    fill_monomials(offset, tree, terms)
    for k in range(tree.tables.inverses.size):
        store(terms, LANES * k, load(terms, LANES * k) * broadcast(tree.tables.inverses[k]))


@linked_inline
def set_offsets_of_bodies(first, count, cell, edge, tree, offset):
    """Set `offset` to vectors from the centre of a cell to bodies; zeros fill them up."""
    for axis in range(3):
        for lane in range(LANES):
            distance = 0.0
            if lane < count:
                distance = tree.bodies.position[first + lane, axis]
                distance -= tree.expansions.centre[cell, axis]
            offset[LANES * axis + lane] = distance / edge


@linked_inline
def set_offsets_of_children(cell, edge, tree, offset):
    """Set `offset` to vectors from the centre of a cell to those of its children."""
    first = tree.cells.child[cell]
    centre = tree.expansions.centre
    for axis in range(3):
        for lane in range(LANES):
            distance = 0.0
            if lane < tree.cells.children[cell]:
                distance = centre[first + lane, axis] - centre[cell, axis]
            offset[LANES * axis + lane] = distance / edge


@linked_inline
def add_bodies(cell, edge, tree, total):
    """Add the multipoles of the bodies of a leaf: m (x - z)^b / b!."""
    offset = allocate_vectors(np.float64, PLACES)
    mass = allocate_vectors(np.float64, LANES)
    monomials = allocate_vectors(np.float64, VECTORS_OF_TERMS)
    sums = allocate_vectors(np.float64, VECTORS_OF_TERMS)
    for k in range(total.size):
        store(sums, LANES * k, broadcast(0.0))
    last = tree.cells.last[cell]
    for first in range(tree.cells.first[cell], last, LANES):
        set_offsets_of_bodies(first, last - first, cell, edge, tree, offset)
        for lane in range(LANES):
            mass[lane] = tree.bodies.mass[first + lane] if first + lane < last else 0.0
        fill_monomials(offset, tree, monomials)
        for k in range(total.size):
            term = load(mass, 0) * load(monomials, LANES * k)
            store(sums, LANES * k, load(sums, LANES * k) + term)
    for k in range(total.size):
        total[k] += reduce_add(load(sums, LANES * k)) * tree.tables.inverses[k]


@linked_inline
def add_children(cell, edge, tree, total):
    """Add the multipoles of a cell's children, shifted to its centre."""
    first = tree.cells.child[cell]
    count = tree.cells.children[cell]
    offset = allocate_vectors(np.float64, PLACES)
    moments = allocate_vectors(np.float64, VECTORS_OF_TERMS)
    terms = allocate_vectors(np.float64, VECTORS_OF_TERMS)
    set_offsets_of_children(cell, edge, tree, offset)
    fill_terms(offset, tree, terms)
    for k in range(total.size):
        store(moments, LANES * k, broadcast(0.0))
    for child in range(count):
        row = row_of(first + child, tree)
        for k in range(total.size):
            moment = np.float64(tree.expansions.multipole[row + k])
            moments[LANES * k + child] = tree.tables.halves[k] * moment
    for k in range(total.size):
        value = broadcast(0.0)
        for term in range(tree.tables.starts[k], tree.tables.starts[k + 1]):
            moment = load(moments, LANES * tree.tables.source[term])
            value = value + moment * load(terms, LANES * tree.tables.power[term])
        total[k] += reduce_add(value)


@linked_inline
def store_multipoles(cell, total, tree):
    """Store the multipoles of a cell in the working type, and zeros behind them."""
    row = row_of(cell, tree)
    for k in range(row_of(cell + 1, tree) - row):
        tree.expansions.multipole[row + k] = total[k] if k < total.size else 0.0


@linked_inline
def summarize(cell, edge, total, tree):
    """Fill the summary of a cell: the power of each order times its binomial coefficient.

    The last power stands for those of the orders left out. It is not taken to be smaller than a
    typical radius times the one before: those of odd orders vanish where bodies are symmetric.
    """
    summary = tree.expansions.summary
    for order in range(RADIUS):
        summary[cell, order] = 0
    power = 0.0
    order = 0
    for k in range(total.size):
        if tree.tables.orders[k] > order:
            summary[cell, order] = tree.tables.binomials[order] * math.sqrt(power)
            power = 0.0
            order = tree.tables.orders[k]
        power += tree.tables.norms[k] * total[k] * total[k]
    summary[cell, order] = tree.tables.binomials[order] * math.sqrt(power)
    if order > 2 and summary[cell, 0] > 0:
        before = summary[cell, order - 1] / tree.tables.binomials[order - 1]
        square = summary[cell, 2] / (tree.tables.binomials[2] * summary[cell, 0])
        summary[cell, order] = max(summary[cell, order], before * math.sqrt(square))
    summary[cell, EDGE] = edge
