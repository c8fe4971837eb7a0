"""Red-black iterations of the linear systems on CPU threads.

No operation is contracted or reordered: in whatever blocks of planes the cells are computed, each
gets the same bits.
"""

from typing import Any, NamedTuple

import numpy as np

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
from hybrid_nbody.backends.threads import each_on_threads, on_threads
from hybrid_nbody.fluid.kernels.cpu.layout import (
    block_bounds,
    compiled_with_threads,
    first_column,
    inlined,
    linked,
    linked_with_arrays,
)
from hybrid_nbody.fluid.kernels.cpu.residual import (
    System,
    fill_ends,
    residual_of_cells,
    rows_around,
)

# ---- Sweeps --------------------------------------------------------------------------------------


@inlined
def relax_row(y, rows, first, system, grid, largest):
    """Relax the cells of one colour in a row; return their largest changes, or older ones.

    Parameters
    ----------
    y : int
        The row, counted from the one that `rows` are around: finding out what surrounds a row costs
        as much as a vector.
    rows : Rows
    first : int
        1 if the row starts at x = 1.
    system : System
    grid : Grid
    largest : vector
        The largest changes so far.
    """
    start = y * grid.pitch
    table = first * grid.pitch - start
    for i in range(start, start + grid.pitch, LANES):
        prevent_unrolling()
        cell, residual = residual_of_cells(rows, first, table, i, system)
        change = load(system.tables, rows.factors + table + i) * residual
        largest = maximum(fabs(change), largest)
        store(system.x, rows.own + i, cell + change)
    return largest


@linked
def sweep_plane(colour, z, system, grid):
    """Relax the cells of one colour in a plane; return their largest change."""
    if grid.wraps:
        fill_ends(colour, z, system.x, grid)
    largest = broadcast(type(system.rule.shift)(0))
    for y in (0, grid.rows - 1):
        rows = rows_around(colour, z, y, system.rule, grid)
        first = first_column(colour, z, y, grid)
        largest = relax_row(0, rows, first, system, grid, largest)
    second = np.int64(1)  # for a literal 1, what it is passed to would be compiled once more
    rows = rows_around(colour, z, second, system.rule, grid)
    odd = first_column(colour, z, second, grid)
    for y in range(grid.rows - 2):
        largest = relax_row(y, rows, (odd + y) & 1, system, grid, largest)
    return reduce_max(largest)


@linked
def sweep_and_note(z, colour, system, tolerance, grid, changed):
    """Relax the cells of one colour in a plane; note whether one changed by more than allowed."""
    mode = flush_subnormals()
    changed[z] = sweep_plane(colour, z, system, grid) > tolerance
    restore_subnormals(mode)


@compiled_with_threads
def sweep(colour, x, b, rule, tables, tolerance, grid, changed):
    """Relax the cells of one colour once.

    ``changed[z]`` becomes whether one of plane z changed by more than the tolerance.
    """
    system = System(address_of(x), address_of(b), rule, address_of(tables))
    given = (colour, system, tolerance, grid, changed)
    each_on_threads(sweep_and_note, 1, grid.planes + 1, given)


# ---- Passes --------------------------------------------------------------------------------------
# A pass over the grid does several iterations. Half sweep h of it, h = 0, 1, 2 ..., follows the
# previous one a plane behind, while the planes are in a cache. A block of planes gets as far as it
# can without the others; what is left at its ends, h planes in half sweep h, is done afterwards.

LONGEST_PASS = 4
"""Iterations; beyond that the planes under way do not stay in a cache."""

CHANGES_PITCH = 32
"""Numbers between the largest changes of two blocks: threads that note theirs in the same cache
line wait for each other after every plane, which takes longer the further apart their cores are."""

DOUBT = 4
"""A change may turn out to be within the tolerance though it was expected to be this many times as
large."""


@linked
def sweep_planes(half, start, stop, system, grid):
    """Do a half sweep on planes; return their largest change."""
    change = type(system.rule.shift)(0)
    for z in range(start, stop):
        change = max(change, sweep_plane(half & 1, z, system, grid))
    return change


