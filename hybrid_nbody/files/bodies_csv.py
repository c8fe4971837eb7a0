"""Bodies from a CSV table: in space, or in a plane as the course writes them."""

import codecs
import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import InputError

COLUMNS = ("x", "y", "z", "vx", "vy", "vz", "m")
"""Columns of a table of bodies in space."""

PLANE_COLUMNS = ("x", "y", "vx", "vy", "m")
"""Columns of a table of bodies in a plane."""

ID = "id"
"""A column that every table may have besides: whole numbers that tell the bodies apart."""

MOST = 2**63
"""Identities are below this number, and not below its negative."""

RANDOM_SPEED = 0.5
"""Largest component of a random velocity; the range has the width of the unit square."""

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """The cells of a table: N rows of C columns.

    Attributes
    ----------
    numbers : (N, C) array of float64
        Zero where a cell is empty.
    empty : (N, C) array of bool
        Whether a random number is wanted.
    """

    numbers: Table
    empty: NDArray[np.bool_]


def read_csv(path: Path, seed: int) -> tuple[Table, NDArray[np.int64] | None]:
    """Read a table of bodies.

    Parameters
    ----------
    path : Path
        A table with the header row ``x,y,z,vx,vy,vz,m``, or in the course's format: columns
        ``x,y,vx,vy,m`` with or without a header row, where a number may end in ``f`` and an empty
        cell stands for a random number. Columns are in the order of the header; lines that start
        with ``#`` are comments. A header row may name a column ``id`` besides.
    seed : int
        Seed of the random numbers: those of a body depend on it and on the body's row alone.

    Returns
    -------
    (N, 7) array of float64
        Position, velocity and mass of each body.
    (N,) array of int64, or None
        The identities of the bodies, if the table has them.

    Raises
    ------
    InputError
        A line is wrong; the message names it, and the column.
    """
    lines = _lines(path)
    number, line = next(lines, (1, ""))
    where = f"{path}:{number}"
    cells = _cells(line)
    layout = SPACE if SPACE.owns(cells) else PLANE
    columns: Sequence[str]
    titled = bool(set(cells) & set(COLUMNS))
    names = _header(where, cells, layout.columns) if titled else []
    identities = Identities(names)
    rows = Rows()
    if titled:
        columns = [name for name in names if name != ID]
    else:
        columns = layout.untitled(where, line, cells)
        rows.add(layout.row(where, columns, cells))
    for number, line in lines:
        where = f"{path}:{number}"
        rows.add(layout.row(where, columns, identities.taken(where, _cells(line))))
    return layout.complete(rows.cells(columns, layout.columns), seed), identities.found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that are neither empty nor comments."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            line = _decoded(f"{path}:{number}", raw).strip()
            if line and not line.startswith("#"):
                yield number, line


