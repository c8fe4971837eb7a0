"""What tests ask of openings: arrays without ghosts, totals, what can be reached from a cell."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles import Obstacle, Openings, openings

INNER = (slice(1, -1),) * 3
"""An array of openings without its ghosts."""

ARRAYS = ("x", "y", "z", "volume", "owner")


def cube(obstacles: Iterable[Obstacle], cells: int, time: float = 0.0) -> Openings:
    """Return the openings of a whole cube of cells."""
    return openings(tuple(obstacles), (cells,) * 3, 0, cells, time)


def centres(cells: int) -> NDArray[np.float64]:
    """Return the centres of the cells of a cube, shape (cells, cells, cells, 3)."""
    k, j, i = np.indices((cells,) * 3)
    return (np.stack((i, j, k), axis=-1) + 0.5) / cells


def solid_volume(found: Openings, cells: int) -> float:
    """Return the volume of the solid in a cube of cells."""
    return float((1.0 - found.volume[INNER]).sum()) / cells**3


def flooded(found: Openings, start: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the cells that can be reached from a cell k, j, i through open faces."""
    faces = [found.z[INNER] > 0, found.y[INNER] > 0, found.x[INNER] > 0]
    reached = np.zeros(faces[0].shape, np.bool_)
    reached[start] = True
    before = 0
    while reached.sum() > before:
        before = reached.sum()
        for axis, opened in enumerate(faces):
            _flow(np.moveaxis(reached, axis, 0), np.moveaxis(opened, axis, 0))
    return reached


def _flow(reached: NDArray[np.bool_], opened: NDArray[np.bool_]) -> None:
    """Go along the first axis, up and down."""
    for place in range(1, len(reached)):
        reached[place] |= reached[place - 1] & opened[place]
    for place in range(len(reached) - 1, 0, -1):
        reached[place - 1] |= reached[place] & opened[place]
