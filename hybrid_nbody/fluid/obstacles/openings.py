"""Openings: what obstacles leave open of the faces and cells of a staggered grid.

Open shares of faces come from signed distances at nine points of each face, those of cells from 27
(`shares.py`); boxes along the axes are exact where they are alone. Thin solids close what they
cross (`lattice.py`). References: Batty, Bertails and Bridson 2007; Ng, Min and Gibou 2009.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Numbers, Obstacle
from hybrid_nbody.fluid.obstacles.cut_cells import (
    face_openings,
    nearness,
    solid_velocity,
    volumes,
)
from hybrid_nbody.fluid.obstacles.images import CLOSED, Periodic, images_of
from hybrid_nbody.fluid.obstacles.parts import Part
from hybrid_nbody.fluid.obstacles.search import Reached, reached


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


@dataclass(frozen=True)
class Near:
    """What obstacles leave open near them; elsewhere all is fluid.

    Attributes
    ----------
    part : Part
        Where that is; the shape of the arrays is that of the part.
    openings : Openings
    """

    part: Part
    openings: Openings

    def spread(self, whole: Part) -> "Near":
        """Return the same of a part that holds this one."""
        moving = self.openings.solid_u is not None
        found = _fluid(whole, moving)
        place = self.part.within(whole)
        for name, values in vars(self.openings).items():
            if values is not None:
                getattr(found, name)[place] = values
        return Near(whole, found)


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
    whole = Part.of_planes(cells, periodic, first, planes)
    return near_obstacles(obstacles, whole, time).spread(whole).openings


def near_obstacles(obstacles: Sequence[Obstacle], whole: Part, time: float) -> Near:
    """Return what obstacles leave open near them, of a part of the grid with its ghosts.

    See `openings`.
    """
    images = images_of(obstacles, whole.edges, whole.periodic, time)
    regions = whole.cover()
    found = [one for image in images if (one := reached(image, regions))]
    part = _around(found, whole)
    near = Near(part, _empty(part, any(obstacle.moves for obstacle in obstacles)))
    for piece in part.pieces():
        place = piece.within(part)
        for name, values in _of_piece(piece, found, obstacles).items():
            getattr(near.openings, name)[place] = values
    return near


def _around(images: Sequence[Reached], whole: Part) -> Part:
    """Return the part that images reach, with a cell around it."""
    if not images:
        return replace(whole, high=whole.low)
    low = np.min([one.low for one in images], axis=0) - 1
    high = np.max([one.high for one in images], axis=0) + 1
    for axis, count in enumerate(whole.cells):
        if whole.periodic[axis] and (low[axis] <= 0 or high[axis] >= count):
            low[axis], high[axis] = whole.low[axis], whole.high[axis]
    return whole.between(tuple(low.tolist()), tuple(high.tolist()))


def _empty(part: Part, moving: bool) -> Openings:
    """Return openings of a part to be filled."""
    x, y, z, volume = (np.empty(part.shape) for _ in range(4))
    owner = np.empty(part.shape, np.int32)
    if not moving:
        return Openings(x, y, z, volume, owner)
    u, v, w = (np.empty(part.shape) for _ in range(3))
    return Openings(x, y, z, volume, owner, u, v, w)


def _fluid(part: Part, moving: bool) -> Openings:
    """Return the openings of a part that holds no obstacle."""
    found = _empty(part, moving)
    for array in (found.x, found.y, found.z, found.volume):
        array.fill(1.0)
    found.owner.fill(-1)
    for solid in (found.solid_u, found.solid_v, found.solid_w):
        if solid is not None:
            solid.fill(0.0)
    return found


def _of_piece(
    part: Part, images: Sequence[Reached], obstacles: Sequence[Obstacle]
) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a part by name."""
    regions = part.regions()
    some = [one for one in images if any(one.meets(region) for region in regions)]
    near = nearness(part, some)
    x, y, z = (face_openings(near, axis) for axis in range(3))
    inner = (slice(1, -1),) * 3
    owners = np.array([one.image.owner for one in some] + [-1], np.int32)
    found: dict[str, NDArray[np.generic]] = {
        "x": x[inner],
        "y": y[inner],
        "z": z[inner],
        "volume": np.where(_any_open(x, y, z), volumes(near)[inner], 0.0),
        "owner": owners[near.image[inner]],
    }
    if any(obstacle.moves for obstacle in obstacles):
        of_some = [one.image for one in some]
        for axis, name in enumerate(("solid_u", "solid_v", "solid_w")):
            found[name] = solid_velocity(near, of_some, axis)[inner]
    return found


def _any_open(x: Numbers, y: Numbers, z: Numbers) -> NDArray[np.bool_]:
    """Return which cells, but for the outermost, have an open face."""
    inner = (slice(1, -1),) * 3
    faces = [x[inner], y[inner], z[inner]]
    faces += [x[1:-1, 1:-1, 2:], y[1:-1, 2:, 1:-1], z[2:, 1:-1, 1:-1]]
    found: NDArray[np.bool_] = np.maximum.reduce(faces) > 0.0
    return found
