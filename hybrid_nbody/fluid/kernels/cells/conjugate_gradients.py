"""Vector operations of conjugate gradients."""

from hybrid_nbody.backends.cells import (
    Cells,
    Int,
    Real,
    Total,
    in_sequences,
    over_columns,
    over_rows,
    plane_largest,
    plane_sum,
)


@plane_sum
def dot(k: Int, j: Int, i: Int, a: Cells, b: Cells, unit: Real) -> Real:
    """Return the product of two fields at a cell, each times `unit`."""
    return (unit * a[k, j, i]) * (unit * b[k, j, i])


@plane_sum
def total(k: Int, j: Int, i: Int, a: Cells) -> Real:
    """Return a field at a cell."""
    return a[k, j, i]


@plane_largest
def largest(k: Int, j: Int, i: Int, a: Cells) -> Real:
    """Return the size of a field at a cell."""
    return a[k, j, i] if a[k, j, i] > 0.0 else -a[k, j, i]


def quotient(a: Real, b: Real) -> Real:
    """Return a / b; 0 unless b is more than 0."""
    return a / b if b > 0.0 else 0.0


@over_rows
def descend(
    k: Int, j: Int, i: Int, x: Cells, r: Cells, direction: Cells, image: Cells,
    grade: Total, curvature: Total,
) -> None:  # fmt: skip
    """Go to the lowest point along a direction, and subtract its image from the residual.

    Everything is read first: to a compiler, what follows a write may depend on it and has to wait.
    """
    step = quotient(grade, curvature)
    further = x[k, j, i] + step * direction[k, j, i]
    left = r[k, j, i] - step * image[k, j, i]
    x[k, j, i] = further
    r[k, j, i] = left


@over_rows
def descend_and_turn(
    k: Int, j: Int, i: Int, x: Cells, r: Cells, direction: Cells, image: Cells,
    kept: Real, added: Real,
) -> None:  # fmt: skip
    """Go a direction, and replace it by `kept` of itself and `added` of the new residual."""
    step = direction[k, j, i]
    left = r[k, j, i] - image[k, j, i]
    x[k, j, i] += step
    r[k, j, i] = left
    direction[k, j, i] = kept * step + added * left


@over_rows
def turn(k: Int, j: Int, i: Int, direction: Cells, z: Cells, grade: Total, before: Total) -> None:
    """Replace a direction by z and a multiple of itself: the quotient of their grades."""
    direction[k, j, i] = z[k, j, i] + quotient(grade, before) * direction[k, j, i]


@over_rows
def add_field(k: Int, j: Int, i: Int, a: Cells, factor: Real, b: Cells) -> None:
    """Add a multiple of another field."""
    a[k, j, i] += factor * b[k, j, i]


@in_sequences
@over_columns
def set_to(k: Int, j: Int, i: Int, a: Cells, value: Real) -> None:
    """Set a field to a number."""
    a[k, j, i] = value


@over_columns
def copy(k: Int, j: Int, i: Int, a: Cells, out: Cells) -> None:
    """Copy a field."""
    out[k, j, i] = a[k, j, i]


@over_rows
def extrapolate(k: Int, j: Int, i: Int, now: Cells, before: Cells, ratio: Real) -> None:
    """Replace what a field was by what it will be; `ratio` is of the times ahead and back."""
    before[k, j, i] = now[k, j, i] + ratio * (now[k, j, i] - before[k, j, i])
