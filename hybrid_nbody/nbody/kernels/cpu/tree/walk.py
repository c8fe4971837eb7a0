"""From the multipoles to the accelerations: each cell finds the sources that it can see as a whole.

A cell tests the sources that its parent could not accept. One that is accepted adds to the cell's
expansion; one that is not is opened until it is no larger than the cell, and left to its children;
leaves that a leaf cannot accept are its nearby ones. Where a source is not accepted because the
cell is too large for it, its parts are no better: with few bodies in all, it is left to the
children too, and a leaf meets all of its bodies. Which sources a cell sees follows from the tree
alone, whoever computes it.
"""

import numpy as np
from numba import carray, njit, prange

from hybrid_nbody.backends.simd import VECTOR_MATH, address_at, address_of
from hybrid_nbody.nbody.kernels.cpu.compilers import linked_inline, linked_inline_with_arrays
from hybrid_nbody.nbody.kernels.cpu.tree.acceptance import TESTS, accepted
from hybrid_nbody.nbody.kernels.cpu.tree.downward import evaluate, shift_to_children
from hybrid_nbody.nbody.kernels.cpu.tree.layout import (
    CELLS,
    DONE,
    DOUBLE,
    EDGE,
    EITHER,
    MASS,
    MISSING,
    MIXED,
    MOST_LEVELS,
    MOST_TERMS,
    POTENTIALS,
    RADIUS,
    TOO_SHORT,
    Tree,
)
from hybrid_nbody.nbody.kernels.cpu.tree.near_field import ROW, Law, add_near_field
from hybrid_nbody.nbody.kernels.cpu.tree.translation import (
    LEADING_TERMS,
    TRANSLATED,
    allocate_vectors,
    translate,
)
from hybrid_nbody.nbody.kernels.cpu.tree.upward import row_of

LEVELS = MOST_LEVELS + 2
"""Levels of a tree, and one more to which the lowest would leave sources."""

VECTORS_OF_TERMS = TRANSLATED * MOST_TERMS
"""Numbers of as many vectors of float32 as an expansion has terms."""

DOUBLE_LANES = TRANSLATED // 2
"""Numbers of a vector of float64."""

SEVERAL = 4
"""By how much the rounding of some forces may be more than that of one."""

LEADING_VECTORS = DOUBLE_LANES * LEADING_TERMS


@njit(error_model="numpy", fastmath=VECTOR_MATH, cache=True, parallel=True)
def sum_forces(roots, walk, binomials, opening, cells, bodies, expansions, tables, output):
    """Sum the forces of all bodies at those in some cells.

    Parameters
    ----------
    roots : (R,) array of int32
        The cells, none below another.
    walk : Walk
    binomials : tuple of float
        Those of the order.
    opening : Opening
    cells : Cells
    bodies : SortedBodies
    expansions : Expansions
        The local ones are filled below the roots.
    tables : Tables
    output : Output
        Filled.
    """
    for part in prange(roots.size):
        tree = Tree(cells, bodies, expansions, tables)
        descend(part, roots[part], walk, (binomials, opening), tree, output)


@linked_inline_with_arrays
def descend(part, root, walk, method, tree, output):
    """Sum the forces below root number `part`; `method` are binomials and opening."""
    capacity = walk.capacity
    waiting = np.empty((LEVELS, capacity), np.int32)  # sources left to the cells of a level
    waits = np.zeros(LEVELS, np.int64)
    far = np.empty(capacity + TESTS, np.int32)
    near = np.empty(capacity, np.int32)
    stack = np.empty(8 * LEVELS, np.int32)
    marking = walk.wanted == CELLS
    marks = (marking, output.opened)
    top = tree.cells.level[root]
    waiting[top, 0] = 0
    waits[top] = 1
    if not marking:
        for k in range(tree.tables.orders.size):
            tree.expansions.local[root, k] = 0
    stack[0] = root
    height = 1
    while height > 0:
        height -= 1
        cell = stack[height]
        level = tree.cells.level[cell]
        numbers = (waits[level], capacity)
        found = find_sources(cell, numbers, method, tree, waiting, (far, near), marks)
        distant, nearby, left, end = found
        waits[level + 1] = left
        output.ends[part] = end
        if end != DONE:
            return
        if marking:
            if left > 0:
                height = push_children(cell, tree, stack, height)
            continue
        add_far_field(cell, distant, far, method, tree)
        output.costs[part] += distant * walk.cost_of_expansion
        if tree.cells.children[cell] == 0:
            output.costs[part] += pairs_of(cell, near[:nearby], tree)
            evaluate(cell, walk.wanted == POTENTIALS, tree, output.sums)
            add_nearby_leaves(cell, near[:nearby], walk, method[1], tree, output.sums)
        if tree.cells.children[cell] > 0:
            shift_to_children(cell, tree)
        height = push_children(cell, tree, stack, height)


