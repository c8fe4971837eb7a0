"""Fields and their two colours on CPU threads.

2 LANES cells of a row are LANES cells of either colour.

Fields and colours are flat arrays. What is called for every plane gets their addresses.
"""

from typing import NamedTuple

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
from hybrid_nbody.backends.threads import each_on_threads
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
    compiled_with_threads,
    first_column,
    inlined,
    linked,
    plane_above,
    plane_below,
    row_after,
    row_before,
    row_offset,
)


class Rows(NamedTuple):
    """Offsets of the even and of the odd cells of a row in the flat array of both colours."""

    even: int
    odd: int


@inlined
def rows_of(z, y, grid):
    """Return where the cells x = 0, 2, 4 ... and those x = 1, 3, 5 ... of a row start."""
    even = first_column(0, z, y, grid)
    return Rows(row_offset(even, z, y, grid), row_offset(1 - even, z, y, grid))


@inlined
def field_offset(z, y, grid):
    """Return where a row of a field starts."""
    return (z * grid.rows + y) * grid.columns


AHEAD = 1024
"""Cells between those that are computed and those that are prefetched."""


@inlined
def prefetch_ahead(field, offset):
    """Prefetch 2 LANES cells that will soon be needed.

    Processors do not foresee it where vectors are loaded in part.
    """
    prefetch(field, offset + AHEAD)
    prefetch(field, offset + AHEAD + LANES)


@inlined
def load_cells(field, offset, count):
    """Return 2 LANES cells of a field, of which there are `count`, as two vectors."""
    prefetch_ahead(field, offset)
    first = load_partial(field, offset, count)
    return first, load_partial(field, offset + LANES, count - LANES)


@inlined
def store_cells(field, offset, count, cells):
    """Store 2 LANES cells of a field, of which there are `count`."""
    store_partial(field, offset, cells[0], count)
    store_partial(field, offset + LANES, cells[1], count - LANES)


@inlined
def store_by_colour(colours, rows, i, cells):
    """Store 2 LANES cells by colour, padding included."""
    store(colours, rows.even + i, even_lanes(cells[0], cells[1]))
    store(colours, rows.odd + i, odd_lanes(cells[0], cells[1]))


@inlined
def interleaved(even, odd):
    """Return 2 LANES cells of which either colour is given."""
    return interleave_low(even, odd), interleave_high(even, odd)


@inlined
def clear_around(colours, grid):
    """Store 0 before the first row and after the last one of either colour.

    These elements belong to halo planes, which may hold anything.
    """
    for colour in range(2):
        colours[row_offset(colour, 1, 0, grid) - 1] = 0
        colours[row_offset(colour, grid.planes + 1, 0, grid)] = 0


@linked
def split_plane(z, field, colours, grid):
    """Store a plane by colour."""
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        offset = field_offset(z, y, grid)
        for i in range(0, grid.pitch, LANES):
            cells = load_cells(field, offset + 2 * i, grid.columns - 2 * i)
            store_by_colour(colours, rows, i, cells)


@linked
def split_carried_plane(z, fields, factor, targets, grid):
    """Store a plane of ``field + factor * carried`` and one of `carried` by colour, in b and x."""
    mode = flush_subnormals()
    field, carried = fields
    b, x = targets
    factors = broadcast(factor)
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        offset = field_offset(z, y, grid)
        for i in range(0, grid.pitch, LANES):
            count = grid.columns - 2 * i
            cells = load_cells(field, offset + 2 * i, count)
            more = load_cells(carried, offset + 2 * i, count)
            total = (cells[0] + factors * more[0], cells[1] + factors * more[1])
            store_by_colour(b, rows, i, total)
            store_by_colour(x, rows, i, more)
    restore_subnormals(mode)


