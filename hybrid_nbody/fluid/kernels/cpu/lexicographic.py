"""Lexicographic Gauss-Seidel on one CPU thread: cells in the order of memory, one after another."""

from hybrid_nbody.backends.subnormals import flush_subnormals, restore_subnormals
from hybrid_nbody.fluid.kernels.cpu.boundary import Image, ghost
from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled,
    inlined,
    linked,
    plane_above,
    plane_below,
    row_after,
    row_before,
)


@compiled
def relax(x, b, rule, diagonal, iterations, grid):
    """Do iterations on fields.

    What lies behind an end of an axis, a ghost or the cell at its other end, is as it was before
    the iteration.
    """
    mode = flush_subnormals()
    for _ in range(iterations):
        before = x.copy()
        for z in range(1, grid.planes + 1):
            for y in range(grid.rows):
                relax_row((z, y), x, before, b, (rule, diagonal), grid)
    restore_subnormals(mode)


@linked
def relax_row(row, x, before, b, equation, grid):
    """Update the cells of a row, given as plane and row, one after another.

    `before` is the field before the iteration, `equation` a rule and its diagonal.
    """
    z, y = row
    rule, diagonal = equation
    last = grid.columns - 1
    front = row_before(y, grid)
    back = row_after(y, grid)
    below = plane_below(z, grid)
    above = plane_above(z, grid)
    for c in range(grid.columns):
        left = c - 1 if c > 0 else end_of_row(c, last, grid)
        right = c + 1 if c < last else end_of_row(c, 0, grid)
        total = neighbour(x, before, (z, y, left), left - c, -1, rule.x_low)
        total += neighbour(x, before, (z, y, right), right - c, 1, rule.x_high)
        total += neighbour(x, before, (z, front, c), front - y, -1, rule.y_low)
        total += neighbour(x, before, (z, back, c), back - y, 1, rule.y_high)
        total += neighbour(x, before, (below, y, c), below - z, -1, rule.z_low)
        total += neighbour(x, before, (above, y, c), above - z, 1, rule.z_high)
        x[z, y, c] = (b[z, y, c] + rule.neighbour * total) / diagonal


@inlined
def end_of_row(own, other, grid):
    """Return the cell behind an end of a row: that at the other end, or at a wall its own."""
    return other if grid.wraps else own


@inlined
def neighbour(x, before, cell, distance, expected, sign):
    """Return the value of a neighbour: the present one, unless an end of the axis lies between."""
    if distance == expected:
        return x[cell]
    return ghost(before[cell], Image(sign, None)) if distance == 0 else before[cell]
