"""Copies of fields with ghosts on every side, into which traces look, on CPU threads."""

from typing import NamedTuple

import numpy as np

from hybrid_nbody.backends.simd import LANES
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.cpu.boundary import (
    X_HIGH,
    X_LOW,
    Y_HIGH,
    Y_LOW,
    Z_HIGH,
    Z_LOW,
    compose,
    ghost,
    image_if,
    image_of,
)
from hybrid_nbody.fluid.kernels.cpu.layout import compiled_with_threads, inlined, linked

WALLS = 0
PERIODIC = 1
OPEN = 2
"""How an axis ends for a trace: at walls, around the edge, or nowhere: then the planes of other
ranks are part of the copy."""

MARGIN = 2
"""Planes of a copy with ghosts before the source's first one: a ghost and one more, as there is one
more row behind the ghosts of y. Departure points on both sides of a cell are interpolated from
three planes."""


class Box(NamedTuple):
    """The grid that traces cross: numbers alone, since compiled calls count references to arrays.

    Attributes
    ----------
    nx, ny, nz : int
        Cells of the whole grid.
    ends_x, ends_y, ends_z : int
        How its axes end.
    first, planes : int
        The slab's planes.
    last : int
        Last cell along x from which LANES traces may start in one row.
    """

    nx: int
    ny: int
    nz: int
    ends_x: int
    ends_y: int
    ends_z: int
    first: int
    planes: int
    last: int


def make_box(slab: Slab) -> Box:
    """Return the `Box` of a slab."""
    nx, ny, nz = slab.cells
    ends_x, ends_y, ends_z = (PERIODIC if periodic else WALLS for periodic in slab.periodic)
    if slab.periodic[2] and not slab.complete:
        ends_z = OPEN
    last = nx - (1 if ends_x == WALLS else LANES + 1)
    return Box(nx, ny, nz, ends_x, ends_y, ends_z, slab.first, slab.planes, last)


def ghosted_shape(source: np.ndarray) -> tuple[int, int, int]:
    """Return the shape of the copy of a source (m, ny, nx) with ghosts."""
    m, ny, nx = source.shape
    return m + 2 * MARGIN, ny + 3, nx + 2 + LANES


# ---- Copies --------------------------------------------------------------------------------------


@linked
def nearest_cell(index, count, ends):
    """Return the cell that an index of an axis stands for."""
    if ends == PERIODIC:
        return index % count
    return within(index, count) if ends == WALLS else index


@inlined
def within(index, count):
    """Return the index of the nearest cell."""
    return min(max(index, 0), count - 1)


@inlined
def image_along(index, count, ends, low, high):
    """Return the image of what lies at an index of an axis: a ghost behind a wall, or a cell."""
    if index < 0:
        return image_if(ends == WALLS, low)
    return image_if(ends == WALLS and index >= count, high)


@linked
def fill_ghosted_plane(plane, ghosted, images, image_z, box):
    """Fill a plane with the images of another one, with ghosts behind the ends of x and y."""
    for y in range(-1, box.ny + 2):
        source = plane[nearest_cell(y, box.ny, box.ends_y)]
        image_y = image_along(
            y, box.ny, box.ends_y, image_of(images, Y_LOW), image_of(images, Y_HIGH)
        )
        image = compose(image_z, image_y)
        fill_row(source, image, ghosted[y + 1])
        low = compose(image, image_if(box.ends_x == WALLS, image_of(images, X_LOW)))
        high = compose(image, image_if(box.ends_x == WALLS, image_of(images, X_HIGH)))
        before = nearest_cell(-1, box.nx, box.ends_x)
        after = nearest_cell(box.nx, box.nx, box.ends_x)
        ghosted[y + 1, 0] = ghost(source[before], low)
        ghosted[y + 1, box.nx + 1] = ghost(source[after], high)


@linked
def fill_row(row, image, ghosted):
    """Fill a row with the images of another one."""
    for x in range(row.size):
        ghosted[x + 1] = ghost(row[x], image)


@linked
def fill_ghosted_at(index, source, origin, ghosted, images, box):
    """Fill a plane of the copy with ghosts."""
    z = origin + index - MARGIN
    plane = within(nearest_cell(z, box.nz, box.ends_z) - origin, source.shape[0])
    image = image_along(z, box.nz, box.ends_z, image_of(images, Z_LOW), image_of(images, Z_HIGH))
    fill_ghosted_plane(source[plane], ghosted[index], images, image, box)


@compiled_with_threads
def fill_ghosted(source, origin, ghosted, images, box):
    """Copy the planes origin ... origin + m - 1 of the grid, and put ghosts around them."""
    given = (source, origin, ghosted, images, box)
    each_on_threads(fill_ghosted_at, 0, ghosted.shape[0], given)
