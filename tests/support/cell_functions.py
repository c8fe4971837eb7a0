"""Functions of a cell, for tests."""

from hybrid_nbody.backends.cells import (
    Cells,
    Int,
    Real,
    Total,
    in_sequences,
    of_colour,
    over_cells,
    plane_largest,
    plane_sum,
)


@in_sequences
@over_cells
def limited_slope(k: Int, j: Int, i: Int, a: Cells, most: Real, out: Cells) -> None:
    """Use loops, branches, whole and real numbers."""
    slope = 0.5 * (a[k, j, i + 1] - a[k, j, i - 1])
    steps = 0
    for above in range(1, min(k, 3)):
        slope += a[k - above, j, i]
        steps += 1
    out[k, j, i] = slope / float(steps) if steps > 0 and slope < most else most


@in_sequences
@of_colour
def smooth(k: Int, j: Int, i: Int, a: Cells) -> None:
    """Set a cell from cells of the other colour."""
    a[k, j, i] = 0.25 * (a[k - 1, j, i] + a[k + 1, j, i] + a[k, j - 1, i] + a[k, j, i + 1])


@over_cells
def shift(k: Int, j: Int, i: Int, a: Cells, sign: Real, total: Total) -> None:
    """Add a total, times a number, to a cell."""
    a[k, j, i] += sign * total


@plane_sum
def square(k: Int, j: Int, i: Int, a: Cells) -> Real:
    """Return the square of a cell."""
    return a[k, j, i] * a[k, j, i]


@plane_largest
def size(k: Int, j: Int, i: Int, a: Cells) -> Real:
    """Return the size of a cell."""
    return a[k, j, i] if a[k, j, i] > 0.0 else -a[k, j, i]
