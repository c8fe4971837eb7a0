"""Openings: what obstacles leave open of the faces and cells of a staggered grid.

Open shares of faces come from signed distances at nine points of each face, those of cells from 27
(`shares.py`); boxes along the axes are exact where they are alone. Thin solids close what they
cross (`lattice.py`). References: Batty, Bertails and Bridson 2007; Ng, Min and Gibou 2009.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Numbers, Obstacle
from hybrid_nbody.fluid.obstacles.cut_cells import (
    face_openings,
    nearness,
    solid_velocity,
    volumes,
)
from hybrid_nbody.fluid.obstacles.images import CLOSED, Image, Periodic, images_of
from hybrid_nbody.fluid.obstacles.slab import Slab


@dataclass(frozen=True)
class Openings:
    """What obstacles leave open of some planes of the grid and a layer of cells around them.

    All arrays have the shape (planes + 2, ny + 2, nx + 2); cell (i, j, k) is at
    [k + 1 - first, j + 1, i + 1].

    Attributes
    ----------
    x, y, z : array of float64
        Open share of the low face of each cell along an axis, from 0 (solid) to 1. Faces of the box
        are not closed here.
    volume : array of float64
        The fluid's share of each cell; 0 where all six faces are closed.
    owner : array of int32
        The place of the obstacle to which a cell is nearest; -1 where its centre is more than three
        cells from all.
    solid_u, solid_v, solid_w : array of float64 or None
        The velocity of the nearest solid along x, y and z at the low faces of these axes; 0 farther
        than three cells. None where all obstacles are at rest.
    """

    x: Numbers
    y: Numbers
    z: Numbers
    volume: Numbers
    owner: NDArray[np.int32]
    solid_u: Numbers | None = None
    solid_v: Numbers | None = None
    solid_w: Numbers | None = None


def openings(
    obstacles: Sequence[Obstacle],
    cells: tuple[int, int, int],
    first: int,
    planes: int,
    time: float,
    periodic: Periodic = CLOSED,
) -> Openings:
    """Return what obstacles leave open of some planes of the grid.

    A cell has the same values, to the bit, on any slab that holds it.

    Parameters
    ----------
    obstacles : sequence of Obstacle
    cells : tuple of int
        nx, ny, nz of the whole grid.
    first, planes : int
        The first plane of z, and how many.
    time : float
    periodic : tuple of bool
        Axes along which the box repeats: obstacles come back in at the other end, and ghost cells
        are those of the other end. Along others the geometry goes on beyond the box.

    Returns
    -------
    Openings
    """
    slab = Slab(cells, periodic, first, planes)
    images = images_of(obstacles, slab.edges, periodic, time)
    whole = _whole(slab, any(obstacle.moves for obstacle in obstacles))
    for piece in slab.pieces():
        start = piece.first - first
        for name, values in _of_piece(piece, images, obstacles).items():
            array = getattr(whole, name)
            array[start : start + piece.planes + 2] = values
    return whole


def _whole(slab: Slab, moving: bool) -> Openings:
    """Return openings to be filled."""
    shape = (slab.planes + 2, slab.cells[1] + 2, slab.cells[0] + 2)
    x, y, z, volume = (np.empty(shape) for _ in range(4))
    owner = np.empty(shape, np.int32)
    if not moving:
        return Openings(x, y, z, volume, owner)
    return Openings(x, y, z, volume, owner, np.empty(shape), np.empty(shape), np.empty(shape))


def _of_piece(
    slab: Slab, images: Sequence[Image], obstacles: Sequence[Obstacle]
) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a slab by name."""
    near = nearness(slab, images)
    x, y, z = (face_openings(near, axis) for axis in range(3))
    inner = (slice(1, -1),) * 3
    owners = np.array([image.owner for image in images] + [-1], np.int32)
    found: dict[str, NDArray[np.generic]] = {
        "x": x[inner],
        "y": y[inner],
        "z": z[inner],
        "volume": np.where(_any_open(x, y, z), volumes(near)[inner], 0.0),
        "owner": owners[near.image[inner]],
    }
    if any(obstacle.moves for obstacle in obstacles):
        for axis, name in enumerate(("solid_u", "solid_v", "solid_w")):
            found[name] = solid_velocity(near, images, axis)[inner]
    return found


def _any_open(x: Numbers, y: Numbers, z: Numbers) -> NDArray[np.bool_]:
    """Return which cells, but for the outermost, have an open face."""
    inner = (slice(1, -1),) * 3
    faces = [x[inner], y[inner], z[inner]]
    faces += [x[1:-1, 1:-1, 2:], y[1:-1, 2:, 1:-1], z[2:, 1:-1, 1:-1]]
    found: NDArray[np.bool_] = np.maximum.reduce(faces) > 0.0
    return found
