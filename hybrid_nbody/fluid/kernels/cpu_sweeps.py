"""Iterations of the linear systems on CPU threads.

No operation is contracted or reordered: in whatever blocks of planes the cells are computed, each gets the same bits.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from hybrid_nbody.fluid.kernels.cpu_rows import (
    bounds_of,
    compiled,
    compiled_parallel,
    inlined,
    place_of,
    shift_of,
)
from hybrid_nbody.fluid.kernels.cpu_vectors import (
    LANES,
    keep_rolled,
    larger,
    largest_number,
    load,
    magnitude,
    spread,
    store,
)


class Rule(NamedTuple):
    """A stencil in the working type.

    Attributes
    ----------
    own, neighbour : float
        See `hybrid_nbody.fluid.stencil.Stencil`.
    sign_x, sign_y, sign_z : float
        Its parity.
    """

    own: float
    neighbour: float
    sign_x: float
    sign_y: float
    sign_z: float


# ---- What surrounds a row --------------------------------------------------------------------------------------------


@inlined
def fill_ends(colour, z, x, sign, grid):
    """Store, in the padding of the other colour, the neighbours that the rows of a plane have behind their ends.

    Not row by row: a vector that is loaded from where a number was stored just before has to wait.
    """
    for y in range(grid.rows):
        own, other = place_of(colour, z, y, grid), place_of(1 - colour, z, y, grid)
        shift = shift_of(colour, z, y, grid)
        count, others = (grid.columns - shift + 1) // 2, (grid.columns + shift) // 2
        if shift == 0:
            x[other - 1] = x[other + others - 1] if grid.wraps else sign * x[own]
        if (grid.columns - shift) & 1:
            x[other + others] = x[other] if grid.wraps else sign * x[own + count - 1]


@inlined
def beside(own, other, distance, sign):
    """Return place and sign of a row at a distance from one of the other colour; a wall, at none, mirrors its own."""
    return (own, sign) if distance == 0 else (other + distance, sign * sign)


@inlined
def rows_around(colour, z, y, rule, grid):
    """Return the places of a row, of the other colour's row beside it, and of those around, these with their signs."""
    own, other = place_of(colour, z, y, grid), place_of(1 - colour, z, y, grid)
    size = grid.rows * grid.pitch
    front = beside(own, other, (grid.front[y] - y) * grid.pitch, rule.sign_y)
    back = beside(own, other, (grid.back[y] - y) * grid.pitch, rule.sign_y)
    below = beside(own, other, (grid.below[z] - z) * size, rule.sign_z)
    above = beside(own, other, (grid.above[z] - z) * size, rule.sign_z)
    return own, other, (front, back, below, above)


@inlined
def missing_in(own, other, around, shift, c, x, b, rule):
    """Return LANES cells of a row, and what their equations lack: b - own * x + neighbour * (sum - 6 x)."""
    (front, front_sign), (back, back_sign), (below, below_sign), (above, above_sign) = around
    cell, start = load(x, own + c), other + shift + c
    x_part = load(x, start - 1) + load(x, start)
    y_part = spread(front_sign) * load(x, front + c) + spread(back_sign) * load(x, back + c)
    z_part = spread(below_sign) * load(x, below + c) + spread(above_sign) * load(x, above + c)
    left, six = load(b, own + c) - spread(rule.own) * cell, spread(type(rule.own)(6))
    return cell, left + spread(rule.neighbour) * (((x_part + y_part) + z_part) - six * cell)


# ---- Sweeps ----------------------------------------------------------------------------------------------------------


@inlined
def relax_row(own, other, around, shift, x, b, rule, factors, kind, pitch, largest):
    """Relax the cells of one colour in a row; return their largest changes, or older ones.

    Parameters
    ----------
    own, other, around : int, int, tuple
        From `rows_around`.
    shift : int
        1 if the row starts at x = 1.
    kind : int
        Where the factors of its kind start.
    """
    for c in range(0, pitch, LANES):
        keep_rolled()
        cell, missing = missing_in(own, other, around, shift, c, x, b, rule)
        change = load(factors, kind + shift * pitch + c) * missing
        largest = larger(magnitude(change), largest)
        store(x, own + c, cell + change)
    return largest


@inlined
def factors_at(z, y, grid):
    """Return where the factors of a row start: see `relax`."""
    at_y, at_z = (grid.front[y] == y) | (grid.back[y] == y), (grid.below[z] == z) | (grid.above[z] == z)
    return (2 * at_y + 4 * at_z) * grid.pitch


@inlined
def further(around, step):
    """Return the rows around one that lies further by `step` places, with their signs."""
    (front, front_sign), (back, back_sign), (below, below_sign), (above, above_sign) = around
    return (front + step, front_sign), (back + step, back_sign), (below + step, below_sign), (above + step, above_sign)


