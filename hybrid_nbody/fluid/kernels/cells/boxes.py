"""Unknowns of a box without obstacles, taken out of fields and brought back.

A box is a table without ghosts in rows and columns. An element [k, j, i] of a field is the element
[k - dk, j - dj, i - di] of the table.
"""

from hybrid_nbody.backends.cells import Cells, Int, Real, Table, over_cells, over_columns
from hybrid_nbody.fluid.kernels.cells.diffusion import spread


@over_cells
def divergence_in_box(
    k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, factor: Real, out: Table,
    dk: Int, dj: Int, di: Int,
) -> None:  # fmt: skip
    """Set an element to a multiple of what flows out of its cell."""
    x = u[k, j, i + 1] - u[k, j, i]
    y = v[k, j + 1, i] - v[k, j, i]
    z = w[k + 1, j, i] - w[k, j, i]
    out[k - dk, j - dj, i - di] = factor * (x + y + z)


@over_columns
def spread_in_box(
    k: Int, j: Int, i: Int, a: Cells, ratio: Real, out: Table, dk: Int, dj: Int, di: Int
) -> None:
    """Set an element to its change by diffusion over a step."""
    out[k - dk, j - dj, i - di] = ratio * spread(a, k, j, i)


@over_columns
def copy_from_box(
    k: Int, j: Int, i: Int, source: Table, a: Cells, dk: Int, dj: Int, di: Int
) -> None:
    """Set an element of a field to that of the table."""
    a[k, j, i] = source[k - dk, j - dj, i - di]


@over_cells
def add_from_box(
    k: Int, j: Int, i: Int, source: Table, a: Cells, dk: Int, dj: Int, di: Int
) -> None:
    """Add an element of the table to that of a field."""
    a[k, j, i] += source[k - dk, j - dj, i - di]
