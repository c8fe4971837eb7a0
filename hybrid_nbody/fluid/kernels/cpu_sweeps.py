"""Iterations of the linear systems on CPU threads.

No operation is contracted or reordered: whatever vectors and blocks of planes the cells are computed in, each gets the
same bits.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from hybrid_nbody.fluid.kernels.cpu_rows import (
    LANES,
    bounds_of,
    compiled,
    compiled_parallel,
    inlined,
    lanes,
    place_of,
    shift_of,
    window,
    written_out,
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


# ---- The rows around a row -------------------------------------------------------------------------------------------


@inlined
def fill_ends(colour, z, x, sign, grid):
    """Store, in the padding of the other colour, the neighbours that the rows of a plane have behind their ends."""
    for y in range(grid.rows):
        own, other = place_of(colour, z, y, grid), place_of(1 - colour, z, y, grid)
        shift = shift_of(colour, z, y, grid)
        count, others = (grid.columns - shift + 1) // 2, (grid.columns + shift) // 2
        if shift == 0:
            x[other - 1] = x[other + others - 1] if grid.wraps else sign * x[own]
        if (grid.columns - shift) & 1:
            x[other + others] = x[other] if grid.wraps else sign * x[own + count - 1]


@inlined
def rows_around(colour, z, y, sign_y, sign_z, grid):
    """Return places and signs of the rows next to a row, first of the neighbours at x - 1; a wall mirrors the row."""
    one = sign_y * sign_y
    own, other = place_of(colour, z, y, grid), place_of(1 - colour, z, y, grid)
    front, back, below, above = grid.front[y], grid.back[y], grid.below[z], grid.above[z]
    places = (
        other + shift_of(colour, z, y, grid) - 1,
        own if front == y else other + (front - y) * grid.pitch,
        own if back == y else other + (back - y) * grid.pitch,
        own if below == z else other + (below - z) * grid.rows * grid.pitch,
        own if above == z else other + (above - z) * grid.rows * grid.pitch,
    )
    mirrors = (
        sign_y if front == y else one,
        sign_y if back == y else one,
        sign_z if below == z else one,
        sign_z if above == z else one,
    )
    return own, places, mirrors


@inlined
def missing_in(lane, cell, right_side, around, mirrors, rule, six):
    """Return what the equation of a cell lacks: b - own * x + neighbour * (sum - 6 x)."""
    total = around[0][lane] + around[1][lane]
    total += mirrors[0] * around[2][lane] + mirrors[1] * around[3][lane]
    total += mirrors[2] * around[4][lane] + mirrors[3] * around[5][lane]
    return (right_side[lane] - rule.own * cell[lane]) + rule.neighbour * (total - six * cell[lane])


@inlined
def windows_around(x, places, start):
    """Return the neighbours of LANES cells: left, right, front, back, below, above."""
    left, front, back, below, above = places
    return (
        window(x, left + start),
        window(x, left + start + 1),
        window(x, front + start),
        window(x, back + start),
        window(x, below + start),
        window(x, above + start),
    )


# ---- Sweeps ----------------------------------------------------------------------------------------------------------


@written_out
def relax_row(x, b, own, places, mirrors, rule, factors, shift, pitch, largest):
    """Relax the cells of one colour in a row; `largest` keeps the largest change of each lane."""
    new, six = lanes(x.dtype.type), x.dtype.type(6)
    for start in range(0, pitch, LANES):
        cell, right_side, around = window(x, own + start), window(b, own + start), windows_around(x, places, start)
        factor = window(factors, shift * pitch + start)
        for lane in range(LANES):  # stores nothing where x is: it could not be vector code
            change = factor[lane] * missing_in(lane, cell, right_side, around, mirrors, rule, six)
            new[lane] = cell[lane] + change
            largest[lane] = max(largest[lane], abs(change))
        for lane in range(LANES):
            cell[lane] = new[lane]


@inlined
def any_above(largest, tolerance):
    """Return whether one of LANES numbers is larger than the tolerance."""
    above = False
    for lane in range(LANES):
        above |= largest[lane] > tolerance
    return above


@compiled
def sweep_outermost_row(colour, z, y, x, b, rule, factors, tolerance, grid):
    """Relax the cells of one colour in a row of which a neighbour may be a wall; as `sweep_plane`."""
    largest = lanes(x.dtype.type)
    for lane in range(LANES):
        largest[lane] = 0
    own, places, mirrors = rows_around(colour, z, y, rule.sign_y, rule.sign_z, grid)
    relax_row(x, b, own, places, mirrors, rule, factors, shift_of(colour, z, y, grid), grid.pitch, largest)
    return any_above(largest, tolerance)


@compiled
def sweep_plane(colour, z, x, b, rule, factors, tolerance, grid):
    """Relax the cells of one colour in a plane; return whether one changed by more than the tolerance."""
    fill_ends(colour, z, x, rule.sign_x, grid)
    moved = sweep_outermost_row(colour, z, 0, x, b, rule, factors, tolerance, grid)
    moved |= sweep_outermost_row(colour, z, grid.rows - 1, x, b, rule, factors, tolerance, grid)
    largest = lanes(x.dtype.type)
    for lane in range(LANES):
        largest[lane] = 0
    own, (left, front, back, below, above), mirrors = rows_around(colour, z, 1, rule.sign_y, rule.sign_z, grid)
    odd = shift_of(colour, z, 1, grid)
    for y in range(grid.rows - 2):  # the same steps from row to row, but for the first neighbour along x
        shift, step = (odd + y) & 1, y * grid.pitch
        places = left + shift - odd + step, front + step, back + step, below + step, above + step
        relax_row(x, b, own + step, places, mirrors, rule, factors, shift, grid.pitch, largest)
    return moved | any_above(largest, tolerance)


@compiled
def sweep_inner(start, stop, x, b, rule, factors, tolerance, grid):
    """Relax a block of planes, but for the second colour of its outermost planes: others' cells come before them.

    The second colour of a plane follows the first of the next one, while the plane is still in the cache.
    """
    moved = False
    for z in range(start, stop):
        moved |= sweep_plane(0, z, x, b, rule, factors, tolerance, grid)
        if z - 1 > start:
            moved |= sweep_plane(1, z - 1, x, b, rule, factors, tolerance, grid)
    return moved


@compiled
def sweep_outer(start, stop, x, b, rule, factors, tolerance, grid):
    """Relax the second colour of the outermost planes of a block."""
    moved = sweep_plane(1, start, x, b, rule, factors, tolerance, grid)
    if stop - 1 > start:
        moved |= sweep_plane(1, stop - 1, x, b, rule, factors, tolerance, grid)
    return moved


@compiled_parallel
def relax(x, b, rule, factors, iterations, tolerance, blocks, grid):
    """Do red-black iterations until no cell changes by more than the tolerance; return how many were done.

    Parameters
    ----------
    x, b : flat array
        Unknowns and right-hand side, both colours, of a slab that holds all planes.
    rule : Rule
        The stencil.
    factors : (2 pitch,) array
        omega / diagonal for the cells of a row that starts at x = 0, and of one that starts at x = 1; 0 for padding.
    iterations : int
        Most iterations.
    tolerance : float
        In units of x.
    blocks : int
        Blocks of planes, one for a thread.
    grid : Grid
        The slab.
    """
    moved = np.zeros((blocks, 64), np.bool_)  # a cache line for each thread
    for done in range(1, iterations + 1):
        for block in prange(blocks):
            start, stop = bounds_of(block, blocks, grid)
            moved[block, 0] = sweep_inner(start, stop, x, b, rule, factors, tolerance, grid)
        for block in prange(blocks):
            start, stop = bounds_of(block, blocks, grid)
            moved[block, 0] |= sweep_outer(start, stop, x, b, rule, factors, tolerance, grid)
        if not moved[:, 0].any():
            return done
    return iterations


@compiled_parallel
def sweep(colour, x, b, rule, factors, tolerance, grid):
    """Relax the cells of one colour once; return whether one changed by more than the tolerance."""
    moved = 0
    for z in prange(1, grid.planes + 1):
        moved += sweep_plane(colour, z, x, b, rule, factors, tolerance, grid)
    return moved > 0


@compiled
def missing_in_plane(colour, z, x, b, rule, cells, grid):
    """Return the largest residual of the cells of one colour in a plane."""
    kind = x.dtype.type
    largest, six = lanes(kind), kind(6)
    for lane in range(LANES):
        largest[lane] = 0
    fill_ends(colour, z, x, rule.sign_x, grid)
    for y in range(grid.rows):
        own, places, mirrors = rows_around(colour, z, y, rule.sign_y, rule.sign_z, grid)
        for c in range(0, grid.pitch, LANES):
            cell, right_side, around = window(x, own + c), window(b, own + c), windows_around(x, places, c)
            real = window(cells, shift_of(colour, z, y, grid) * grid.pitch + c)
            for lane in range(LANES):
                missing = real[lane] * missing_in(lane, cell, right_side, around, mirrors, rule, six)
                largest[lane] = max(largest[lane], abs(missing))
    return largest.max()


@compiled_parallel
def largest_missing(x, b, rule, cells, grid):
    """Return the largest residual of a slab; `cells` as `factors` in `relax`, with ones."""
    result = np.zeros(grid.planes + 2, x.dtype)
    for z in prange(1, grid.planes + 1):
        first = missing_in_plane(0, z, x, b, rule, cells, grid)
        result[z] = max(first, missing_in_plane(1, z, x, b, rule, cells, grid))
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


@written_out
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
