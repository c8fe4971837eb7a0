"""The equations of the cells of one colour on CPU threads: what surrounds a row, and what its cells' equations lack."""

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from hybrid_nbody.backends.simd import (
    LANES,
    address_of,
    broadcast,
    fabs,
    load,
    load_scalar,
    maximum,
    reduce_max,
    store_scalar,
)
from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled,
    compiled_parallel,
    inlined,
    place_of,
    plane_above,
    plane_below,
    row_after,
    row_before,
    shift_of,
)


class Rule(NamedTuple):
    """A stencil in the working type.

    Attributes
    ----------
    shift, neighbour : float
        See `hybrid_nbody.fluid.stencil.Stencil`.
    x_low, x_high, y_low, y_high, z_low, z_high : float
        The signs of its ghosts; see `hybrid_nbody.fluid.kernels.cpu.boundary.Signs`.
    """

    shift: Any
    neighbour: Any
    x_low: Any
    x_high: Any
    y_low: Any
    y_high: Any
    z_low: Any
    z_high: Any


# ---- What surrounds a row ------------------------------------------------------------------------


@inlined
def fill_ends(colour, z, x, grid):
    """Store, in the padding of the other colour, what lies around a periodic axis beside the rows of a plane.

    Not row by row: a vector that is loaded from where a number was stored just before has to wait.
    """
    for y in range(grid.rows):
        other = place_of(1 - colour, z, y, grid)
        shift = shift_of(colour, z, y, grid)
        others = (grid.columns + shift) // 2
        if shift == 0:
            store_scalar(x, other - 1, load_scalar(x, other + others - 1))
        if (grid.columns - shift) & 1:
            store_scalar(x, other + others, load_scalar(x, other))


@inlined
def beside(own, other, distance, sign):
    """Return place and sign of a row at a distance from one of the other colour; a wall, at none, mirrors its own."""
    return (own, sign) if distance == 0 else (other + distance, sign * sign)


@inlined
def rows_around(colour, z, y, rule, grid):
    """Return the places of a row, of the other colour's row beside it, and of those around, these with their signs."""
    own = place_of(colour, z, y, grid)
    other = place_of(1 - colour, z, y, grid)
    size = grid.rows * grid.pitch
    front = beside(own, other, (row_before(y, grid) - y) * grid.pitch, rule.y_low)
    back = beside(own, other, (row_after(y, grid) - y) * grid.pitch, rule.y_high)
    below = beside(own, other, (plane_below(z, grid) - z) * size, rule.z_low)
    above = beside(own, other, (plane_above(z, grid) - z) * size, rule.z_high)
    return own, other, (front, back, below, above)


@inlined
def missing_in(rows, shift, table, i, x, b, rule, tables):
    """Return LANES cells, and what their equations lack: b - own * x + neighbour * (sum - 6 x).

    Parameters
    ----------
    rows : tuple
        From `rows_around`, of the row or of another one, from where `i` is counted.
    shift : int
        1 if the row starts at x = 1.
    table : int
        Where the row would start in the tables, if it were the one that `rows` are around.
    i : int
        The cells.
    """
    (
        own,
        other,
        ((front, front_sign), (back, back_sign), (below, below_sign), (above, above_sign)),
    ) = rows
    cell = load(x, own + i)
    start = other + shift + i
    x_part = (load(x, start - 1) + load(x, start)) + load(tables, table + i) * cell
    y_part = broadcast(front_sign) * load(x, front + i) + broadcast(back_sign) * load(x, back + i)
    z_part = broadcast(below_sign) * load(x, below + i) + broadcast(above_sign) * load(x, above + i)
    left = load(b, own + i) - broadcast(rule.shift) * cell
    six = broadcast(type(rule.shift)(6))
    return cell, left + broadcast(rule.neighbour) * (((x_part + y_part) + z_part) - six * cell)


@inlined
def kind_of(z, y, grid):
    """Return where the factors of a row start: see `layout.tables_of_rows`."""
    at_y = (row_before(y, grid) == y) | (row_after(y, grid) == y)
    at_z = (plane_below(z, grid) == z) | (plane_above(z, grid) == z)
    return 2 * grid.pitch * (1 + at_y + 2 * at_z)


# ---- Largest values ------------------------------------------------------------------------------


@compiled
def missing_in_plane(colour, z, x, b, rule, tables, grid):
    """Return the largest residual of the cells of one colour in a plane."""
    if grid.wraps:
        fill_ends(colour, z, x, grid)
    largest = broadcast(type(rule.shift)(0))
    for y in range(grid.rows):
        rows = rows_around(colour, z, y, rule, grid)
        shift = shift_of(colour, z, y, grid)
        table = shift * grid.pitch
        kind = kind_of(z, y, grid)
        for c in range(0, grid.pitch, LANES):
            _, missing = missing_in(rows, shift, table, c, x, b, rule, tables)
            largest = maximum(fabs(load(tables, kind + table + c) * missing), largest)
    return reduce_max(largest)


@compiled_parallel
def max_residual(x, b, rule, tables, grid):
    """Return the largest residual of a slab; the factors in `tables` are 1."""
    result = np.zeros(grid.planes + 2, x.dtype)
    for z in prange(1, grid.planes + 1):
        system = address_of(x), address_of(b), rule, address_of(tables)
        first = missing_in_plane(0, z, *system, grid)
        result[z] = max(first, missing_in_plane(1, z, *system, grid))
    return result.max()


@compiled
def largest_in_plane(colour, z, b, cells, grid):
    """Return the largest absolute value of the cells of one colour in a plane."""
    largest = broadcast(b.dtype.type(0))
    for y in range(grid.rows):
        row = place_of(colour, z, y, grid)
        real = shift_of(colour, z, y, grid) * grid.pitch
        for c in range(0, grid.pitch, LANES):
            largest = maximum(fabs(load(cells, real + c) * load(b, row + c)), largest)
    return reduce_max(largest)


@compiled_parallel
def largest_cell(b, cells, grid):
    """Return the largest absolute value of a slab, by colour; `cells`, (2, pitch), are 1, and 0 for padding."""
    result = np.zeros(grid.planes + 2, b.dtype)
    for z in prange(1, grid.planes + 1):
        result[z] = max(
            largest_in_plane(0, z, b, cells, grid), largest_in_plane(1, z, b, cells, grid)
        )
    return result.max()
