"""Tables of velocities at points of a face: files and the interpolation between their points.

A CSV file names its columns in its first line, an NPZ file its arrays: ``u``, ``v`` and ``w``, and
one or both coordinates along the face, such as ``y`` and ``z`` for x-. With one coordinate the
velocity is the same along the other.
"""

import csv
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.files.untrusted import DAMAGED_ARCHIVE

Array = NDArray[np.float64]
Interpolation = Callable[[Array], Array]
"""Returns the velocities (n, 3) at points (n, 3)."""

AXES = "xyz"
COMPONENTS = ("u", "v", "w")
LARGEST = 2**26
"""Bytes of a file, at most."""

MOST_SCATTERED = 10_000
"""Points that are no grid, at most: some points of a face are looked for in all their triangles."""

AT_AN_EDGE = 1e-6
"""Share of a corner up to which a place is taken to be at the edge of a triangle."""


def read_table(path: str, axis: int) -> Interpolation:
    """Return the velocity at a face across an axis, as a file has it.

    Parameters
    ----------
    path : str
        A CSV or NPZ file; see the module.
    axis : int
        0, 1 or 2.

    Raises
    ------
    ValueError
        If it is no table of velocities at points of that face; the message says why.
    OSError
        If the file cannot be read.
    """
    if Path(path).stat().st_size > LARGEST:
        raise ValueError(f"is larger than {LARGEST >> 20} MiB; a profile is a small table")
    columns = _npz(path) if path.lower().endswith(".npz") else _csv(path)
    along = [i for i in range(3) if i != axis and AXES[i] in columns]
    _check(columns, along, axis)
    places = np.stack([columns[AXES[i]] for i in along], axis=1)
    velocities = np.stack([columns[name] for name in COMPONENTS], axis=1)
    return _Along(tuple(along), _interpolation(places, velocities))


@dataclass(frozen=True)
class _Along:
    """An interpolation along some axes of the box, asked for points of it."""

    axes: tuple[int, ...]
    interpolation: Interpolation

    def __call__(self, points: Array) -> Array:
        return self.interpolation(np.ascontiguousarray(points[:, list(self.axes)]))


def _check(columns: Mapping[str, Array], along: list[int], axis: int) -> None:
    """Refuse columns that are no velocities at points of a face."""
    wanted = f"columns u, v, w and {' and '.join(c for i, c in enumerate(AXES) if i != axis)}"
    missing = [name for name in COMPONENTS if name not in columns]
    if missing or not along:
        found = ", ".join(columns) or "none"
        raise ValueError(f"has the columns {found}; a profile of this face has the {wanted}")
    used = [columns[name] for name in (*COMPONENTS, *(AXES[i] for i in along))]
    if len({column.shape for column in used}) > 1 or used[0].ndim != 1 or not used[0].size:
        raise ValueError(f"must have as many numbers in each of its {wanted}, at least one")
    if not all(np.isfinite(column).all() for column in used):
        raise ValueError("has an entry that is not a finite number")


def _csv(path: str) -> dict[str, Array]:
    """Return the columns of a CSV file by their names."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header, *rows = (row for row in csv.reader(file) if row and any(row))
    except (UnicodeDecodeError, csv.Error, ValueError):
        raise ValueError("is no CSV file with a line of names and lines of numbers") from None
    names = [name.strip() for name in header]
    if any(len(row) != len(names) for row in rows):
        raise ValueError(
            f"must have {len(names)} numbers in each line, as its first line has names"
        )
    return dict(zip(names, _transposed(rows, len(names)), strict=True))


def _transposed(rows: list[list[str]], width: int) -> Iterator[Array]:
    """Yield the columns of a table of numbers."""
    try:
        table = np.array([[float(entry) for entry in row] for row in rows]).reshape(-1, width)
    except ValueError as error:
        raise ValueError(f"has an entry that is no number: {error}") from None
    yield from np.ascontiguousarray(table.T)


def _npz(path: str) -> dict[str, Array]:
    """Return the arrays of an NPZ file by their names."""
    if _unpacked(path) > LARGEST:
        raise ValueError(f"unpacks to more than {LARGEST >> 20} MiB; a profile is a small table")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name], dtype=np.float64).ravel() for name in file.files}
    except (*DAMAGED_ARCHIVE, TypeError, AttributeError) as error:
        raise ValueError(f"is no NPZ file of arrays of numbers: {error}") from None


def _unpacked(path: str) -> int:
    """Return the bytes that an archive says it unpacks to; 0 of what is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    except DAMAGED_ARCHIVE:
        return 0


