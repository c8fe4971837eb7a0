"""Fields and their two colours on CPU threads: 2 LANES cells of a row are LANES cells of either colour.

Fields and colours are flat arrays.
"""

from numba import prange

from hybrid_nbody.backends.simd import (
    LANES,
    address_of,
    broadcast,
    even_lanes,
    insert,
    interleave_high,
    interleave_low,
    load,
    load_partial,
    load_scalar,
    odd_lanes,
    prefetch,
    store,
    store_partial,
)
from hybrid_nbody.backends.subnormals import flush_subnormals, restore_subnormals
from hybrid_nbody.fluid.kernels.cpu.boundary import (
    X_HIGH,
    X_LOW,
    Y_HIGH,
    Y_LOW,
    Z_HIGH,
    Z_LOW,
    ghost,
    ghost_vector,
    image_if,
    image_of,
)
from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled,
    compiled_parallel,
    first_column,
    inlined,
    plane_above,
    plane_below,
    row_after,
    row_before,
    row_offset,
)


@inlined
def even_and_odd(z, y, grid):
    """Return where the cells x = 0, 2, 4 ...

    and x = 1, 3, 5 ... of a row start, in the flat array of both colours.
    """
    even = first_column(0, z, y, grid)
    return row_offset(even, z, y, grid), row_offset(1 - even, z, y, grid)


@inlined
def cell_of(z, y, grid):
    """Return where a row of a field starts."""
    return (z * grid.rows + y) * grid.columns


AHEAD = 1024
"""Cells between those that are computed and those that are fetched."""


@inlined
def fetch_ahead(field, place):
    """Let 2 LANES cells come that will soon be needed: processors do not foresee it where vectors are parts."""
    prefetch(field, place + AHEAD)
    prefetch(field, place + AHEAD + LANES)


@inlined
def load_cells(field, place, count):
    """Return 2 LANES cells of a field, of which there are `count`, as two vectors."""
    fetch_ahead(field, place)
    return load_partial(field, place, count), load_partial(field, place + LANES, count - LANES)


@inlined
def store_cells(field, place, count, cells):
    """Store them."""
    store_partial(field, place, cells[0], count)
    store_partial(field, place + LANES, cells[1], count - LANES)


@inlined
def store_apart(colours, even, odd, cells):
    """Store 2 LANES cells by colour, padding and all."""
    store(colours, even, even_lanes(cells[0], cells[1]))
    store(colours, odd, odd_lanes(cells[0], cells[1]))


@inlined
def together(even, odd):
    """Return 2 LANES cells of which either colour is given."""
    return interleave_low(even, odd), interleave_high(even, odd)


@inlined
def clear_around(colours, grid):
    """Store 0 before the first row and after the last one of either colour: halo planes may hold anything."""
    for colour in range(2):
        colours[row_offset(colour, 1, 0, grid) - 1] = colours[
            row_offset(colour, grid.planes + 1, 0, grid)
        ] = 0


@compiled
def split_plane(z, field, colours, grid):
    """Take a plane apart."""
    for y in range(grid.rows):
        (even, odd), row = even_and_odd(z, y, grid), cell_of(z, y, grid)
        for c in range(0, grid.pitch, LANES):
            cells = load_cells(field, row + 2 * c, grid.columns - 2 * c)
            store_apart(colours, even + c, odd + c, cells)


@compiled
def split_carried_plane(z, field, factor, carried, b, x, grid):
    """Take a plane of what is carried over apart, and the sum of another plane and a multiple of it."""
    factors = broadcast(factor)
    for y in range(grid.rows):
        (even, odd), row = even_and_odd(z, y, grid), cell_of(z, y, grid)
        for c in range(0, grid.pitch, LANES):
            place = row + 2 * c
            count = grid.columns - 2 * c
            cells = load_cells(field, place, count)
            more = load_cells(carried, place, count)
            store_apart(
                b, even + c, odd + c, (cells[0] + factors * more[0], cells[1] + factors * more[1])
            )
            store_apart(x, even + c, odd + c, more)


