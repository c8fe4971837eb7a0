"""The cells of a slab that lie in a box, in a sphere or at a face of the grid."""

from collections.abc import Iterator, Sequence

import numpy as np

from hybrid_nbody.fluid.grid import Slab


def box_of(field: np.ndarray, slab: Slab, box: Sequence[int]) -> np.ndarray:
    """Return a view of the cells of a box (x0, x1, y0, y1, z0, z1), half-open, in global cells."""
    x0, x1, y0, y1, z0, z1 = box
    low, high = (min(max(z - slab.first, 0), slab.planes) for z in (z0, z1))
    return field[1:-1][low:high, y0:y1, x0:x1]


def sphere_of(
    field: np.ndarray, slab: Slab, centre: Sequence[float], radius: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield planes of a field, and which of their cells have their centre in a sphere.

    Centre and radius are in global cells.
    """
    nx, ny, _ = slab.cells
    y, x = np.ogrid[:ny, :nx]
    squares = (x - centre[0]) ** 2 + (y - centre[1]) ** 2
    for z, plane in enumerate(field[1:-1], slab.first):
        if abs(z - centre[2]) <= radius:
            yield plane, squares + (z - centre[2]) ** 2 <= radius**2


def colours_at_face(slab: Slab, face: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return where the cells at a face lie in colours: nowhere unless it is a wall of this slab."""
    axis, end = divmod(face, 2)
    nx, ny, _ = slab.cells
    ranges = [np.arange(nx), np.arange(ny), np.arange(slab.planes)]
    walled = slab.walls[end] if axis == 2 else not slab.periodic[axis]
    ranges[axis] = ranges[axis][[0, -1][end]][None] if walled else ranges[axis][:0]
    x, y, z = (cells.reshape(-1) for cells in np.meshgrid(*ranges, indexing="ij"))
    return (x + y + z + slab.first) % 2, z + 1, y, x // 2