@linked_inline
def push_children(cell, tree, stack, height):
    """Put the children of a cell on a stack of some height; return the height afterwards."""
    first = tree.cells.child[cell]
    for child in range(first, first + tree.cells.children[cell]):
        stack[height] = child
        height += 1
    return height


@linked_inline_with_arrays
def find_sources(cell, numbers, method, tree, waiting, lists, marks):
    """Sort sources into those seen as a whole, nearby leaves, and those left to the children.

    Parameters
    ----------
    cell : int
        The target.
    numbers : tuple of int
        The number of sources, and the capacity of every list.
    method : tuple
        Binomials and opening.
    tree : Tree
    waiting : (levels, capacity) array of int32
        The sources left to the cells of each level. What is opened is appended to the row of this
        cell's level; the next one is filled.
    lists : tuple of array of int32
        For sources seen as a whole, and for nearby leaves.
    marks : tuple
        Whether cells that are opened, and nearby leaves, are marked; and the array for that. What
        is not here is passed over then.

    Returns
    -------
    distant, nearby, left : int
        The number of each kind.
    end : int
        `DONE`, or why not.
    """
    number, capacity = numbers
    binomials, opening = method
    far, near = lists
    marking, opened = marks
    is_leaf = tree.cells.children[cell] == 0
    level = tree.cells.level[cell]
    target = (
        address_at(tree.expansions.centre, 4 * cell),
        tree.expansions.summary[cell, RADIUS],
        tree.expansions.summary[cell, EDGE],
        np.float32(opening.error * tree.expansions.tolerance[cell]),
        np.float32(opening.angle),
        np.float32(opening.hopeless),
        np.float32(opening.eps2),
    )
    centre = address_at(tree.expansions.centre, 0)
    summary = address_at(tree.expansions.summary, 0)
    some = carray(allocate_vectors(np.int32, TESTS), TESTS)
    distant = 0
    nearby = 0
    left = 0
    start = 0
    while start < number:
        count = min(TESTS, number - start)
        for k in range(TESTS):
            some[k] = unmarked(waiting[level, start + min(k, count - 1)])
        mask = accepted(binomials, centre, summary, address_of(some), target)
        first = start
        start += count
        if max(distant, nearby, left, number) + 8 * TESTS > capacity:
            return distant, nearby, left, TOO_SHORT
        for k in range(count):
            source = some[k]
            one_by_one = waiting[level, first + k] < 0
            hopeless = mask >> (TESTS + k) & 1
            if mask >> k & 1 and not one_by_one and not overlap(cell, source, tree):
                far[distant] = source
                distant += 1
            elif tree.cells.children[source] == 0:
                if is_leaf and marking:
                    opened[source] = True
                elif is_leaf and tree.cells.first[source] < 0:
                    return distant, nearby, left, MISSING
                elif is_leaf:
                    near[nearby] = source
                    nearby += 1
                else:
                    waiting[level + 1, left] = source
                    left += 1
            elif not is_leaf and (hopeless or tree.cells.level[source] > level):
                waiting[level + 1, left] = source
                left += 1
            else:
                child = tree.cells.child[source]
                if marking:
                    opened[source] = True
                    if child < 0:
                        continue
                if child < 0:
                    return distant, nearby, left, MISSING
                for part in range(child, child + tree.cells.children[source]):
                    waiting[level, number] = marked(part) if hopeless or one_by_one else part
                    number += 1
    return distant, nearby, left, DONE


@linked_inline
def marked(source):
    """Return a source marked as one whose bodies are to be met one by one."""
    return -1 - source


@linked_inline
def unmarked(source):
    """Return a source without such a mark, if it has one."""
    return max(source, -1 - source)


@linked_inline
def pairs_of(leaf, near, tree):
    """Return the number of pairs of a leaf's bodies with those of nearby leaves."""
    sources = 0
    for source in near:
        sources += tree.cells.last[source] - tree.cells.first[source]
    return sources * (tree.cells.last[leaf] - tree.cells.first[leaf])