@compiled
def merge_plane(z, colours, field, grid):
    """Put a plane together."""
    for y in range(grid.rows):
        (even, odd), row = even_and_odd(z, y, grid), cell_of(z, y, grid)
        for c in range(0, (grid.columns + 1) // 2, LANES):
            fetch_ahead(field, row + 2 * c)
            cells = together(load(colours, even + c), load(colours, odd + c))
            store_cells(field, row + 2 * c, grid.columns - 2 * c, cells)


# ---- Gradient ------------------------------------------------------------------------------------


@inlined
def slope_along_x(p, even, odd, c, grid):
    """Return the next cell less the previous one, of LANES cells of either colour of a row."""
    last = (grid.columns - 1) // 2
    ends_odd = (grid.columns - 1) & 1
    first_value = load_scalar(p, even)
    last_value = load_scalar(p, (odd if ends_odd else even) + last)
    start, end = (last_value, first_value) if grid.wraps else (first_value, last_value)
    before = insert(load(p, odd + c - 1), -c, start)
    middle = load(p, even + c)
    after = load(p, odd + c)
    behind = load(p, even + c + 1)
    if ends_odd:
        behind = insert(behind, last - c, end)
    else:
        after = insert(after, last - c, end)
    return after - before, behind - middle


@inlined
def slope_between(p, before, after, c):
    """Return the cells of one row less those of another, as `slope_along_x`; both are given by their colours."""
    return load(p, after[0] + c) - load(p, before[0] + c), load(p, after[1] + c) - load(
        p, before[1] + c
    )


@inlined
def subtract(field, place, count, factors, slopes):
    """Subtract multiples of the slopes of either colour from cells."""
    (first, last), cells = together(slopes[0], slopes[1]), load_cells(field, place, count)
    store_cells(field, place, count, (cells[0] - factors * first, cells[1] - factors * last))


@compiled
def subtract_in_plane(z, u, v, w, p, factor, grid):
    """Subtract the differences of p from a plane of the velocity."""
    factors = broadcast(factor)
    for y in range(grid.rows):
        row, (even, odd) = cell_of(z, y, grid), even_and_odd(z, y, grid)
        front = even_and_odd(z, row_before(y, grid), grid)
        back = even_and_odd(z, row_after(y, grid), grid)
        below = even_and_odd(plane_below(z, grid), y, grid)
        above = even_and_odd(plane_above(z, grid), y, grid)
        for c in range(0, (grid.columns + 1) // 2, LANES):
            place = row + 2 * c
            count = grid.columns - 2 * c
            subtract(u, place, count, factors, slope_along_x(p, even, odd, c, grid))
            subtract(v, place, count, factors, slope_between(p, front, back, c))
            subtract(w, place, count, factors, slope_between(p, below, above, c))


# ---- Divergence ----------------------------------------------------------------------------------


@inlined
def difference_along_x(u, row, cell, images, grid):
    """Return the next cell less the previous one, of 2 LANES cells of a row from `cell` on."""
    last = grid.columns - 1 - cell
    count = grid.columns - cell
    first_value = load_scalar(u, row)
    last_value = load_scalar(u, row + grid.columns - 1)
    start = last_value if grid.wraps else ghost(first_value, image_of(images, X_LOW))
    end = first_value if grid.wraps else ghost(last_value, image_of(images, X_HIGH))
    before, middle = load_cells(u, row + cell - 1, count)
    after, behind = load_cells(u, row + cell + 1, count)
    before = insert(before, -cell, start)
    after = insert(after, last, end)
    return after - before, insert(behind, last - LANES, end) - middle


@inlined
def difference_between(field, before, after, count, images):
    """Return the images of the cells of one row less those of another."""
    low = load_cells(field, before, count)
    high = load_cells(field, after, count)
    first = ghost_vector(high[0], images[1]) - ghost_vector(low[0], images[0])
    last = ghost_vector(high[1], images[1]) - ghost_vector(low[1], images[0])
    return first, last


@inlined
def images_around(before, here, after, low, high):
    """Return the images of the neighbours before and after an index of an axis; a wall is its own."""
    return image_if(before == here, low), image_if(after == here, high)


@compiled
def divergence_plane(z, u, v, w, images, factor, colours, grid):
    """Fill a plane of colours with `factor` times the divergence."""
    factors = broadcast(factor)
    below = plane_below(z, grid)
    above = plane_above(z, grid)
    images_z = images_around(below, z, above, image_of(images, Z_LOW), image_of(images, Z_HIGH))
    for y in range(grid.rows):
        even, odd = even_and_odd(z, y, grid)
        row = cell_of(z, y, grid)
        before = row_before(y, grid)
        after = row_after(y, grid)
        images_y = images_around(
            before, y, after, image_of(images, Y_LOW), image_of(images, Y_HIGH)
        )
        front = cell_of(z, before, grid)
        back = cell_of(z, after, grid)
        under = cell_of(below, y, grid)
        over = cell_of(above, y, grid)
        for c in range(0, grid.pitch, LANES):
            cell = 2 * c
            count = grid.columns - cell
            x = difference_along_x(u, row, cell, images, grid)
            y_part = difference_between(v, front + cell, back + cell, count, images_y)
            z_part = difference_between(w, under + cell, over + cell, count, images_z)
            first = (x[0] + y_part[0]) + z_part[0]
            last = (x[1] + y_part[1]) + z_part[1]
            store_apart(colours, even + c, odd + c, (factors * first, factors * last))


# ---- All planes ----------------------------------------------------------------------------------


@compiled_parallel
def split(field, colours, grid):
    """Store a field by colour."""
    clear_around(colours, grid)
    for z in prange(1, grid.planes + 1):
        split_plane(z, address_of(field), address_of(colours), grid)


@compiled_parallel
def split_carried(field, carried, factor, b, x, grid):
    """Store ``field + factor * carried`` and `carried` by colour."""
    clear_around(x, grid)
    for z in prange(1, grid.planes + 1):
        mode = flush_subnormals()
        fields = address_of(field), factor, address_of(carried)
        split_carried_plane(z, *fields, address_of(b), address_of(x), grid)
        restore_subnormals(mode)


@compiled_parallel
def clear(colours, grid):
    """Store zeros, padding, halo planes and all."""
    size = grid.rows * grid.pitch
    for z in prange(2 * (grid.planes + 2)):
        colours[z * size : (z + 1) * size] = 0


@compiled_parallel
def merge(colours, field, grid):
    """Fill a field from its colours, halo planes included."""
    for z in prange(grid.planes + 2):
        merge_plane(z, address_of(colours), address_of(field), grid)


@compiled_parallel
def subtract_gradient(u, v, w, p, factor, grid):
    """Subtract `factor` times the central differences of p, given by colour, from the velocity."""
    for z in prange(1, grid.planes + 1):
        mode = flush_subnormals()
        subtract_in_plane(
            z, address_of(u), address_of(v), address_of(w), address_of(p), factor, grid
        )
        restore_subnormals(mode)


@compiled_parallel
def divergence(u, v, w, images, factor, colours, grid):
    """Store `factor` times the sum of the central differences of u, v, w by colour.

    `images` are those of the component normal to each face.
    """
    for z in prange(1, grid.planes + 1):
        mode = flush_subnormals()
        velocity = address_of(u), address_of(v), address_of(w)
        divergence_plane(z, *velocity, images, factor, address_of(colours), grid)
        restore_subnormals(mode)
