"""Obstacles: faces that are closed by them, and what a scalar is inside."""

from hybrid_nbody.backends.cells import Cells, Int, Real, over_cells, plane_sum


@over_cells
def impose_solid(
    k: Int, j: Int, i: Int, a: Cells, opening: Cells, moving: Int, solid: Cells
) -> None:
    """Give the faces within obstacles the velocity of those."""
    if opening[k, j, i] <= 0.0:
        a[k, j, i] = solid[k, j, i] if moving == 1 else 0.0


@over_cells
def extend(k: Int, j: Int, i: Int, a: Cells, fluid: Cells, known: Cells, out: Cells) -> None:
    """Set a cell within an obstacle to the mean of those beside it that are known."""
    if known[k, j, i] <= 0.0:
        weight = known[k, j, i - 1] + known[k, j, i + 1] + known[k, j - 1, i]
        weight += known[k, j + 1, i] + known[k - 1, j, i] + known[k + 1, j, i]
        sum_x = known[k, j, i - 1] * a[k, j, i - 1] + known[k, j, i + 1] * a[k, j, i + 1]
        sum_y = known[k, j - 1, i] * a[k, j - 1, i] + known[k, j + 1, i] * a[k, j + 1, i]
        sum_z = known[k - 1, j, i] * a[k - 1, j, i] + known[k + 1, j, i] * a[k + 1, j, i]
        out[k, j, i] = (sum_x + sum_y + sum_z) / weight if weight > 0.0 else 0.0
    else:
        out[k, j, i] = a[k, j, i]


@plane_sum
def pressure_force(
    k: Int, j: Int, i: Int, p: Cells, opening: Cells, owner: Cells, number: Real,
    dk: Int, dj: Int, di: Int,
) -> Real:  # fmt: skip
    """Return the force of the pressure on an obstacle in a cell, along the axis of `opening`."""
    closed = opening[k, j, i] - opening[k + dk, j + dj, i + di]
    return p[k, j, i] * closed if owner[k, j, i] == number else 0.0