def _decoded(where: str, raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise InputError(f"{where}: not UTF-8 text ({byte}); save the file as UTF-8") from None
    if "\0" in text:
        raise InputError(f"{where}: neither a CSV table, nor HDF5, nor a NumPy archive")
    return text


def _cells(line: str) -> list[str]:
    return [cell.strip(' \t"') for cell in line.split(",")]


def _header(where: str, names: list[str], columns: tuple[str, ...]) -> Sequence[str]:
    """Return the names of a header row after checking that it has every column once."""
    wanted = ",".join(columns)
    for name in names:
        if name not in (*columns, ID):
            raise InputError(f"{where}: unknown column '{short(name)}'; the columns are {wanted}")
        if names.count(name) > 1:
            raise InputError(f"{where}: column '{name}' appears {names.count(name)} times")
    missing = [name for name in columns if name not in names]
    if missing:
        raise InputError(
            f"{where}: missing column {', '.join(map(repr, missing))}; the columns are {wanted}"
        )
    return names


class Identities:
    """The column of identities of a table, which float64 would not hold.

    Parameters
    ----------
    names : sequence of str
        The names of the columns.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._place = names.index(ID) if ID in names else None
        self._columns = len(names)
        self._found = array("q")

    @property
    def found(self) -> NDArray[np.int64] | None:
        """Return the identities taken so far; None without such a column."""
        return None if self._place is None else np.array(self._found, dtype=np.int64)

    def taken(self, where: str, cells: list[str]) -> list[str]:
        """Return the other cells of a row."""
        if self._place is None:
            return cells
        if len(cells) > self._columns:
            raise too_many_cells(where, cells, self._columns)
        if self._place >= len(cells):
            raise InputError(f"{where}: column '{ID}': missing")
        self._found.append(_identity(where, cells.pop(self._place)))
        return cells


def _identity(where: str, cell: str) -> int:
    digits = cell.lstrip("+-")
    is_whole = digits.isascii() and digits.isdecimal() and len(digits) < 20
    if not is_whole or len(cell) - len(digits) > 1:
        raise InputError(f"{where}: column '{ID}': not a whole number (got '{short(cell)}')")
    if not -MOST <= int(cell) < MOST:
        raise InputError(f"{where}: column '{ID}': beyond 64 bits (got '{short(cell)}')")
    return int(cell)


def too_many_cells(where: str, cells: Sequence[str], columns: int) -> InputError:
    """Return the error of a row that is longer than the header."""
    return InputError(f"{where}: {len(cells)} cells, but the header has {columns} columns")


# --- rows -----------------------------------------------------------------------------------------


class Rows:
    """The rows of a table while it is read."""

    def __init__(self) -> None:
        self.numbers = array("d")  # 8 bytes a number: 56 MB for a million bodies
        self.empty = array("q")  # indices into the numbers

    def add(self, row: Sequence[float | None]) -> None:
        """Add a row, whose empty cells are None."""
        if None in row:
            first = len(self.numbers)
            self.empty.extend(first + i for i, number in enumerate(row) if number is None)
            row = [0.0 if number is None else number for number in row]
        self.numbers.extend(cast("Sequence[float]", row))

    def cells(self, columns: Sequence[str], order: Sequence[str]) -> Cells:
        """Return the cells of rows with the given columns, these in another order."""
        numbers = np.array(self.numbers)
        empty = np.zeros(len(numbers), bool)
        empty[np.array(self.empty)] = True
        indices = [columns.index(name) for name in order]
        rows = (-1, len(columns))
        return Cells(numbers.reshape(rows)[:, indices], empty.reshape(rows)[:, indices])


@dataclass(frozen=True)
class Layout:
    """The columns of a table and how its cells are read.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    owns : callable
        Takes the cells of the first line; returns whether the table has this layout.
    untitled : callable
        Takes location, text and cells of a first line that is not a header; returns the columns.
    number : callable
        Takes a cell that Python cannot convert; returns a number, None where a random one is
        wanted, or raises ValueError.
    complete : callable
        Takes the cells, their columns in the order of `columns`, and a seed; returns the (N, 7)
        table of all columns.
    """

    columns: tuple[str, ...]
    owns: Callable[[list[str]], bool]
    untitled: Callable[[str, str, list[str]], Sequence[str]]
    number: Callable[[str], float | None]
    complete: Callable[[Cells, int], Table]

    def row(self, where: str, columns: Sequence[str], cells: list[str]) -> Sequence[float | None]:
        """Return the numbers of a line, or raise an InputError that names line and column."""
        if len(cells) > len(columns):
            raise too_many_cells(where, cells, len(columns))
        try:
            numbers = [float(cell) for cell in cells]
        except ValueError:
            numbers = []
        row: Sequence[float | None] = numbers
        is_plain = len(numbers) == len(columns) and "_" not in "".join(cells)
        if not is_plain or not all(map(math.isfinite, numbers)):
            row = self._slowly(where, columns, cells)
        mass = row[columns.index("m")]
        if mass is not None and mass < 0:
            raise InputError(
                f"{where}: column 'm': negative mass (got '{cells[columns.index('m')]}')"
            )
        return row

    def _slowly(self, where: str, columns: Sequence[str], cells: list[str]) -> list[float | None]:
        """Return the numbers of a line that Python cannot convert, or that lacks cells."""
        numbers: list[float | None] = []
        for index, column in enumerate(columns):
            if index >= len(cells):
                raise InputError(f"{where}: column '{column}': missing")
            numbers.append(self._number(f"{where}: column '{column}'", cells[index]))
        return numbers

    def _number(self, where: str, cell: str) -> float | None:
        try:
            number = _plain_number(cell)
        except ValueError:
            return self._other_number(where, cell)
        if not math.isfinite(number):
            raise InputError(f"{where}: not finite (got '{short(cell)}')")
        return number

    def _other_number(self, where: str, cell: str) -> float | None:
        try:
            return self.number(cell)
        except ValueError:
            what = f"not a number (got '{short(cell)}')" if cell else "missing"
            raise InputError(f"{where}: {what}") from None


def _plain_number(cell: str) -> float:
    """Convert a number as other programs do; they do not know 1_000."""
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def short(text: str, length: int = 60) -> str:
    """Return the beginning of a text, to be quoted in a message."""
    return text if len(text) <= length else text[:length] + "…"


# --- in space -------------------------------------------------------------------------------------


def _is_in_space(cells: list[str]) -> bool:
    """Return whether a first line is neither a header nor a row of bodies in a plane."""
    is_header = bool(set(cells) & set(COLUMNS))
    if is_header:
        return not set(cells) <= {*PLANE_COLUMNS, ID}
    return len(cells) != len(PLANE_COLUMNS)


def _header_needed(where: str, line: str, cells: list[str]) -> NoReturn:
    wanted = f"{','.join(COLUMNS)}, or {','.join(PLANE_COLUMNS)} of bodies in a plane"
    raise InputError(f"{where}: expected the header row {wanted} (got '{short(line)}')")


def _no_other_number(cell: str) -> NoReturn:
    raise ValueError(cell)


SPACE = Layout(
    COLUMNS, _is_in_space, _header_needed, _no_other_number, lambda cells, seed: cells.numbers
)


# --- in a plane -----------------------------------------------------------------------------------

_WITH_F = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]")


def _course_number(cell: str) -> float | None:
    """Convert a number of C, such as ``0.5f``; return None for an empty cell."""
    if not cell:
        return None
    found = _WITH_F.fullmatch(cell)
    number = float(found[1]) if found else math.inf
    if not math.isfinite(number):
        raise ValueError(cell)
    return number


def _completed(cells: Cells, seed: int) -> Table:
    """Return bodies of a plane with z = 0; empty cells become random numbers, masses 1 / N."""
    number = len(cells.numbers)
    drawn = np.random.default_rng(seed).uniform(0, 1, (number, 4))
    drawn[:, 2:] = RANDOM_SPEED * (2 * drawn[:, 2:] - 1)
    drawn = np.column_stack([drawn, np.full(number, 1 / max(number, 1))])
    x, y, vx, vy, mass = np.where(cells.empty, drawn, cells.numbers).T
    zero = np.zeros_like(x)
    return np.column_stack([x, y, zero, vx, vy, zero, mass])


PLANE = Layout(
    PLANE_COLUMNS,
    lambda cells: not _is_in_space(cells),
    lambda *_: PLANE_COLUMNS,
    _course_number,
    _completed,
)
