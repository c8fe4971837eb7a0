"""Ways of the fluid through the cells near a surface, so that nothing leaks through thin solids.

Signed distances at the corners of a face say nothing of a plate that lies between them, or within
the cell behind it. So each cell near a surface gets 27 points: its corners and those halfway
between them. Two neighbouring points are joined where the fluid can go straight from one to the
other, which is found by going as far as the signed distance allows, again and again: no plate is
too thin for that. A cell holds the fluid of one side: that of its largest set of joined points. A
face is open as far as its points belong to the sets of both its cells. So every way through open
faces is a way that the fluid could go.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.base import Numbers, Points
from hybrid_nbody.fluid.obstacles.images import Image, union
from hybrid_nbody.fluid.obstacles.search import REACH, Cells, centres

SKIN = 0.01
"""Distance in cells within which a point counts as solid: gaps of twice that are closed."""

CORNERS = np.stack(np.meshgrid(*[[0, 1, 2]] * 3, indexing="ij")[::-1], axis=-1).reshape(27, 3)
"""The points of a cell in half cells from its low corner: x, y, z, x fastest."""

WEIGHTS = np.array([0.25, 0.5, 0.25])
_PLACES = np.arange(27).reshape(3, 3, 3)
FACES = tuple(
    np.ascontiguousarray(np.take(_PLACES, side, axis).reshape(9))
    for axis in (2, 1, 0)
    for side in (0, 2)
)
"""The points of each face among those of a cell: x-, x+, y-, y+, z-, z+."""

FACE_WEIGHTS = np.multiply.outer(WEIGHTS, WEIGHTS).reshape(9)
CELL_WEIGHTS = np.multiply.outer(WEIGHTS, np.multiply.outer(WEIGHTS, WEIGHTS)).reshape(27)


@dataclass(frozen=True)
class NearCells:
    """Cells near a surface.

    Attributes
    ----------
    distance : array of float64, shape (n, 27)
        Signed distances at the points of each cell.
    fluid : array of bool, shape (n, 27)
        Points in the fluid and not within `SKIN` of a surface.
    main : array of bool, shape (n, 27)
        Those that belong to the side of the cell.
    """

    distance: Numbers
    fluid: NDArray[np.bool_]
    main: NDArray[np.bool_]


@dataclass(frozen=True)
class Net:
    """The points of all near cells, each once.

    Attributes
    ----------
    keys : array of int64, shape (m, 3)
        Their places in half cells, in ascending order of the last, then the second.
    of_cells : array of intp, shape (n, 27)
        The number of each point of each cell.
    near : array of bool, shape (images, m)
        Which images may be near each point.
    h : float
    """

    keys: Cells
    of_cells: NDArray[np.intp]
    near: NDArray[np.bool_]
    h: float

    @property
    def points(self) -> Points:
        """Return the places of its points."""
        return self.keys.astype(np.float64) * (0.5 * self.h)


def reaching(images: Sequence[Image], cells: Cells, h: float) -> NDArray[np.bool_]:
    """Return which images are within reach of cells near a surface, shape (images, n).

    If there is but one, the surface is its own.
    """
    if len(images) == 1:
        return np.ones((1, len(cells)), np.bool_)
    found = np.zeros((len(images), len(cells)), np.bool_)
    middles = centres(cells, h)
    for image, near in zip(images, found, strict=True):
        near[:] = image.distance(middles) <= REACH * h
    return found


def near_cells(
    images: Sequence[Image], reaching: NDArray[np.bool_], cells: Cells, h: float
) -> NearCells:
    """Return the distances at the points of cells, and which points are of the cell's side.

    Parameters
    ----------
    images : sequence of Image
    reaching : array of bool, shape (images, n)
        Which images are within reach of each cell.
    cells : array of int64, shape (n, 3)
        Indices i, j, k of the cells near a surface.
    h : float
        Edge of a cell.
    """
    net = _net(reaching, cells, h)
    distances = union(images, net.points, net.near)
    joined = [_joined(images, net, distances, axis) for axis in range(3)]
    fluid = (distances > SKIN * h)[net.of_cells]
    found = labels(fluid, [along[net.of_cells] for along in joined])
    return NearCells(distances[net.of_cells], fluid, fluid & (found == _largest(found)))


def _net(reaching: NDArray[np.bool_], cells: Cells, h: float) -> Net:
    """Return the points of cells, each once."""
    places = (2 * cells[:, None] + CORNERS).reshape(-1, 3)
    number, of_places = _numbered(places)
    keys = np.empty((number, 3), np.int64)
    keys[of_places] = places
    of_cells = of_places.reshape(-1, 27)
    near = np.zeros((len(reaching), number), np.bool_)
    for cells_of_image, points_of_image in zip(reaching, near, strict=True):
        points_of_image[of_cells[cells_of_image]] = True
    return Net(keys, of_cells, near, h)


def _numbered(places: Cells) -> tuple[int, NDArray[np.intp]]:
    """Return how many places are different, and the number of each, in ascending order of z, y, x.

    They are marked in a table, which is faster than to sort them; planes without any are left out.
    """
    x, y, z = ((column - column.min(initial=0)) for column in places.T)
    z = _ranks(z, int(z.max(initial=0)) + 1)[z]
    planes, rows, columns = (int(along.max(initial=0)) + 1 for along in (z, y, x))
    flat = (z * np.int64(rows) + y) * columns + x
    numbers = _ranks(flat, planes * rows * columns)
    of_places = numbers[flat].astype(np.intp)
    return int(of_places.max(initial=-1)) + 1, of_places


def _ranks(values: NDArray[np.int64], length: int) -> NDArray[np.int32]:
    """Return a table of how many different values are less than each that is among some."""
    marks = np.zeros(length, np.bool_)
    marks[values] = True
    found = np.empty(length, np.int32)
    some = np.flatnonzero(marks)
    found[some] = np.arange(len(some), dtype=np.int32)
    return found


def _joined(images: Sequence[Image], net: Net, distances: Numbers, axis: int) -> NDArray[np.bool_]:
    """Return whether the fluid can go straight from each point to the next along an axis."""
    start, end = _pairs(net, axis)
    skin = SKIN * net.h
    wet = (distances[start] > skin) & (distances[end] > skin)
    start, end = start[wet], end[wet]
    free = distances[start] + distances[end] > 0.5 * net.h
    doubtful = np.flatnonzero(~free)
    way = Way(net.points[start[doubtful]], axis, 0.5 * net.h - distances[end[doubtful]])
    near = net.near[:, start[doubtful]] | net.near[:, end[doubtful]]
    free[doubtful] = _passable(images, way, distances[start[doubtful]], near, skin)
    joined = np.zeros(len(distances), np.bool_)
    joined[start] = free
    return joined


def _pairs(net: Net, axis: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the numbers of points that are neighbours along an axis in some cell, low and high."""
    stride = 3**axis
    low = np.flatnonzero(CORNERS[:, axis] < 2)
    following = np.full(len(net.keys), -1, np.intp)
    following[net.of_cells[:, low]] = net.of_cells[:, low + stride]
    start = np.flatnonzero(following >= 0)
    return start, following[start]