# --- between the points ---------------------------------------------------------------------------


def _interpolation(places: Array, velocities: Array) -> Interpolation:
    """Return the interpolation between places (n, 1 or 2) with velocities (n, 3)."""
    edges = [np.unique(column) for column in places.T]
    number = len(places)
    if len(np.unique(places, axis=0)) < number:
        raise ValueError("has a point twice")
    if np.prod([len(edge) for edge in edges]) == number:
        return _OnGrid(edges, velocities[np.lexsort(places.T[::-1])])
    if number > MOST_SCATTERED:
        raise ValueError(
            f"has {number} points that are no grid of rows and columns; {MOST_SCATTERED} at most, "
            "or a full grid of any size"
        )
    return _Scattered(places, velocities)


class _OnGrid:
    """Linear interpolation along one axis, bilinear along two."""

    def __init__(self, edges: list[Array], values: Array) -> None:
        self.edges = edges
        self.grid = values.reshape(len(edges[0]), -1, 3)

    def __call__(self, places: Array) -> Array:
        i, share = _place(self.edges[0], places[:, 0])
        next_i = np.minimum(i + 1, self.grid.shape[0] - 1)
        low = self._in_row(i, places)
        high = self._in_row(next_i, places)
        return _between(low, high, share)

    def _in_row(self, i: NDArray[np.intp], places: Array) -> Array:
        """Return the values in rows of the grid, each at its place along the second axis."""
        if len(self.edges) == 1:
            return np.asarray(self.grid[i, 0])
        j, share = _place(self.edges[1], places[:, 1])
        next_j = np.minimum(j + 1, self.grid.shape[1] - 1)
        return _between(self.grid[i, j], self.grid[i, next_j], share)


def _between(low: Array, high: Array, share: Array) -> Array:
    """Return values (n, 3) between two of them, at a share of the way."""
    return np.asarray((1.0 - share)[:, None] * low + share[:, None] * high)


def _place(edge: Array, at: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the interval of an edge in which points are, and how far in it, from 0 to 1."""
    if len(edge) == 1:
        return np.zeros(len(at), dtype=np.intp), np.zeros(len(at))
    low = np.clip(np.searchsorted(edge, at, side="right") - 1, 0, len(edge) - 2)
    share = (at - edge[low]) / (edge[low + 1] - edge[low])
    return low, np.clip(share, 0.0, 1.0)


class _Scattered:
    """Linear interpolation in triangles between points; beyond them the nearest point's value."""

    def __init__(self, places: Array, velocities: Array) -> None:
        from scipy.spatial import Delaunay, QhullError, cKDTree

        try:
            self.triangles = Delaunay(places)
        except (QhullError, ValueError):
            raise ValueError(
                "has points that span no area; give one coordinate alone for points on a line"
            ) from None
        self.nearest = cKDTree(places)
        self.velocities = velocities

    def __call__(self, places: Array) -> Array:
        found = self._triangles_at(places)
        corners = self.velocities[self.triangles.simplices[found]]
        inside = (self._shares(places, found)[:, :, None] * corners).sum(axis=1)
        beyond = self.velocities[self.nearest.query(places)[1]]
        velocities: Array = np.where((found >= 0)[:, None], inside, beyond)
        return velocities

    def _triangles_at(self, places: Array) -> NDArray[np.intp]:
        """Return the number of the triangle in which each place is, -1 for none.

        The quick search begins at the place before: at a common edge it finds either triangle, and
        ranks would have other bits. Places there are looked for in all triangles, in their order.
        """
        found = np.asarray(self.triangles.find_simplex(places), dtype=np.intp)
        clear = (found >= 0) & (self._shares(places, found).min(axis=1) > AT_AN_EDGE)
        found[~clear] = self.triangles.find_simplex(places[~clear], bruteforce=True)
        return found

    def _shares(self, places: Array, triangles: NDArray[np.intp]) -> Array:
        """Return the shares of the three corners of triangles in places within them."""
        transform = self.triangles.transform[triangles]
        x, y = (places - transform[:, 2]).T
        first = transform[:, 0, 0] * x + transform[:, 0, 1] * y
        second = transform[:, 1, 0] * x + transform[:, 1, 1] * y
        return np.stack([first, second, 1.0 - first - second], axis=1)
