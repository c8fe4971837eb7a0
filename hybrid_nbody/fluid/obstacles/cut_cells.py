"""Openings of the cells that a surface cuts, and of those around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles import lattice
from hybrid_nbody.fluid.obstacles.base import Numbers
from hybrid_nbody.fluid.obstacles.images import Image
from hybrid_nbody.fluid.obstacles.parts import Part
from hybrid_nbody.fluid.obstacles.search import (
    HALF_DIAGONAL,
    Cells,
    Reached,
    field,
)
from hybrid_nbody.fluid.obstacles.shares import cell_shares, face_shares

LEAST_SHARE = 0.01
"""Faces of which less is open are closed: to the flow they matter less than to the solver."""

CUT = HALF_DIAGONAL * (1.0 + 1e-9)
"""Distance in cells from the centre of a cell up to which a surface may cut it."""


@dataclass(frozen=True)
class Nearness:
    """What is known of the cells of a part of a grid, and of those around them.

    Attributes
    ----------
    part : Part
    distance : array of float64
        Signed distances at the centres, infinite far from all obstacles.
    image : array of int32
        The nearest image, -1 far from all.
    row : array of int32
        The place of a cell among those near a surface, -1 for others.
    cells : NearCells
    faces : array of float64, shape (n, 6)
        Open shares of the faces of cells near a surface: x-, x+, y-, y+, z-, z+.
    open : array of float64, shape (n,)
        Their open shares.
    """

    part: Part
    distance: Numbers
    image: NDArray[np.int32]
    row: NDArray[np.int32]
    cells: lattice.NearCells
    faces: Numbers
    open: Numbers

    @cached_property
    def is_fluid(self) -> NDArray[np.bool_]:
        """Return which cells have their centre in the fluid."""
        is_fluid: NDArray[np.bool_] = self.distance > 0.0
        return is_fluid


def nearness(part: Part, reached: Sequence[Reached]) -> Nearness:
    """Return what is near the cells of a part, and which images reach it."""
    regions = part.regions()
    fields = [field(reached, region) for region in regions]
    near = []
    rows = []
    number = 0
    for region, found in zip(regions, fields, strict=True):
        is_near = np.abs(found.distance) <= CUT * part.h
        k, j, i = np.nonzero(is_near)
        near.append(np.stack((i, j, k), axis=1) + np.array(region.low))
        rows.append(np.full(is_near.shape, -1, np.int32))
        rows[-1][is_near] = np.arange(number, number + len(i))
        number += len(i)
    cut = np.concatenate(near)
    images = [one.image for one in reached]
    reaching = lattice.reaching(images, cut, part.h)
    cells = lattice.near_cells(images, reaching, cut, part.h)
    faces, open_shares = _shares(images, reaching, cut, cells, part.h)
    return Nearness(
        part=part,
        distance=part.joined([found.distance for found in fields]),
        image=part.joined([found.image for found in fields]),
        row=part.joined(rows),
        cells=cells,
        faces=faces,
        open=open_shares,
    )


def _shares(
    images: Sequence[Image],
    reaching: NDArray[np.bool_],
    cut: Cells,
    cells: lattice.NearCells,
    h: float,
) -> tuple[Numbers, Numbers]:
    """Return the open shares of the faces of cut cells, and of the cells."""
    faces = np.stack([face_shares(cells.distance[:, side]) for side in lattice.FACES], axis=1)
    volume = cell_shares(cells.distance)
    alone = reaching.sum(axis=0) == 1
    for image, found in zip(images, reaching, strict=True):
        some = np.flatnonzero(alone & found)
        _enter_exact(image, cut[some], h, (faces, volume), some)
    return faces, volume


def _enter_exact(
    image: Image,
    cut: Cells,
    h: float,
    shares: tuple[Numbers, Numbers],
    rows: NDArray[np.intp],
) -> None:
    """Enter the exact shares of cells that only this image is near, if it knows them."""
    faces, volume = shares
    corners = cut.astype(np.float64)
    solid = image.solid_share(corners * h, (corners + 1.0) * h)
    if solid is None:
        return
    volume[rows] = 1.0 - solid
    for number, (axis, side) in enumerate(product(range(3), (0, 1))):
        low = corners.copy()
        high = corners + 1.0
        low[:, axis] += side
        high[:, axis] = low[:, axis]
        covered = image.solid_share(low * h, high * h)
        assert covered is not None  # it knew those of the cells
        faces[rows, number] = 1.0 - covered


def face_openings(near: Nearness, axis: int) -> Numbers:
    """Return the open shares of the low faces along an axis; those of the first layer are 1.

    Parameters
    ----------
    near : Nearness
    axis : int
        0, 1, 2 for x, y, z.
    """
    along = 2 - axis
    shares = near.is_fluid.astype(np.float64)
    upper, lower = _sides(near.row, along)
    places = np.nonzero((upper >= 0) | (lower >= 0))
    _sides(shares, along)[0][places] = _common(near, axis, lower[places], upper[places])
    first = (slice(None),) * along + (0,)
    shares[first] = 1.0
    return shares


def _sides(array: NDArray[Any], along: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return views of the cells above all faces but the first ones, and of those below."""
    before = (slice(None),) * along
    return array[(*before, slice(1, None))], array[(*before, slice(None, -1))]