@linked
def sweep_inside(start, stop, system, changes, grid):
    """Do all half sweeps of a pass on a block of planes but for its ends.

    `changes` become the largest of each iteration.
    """
    changes[:] = 0
    for newest in range(start, stop):
        for half in range(2 * changes.size):
            z = newest - half
            if start + half <= z < stop - half:
                change = sweep_plane(half & 1, z, system, grid)
                changes[half // 2] = max(changes[half // 2], change)


@linked
def sweep_ends(half, start, stop, system, grid):
    """Do what is left of a half sweep at the ends of a block; return the largest change."""
    middle = min(start + half, stop)
    change = sweep_planes(half, start, middle, system, grid)
    return max(change, sweep_planes(half, max(stop - half, middle), stop, system, grid))


@linked
def sweep_blocks(first, last, x, b, rule, tables, changes, grid):
    """Do a pass on blocks but for their ends; `changes` of them become the largest."""
    system = System(address_of(x), address_of(b), rule, address_of(tables))
    for block in range(first, last):
        mode = flush_subnormals()
        start, stop = block_bounds(block, changes.shape[0], grid)
        sweep_inside(start, stop, system, changes[block], grid)
        restore_subnormals(mode)


@linked
def sweep_ends_of_blocks(first, last, half, x, b, rule, tables, changes, grid):
    """Do what is left of a half sweep at the ends of blocks."""
    system = System(address_of(x), address_of(b), rule, address_of(tables))
    for block in range(first, last):
        mode = flush_subnormals()
        start, stop = block_bounds(block, changes.shape[0], grid)
        change = sweep_ends(half, start, stop, system, grid)
        changes[block, half // 2] = max(changes[block, half // 2], change)
        restore_subnormals(mode)


@linked
def run_pass(x, b, rule, tables, changes, grid):
    """Do a pass; `changes`, (blocks, iterations), become the largest of each."""
    blocks, count = changes.shape
    on_threads(sweep_blocks, 0, blocks, (x, b, rule, tables, changes, grid))
    for half in range(1, 2 * count):
        given = (half, x, b, rule, tables, changes, grid)
        on_threads(sweep_ends_of_blocks, 0, blocks, given)


@linked_with_arrays
def iterations_needed(changes, tolerance):
    """Return the number of iterations up to the first that met the tolerance, or 0."""
    for number in range(changes.shape[1]):
        if not changes[:, number].max() > tolerance:
            return number + 1
    return 0


@linked
def length_of_pass(change, before, tolerance, most):
    """Return a number of iterations that will hardly meet the tolerance before the last of them.

    It is estimated from the last two changes.
    """
    if tolerance < 0:
        return most
    length = 1
    rate = change / before if before > 0 else type(change)(0)
    expected = change * rate
    while length < most and expected > DOUBT * tolerance:
        length = length + 1
        expected = expected * rate
    return length


@linked
def copy_planes(first, last, source, target, size):
    """Copy some planes of some numbers each."""
    for number in range(first * size, last * size):
        target[number] = source[number]


@compiled_with_threads
def copy(source, target, grid):
    """Copy the planes of either colour."""
    planes = 2 * (grid.planes + 2)
    on_threads(copy_planes, 0, planes, (source, target, grid.rows * grid.pitch))


class Scratch(NamedTuple):
    """The workspace of a solve in passes.

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
    kept: Any
    blocks: int


@linked
def repeat(system, iterations, kept, changes, grid):
    """Do iterations from the first guess that was kept."""
    x, b, rule, tables = system
    copy(kept, x, grid)
    for done in range(0, iterations, LONGEST_PASS):
        length = min(LONGEST_PASS, iterations - done)
        run_pass(x, b, rule, tables, changes[:, :length], grid)


@compiled_with_threads
def relax(system, iterations, tolerance, scratch, grid):
    """Do red-black iterations up to the first that meets the tolerance; return their number.

    Parameters
    ----------
    system : System
        Of flat arrays, of a slab that holds all planes.
    iterations : int
        Most iterations.
    tolerance : float
        In units of x; if it is less than 0 nothing meets it.
    scratch : Scratch
    grid : Grid
        The slab.
    """
    x, b, rule, tables = system
    longest, kept, blocks = scratch
    if tolerance >= 0 and longest > 1:
        copy(x, kept, grid)
    done = 0
    change = x.dtype.type(0)
    before = x.dtype.type(0)
    changes_of_blocks = np.empty((blocks, CHANGES_PITCH), x.dtype)
    while done < iterations:
        length = length_of_pass(change, before, tolerance, min(longest, iterations - done))
        changes = changes_of_blocks[:, :length]
        run_pass(x, b, rule, tables, changes, grid)
        needed = iterations_needed(changes, tolerance)
        if 0 < needed < length:
            repeat(system, done + needed, kept, changes_of_blocks, grid)
        if needed > 0:
            return done + needed
        before = changes[:, length - 2].max() if length > 1 else change
        done = done + length
        change = changes[:, length - 1].max()
    return iterations
