"""Fields and their two colours on CPU threads."""

from numba import prange

from hybrid_nbody.fluid.kernels.cpu_rows import compiled, compiled_parallel, inlined, place_of, shift_of
from hybrid_nbody.fluid.kernels.cpu_sweeps import fill_ends, rows_around


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
def subtract_row(u, v, w, p, shift, places, factor):
    """Subtract the differences of the cells of one colour in a row."""
    for c in range((u.size - shift + 1) // 2):
        x = 2 * c + shift
        u[x] -= factor * (p[places[0] + c + 1] - p[places[0] + c])
        v[x] -= factor * (p[places[2] + c] - p[places[1] + c])
        w[x] -= factor * (p[places[4] + c] - p[places[3] + c])


@compiled
def subtract_in_plane(z, u, v, w, p, factor, grid):
    """Subtract the differences of a plane."""
    one = p.dtype.type(1)
    for colour in range(2):
        fill_ends(colour, z, p, one, grid)
        for y in range(grid.rows):
            _, places, _ = rows_around(colour, z, y, one, one, grid)
            subtract_row(u[z, y], v[z, y], w[z, y], p, shift_of(colour, z, y, grid), places, factor)


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
def subtract_gradient(u, v, w, p, factor, grid):
    """Subtract `factor` times the central differences of p, given by colour, from the velocity."""
    for z in prange(1, grid.planes + 1):
        subtract_in_plane(z, u, v, w, p, factor, grid)
