"""Bodies as a file holds them, read and checked some rows at a time."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid_nbody.errors import InputError

Array = NDArray[Any]

PIECE = 1 << 16
"""Rows that are read and checked at a time."""


@dataclass(frozen=True, eq=False)
class BodiesTable:
    """Bodies in the order of their file.

    Attributes
    ----------
    position : ndarray
        (N, 3) float64, in the units of length.
    velocity : ndarray
        (N, 3) float64, in the units of velocity.
    mass : ndarray
        (N,) float64, in the units of mass; none is negative.
    id : ndarray or None
        (N,) int64, or None if the file has no identities.
    """

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    mass: NDArray[np.float64]
    id: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.mass)

    def __repr__(self) -> str:
        return f"BodiesTable of {len(self)} bodies, total mass {self.mass.sum():g}"


@dataclass(frozen=True)
class Column:
    """An array of a file, whose rows are read when they are asked for.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    read : callable
        ``read(rows)`` returns a slice of rows.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[slice], Array]

    def __len__(self) -> int:
        """Return the number of rows; none of a single number."""
        return self.shape[0] if self.shape else 0


Columns = dict[str, Column]
"""``position``, ``velocity``, ``mass`` and perhaps ``id``."""

Reopened = Callable[[Path, ExitStack], Columns]
"""Opens a file once more that has been checked before."""


def columns_of(arrays: Mapping[str, Any]) -> Columns:
    """Return arrays of NumPy, or data sets of HDF5, as columns."""
    return {
        name: Column(tuple(array.shape or ()), array.dtype, array.__getitem__)
        for name, array in arrays.items()
    }


class StoredBodies:
    """The bodies of an open file, in the order of the file.

    Parameters
    ----------
    path : Path
        Named in messages.
    columns : dict of str to Column
    reopened : callable, optional
        ``reopened(path, opened)`` returns the columns on any rank, and leaves what it opens to
        `opened`. None where the file has been read as a whole.

    Raises
    ------
    InputError
        If an array is not of numbers or has a wrong shape, or there are no bodies.
    """

    def __init__(
        self,
        path: Path,
        columns: Columns,
        reopened: Reopened | None = None,
    ) -> None:
        self.path = path
        self.columns = columns
        self.reopened = reopened
        self.number = len(columns["position"])
        self._check_columns()

    def _check_columns(self) -> None:
        self._check("position", "iuf", "numbers", (self.number, 3))
        if not self.number:
            raise InputError(f"{self.path}: no bodies in it; at least one is needed")
        self._check("velocity", "iuf", "numbers", (self.number, 3))
        self._check("mass", "iuf", "numbers", (self.number,))
        if "id" in self.columns:
            self._check("id", "iu", "whole numbers", (self.number,))

    def _check(self, name: str, kinds: str, what: str, shape: tuple[int, ...]) -> None:
        """Check the type and the shape of an array."""
        found = self.columns[name]
        if found.dtype.kind not in kinds:
            raise InputError(f"{self.path}: {name} holds {found.dtype}, not {what}")
        if found.shape != shape:
            first = name == "position"
            bodies = "for N bodies" if first else f"for the {shape[0]} bodies of position"
            wanted = "(N, 3)" if first else shape
            raise InputError(
                f"{self.path}: {name} has the shape {found.shape}; {bodies} it must be {wanted}"
            )

    def rows(self, first: int, last: int) -> BodiesTable:
        """Return the bodies first … last - 1, in float64 and C order.

        Raises
        ------
        InputError
            If a number is not finite, or a mass negative.
        """
        position = self._numbers("position", first, last)
        velocity = self._numbers("velocity", first, last)
        mass = self._numbers("mass", first, last)
        if mass.min(initial=0.0) < 0:
            worst = int(mass.argmin())
            raise InputError(
                f"{self.path}: mass[{first + worst}] is negative (got {mass[worst]:g})"
            )
        return BodiesTable(position, velocity, mass, self._identities(first, last))

    def pieces(self) -> Iterator[tuple[int, BodiesTable]]:
        """Yield all bodies in pieces, each with the number of its first; errors as of `rows`."""
        for first in range(0, self.number, PIECE):
            yield first, self.rows(first, min(first + PIECE, self.number))

    def check_identities(self) -> None:
        """Check that no two bodies have the same identity; all of them are read for that.

        Raises
        ------
        InputError
            If two have.
        """
        found = self._identities(0, self.number)
        if found is None:
            return
        found = np.sort(found)
        if (found[1:] == found[:-1]).any():
            raise InputError(f"{self.path}: id names some bodies twice")

    def _identities(self, first: int, last: int) -> NDArray[np.int64] | None:
        if "id" not in self.columns:
            return None
        found = np.asarray(self.columns["id"].read(slice(first, last)))
        return found.astype(np.int64, copy=False)

    def _numbers(self, name: str, first: int, last: int) -> NDArray[np.float64]:
        numbers = _as_floats(self.columns[name].read(slice(first, last)))
        bad = np.argwhere(~np.isfinite(numbers))
        if len(bad):
            value = numbers[tuple(bad[0])]
            index = ", ".join(map(str, [first + bad[0][0], *bad[0][1:]]))
            raise InputError(f"{self.path}: {name}[{index}] is not finite (got {value})")
        return numbers


def _as_floats(values: ArrayLike) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float64, order="C")
