"""Ghosts: what lies behind the six faces of the box.

Behind a wall a ghost is ``sign * cell + offset``. The offsets of a face, and the values of the
component across it, stand in a table (n, a, b), one for each axis: in that of x, rows are planes
and columns rows of the field.
"""

from hybrid_nbody.backends.cells import (
    Cells,
    Int,
    Real,
    Table,
    columns,
    in_sequences,
    over_cells,
    rows,
)


@in_sequences
@over_cells
def wrap_x(k: Int, j: Int, i: Int, a: Cells) -> None:
    """Copy the columns at each end of a periodic axis behind the other one."""
    a[k, j, 0] = a[k, j, columns - 2]
    a[k, j, columns - 1] = a[k, j, 1]


@in_sequences
@over_cells
def wrap_y(k: Int, j: Int, i: Int, a: Cells) -> None:
    """Copy the rows at each end of a periodic axis behind the other one."""
    a[k, 0, i] = a[k, rows - 2, i]
    a[k, rows - 1, i] = a[k, 1, i]


@in_sequences
@over_cells
def wrap_z(k: Int, j: Int, i: Int, a: Cells, last: Int) -> None:
    """Copy the planes at each end of a periodic axis behind the other one, 0 or `last`."""
    a[0, j, i] = a[last - 1, j, i]
    a[last, j, i] = a[1, j, i]


@over_cells
def reflect_x(
    k: Int, j: Int, i: Int, a: Cells, low: Real, high: Real, offsets: Table,
    of_low: Int, of_high: Int,
) -> None:  # fmt: skip
    """Set the ghosts of a field that is not at the faces of x; `low` and `high` are signs."""
    end = columns - 1
    a[k, j, 0] = low * a[k, j, 1] + offsets[of_low, k, j]
    a[k, j, end] = high * a[k, j, end - 1] + offsets[of_high, k, j]


@over_cells
def reflect_y(
    k: Int, j: Int, i: Int, a: Cells, low: Real, high: Real, offsets: Table,
    of_low: Int, of_high: Int,
) -> None:  # fmt: skip
    """Set the ghosts of a field that is not at the faces of y."""
    end = rows - 1
    a[k, 0, i] = low * a[k, 1, i] + offsets[of_low, k, i]
    a[k, end, i] = high * a[k, end - 1, i] + offsets[of_high, k, i]


@over_cells
def reflect_z(
    k: Int, j: Int, i: Int, a: Cells, cell: Int, sign: Real, offsets: Table, number: Int
) -> None:
    """Set the ghosts at plane k of a field that is not at the faces of z, from plane `cell`."""
    a[k, j, i] = sign * a[cell, j, i] + offsets[number, j, i]


@over_cells
def impose_x(k: Int, j: Int, i: Int, a: Cells, column: Int, values: Table, number: Int) -> None:
    """Set the component along x at the faces of a column, and its ghosts beyond the low one."""
    a[k, j, column] = values[number, k, j]
    if column == 1:
        a[k, j, 0] = values[number, k, j]


@over_cells
def impose_y(k: Int, j: Int, i: Int, a: Cells, row: Int, values: Table, number: Int) -> None:
    """Set the component along y at the faces of a row, and its ghosts beyond the low one."""
    a[k, row, i] = values[number, k, i]
    if row == 1:
        a[k, 0, i] = values[number, k, i]


@over_cells
def impose_z(k: Int, j: Int, i: Int, a: Cells, values: Table, number: Int) -> None:
    """Set the component along z at the faces of plane k."""
    a[k, j, i] = values[number, j, i]
    if k == 1:
        a[0, j, i] = values[number, j, i]


@over_cells
def copy_outwards_x(k: Int, j: Int, i: Int, a: Cells) -> None:
    """Set the ghosts of the component along x before an open low face."""
    a[k, j, 0] = a[k, j, 1]


@over_cells
def copy_outwards_y(k: Int, j: Int, i: Int, a: Cells) -> None:
    """Set the ghosts of the component along y before an open low face."""
    a[k, 0, i] = a[k, 1, i]


@over_cells
def copy_outwards_z(k: Int, j: Int, i: Int, a: Cells) -> None:
    """Set the ghosts of the component along z before an open low face."""
    a[0, j, i] = a[1, j, i]
