"""Bodies from a CSV table: in space, or in a plane as the course writes them."""

import math
import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.errors import InputError

COLUMNS = ("x", "y", "z", "vx", "vy", "vz", "m")
PLANE_COLUMNS = ("x", "y", "vx", "vy", "m")
RANDOM_SPEED = 0.5
"""Components of a velocity that is drawn at random lie within plus and minus this: it is as wide as
the square."""


def read_csv(path, seed: int) -> np.ndarray:
    """Read a table of bodies.

    Parameters
    ----------
    path : Path
        With the header row ``x,y,z,vx,vy,vz,m``, or in the course's format: ``x,y,vx,vy,m``, with a
        header row or without, where a number may carry a trailing ``f`` and an empty cell is drawn
        at random. Columns stand in the order of the header; lines that start with ``#`` are
        comments.
    seed : int
        Of the random numbers: a body's depend on this and on its place in the file alone.

    Returns
    -------
    (N, 7) array of float64
        Position, velocity and mass of each body.

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
    titled = bool(set(cells) & set(COLUMNS))
    columns = (
        _header(where, cells, layout.columns) if titled else layout.untitled(where, line, cells)
    )
    values = array(
        "d", [] if titled else layout.row(where, columns, line)
    )  # 8 bytes a number: 56 MB a million bodies
    for number, line in lines:
        values.extend(layout.row(f"{path}:{number}", columns, line))
    table = np.array(values).reshape(-1, len(columns))
    return layout.complete(table[:, [columns.index(name) for name in layout.columns]], seed)


def _lines(path):
    """Yield (line number, text) of the lines that say something."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            line = _decoded(
                f"{path}:{number}", raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            ).strip()
            if line and not line.startswith("#"):
                yield number, line


def _decoded(where, raw):
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: not UTF-8 text (byte {error.start + 1} is 0x{raw[error.start]:02x}); save the file as UTF-8"
        ) from None
    if "\0" in text:
        raise InputError(f"{where}: neither a CSV table, nor HDF5, nor a NumPy archive")
    return text


def _cells(line):
    return [cell.strip(' \t"') for cell in line.split(",")]


def _header(where, names, columns):
    wanted = ",".join(columns)
    for name in names:
        if name not in columns:
            raise InputError(f"{where}: unknown column '{short(name)}'; the columns are {wanted}")
        if names.count(name) > 1:
            raise InputError(f"{where}: column '{name}' appears {names.count(name)} times")
    missing = [name for name in columns if name not in names]
    if missing:
        raise InputError(
            f"{where}: missing column {', '.join(map(repr, missing))}; the columns are {wanted}"
        )
    return names


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """What the lines of a table hold.

    Attributes
    ----------
    columns : tuple of str
    owns : callable
        Takes the cells of the first line; returns whether the table is of this layout.
    untitled : callable
        Takes place, text and cells of a first line that is no header; returns the columns.
    number : callable
        Takes a cell that Python does not read as a number; returns a number, NaN for one to be
        drawn, or raises ValueError.
    complete : callable
        Takes the table, its columns in the order of `columns`, and a seed; returns the (N, 7) table
        of all columns.
    """

    columns: tuple[str, ...]
    owns: Callable
    untitled: Callable
    number: Callable
    complete: Callable

    def row(self, where, columns, line) -> list[float]:
        """Return the numbers of a line, or raise an InputError that names place and column."""
        cells = _cells(line)
        if len(cells) > len(columns):
            raise InputError(
                f"{where}: {len(cells)} cells, but the header has {len(columns)} columns"
            )
        try:
            numbers = [float(cell) for cell in cells]
        except ValueError:
            numbers = []
        if len(numbers) != len(columns) or "_" in line or not all(map(math.isfinite, numbers)):
            numbers = self._slowly(where, columns, cells)
        if numbers[columns.index("m")] < 0:
            raise InputError(
                f"{where}: column 'm': negative mass (got '{cells[columns.index('m')]}')"
            )
        return numbers

    def _slowly(self, where, columns, cells):
        """Return the numbers of cells of which at least one is none that Python reads, or is missing."""
        numbers = []
        for place, column in enumerate(columns):
            if place >= len(cells):
                raise InputError(f"{where}: column '{column}': missing")
            numbers.append(self._number(f"{where}: column '{column}'", cells[place]))
        return numbers

    def _number(self, where, cell):
        try:
            number = _plain_number(cell)
        except ValueError:
            return self._other_number(where, cell)
        if not math.isfinite(number):
            raise InputError(f"{where}: not finite (got '{short(cell)}')")
        return number

    def _other_number(self, where, cell):
        try:
            return self.number(cell)
        except ValueError:
            what = f"not a number (got '{short(cell)}')" if cell else "missing"
            raise InputError(f"{where}: {what}") from None


def _plain_number(cell):
    """Read a number as other programs do, too: they do not know 1_000."""
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def short(text: str, length: int = 60) -> str:
    """Return a text as a message quotes it: not too much of it."""
    return text if len(text) <= length else text[:length] + "…"


# --- in space -------------------------------------------------------------------------------------


def _names_space(cells):
    """Return whether a first line has names of space, or is neither a header nor a row of bodies in a plane."""
    return (
        not set(cells) <= set(PLANE_COLUMNS)
        if set(cells) & set(COLUMNS)
        else len(cells) != len(PLANE_COLUMNS)
    )


def _header_needed(where, line, cells):
    wanted = f"{','.join(COLUMNS)}, or {','.join(PLANE_COLUMNS)} of bodies in a plane"
    raise InputError(f"{where}: expected the header row {wanted} (got '{short(line)}')")


def _no_other_number(cell):
    raise ValueError(cell)


SPACE = Layout(COLUMNS, _names_space, _header_needed, _no_other_number, lambda table, seed: table)


# --- in a plane -----------------------------------------------------------------------------------

_WITH_F = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]")


def _course_number(cell):
    """Read a number of C, such as ``0.5f``; an empty cell is to be drawn."""
    if not cell:
        return math.nan
    found = _WITH_F.fullmatch(cell)
    number = float(found[1]) if found else math.inf
    if not math.isfinite(number):
        raise ValueError(cell)
    return number


def _lifted(table, seed):
    """Return bodies of a plane with z = 0, what is missing drawn: places in the unit square, the mass 1 / N."""
    drawn = np.random.default_rng(seed).uniform(0, 1, (len(table), 4))
    drawn[:, 2:] = RANDOM_SPEED * (2 * drawn[:, 2:] - 1)
    drawn = np.column_stack([drawn, np.full(len(table), 1 / max(len(table), 1))])
    x, y, vx, vy, mass = np.where(np.isnan(table), drawn, table).T
    nothing = np.zeros_like(x)
    return np.column_stack([x, y, nothing, vx, vy, nothing, mass])


PLANE = Layout(
    PLANE_COLUMNS,
    lambda cells: not _names_space(cells),
    lambda *_: PLANE_COLUMNS,
    _course_number,
    _lifted,
)