@compiled
def sweep_outermost_row(colour, z, y, x, b, rule, factors, grid):
    """Relax the cells of one colour in a row beside which may be a wall; as `sweep_plane`."""
    rows, shift, kind = rows_around(colour, z, y, rule, grid), shift_of(colour, z, y, grid), factors_at(z, y, grid)
    return largest_number(relax_row(*rows, shift, x, b, rule, factors, kind, grid.pitch, spread(x.dtype.type(0))))


@compiled
def sweep_plane(colour, z, x, b, rule, factors, grid):
    """Relax the cells of one colour in a plane; return their largest change."""
    fill_ends(colour, z, x, rule.sign_x, grid)
    change = sweep_outermost_row(colour, z, 0, x, b, rule, factors, grid)
    change = max(change, sweep_outermost_row(colour, z, grid.rows - 1, x, b, rule, factors, grid))
    own, other, around = rows_around(colour, z, 1, rule, grid)
    largest, odd, kind = spread(x.dtype.type(0)), shift_of(colour, z, 1, grid), factors_at(z, 1, grid)
    for y in range(grid.rows - 2):
        step, shift = y * grid.pitch, (odd + y) & 1
        rows = own + step, other + step, further(around, step)
        largest = relax_row(*rows, shift, x, b, rule, factors, kind, grid.pitch, largest)
    return max(change, largest_number(largest))


# ---- Passes ----------------------------------------------------------------------------------------------------------
# A pass over the grid does several iterations. Half sweep h of it, h = 0, 1, 2 ..., follows the one before a plane
# behind, while the planes are in a cache. A block of planes gets as far as it can without the others; what is left at
# its ends, h planes in half sweep h, is done afterwards.

LONGEST_PASS = 4
"""Iterations; beyond that the planes under way do not stay in a cache."""

DOUBT = 4
"""A change that is expected to be so many times the tolerance may turn out to be within it."""


