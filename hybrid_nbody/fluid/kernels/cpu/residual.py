"""The residuals of the cells of one colour on CPU threads, and their largest values.

Functions called for every plane get the addresses of arrays in their `System`, not arrays.
"""

from typing import Any, NamedTuple

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
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.cpu.boundary import Image, ghost_vector, image_if
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


class System(NamedTuple):
    """A linear system as loops over the cells of a plane take it.

    Attributes
    ----------
    x, b : address
        Unknowns and right-hand side, both colours.
    rule : Rule
        The stencil.
    tables : address
        From `layout.tables_of_rows`.
    """

    x: Any
    b: Any
    rule: Rule
    tables: Any


class Rows(NamedTuple):
    """The neighbours of a row of one colour.

    Attributes
    ----------
    own, other : int
        Offsets of the row, and of the other colour's row beside it.
    front, back, below, above : (int, Image)
        Offsets of the neighbouring rows, and what their cells stand for.
    factors : int
        Offset of the factors of such a row in the tables, if it starts at x = 0.
    """

    own: int
    other: int
    front: tuple[int, Image]
    back: tuple[int, Image]
    below: tuple[int, Image]
    above: tuple[int, Image]
    factors: int


# ---- What surrounds a row ------------------------------------------------------------------------


@inlined
def fill_ends(colour, z, x, grid):
    """Store cells around a periodic x in the padding behind the ends of the other colour's rows.

    It is done for all rows of a plane beforehand: loading a vector has to wait if a part of it was
    stored just before.
    """
    for y in range(grid.rows):
        other = row_offset(1 - colour, z, y, grid)
        first = first_column(colour, z, y, grid)
        others = (grid.columns + first) // 2
        if first == 0:
            store_scalar(x, other - 1, load_scalar(x, other + others - 1))
        if (grid.columns - first) & 1:
            store_scalar(x, other + others, load_scalar(x, other))


@inlined
def neighbouring_row(own, other, distance, sign):
    """Return offset and image of the row at a distance from one of the other colour.

    At a wall there is none: the distance is 0, and the ghosts are those of the row itself.
    """
    at_wall = distance == 0
    offset = own if at_wall else other + distance
    return offset, image_if(at_wall, Image(sign, None))


@inlined
def rows_around(colour, z, y, rule, grid):
    """Return the `Rows` of a row."""
    own = row_offset(colour, z, y, grid)
    other = row_offset(1 - colour, z, y, grid)
    size = grid.rows * grid.pitch
    to_front = (row_before(y, grid) - y) * grid.pitch
    to_back = (row_after(y, grid) - y) * grid.pitch
    to_below = (plane_below(z, grid) - z) * size
    to_above = (plane_above(z, grid) - z) * size
    return Rows(
        own,
        other,
        neighbouring_row(own, other, to_front, rule.y_low),
        neighbouring_row(own, other, to_back, rule.y_high),
        neighbouring_row(own, other, to_below, rule.z_low),
        neighbouring_row(own, other, to_above, rule.z_high),
        factors_offset(z, y, grid),
    )


@inlined
def factors_offset(z, y, grid):
    """Return where the factors of a row start: see `layout.tables_of_rows`."""
    at_y = (row_before(y, grid) == y) | (row_after(y, grid) == y)
    at_z = (plane_below(z, grid) == z) | (plane_above(z, grid) == z)
    return 2 * grid.pitch * (1 + at_y + 2 * at_z)


@inlined
def load_images(x, row, i):
    """Return what LANES cells of a neighbouring row stand for."""
    return ghost_vector(load(x, row[0] + i), row[1])


@inlined
def residual_of_cells(rows, first, table, i, system):
    """Return LANES cells, and their residuals ``b - shift * x + neighbour * (sum - 6 x)``.

    Parameters
    ----------
    rows : Rows
        Of the row, or of another one from which `i` is counted.
    first : int
        1 if the row starts at x = 1.
    table : int
        Where the row would start in the tables, if it were the one that `rows` are around.
    i : int
        The cells.
    system : System
    """
    x, b, rule, tables = system
    cell = load(x, rows.own + i)
    start = rows.other + first + i
    x_part = (load(x, start - 1) + load(x, start)) + load(tables, table + i) * cell
    y_part = load_images(x, rows.front, i) + load_images(x, rows.back, i)
    z_part = load_images(x, rows.below, i) + load_images(x, rows.above, i)
    left = load(b, rows.own + i) - broadcast(rule.shift) * cell
    six = broadcast(type(rule.shift)(6))
    return cell, left + broadcast(rule.neighbour) * (((x_part + y_part) + z_part) - six * cell)


# ---- Largest values ------------------------------------------------------------------------------


@linked
def max_residual_of_plane(colour, z, system, grid):
    """Return the largest residual of the cells of one colour in a plane."""
    if grid.wraps:
        fill_ends(colour, z, system.x, grid)
    largest = broadcast(type(system.rule.shift)(0))
    for y in range(grid.rows):
        rows = rows_around(colour, z, y, system.rule, grid)
        first = first_column(colour, z, y, grid)
        table = first * grid.pitch
        for i in range(0, grid.pitch, LANES):
            _, residual = residual_of_cells(rows, first, table, i, system)
            weight = load(system.tables, rows.factors + table + i)
            largest = maximum(fabs(weight * residual), largest)
    return reduce_max(largest)


@linked
def store_max_residual(z, system, grid, result):
    """Store the largest residual of a plane."""
    largest = type(system.rule.shift)(0)
    for colour in range(2):
        largest = max(largest, max_residual_of_plane(colour, z, system, grid))
    result[z - 1] = largest


@compiled_with_threads
def max_residuals(x, b, rule, tables, grid, result):
    """Fill `result`, (planes,), with the largest residual of each; the factors in `tables` are 1.

    The largest of all is found in Python: here it would take as long to compile as the rest.
    """
    system = System(address_of(x), address_of(b), rule, address_of(tables))
    each_on_threads(store_max_residual, 1, grid.planes + 1, (system, grid, result))


@linked
def largest_of_plane(colour, z, b, cells, grid):
    """Return the largest absolute value of the cells of one colour in a plane."""
    largest = broadcast(b.dtype.type(0))
    for y in range(grid.rows):
        row = row_offset(colour, z, y, grid)
        table = first_column(colour, z, y, grid) * grid.pitch
        for i in range(0, grid.pitch, LANES):
            largest = maximum(fabs(load(cells, table + i) * load(b, row + i)), largest)
    return reduce_max(largest)


@linked
def store_largest(z, b, cells, grid, result):
    """Store the largest absolute value of a plane."""
    largest = b.dtype.type(0)
    for colour in range(2):
        largest = max(largest, largest_of_plane(colour, z, b, cells, grid))
    result[z - 1] = largest


@compiled_with_threads
def largest_cells(b, cells, grid, result):
    """Fill `result`, (planes,), with the largest absolute values of colours.

    `cells` are 1, and 0 for padding.
    """
    each_on_threads(store_largest, 1, grid.planes + 1, (b, cells, grid, result))
