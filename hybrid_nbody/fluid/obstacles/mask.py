"""Surfaces of masks: arrays that say of each cell whether it is solid, or which share of it is.

A mask of 0 and 1 has the faces between its solid cells and others as its surface, a staircase. One
with shares in between has the surface on which the share, interpolated between the centres of
cells, is one half: each cube of eight centres is cut into six tetrahedra, in which the interpolant
is linear. Both are closed; beyond the box all is fluid.
"""

from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.fluid.obstacles.stl import Triangles

Shares = NDArray[np.float64]
Edge = tuple[int, int]
Cells = tuple[int, int, int]


def read_mask(path: str | Path, cells: Cells) -> Shares:
    """Return the solid share of each cell.

    Parameters
    ----------
    path : str or path-like
        A file of NumPy, .npy, with an array of the shape (nz, ny, nx) of bool, or of numbers from 0
        (fluid) to 1 (solid).
    cells : tuple of int
        nx, ny, nz of the grid.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it holds no such array, or nothing solid.
    """
    mask = _array(path)
    shape = cells[::-1]
    if mask.shape != shape:
        raise ValueError(f"has the shape {mask.shape}; the grid has (nz, ny, nx) = {shape}")
    if mask.dtype.kind not in "biuf":
        raise ValueError(f"holds {mask.dtype}; must be bool, or numbers from 0 to 1")
    shares: Shares = mask.astype(np.float64)
    bad = ~((shares >= 0.0) & (shares <= 1.0))
    if bad.any():
        place = tuple(int(index) for index in np.argwhere(bad)[0])
        raise ValueError(f"is {shares[place]:g} at {list(place)}; must be from 0 to 1")
    if shares.max() < 0.5:
        raise ValueError("has no solid cell: no share of one half or more")
    return shares


def _array(path: str | Path) -> NDArray[np.generic]:
    """Return the array of a file, of which no more is read than the file holds."""
    try:
        mask = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OverflowError):
        raise ValueError("is no array that numpy.save wrote") from None
    if not isinstance(mask, np.ndarray):
        raise ValueError("holds several arrays; write one with numpy.save")
    return mask


def triangles_of(shares: Shares) -> Triangles:
    """Return the surface of a mask in units of the box.

    Parameters
    ----------
    shares : array of float64, shape (nz, ny, nx)

    Returns
    -------
    array of float64, shape (n, 3, 3)
        Closed; counterclockwise as seen from outside.
    """
    h = 1.0 / max(shares.shape)
    padded = np.pad(shares, 1)
    is_plain = np.isin(shares, (0.0, 1.0)).all()
    found: Triangles = h * (_staircase(padded > 0.5) if is_plain else _level(padded))
    return found


# --- staircases -----------------------------------------------------------------------------------


def _staircase(solid: NDArray[np.bool_]) -> Triangles:
    """Return the faces between solid and other cells, two triangles each, in cells."""
    found = []
    for axis in range(3):
        step = np.diff(solid.astype(np.int8), axis=2 - axis)
        for sign in (-1, 1):
            corners = np.argwhere(step == sign)[:, ::-1].astype(np.float64)
            corners[:, [other for other in range(3) if other != axis]] -= 1.0
            found.append(_squares(corners, axis)[:, ::-sign])
    return np.concatenate(found)


def _squares(corners: Shares, axis: int) -> Triangles:
    """Return the triangles of unit squares from their lowest corners, facing up an axis."""
    u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
    parts = np.array([[0.0 * u, u, u + v], [0.0 * u, u + v, v]])
    squares: Triangles = (corners[:, None, None] + parts).reshape(-1, 3, 3)
    return squares


# --- surfaces of equal share ----------------------------------------------------------------------


def _level(shares: Shares) -> Triangles:
    """Return the surface where the interpolated share is one half, in cells."""
    solid = shares >= 0.5
    corners = [solid[_part(offset)] for offset in np.ndindex(2, 2, 2)]
    some = np.logical_or.reduce(corners) & ~np.logical_and.reduce(corners)
    cubes = np.argwhere(some)
    found = [np.empty((0, 3, 3))]
    for order in permutations(range(3)):
        steps = np.cumsum([[0, 0, 0], *np.eye(3, dtype=np.int64)[list(order)]], axis=0)
        places = cubes[:, None] + steps
        found += list(_in_tetrahedra(shares, places, _parity((*order, 3))))
    return np.concatenate(found)


def _part(offset: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the slices of an array that hold one corner of each cube."""
    return tuple(slice(1, None) if step else slice(None, -1) for step in offset)


def _in_tetrahedra(shares: Shares, places: NDArray[np.int64], parity: int) -> Iterator[Triangles]:
    """Yield the surface in tetrahedra.

    Parameters
    ----------
    places : array of int64, shape (n, 4, 3)
        Their corners k, j, i, from the lowest to the highest.
    parity : int
        Of the axes k, j, i in the order of the corners.
    """
    values = shares[tuple(np.moveaxis(places, -1, 0))]
    pattern = ((values >= 0.5) * np.array([1, 2, 4, 8])).sum(axis=1)
    points = places[..., ::-1] - 0.5  # x, y, z of the centres of cells, less the padding
    for number, triangles in TRIANGLES.items():
        some = pattern == number
        for triangle in triangles:
            corners = [_crossing(points[some], values[some], edge) for edge in triangle]
            # the order of k, j, i is itself the mirror image of x, y, z
            yield np.stack(corners, axis=1)[:, ::-parity]


def _crossing(points: Triangles, values: Shares, edge: Edge) -> Shares:
    """Return where the share is one half on an edge, to the same bits in each tetrahedron."""
    low, high = sorted(edge)
    way = points[:, high] - points[:, low]
    part = (0.5 - values[:, low]) / (values[:, high] - values[:, low])
    crossing: Shares = points[:, low] + part[:, None] * way
    return crossing


def _parity(order: tuple[int, ...]) -> int:
    """Return 1 for an even order of numbers from 0, -1 for an odd one."""
    swaps = sum(a > b for a, b in combinations(order, 2))
    return -1 if swaps % 2 else 1


def _even(first: tuple[int, ...], rest: tuple[int, ...]) -> tuple[int, ...]:
    """Return corners in an even order: two of the rest are swapped if need be."""
    order = (*first, *rest)
    return order if _parity(order) > 0 else (*order[:-2], order[-1], order[-2])


def _patterns() -> dict[int, tuple[tuple[Edge, ...], ...]]:
    """Return, for each set of solid corners of a tetrahedron, triangles as the edges they cross.

    They face away from the solid where the corners 1, 2, 3 are seen counterclockwise from outside.
    """
    found: dict[int, tuple[tuple[Edge, ...], ...]] = {}
    for one in range(4):
        i, j, k, m = _even((one,), tuple(corner for corner in range(4) if corner != one))
        triangle = ((i, j), (i, k), (i, m))
        found[1 << i] = (triangle,)
        found[15 - (1 << i)] = (triangle[::-1],)
    for pair in combinations(range(4), 2):
        i, j, k, m = _even(pair, tuple(corner for corner in range(4) if corner not in pair))
        first, second = ((i, k), (i, m), (j, m)), ((i, k), (j, m), (j, k))
        found[(1 << i) + (1 << j)] = (first, second)
    return found


TRIANGLES = _patterns()