@linked_inline_with_arrays
def add_nearby_leaves(leaf, near, walk, opening, tree, result):
    """Add what nearby leaves do to a leaf's bodies, in float32 where that is exact enough."""
    allowed = opening.error * tree.expansions.tolerance[leaf]
    potentials = walk.wanted == POTENTIALS
    in_double = walk.pairs == DOUBLE
    if walk.pairs == EITHER:
        in_double = rounding_of_forces_counts(near, allowed, opening.eps2, tree)
    if in_double:
        row = carray(allocate_vectors(np.float64, ROW), ROW)
        add_near_field(leaf, near, Law(potentials, opening.eps2, False), row, tree, result)
    else:
        exact = walk.pairs == MIXED or rounding_of_offsets_counts(
            leaf, near, allowed, opening.eps2, tree
        )
        row_of_float32 = carray(allocate_vectors(np.float32, ROW), ROW)
        law = Law(potentials, opening.eps2, exact)
        add_near_field(leaf, near, law, row_of_float32, tree, result)


@linked_inline
def rounding_of_forces_counts(near, allowed, eps2, tree):
    """Return whether the rounding of forces of nearby bodies to float32 could count.

    That of a body of mass m is at most ``2 / sqrt(27) m / eps^2``. Several can be that near.
    """
    largest = 0.0
    for source in near:
        for i in range(tree.cells.first[source], tree.cells.last[source]):
            largest = max(largest, tree.bodies.columns[MASS, i])
    return SEVERAL * 2.0**-24 * 2 / np.sqrt(27.0) * largest > allowed * eps2


@linked_inline
def rounding_of_offsets_counts(leaf, near, allowed, eps2, tree):
    """Return whether the rounding of offsets to float32 could count in forces of nearby leaves.

    An offset is off by the rounding of its distance from the centre of its leaf, and the force of a
    body of mass m then by at most ``m / eps^3`` times that. Without softening two bodies could be
    at one place where they are not, however large an error is allowed.
    """
    if eps2 == 0:
        return True
    radius = tree.expansions.summary[leaf, RADIUS]
    largest = 0.0
    for source in near:
        mass = tree.expansions.multipole[row_of(source, tree)]
        distance = radius + tree.expansions.summary[source, RADIUS]
        largest = max(largest, np.float64(mass) * np.float64(distance))
    return largest * 2.0**-24 > allowed * eps2**1.5


@linked_inline
def overlap(cell, source, tree):
    """Return whether two cells have bodies in common, which must not meet themselves.

    With softening, cells that are smaller than it are accepted at any distance.
    """
    first = tree.cells.first
    last = tree.cells.last
    return first[source] < last[cell] and first[cell] < last[source]


@linked_inline_with_arrays
def add_far_field(cell, distant, far, method, tree):
    """Add the expansions of distant sources to that of a cell."""
    binomials, opening = method
    terms = tree.tables.orders.size
    moments = allocate_vectors(np.float32, VECTORS_OF_TERMS)
    derivatives = allocate_vectors(np.float32, VECTORS_OF_TERMS)
    sums = carray(allocate_vectors(np.float32, VECTORS_OF_TERMS), VECTORS_OF_TERMS)
    leading = carray(allocate_vectors(np.float64, LEADING_VECTORS), LEADING_VECTORS)
    sums[: terms * TRANSLATED] = 0
    leading[:] = 0
    edge = np.float64(tree.expansions.summary[cell, EDGE])
    target = (address_at(tree.expansions.centre, 4 * cell), edge, opening.eps2)
    scratch = (moments, derivatives, address_of(sums), address_of(leading))
    centre = address_at(tree.expansions.centre, 0)
    summary = address_at(tree.expansions.summary, 0)
    multipole = address_of(tree.expansions.multipole)
    nothing = tree.cells.first.size  # the row behind the last cell
    far[distant : distant + TRANSLATED] = nothing
    for start in range(0, distant, TRANSLATED):
        translate(binomials, multipole, centre, summary, address_at(far, start), target, scratch)
    add_sums(cell, terms, TRANSLATED, sums, tree)
    add_sums(cell, LEADING_TERMS, DOUBLE_LANES, leading, tree)


@linked_inline
def add_sums(cell, terms, lanes, sums, tree):
    """Add the lanes of each term to the expansion of a cell."""
    for k in range(terms):
        total = 0.0
        for lane in range(lanes):
            total += np.float64(sums[k * lanes + lane])
        tree.expansions.local[cell, k] += total