@dataclass(frozen=True)
class Way:
    """Straight ways along an axis: where they start, and how far they are to be gone."""

    start: Points
    axis: int
    reach: Numbers


def _passable(
    images: Sequence[Image],
    way: Way,
    gone: Numbers,
    near: NDArray[np.bool_],
    skin: float,
) -> NDArray[np.bool_]:
    """Return which ways are free, going on by the signed distance until it is less than the skin.

    Parameters
    ----------
    gone : array of float64, shape (n,)
        The signed distances at the starts.
    near : array of bool, shape (images, n)
    """
    free = gone >= way.reach
    going = np.flatnonzero(~free)
    gone = gone.copy()
    while len(going):
        points = way.start[going]
        points[:, way.axis] += gone[going]
        step = union(images, points, near[:, going])
        gone[going] += step
        arrived = gone[going] >= way.reach[going]
        free[going[arrived & (step > skin)]] = True
        going = going[~arrived & (step > skin)]
    return free


def labels(fluid: NDArray[np.bool_], joined: list[NDArray[np.bool_]]) -> NDArray[np.int8]:
    """Return for each of 27 points the lowest that is joined to it; 27: it is solid."""
    found = np.where(fluid, np.arange(27, dtype=np.int8), np.int8(27)).reshape(-1, 3, 3, 3)
    links = [along.reshape(-1, 3, 3, 3) for along in joined]
    changed = np.ones(len(found), np.bool_)
    while changed.any():
        some = found[changed]
        before = some.copy()
        for axis, along in enumerate(links):
            _spread(some, along[changed], 3 - axis)
        found[changed] = some
        changed[changed] = (some != before).any(axis=(1, 2, 3))
    return found.reshape(-1, 27)


def _spread(labels: NDArray[np.int8], link: NDArray[np.bool_], axis: int) -> None:
    """Give neighbours that are joined along an axis of an array the lower label of both."""
    label = np.moveaxis(labels, axis, 0)
    joined = np.moveaxis(link, axis, 0)
    for low in (0, 1, 0):
        lower = np.minimum(label[low], label[low + 1])
        label[low] = np.where(joined[low], lower, label[low])
        label[low + 1] = np.where(joined[low], lower, label[low + 1])


def _largest(labels: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the label of the largest set of each cell, shape (n, 1), the lowest of equals."""
    sizes = np.zeros((len(labels), 27))
    rows = np.arange(len(labels))
    for place, weight in enumerate(CELL_WEIGHTS):
        wet = labels[:, place] < 27
        sizes[rows[wet], labels[wet, place]] += weight
    largest: NDArray[np.int8] = sizes.argmax(axis=1).astype(np.int8)[:, None]
    return largest
