"""Open shares of squares, cubes: what a linear interpolant of the signed distance leaves positive.

A face has nine values and a cell 27: at its corners and halfway between them. A face is cut into
the eight triangles of its middle, the middle of an edge and a corner; a cell into 48 tetrahedra
likewise. In a simplex the interpolant is linear, and its share is exact. Both are as symmetric as
a square and a cube, so a flow about a symmetric obstacle stays symmetric.
"""

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Share = Callable[..., Numbers]

CHUNK = 1 << 13
"""Faces or cells that are worked on at a time: their numbers stay in the cache."""


def _flags(dimensions: int) -> NDArray[np.intp]:
    """Return the simplices of a square or a cube, as numbers of its 9 or 27 points.

    A simplex goes from the middle along one axis after another to a corner.
    """
    strides = [3**axis for axis in range(dimensions)]
    middle = sum(strides)
    found = []
    for signs in product((-1, 1), repeat=dimensions):
        for order in permutations(range(dimensions)):
            steps = [signs[axis] * strides[axis] for axis in order]
            found.append([middle + sum(steps[:count]) for count in range(dimensions + 1)])
    return np.array(found)


TRIANGLES = _flags(2)
TETRAHEDRA = _flags(3)


def face_shares(distances: Numbers) -> Numbers:
    """Return the open share of faces.

    Parameters
    ----------
    distances : array of float64, shape (n, 9)
        Signed distances at the points of each face, row by row.

    Returns
    -------
    array of float64, shape (n,)
        0 where all is solid; a face in the surface, whose distances are all 0, is solid.
    """
    return _mean_share(distances, TRIANGLES, _triangle_shares)


def cell_shares(distances: Numbers) -> Numbers:
    """Return the open share of cells with signed distances at 27 points each, shape (n, 27)."""
    return _mean_share(distances, TETRAHEDRA, _tetrahedron_shares)


def _mean_share(distances: Numbers, simplices: NDArray[np.intp], share_of: Share) -> Numbers:
    """Return the mean share of simplices of equal size, one after another to the same bits."""
    shares = np.empty(len(distances))
    for start in range(0, len(distances), CHUNK):
        some = slice(start, start + CHUNK)
        points = np.ascontiguousarray(distances[some].T)
        is_open = points.max(axis=0) > 0.0
        shares[some] = is_open
        cut = np.flatnonzero((points.min(axis=0) < 0.0) & is_open)
        shares[some][cut] = _mean_share_of_cut(points[:, cut], simplices, share_of)
    return shares


def _mean_share_of_cut(points: Numbers, simplices: NDArray[np.intp], share_of: Share) -> Numbers:
    """Return the mean share of simplices from the values at points, shape (9 or 27, n)."""
    total = np.zeros(points.shape[1])
    for corners in simplices:
        total += share_of(*_ascending([points[corner] for corner in corners]))
    return total / len(simplices)


def _ascending(columns: list[Numbers]) -> list[Numbers]:
    """Return columns whose values ascend from one to the next: a sort of very few values."""
    for end in range(len(columns) - 1, 0, -1):
        for place in range(end):
            pair = columns[place], columns[place + 1]
            columns[place] = np.minimum(*pair)
            columns[place + 1] = np.maximum(*pair)
    return columns


def _triangle_shares(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    """Return the positive share of triangles from the ascending values at their corners."""
    one = _ratio(c, a) * _ratio(c, b)
    two = 1.0 - _ratio(-a, -b) * _ratio(-a, -c)
    return np.select([c <= 0.0, b <= 0.0, a < 0.0], [np.zeros_like(a), one, two], 1.0)


def _tetrahedron_shares(a: Numbers, b: Numbers, c: Numbers, d: Numbers) -> Numbers:
    """Return the positive share of tetrahedra from the ascending values at their corners."""
    one = _ratio(d, a) * _ratio(d, b) * _ratio(d, c)
    three = 1.0 - _ratio(-a, -b) * _ratio(-a, -c) * _ratio(-a, -d)
    cases = [d <= 0.0, c <= 0.0, b <= 0.0, a < 0.0]
    return np.select(cases, [np.zeros_like(a), one, _prism_shares(a, b, c, d), three], 1.0)


def _prism_shares(a: Numbers, b: Numbers, c: Numbers, d: Numbers) -> Numbers:
    """Return the share at c and d of tetrahedra that are cut between a, b and c, d."""
    ca = _ratio(c, a)
    cb = _ratio(c, b)
    db = _ratio(d, b)
    return ca * cb + _ratio(d, a) * db * (1.0 - ca) + ca * (1.0 - cb) * db


def _ratio(positive: Numbers, other: Numbers) -> Numbers:
    """Return how far the positive side reaches on an edge; 0 where the edge is not cut."""
    cut = (positive > 0.0) & (other <= 0.0)
    return np.where(cut, positive, 0.0) / np.where(cut, positive - other, 1.0)
