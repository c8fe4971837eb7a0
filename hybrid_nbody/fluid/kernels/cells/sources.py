"""Sources: cells that are given a value."""

from hybrid_nbody.backends.cells import Cells, Int, Real, over_cells


@over_cells
def put(k: Int, j: Int, i: Int, a: Cells, keep: Real, value: Real) -> None:
    """Set a cell to ``keep * cell + value``."""
    a[k, j, i] = keep * a[k, j, i] + value


@over_cells
def put_sphere(
    k: Int, j: Int, i: Int, a: Cells, keep: Real, value: Real,
    first: Int, x: Real, y: Real, z: Real, square: Real,
) -> None:  # fmt: skip
    """Do so in the cells whose centres lie within a sphere, its centre in global cells."""
    dz = float(k - 1 + first) - z
    dy = float(j - 1) - y
    dx = float(i - 1) - x
    if dx * dx + dy * dy + dz * dz <= square:
        a[k, j, i] = keep * a[k, j, i] + value
