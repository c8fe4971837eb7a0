"""Lexicographic Gauss-Seidel on one CPU thread: cells in the order of memory, one after another."""

from hybrid_nbody.backends.subnormals import flush_subnormals, restore_subnormals
from hybrid_nbody.fluid.kernels.cpu.layout import (
    compiled,
    inlined,
    plane_above,
    plane_below,
    row_after,
    row_before,
)


@compiled
def relax(x, b, rule, diagonal, iterations, grid):
    """Do iterations on fields.

    What lies behind an end of an axis, mirrored or wrapped, is as it was before the iteration.
    """
    mode = flush_subnormals()
    for _ in range(iterations):
        before = x.copy()
        for z in range(1, grid.planes + 1):
            for y in range(grid.rows):
                relax_row(z, y, x, before, b, rule, diagonal, grid)
    restore_subnormals(mode)


@compiled
def relax_row(z, y, x, before, b, rule, diagonal, grid):
    """Renew the cells of a row one after another."""
    last = grid.columns - 1
    fronts = row_before(y, grid)
    belows = plane_below(z, grid)
    backs = row_after(y, grid)
    aboves = plane_above(z, grid)
    for c in range(grid.columns):
        left = c - 1 if c > 0 else (last if grid.wraps else c)
        right = c + 1 if c < last else (0 if grid.wraps else c)
        total = value_at(x, before, z, y, left, left - c, -1, rule.x_low)
        total += value_at(x, before, z, y, right, right - c, 1, rule.x_high)
        total += value_at(x, before, z, fronts, c, fronts - y, -1, rule.y_low)
        total += value_at(x, before, z, backs, c, backs - y, 1, rule.y_high)
        total += value_at(x, before, belows, y, c, belows - z, -1, rule.z_low)
        total += value_at(x, before, aboves, y, c, aboves - z, 1, rule.z_high)
        x[z, y, c] = (b[z, y, c] + rule.neighbour * total) / diagonal


@inlined
def value_at(x, before, z, y, c, distance, expected, sign):
    """Return a neighbour's value: the present one, unless an end of the axis lies between."""
    if distance == expected:
        return x[z, y, c]
    return sign * before[z, y, c] if distance == 0 else before[z, y, c]