def _common(
    near: Nearness, axis: int, lower: NDArray[np.int32], upper: NDArray[np.int32]
) -> Numbers:
    """Return the open shares of faces between cells of which at least one is near a surface."""
    low, high = 2 * axis, 2 * axis + 1
    own = upper >= 0
    row = np.where(own, upper, lower)
    shares = np.where(own, near.faces[row, low], near.faces[row, high])
    fluid = _points(near.cells.fluid, low, high, own, row)
    main = _points(near.cells.main, low, high, own, row)
    both = own & (lower >= 0)
    main[both] &= near.cells.main[lower[both]][:, lattice.FACES[high]]
    shares = shares * _weight(main, lattice.FACE_WEIGHTS, fluid)
    return np.where(shares >= LEAST_SHARE, shares, 0.0)


def _points(
    marks: NDArray[np.bool_],
    low: int,
    high: int,
    own: NDArray[np.bool_],
    row: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Return the marks at the points of faces: low ones of their own cells, else high ones."""
    own_marks = marks[:, lattice.FACES[low]][row]
    return np.where(own[:, None], own_marks, marks[:, lattice.FACES[high]][row])


def _weight(main: NDArray[np.bool_], weights: Numbers, fluid: NDArray[np.bool_]) -> Numbers:
    """Return how much of the fluid's points counts, 0 where there are none; exact sums."""
    total = fluid.astype(np.float64) @ weights
    part = (main & fluid).astype(np.float64) @ weights
    share: Numbers = part / np.where(total > 0.0, total, 1.0)
    return share


def volumes(near: Nearness) -> Numbers:
    """Return the fluid's share of each cell."""
    shares = near.is_fluid.astype(np.float64)
    cut = near.row >= 0
    sides = _weight(near.cells.main, lattice.CELL_WEIGHTS, near.cells.fluid)
    shares[cut] = (near.open * sides)[near.row[cut]]
    return shares


def solid_velocity(near: Nearness, images: Sequence[Image], axis: int) -> Numbers:
    """Return the velocity of the nearest solid along an axis at the low faces of that axis."""
    along = 2 - axis
    velocity = np.zeros(near.image.shape)
    above = _sides(velocity, along)[0]
    below, image = _nearer(near, along)
    for number, one in enumerate(images):
        places = np.nonzero(image == number)
        if one.obstacle.moves and len(places[0]):
            of_velocity = tuple(p + (a == along) for a, p in enumerate(places))
            points = _face_centres(near.part, of_velocity, below[places], axis)
            above[places] = one.velocity(points)[:, axis]
    return velocity


def _nearer(near: Nearness, along: int) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Return at which faces but the first the cell below is nearer to a solid; and to which."""
    above, below = _sides(near.distance, along)
    is_below = below < above
    of_above, of_below = _sides(near.image, along)
    return is_below, np.where(is_below, of_below, of_above)


def _face_centres(
    part: Part, places: tuple[NDArray[np.intp], ...], below: NDArray[np.bool_], axis: int
) -> Numbers:
    """Return the centres of low faces, as the cells below see them where these are nearer."""
    points = np.empty((len(below), 3))
    for other, (indices, place) in enumerate(zip(part.places(), places[::-1], strict=True)):
        points[:, other] = indices[place] + 0.5
    high = part.places()[axis][places[2 - axis] - 1] + 1
    points[:, axis] = np.where(below, high, points[:, axis] - 0.5)
    return points * part.h
