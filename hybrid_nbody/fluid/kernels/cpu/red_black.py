"""Iterations of the linear systems on CPU threads.

No operation is contracted or reordered: in whatever blocks of planes the cells are computed, each
gets the same bits. What is called for every plane gets addresses, not arrays.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from hybrid_nbody.backends.simd import (
    LANES,
    address_of,
    broadcast,
    fabs,
    load,
    maximum,
    prevent_unrolling,
    reduce_max,
    store,
)
from hybrid_nbody.backends.subnormals import flush_subnormals, restore_subnormals
from hybrid_nbody.fluid.kernels.cpu.layout import (
    bounds_of,
    compiled,
    compiled_parallel,
    inlined,
    shift_of,
)
from hybrid_nbody.fluid.kernels.cpu.residual import fill_ends, kind_of, missing_in, rows_around

# ---- Sweeps --------------------------------------------------------------------------------------


@inlined
def relax_row(y, rows, shift, kind, x, b, rule, tables, grid, largest):
    """Relax the cells of one colour in a row; return their largest changes, or older ones.

    Parameters
    ----------
    y : int
        The row, counted from the one that `rows` are around: what is found out for a row costs as
        much as a vector.
    rows : tuple
        From `rows_around`.
    shift : int
        1 if the row starts at x = 1.
    kind : int
        Where the factors of its kind start, behind those of rows from x = 0.
    """
    start = y * grid.pitch
    table = shift * grid.pitch - start
    for i in range(start, start + grid.pitch, LANES):
        prevent_unrolling()
        cell, missing = missing_in(rows, shift, table, i, x, b, rule, tables)
        change = load(tables, kind + table + i) * missing
        largest = maximum(fabs(change), largest)
        store(x, rows[0] + i, cell + change)
    return largest


@compiled
def sweep_plane(colour, z, x, b, rule, tables, grid):
    """Relax the cells of one colour in a plane; return their largest change."""
    if grid.wraps:
        fill_ends(colour, z, x, grid)
    largest = broadcast(type(rule.shift)(0))
    for y in (0, grid.rows - 1):
        rows = rows_around(colour, z, y, rule, grid)
        shift = shift_of(colour, z, y, grid)
        kind = kind_of(z, y, grid)
        largest = relax_row(0, rows, shift, kind, x, b, rule, tables, grid, largest)
    rows = rows_around(colour, z, 1, rule, grid)
    odd = shift_of(colour, z, 1, grid)
    kind = kind_of(z, 1, grid)
    for y in range(grid.rows - 2):
        largest = relax_row(y, rows, (odd + y) & 1, kind, x, b, rule, tables, grid, largest)
    return reduce_max(largest)


# ---- Passes --------------------------------------------------------------------------------------
# A pass over the grid does several iterations. Half sweep h of it, h = 0, 1, 2 ..., follows the one
# before a plane behind, while the planes are in a cache. A block of planes gets as far as it can
# without the others; what is left at its ends, h planes in half sweep h, is done afterwards.

LONGEST_PASS = 4
"""Iterations; beyond that the planes under way do not stay in a cache."""

APART = 32
"""Numbers between the largest changes of two blocks: threads that note theirs in the same line of a
cache wait for each other after every plane, which takes longer the further apart their cores
are."""

DOUBT = 4
"""A change that is expected to be so many times the tolerance may turn out to be within it."""


@compiled
def sweep_planes(half, first, end, x, b, rule, tables, grid):
    """Do a half sweep on planes; return their largest change."""
    change = type(rule.shift)(0)
    for z in range(first, end):
        change = max(change, sweep_plane(half & 1, z, x, b, rule, tables, grid))
    return change


@compiled
def sweep_inside(start, stop, x, b, rule, tables, changes, grid):
    """Do all half sweeps of a pass on a block of planes, but for its ends; note the largest change by iteration."""
    changes[:] = 0
    for newest in range(start, stop):
        for half in range(2 * changes.size):
            z = newest - half
            if start + half <= z < stop - half:
                change = sweep_plane(half & 1, z, x, b, rule, tables, grid)
                changes[half // 2] = max(changes[half // 2], change)


@compiled
def sweep_ends(half, start, stop, x, b, rule, tables, grid):
    """Do what is left of a half sweep at the ends of a block of planes; return the largest change."""
    middle = min(start + half, stop)
    change = sweep_planes(half, start, middle, x, b, rule, tables, grid)
    return max(change, sweep_planes(half, max(stop - half, middle), stop, x, b, rule, tables, grid))


@compiled_parallel
def iterate(x, b, rule, tables, changes, grid):
    """Do a pass of iterations; `changes`, (blocks, iterations), become the largest of each block in each iteration."""
    blocks, count = changes.shape
    for block in prange(blocks):
        mode = flush_subnormals()
        start, stop = bounds_of(block, blocks, grid)
        system = address_of(x), address_of(b), rule, address_of(tables)
        sweep_inside(start, stop, *system, changes[block], grid)
        restore_subnormals(mode)
    for half in range(1, 2 * count):
        for block in prange(blocks):
            mode = flush_subnormals()
            start, stop = bounds_of(block, blocks, grid)
            system = address_of(x), address_of(b), rule, address_of(tables)
            change = sweep_ends(half, start, stop, *system, grid)
            changes[block, half // 2] = max(changes[block, half // 2], change)
            restore_subnormals(mode)


@compiled
def needed(changes, tolerance):
    """Return the iterations of a pass up to the first that changed no cell by more than the tolerance, or 0."""
    for number in range(changes.shape[1]):
        if not changes[:, number].max() > tolerance:
            return number + 1
    return 0


@compiled
def length_of_pass(change, before, tolerance, most):
    """Return how many iterations will hardly meet the tolerance before the last of them, by the last two changes."""
    if tolerance < 0:
        return most
    length = 1
    rate = change / before if before > 0 else type(change)(0)
    expected = change * rate
    while length < most and expected > DOUBT * tolerance:
        length = length + 1
        expected = expected * rate
    return length


@compiled_parallel
def copy(source, target, grid):
    """Copy the planes of either colour."""
    size = grid.rows * grid.pitch
    for z in prange(2 * (grid.planes + 2)):
        target[z * size : (z + 1) * size] = source[z * size : (z + 1) * size]


@compiled
def repeat(x, b, rule, tables, iterations, kept, room, grid):
    """Do so many iterations from the first guess that was kept."""
    copy(kept, x, grid)
    for done in range(0, iterations, LONGEST_PASS):
        iterate(x, b, rule, tables, room[:, : min(LONGEST_PASS, iterations - done)], grid)


class Memory(NamedTuple):
    """What a solve in passes works with.

    Attributes
    ----------
    longest : int
        Most iterations of a pass.
    kept : flat array
        Where the first guess is kept, to come back to if a pass did too many iterations.
    blocks : int
        Blocks of planes, one for each thread.
    """

    longest: int
    kept: np.ndarray
    blocks: int


@compiled
def relax(x, b, rule, tables, iterations, tolerance, memory, grid):
    """Do red-black iterations until no cell changes by more than the tolerance; return how many were done.

    Parameters
    ----------
    x, b : flat array
        Unknowns and right-hand side, both colours, of a slab that holds all planes.
    rule : Rule
        The stencil.
    tables : flat array
        From `layout.tables_of_rows`.
    iterations : int
        Most iterations.
    tolerance : float
        In units of x; if it is less than 0 nothing meets it.
    memory : Memory
    grid : Grid
        The slab.
    """
    longest, kept, blocks = memory
    if tolerance >= 0 and longest > 1:
        copy(x, kept, grid)
    done = 0
    change = x.dtype.type(0)
    before = x.dtype.type(0)
    room = np.empty((blocks, APART), x.dtype)
    while done < iterations:
        length = length_of_pass(change, before, tolerance, min(longest, iterations - done))
        changes = room[:, :length]
        iterate(x, b, rule, tables, changes, grid)
        met = needed(changes, tolerance)
        if 0 < met < length:
            repeat(x, b, rule, tables, done + met, kept, room, grid)
        if met > 0:
            return done + met
        before = changes[:, length - 2].max() if length > 1 else change
        done = done + length
        change = changes[:, length - 1].max()
    return iterations


@compiled_parallel
def sweep(colour, x, b, rule, tables, tolerance, grid):
    """Relax the cells of one colour once; return whether one changed by more than the tolerance."""
    moved = 0
    for z in prange(1, grid.planes + 1):
        mode = flush_subnormals()
        change = sweep_plane(
            colour, z, address_of(x), address_of(b), rule, address_of(tables), grid
        )
        restore_subnormals(mode)
        moved += change > tolerance
    return moved > 0
