"""Fields and their two colours on CPU threads."""

import numpy as np
from numba import prange

from hybrid_nbody.fluid.kernels.cpu_rows import bounds_of, compiled, compiled_parallel, inlined, place_of, shift_of


@inlined
def even_and_odd(z, y, grid):
    """Return where the cells x = 0, 2, 4 ... and x = 1, 3, 5 ... of a row start, in the flat array of both colours."""
    even = shift_of(0, z, y, grid)
    return place_of(even, z, y, grid), place_of(1 - even, z, y, grid)


@compiled
def split_row(row, colours, even, odd):
    """Take a row apart."""
    for c in range(row.size // 2):
        colours[even + c] = row[2 * c]
        colours[odd + c] = row[2 * c + 1]
    if row.size & 1:
        colours[even + row.size // 2] = row[row.size - 1]


@compiled
def split_row_sum(row, factor, other, colours, even, odd):
    """Take the sum of a row and a multiple of another one apart."""
    for c in range(row.size // 2):
        colours[even + c] = row[2 * c] + factor * other[2 * c]
        colours[odd + c] = row[2 * c + 1] + factor * other[2 * c + 1]
    if row.size & 1:
        colours[even + row.size // 2] = row[row.size - 1] + factor * other[row.size - 1]


@compiled
def merge_row(colours, even, odd, row):
    """Put a row together."""
    for c in range(row.size // 2):
        row[2 * c] = colours[even + c]
        row[2 * c + 1] = colours[odd + c]
    if row.size & 1:
        row[row.size - 1] = colours[even + row.size // 2]


@compiled
def split_plane(z, field, colours, grid):
    """Take a plane apart."""
    for y in range(grid.rows):
        even, odd = even_and_odd(z, y, grid)
        split_row(field[z, y], colours, even, odd)


@compiled
def split_plane_sum(z, field, factor, other, colours, grid):
    """Take the sum of a plane and a multiple of another one apart."""
    for y in range(grid.rows):
        even, odd = even_and_odd(z, y, grid)
        split_row_sum(field[z, y], factor, other[z, y], colours, even, odd)


@compiled
def merge_plane(z, colours, field, grid):
    """Put a plane together."""
    for y in range(grid.rows):
        even, odd = even_and_odd(z, y, grid)
        merge_row(colours, even, odd, field[z, y])


@compiled
def merge_row_with_ends(p, even, odd, grid, row):
    """Put a row together, with the neighbours of its ends: mirrored or wrapped."""
    merge_row(p, even, odd, row[1:-1])
    row[0], row[-1] = (row[-2], row[1]) if grid.wraps else (row[1], row[-2])


@compiled
def subtract_row(old, after, before, factor):
    """Subtract a multiple of the difference of two rows."""
    for c in range(old.size):
        old[c] -= factor * (after[c] - before[c])


@compiled
def merge_plane_with_ends(z, p, grid, plane):
    """Put a plane together, with the neighbours of its rows' ends."""
    for y in range(grid.rows):
        even, odd = even_and_odd(z, y, grid)
        merge_row_with_ends(p, even, odd, grid, plane[y])


@compiled
def subtract_in_planes(start, stop, u, v, w, p, factor, grid):
    """Subtract the differences of a block of planes, each of which is put together once: three are kept."""
    room = np.empty((3, grid.rows, grid.columns + 2), p.dtype)
    merge_plane_with_ends(grid.below[start], p, grid, room[(start - 1) % 3])
    merge_plane_with_ends(start, p, grid, room[start % 3])
    for z in range(start, stop):
        below, plane, above = room[(z - 1) % 3], room[z % 3], room[(z + 1) % 3]
        merge_plane_with_ends(grid.above[z], p, grid, above)
        for y in range(grid.rows):
            subtract_row(u[z, y], plane[y, 2:], plane[y, :-2], factor)
            subtract_row(v[z, y], plane[grid.back[y], 1:-1], plane[grid.front[y], 1:-1], factor)
            subtract_row(w[z, y], above[y, 1:-1], below[y, 1:-1], factor)


# ---- All planes ------------------------------------------------------------------------------------------------------


@compiled_parallel
def split(field, colours, grid):
    """Store a field by colour; `colours` is flat."""
    for z in prange(1, grid.planes + 1):
        split_plane(z, field, colours, grid)


@compiled_parallel
def split_sum(field, factor, other, colours, grid):
    """Store ``field + factor * other`` by colour."""
    for z in prange(1, grid.planes + 1):
        split_plane_sum(z, field, factor, other, colours, grid)


@compiled_parallel
def merge(colours, field, grid):
    """Fill a field from its colours."""
    for z in prange(1, grid.planes + 1):
        merge_plane(z, colours, field, grid)


@compiled_parallel
def subtract_gradient(u, v, w, p, factor, blocks, grid):
    """Subtract `factor` times the central differences of p, given by colour, from the velocity."""
    for block in prange(blocks):
        start, stop = bounds_of(block, blocks, grid)
        subtract_in_planes(start, stop, u, v, w, p, factor, grid)
