"""Sums and largest values of diagnostics."""

from math import fabs

from hybrid_nbody.backends.cells import Cells, Int, Real, over_rows, plane_sum


def squares(a: Real, b: Real) -> Real:
    """Return the sum of two squares."""
    return a * a + b * b


@plane_sum
def energy(k: Int, j: Int, i: Int, u: Cells, v: Cells, w: Cells, unit: Real) -> Real:
    """Return half the mean of the squares of a velocity, times `unit`, at the faces of a cell."""
    x = squares(unit * u[k, j, i], unit * u[k, j, i + 1])
    y = squares(unit * v[k, j, i], unit * v[k, j + 1, i])
    z = squares(unit * w[k, j, i], unit * w[k + 1, j, i])
    return 0.25 * (x + y + z)


@over_rows
def centre(k: Int, j: Int, i: Int, a: Cells, dk: Int, dj: Int, di: Int, out: Cells) -> None:
    """Set a cell to the mean of a component at its two faces; `d*` lead to the high one."""
    out[k, j, i] = 0.5 * (a[k, j, i] + a[k + dk, j + dj, i + di])


@plane_sum
def magnitude(k: Int, j: Int, i: Int, a: Cells) -> Real:
    """Return the magnitude of a cell."""
    return fabs(a[k, j, i])


@plane_sum
def gained(k: Int, j: Int, i: Int, before: Cells, a: Cells) -> Real:
    """Return what a cell has gained; 0 if it has lost."""
    return max(a[k, j, i] - before[k, j, i], 0.0)


@plane_sum
def lost(k: Int, j: Int, i: Int, before: Cells, a: Cells) -> Real:
    """Return what a cell has lost; 0 if it has gained."""
    return max(before[k, j, i] - a[k, j, i], 0.0)


@over_rows
def scale_changes(
    k: Int, j: Int, i: Int, before: Cells, a: Cells, of_gains: Real, of_losses: Real
) -> None:
    """Multiply what a cell has gained or lost by a factor."""
    change = a[k, j, i] - before[k, j, i]
    factor = of_gains if change > 0.0 else of_losses
    a[k, j, i] = before[k, j, i] + factor * change