@linked
def merge_plane(z, colours, field, grid):
    """Fill a plane of a field from its colours."""
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        offset = field_offset(z, y, grid)
        for i in range(0, (grid.columns + 1) // 2, LANES):
            prefetch_ahead(field, offset + 2 * i)
            cells = interleaved(load(colours, rows.even + i), load(colours, rows.odd + i))
            store_cells(field, offset + 2 * i, grid.columns - 2 * i, cells)


# ---- Gradient ------------------------------------------------------------------------------------
# The pressure has no gradient at any wall: its ghosts are the cells there.


@inlined
def slope_along_x(p, rows, i, grid):
    """Return the next cell less the previous one, of LANES cells of either colour of a row."""
    last = (grid.columns - 1) // 2
    ends_odd = (grid.columns - 1) & 1
    first_value = load_scalar(p, rows.even)
    last_value = load_scalar(p, (rows.odd if ends_odd else rows.even) + last)
    start = last_value if grid.wraps else first_value
    end = first_value if grid.wraps else last_value
    before = insert(load(p, rows.odd + i - 1), -i, start)
    middle = load(p, rows.even + i)
    after = load(p, rows.odd + i)
    behind = load(p, rows.even + i + 1)
    if ends_odd:
        behind = insert(behind, last - i, end)
    else:
        after = insert(after, last - i, end)
    return after - before, behind - middle


@inlined
def slope_between(p, before, after, i):
    """Return the cells of one row less those of another, as `slope_along_x`."""
    even = load(p, after.even + i) - load(p, before.even + i)
    return even, load(p, after.odd + i) - load(p, before.odd + i)


@inlined
def subtract(field, offset, count, factors, slopes):
    """Subtract multiples of the slopes of either colour from cells."""
    first, last = interleaved(slopes[0], slopes[1])
    cells = load_cells(field, offset, count)
    store_cells(field, offset, count, (cells[0] - factors * first, cells[1] - factors * last))


@linked
def subtract_in_plane(z, velocity, p, factor, grid):
    """Subtract the differences of p from a plane of the velocity."""
    mode = flush_subnormals()
    u, v, w = velocity
    factors = broadcast(factor)
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        row = field_offset(z, y, grid)
        front = rows_of(z, row_before(y, grid), grid)
        back = rows_of(z, row_after(y, grid), grid)
        below = rows_of(plane_below(z, grid), y, grid)
        above = rows_of(plane_above(z, grid), y, grid)
        for i in range(0, (grid.columns + 1) // 2, LANES):
            offset = row + 2 * i
            count = grid.columns - 2 * i
            subtract(u, offset, count, factors, slope_along_x(p, rows, i, grid))
            subtract(v, offset, count, factors, slope_between(p, front, back, i))
            subtract(w, offset, count, factors, slope_between(p, below, above, i))
    restore_subnormals(mode)


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
    """Return the images of the neighbours before and after an index of an axis."""
    return image_if(before == here, low), image_if(after == here, high)


@linked
def divergence_plane(z, velocity, images, factor, colours, grid):
    """Fill a plane of colours with `factor` times the divergence."""
    mode = flush_subnormals()
    u, v, w = velocity
    factors = broadcast(factor)
    below = plane_below(z, grid)
    above = plane_above(z, grid)
    y_low = image_of(images, Y_LOW)
    y_high = image_of(images, Y_HIGH)
    images_z = images_around(below, z, above, image_of(images, Z_LOW), image_of(images, Z_HIGH))
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        row = field_offset(z, y, grid)
        before = row_before(y, grid)
        after = row_after(y, grid)
        images_y = images_around(before, y, after, y_low, y_high)
        front = field_offset(z, before, grid)
        back = field_offset(z, after, grid)
        under = field_offset(below, y, grid)
        over = field_offset(above, y, grid)
        for i in range(0, grid.pitch, LANES):
            cell = 2 * i
            count = grid.columns - cell
            x = difference_along_x(u, row, cell, images, grid)
            y_part = difference_between(v, front + cell, back + cell, count, images_y)
            z_part = difference_between(w, under + cell, over + cell, count, images_z)
            first = (x[0] + y_part[0]) + z_part[0]
            last = (x[1] + y_part[1]) + z_part[1]
            store_by_colour(colours, rows, i, (factors * first, factors * last))
    restore_subnormals(mode)


# ---- All planes ----------------------------------------------------------------------------------


@linked
def clear_plane(z, colours, size):
    """Store zeros in a plane of one colour."""
    colours[z * size : (z + 1) * size] = 0


@compiled_with_threads
def split(field, colours, grid):
    """Store a field by colour."""
    clear_around(colours, grid)
    given = (address_of(field), address_of(colours), grid)
    each_on_threads(split_plane, 1, grid.planes + 1, given)


@compiled_with_threads
def split_carried(field, carried, factor, b, x, grid):
    """Store ``field + factor * carried`` and `carried` by colour."""
    clear_around(x, grid)
    fields = address_of(field), address_of(carried)
    given = (fields, factor, (address_of(b), address_of(x)), grid)
    each_on_threads(split_carried_plane, 1, grid.planes + 1, given)


@compiled_with_threads
def clear(colours, grid):
    """Store zeros, padding and halo planes included."""
    each_on_threads(clear_plane, 0, 2 * (grid.planes + 2), (colours, grid.rows * grid.pitch))


@compiled_with_threads
def merge(colours, field, grid):
    """Fill a field from its colours, halo planes included."""
    given = (address_of(colours), address_of(field), grid)
    each_on_threads(merge_plane, 0, grid.planes + 2, given)


@compiled_with_threads
def subtract_gradient(velocity, p, factor, grid):
    """Subtract `factor` times the central differences of p, given by colour, from the velocity."""
    u, v, w = velocity
    components = address_of(u), address_of(v), address_of(w)
    given = (components, address_of(p), factor, grid)
    each_on_threads(subtract_in_plane, 1, grid.planes + 1, given)


@compiled_with_threads
def divergence(velocity, images, factor, colours, grid):
    """Store `factor` times the sum of the central differences of the velocity by colour.

    `images` are those of the component normal to each face.
    """
    u, v, w = velocity
    components = address_of(u), address_of(v), address_of(w)
    given = (components, images, factor, address_of(colours), grid)
    each_on_threads(divergence_plane, 1, grid.planes + 1, given)