@compiled
def sweep_planes(half, first, end, x, b, rule, factors, changes, grid):
    """Do a half sweep on planes; note their largest change by iteration."""
    for z in range(first, end):
        change = sweep_plane(half & 1, z, x, b, rule, factors, grid)
        changes[half // 2] = max(changes[half // 2], change)


@compiled
def sweep_inside(start, stop, x, b, rule, factors, changes, grid):
    """Do all half sweeps of a pass on a block of planes, but for its ends."""
    changes[:] = 0
    for newest in range(start, stop):
        for half in range(2 * changes.size):
            z = newest - half
            if start + half <= z < stop - half:
                sweep_planes(half, z, z + 1, x, b, rule, factors, changes, grid)


@compiled
def sweep_ends(half, start, stop, x, b, rule, factors, changes, grid):
    """Do what is left of a half sweep at the ends of a block of planes."""
    middle = min(start + half, stop)
    sweep_planes(half, start, middle, x, b, rule, factors, changes, grid)
    sweep_planes(half, max(stop - half, middle), stop, x, b, rule, factors, changes, grid)


@compiled_parallel
def iterate(x, b, rule, factors, changes, grid):
    """Do a pass of iterations; `changes`, (blocks, iterations), become the largest of each block in each iteration."""
    blocks, count = changes.shape
    for block in prange(blocks):
        start, stop = bounds_of(block, blocks, grid)
        sweep_inside(start, stop, x, b, rule, factors, changes[block], grid)
    for half in range(1, 2 * count):
        for block in prange(blocks):
            start, stop = bounds_of(block, blocks, grid)
            sweep_ends(half, start, stop, x, b, rule, factors, changes[block], grid)


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
    length, rate = 1, change / before if before > 0 else type(change)(0)
    expected = change * rate
    while length < most and expected > DOUBT * tolerance:
        length, expected = length + 1, expected * rate
    return length


@compiled_parallel
def copy(source, target, grid):
    """Copy the planes of either colour."""
    size = grid.rows * grid.pitch
    for z in prange(2 * (grid.planes + 2)):
        target[z * size : (z + 1) * size] = source[z * size : (z + 1) * size]


@compiled
def repeat(x, b, rule, factors, iterations, kept, blocks, grid):
    """Do so many iterations from the first guess that was kept."""
    copy(kept, x, grid)
    for done in range(0, iterations, LONGEST_PASS):
        iterate(x, b, rule, factors, np.empty((blocks, min(LONGEST_PASS, iterations - done)), x.dtype), grid)


@compiled
def relax(x, b, rule, factors, iterations, tolerance, longest, kept, blocks, grid):
    """Do red-black iterations until no cell changes by more than the tolerance; return how many were done.

    Parameters
    ----------
    x, b : flat array
        Unknowns and right-hand side, both colours, of a slab that holds all planes.
    rule : Rule
        The stencil.
    factors : flat array
        What a cell changes by, over what its equation lacks, (2, 2, 2, pitch): by whether walls of z and of y are
        beside it, and whether its row starts at x = 0 or 1; 0 for padding.
    iterations : int
        Most iterations.
    tolerance : float
        In units of x; if it is less than 0 nothing meets it.
    longest : int
        Most iterations of a pass.
    kept : flat array
        Room for x, to come back to if a pass did too many iterations.
    blocks : int
        Blocks of planes, one for a thread.
    grid : Grid
        The slab.
    """
    if tolerance >= 0 and longest > 1:
        copy(x, kept, grid)
    done, change, before, room = 0, x.dtype.type(0), x.dtype.type(0), np.empty(blocks * longest, x.dtype)
    while done < iterations:
        length = length_of_pass(change, before, tolerance, min(longest, iterations - done))
        changes = room[: blocks * length].reshape(blocks, length)
        iterate(x, b, rule, factors, changes, grid)
        met = needed(changes, tolerance)
        if 0 < met < length:
            repeat(x, b, rule, factors, done + met, kept, blocks, grid)
        if met > 0:
            return done + met
        before = changes[:, length - 2].max() if length > 1 else change
        done, change = done + length, changes[:, length - 1].max()
    return iterations


@compiled_parallel
def sweep(colour, x, b, rule, factors, tolerance, grid):
    """Relax the cells of one colour once; return whether one changed by more than the tolerance."""
    moved = 0
    for z in prange(1, grid.planes + 1):
        moved += sweep_plane(colour, z, x, b, rule, factors, grid) > tolerance
    return moved > 0


@compiled
def missing_in_plane(colour, z, x, b, rule, cells, grid):
    """Return the largest residual of the cells of one colour in a plane."""
    fill_ends(colour, z, x, rule.sign_x, grid)
    largest = spread(x.dtype.type(0))
    for y in range(grid.rows):
        rows, shift = rows_around(colour, z, y, rule, grid), shift_of(colour, z, y, grid)
        for c in range(0, grid.pitch, LANES):
            _, missing = missing_in(*rows, shift, c, x, b, rule)
            largest = larger(magnitude(load(cells, shift * grid.pitch + c) * missing), largest)
    return largest_number(largest)


@compiled_parallel
def largest_missing(x, b, rule, cells, grid):
    """Return the largest residual of a slab; `cells`, (2, pitch), are 1, and 0 for padding."""
    result = np.zeros(grid.planes + 2, x.dtype)
    for z in prange(1, grid.planes + 1):
        first = missing_in_plane(0, z, x, b, rule, cells, grid)
        result[z] = max(first, missing_in_plane(1, z, x, b, rule, cells, grid))
    return result.max()


@compiled
def largest_in_plane(colour, z, b, cells, grid):
    """Return the largest absolute value of the cells of one colour in a plane."""
    largest = spread(b.dtype.type(0))
    for y in range(grid.rows):
        row, real = place_of(colour, z, y, grid), shift_of(colour, z, y, grid) * grid.pitch
        for c in range(0, grid.pitch, LANES):
            largest = larger(magnitude(load(cells, real + c) * load(b, row + c)), largest)
    return largest_number(largest)


@compiled_parallel
def largest_cell(b, cells, grid):
    """Return the largest absolute value of a slab, by colour; `cells` as in `largest_missing`."""
    result = np.zeros(grid.planes + 2, b.dtype)
    for z in prange(1, grid.planes + 1):
        result[z] = max(largest_in_plane(0, z, b, cells, grid), largest_in_plane(1, z, b, cells, grid))
    return result.max()


# ---- In the order of memory ------------------------------------------------------------------------------------------


@compiled
def relax_in_order(x, b, rule, diagonal, iterations, grid):
    """Do lexicographic Gauss-Seidel iterations on fields: cells in the order of memory, one after another.

    What lies behind an end of an axis, mirrored or wrapped, is as it was before the iteration.
    """
    for _ in range(iterations):
        before = x.copy()
        for z in range(1, grid.planes + 1):
            for y in range(grid.rows):
                relax_row_in_order(z, y, x, before, b, rule, diagonal, grid)


@compiled
def relax_row_in_order(z, y, x, before, b, rule, diagonal, grid):
    """Renew the cells of a row one after another."""
    last = grid.columns - 1
    fronts, belows = grid.front[y], grid.below[z]
    backs, aboves = grid.back[y], grid.above[z]
    for c in range(grid.columns):
        left = c - 1 if c > 0 else (last if grid.wraps else c)
        right = c + 1 if c < last else (0 if grid.wraps else c)
        total = value_at(x, before, z, y, left, left - c, -1, rule.sign_x)
        total += value_at(x, before, z, y, right, right - c, 1, rule.sign_x)
        total += value_at(x, before, z, fronts, c, fronts - y, -1, rule.sign_y)
        total += value_at(x, before, z, backs, c, backs - y, 1, rule.sign_y)
        total += value_at(x, before, belows, y, c, belows - z, -1, rule.sign_z)
        total += value_at(x, before, aboves, y, c, aboves - z, 1, rule.sign_z)
        x[z, y, c] = (b[z, y, c] + rule.neighbour * total) / diagonal


@inlined
def value_at(x, before, z, y, c, distance, expected, sign):
    """Return a neighbour's value: the present one, unless an end of the axis lies between."""
    if distance == expected:
        return x[z, y, c]
    return sign * before[z, y, c] if distance == 0 else before[z, y, c]
