"""Multigrid for the pressure: relaxation, residual, and transfer between grids of cells.

A coarse cell is made of two cells along each axis, or of one at the end of an axis with an odd
number. Its equation is the sum of theirs; a correction is the same in all cells of a coarse one.
That makes a cycle a symmetric operator, as a preconditioner has to be.
"""

from hybrid_nbody.backends.cells import (
    Cells,
    Int,
    Real,
    Table,
    columns,
    in_sequences,
    of_colour,
    over_cells,
    over_columns,
    over_rows,
    rows,
    table_columns,
    table_rows,
)
from hybrid_nbody.fluid.kernels.cells.poisson import TILE, applied


def diagonal_of(cx: Cells, cy: Cells, cz: Cells, k: Int, j: Int, i: Int) -> Real:
    """Return the sum of the coefficients of the faces of a cell."""
    along_x = cx[k, j, i] + cx[k, j, i + 1]
    along_y = cy[k, j, i] + cy[k, j + 1, i]
    along_z = cz[k, j, i] + cz[k + 1, j, i]
    return along_x + along_y + along_z


@in_sequences
@of_colour
def relax(
    k: Int, j: Int, i: Int, x: Cells, b: Cells, cx: Cells, cy: Cells, cz: Cells, plain: Table,
    even: Real,
) -> None:  # fmt: skip
    """Set a cell to the solution of its own equation; 0 where all faces are closed."""
    if plain[k, j, (i - 1) // TILE] > 0.0:
        from_x = even * x[k, j, i - 1] + even * x[k, j, i + 1]
        from_y = even * x[k, j - 1, i] + even * x[k, j + 1, i]
        from_z = even * x[k - 1, j, i] + even * x[k + 1, j, i]
        x[k, j, i] = (b[k, j, i] + from_x + from_y + from_z) / (6.0 * even)
    else:
        diagonal = diagonal_of(cx, cy, cz, k, j, i)
        of_x = cx[k, j, i] * x[k, j, i - 1] + cx[k, j, i + 1] * x[k, j, i + 1]
        of_y = cy[k, j, i] * x[k, j - 1, i] + cy[k, j + 1, i] * x[k, j + 1, i]
        of_z = cz[k, j, i] * x[k - 1, j, i] + cz[k + 1, j, i] * x[k + 1, j, i]
        x[k, j, i] = (b[k, j, i] + of_x + of_y + of_z) / diagonal if diagonal > 0.0 else 0.0


@in_sequences
@over_columns
def begin(
    k: Int, j: Int, i: Int, x: Cells, b: Cells, cx: Cells, cy: Cells, cz: Cells, plain: Table,
    even: Real, shift: Int, last: Int,
) -> None:  # fmt: skip
    """Relax the cells of one colour where all are zero; set the others, and ghosts, to zero.

    The colour is that of cells where k + j + i + `shift` is even; plane `last` holds ghosts.
    """
    inside = 0 < k < last and 0 < j < rows - 1 and 0 < i < columns - 1
    value = 0.0
    if inside and (k + j + i + shift) % 2 == 0:
        diagonal = 6.0 * even
        if plain[k, j, (i - 1) // TILE] == 0.0:
            diagonal = diagonal_of(cx, cy, cz, k, j, i)
        value = b[k, j, i] / diagonal if diagonal > 0.0 else 0.0
    x[k, j, i] = value


@in_sequences
@over_rows
def jacobi(
    k: Int, j: Int, i: Int, x: Cells, r: Cells, cx: Cells, cy: Cells, cz: Cells, factor: Real
) -> None:
    """Add a part of what would solve a cell's own equation; `r` is its residual."""
    diagonal = diagonal_of(cx, cy, cz, k, j, i)
    x[k, j, i] += factor * r[k, j, i] / diagonal if diagonal > 0.0 else 0.0


@in_sequences
@over_columns
def residual(
    k: Int, j: Int, i: Int, x: Cells, b: Cells, cx: Cells, cy: Cells, cz: Cells, plain: Table,
    even: Real, out: Cells,
) -> None:  # fmt: skip
    """Set a cell to the residual of its equation."""
    out[k, j, i] = b[k, j, i] - applied(x, cx, cy, cz, plain, even, k, j, i)


@in_sequences
@over_columns
def restrict(k: Int, j: Int, i: Int, coarse: Table, fine: Cells, offset: Int, end: Int) -> None:
    """Set a coarse cell to the sum of its cells.

    The first of them lies in plane 2 k + `offset`; planes from `end` on are beyond the box.
    """
    total = 0.0
    for z in range(2 * k + offset, min(2 * k + offset + 2, end)):
        for y in range(2 * j - 1, min(2 * j + 1, rows - 1)):
            for x in range(2 * i - 1, min(2 * i + 1, columns - 1)):
                total += fine[z, y, x]
    coarse[k, j, i] = total


@in_sequences
@over_cells
def prolong(k: Int, j: Int, i: Int, coarse: Table, fine: Cells, offset: Int) -> None:
    """Add the correction of a coarse cell, in plane (k + offset) // 2, to one of its cells."""
    fine[k, j, i] += coarse[(k + offset) // 2, (j + 1) // 2, (i + 1) // 2]


def halved(coarse: Int, fine: Int) -> Real:
    """Return what distances grow by, inverted: 1 where an axis keeps its only cell."""
    return 1.0 if coarse == fine else 0.5


@over_cells
def coarsen_x(k: Int, j: Int, i: Int, coarse: Table, fine: Cells, offset: Int, end: Int) -> None:
    """Set the coefficient of a coarse face of x: half the sum of its faces'."""
    x = min(2 * i - 1, columns - 1)
    total = 0.0
    for z in range(2 * k + offset, min(2 * k + offset + 2, end)):
        for y in range(2 * j - 1, min(2 * j + 1, rows - 1)):
            total += fine[z, y, x]
    coarse[k, j, i] = halved(table_columns, columns) * total


@over_cells
def coarsen_y(k: Int, j: Int, i: Int, coarse: Table, fine: Cells, offset: Int, end: Int) -> None:
    """Set the coefficient of a coarse face of y."""
    y = min(2 * j - 1, rows - 1)
    total = 0.0
    for z in range(2 * k + offset, min(2 * k + offset + 2, end)):
        for x in range(2 * i - 1, min(2 * i + 1, columns - 1)):
            total += fine[z, y, x]
    coarse[k, j, i] = halved(table_rows, rows) * total


@over_cells
def coarsen_z(
    k: Int, j: Int, i: Int, coarse: Table, fine: Cells, offset: Int, end: Int, factor: Int
) -> None:
    """Set the coefficient of a coarse face of z; `factor` is 2, or 1 if planes stay as they are."""
    z = min(2 * k + offset, end)
    total = 0.0
    for y in range(2 * j - 1, min(2 * j + 1, rows - 1)):
        for x in range(2 * i - 1, min(2 * i + 1, columns - 1)):
            total += fine[z, y, x]
    coarse[k, j, i] = total / float(factor)
