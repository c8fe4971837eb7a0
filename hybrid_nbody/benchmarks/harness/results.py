"""What a benchmark leaves behind: CSV row by row, and at the end JSON with the machine, a table and a picture."""

import csv
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hybrid_nbody.errors import FileError, InputError

PROGRAM = "hybrid_nbody"


@dataclass(frozen=True)
class Column:
    """A column of a benchmark's results.

    Attributes
    ----------
    key : str
        Its name in CSV and JSON.
    meaning : str
        What it is, with its unit, for the JSON.
    title : str
        Its head in the terminal's table; a column without one is left out there.
    show : callable
        Returns the text of a value in the table.
    rank : int
        Where a terminal is too narrow for all columns, those of the highest rank are left out
        first.
    note : str
        Key of what is added to the text in brackets, if the row has it.
    """

    key: str
    meaning: str
    title: str = ""
    show: Callable = str
    rank: int = 0
    note: str = ""

    def cell(self, row) -> str:
        """Return the text of a row in this column."""
        value = row.get(self.key)
        text = "" if value is None or value == "" else self.show(value)
        return f"{text} ({row[self.note]})" if row.get(self.note) else text


def timing_columns(
    of: str = "", several: str = "calls", rank: int = 3, figures: int = 3
) -> tuple[Column, ...]:
    """Return the columns of `hybrid_nbody.benchmarks.harness.measure.Times` and of the rate at their median.

    Parameters
    ----------
    of : str
        What was timed, such as ``" of a step"``.
    several : str
        What a timing is the mean of.
    rank : int
        That of the mean; see `Column`.
    figures : int
        Significant digits of the rate.
    """
    return (
        Column("mean_s", f"mean time{of} in s", "mean\nms", times(1e3, digits(4)), rank=rank),
        Column(
            "sd_s",
            "standard deviation of the timings in s",
            "s.d.\nms",
            times(1e3, digits(2)),
            rank=2,
        ),
        Column("median_s", f"median time{of} in s", "median\nms", times(1e3, digits(4))),
        Column("repeats", "timings"),
        Column("calls", f"{several} in a row that a timing is the mean of"),
        Column(
            "interactions_per_s",
            "interactions a second, at the median time",
            "G inter-\nactions/s",
            times(1e-9, digits(figures)),
        ),
    )


class Results:
    """The directory of one benchmark, claimed and kept up to date.

    Parameters
    ----------
    name : str
        The benchmark's name, and that of its files.
    folder : Path
        Made if need be.
    columns : sequence of Column
    facts : dict
        Hardware and versions.
    overwrite : bool
        Whether earlier results of the same benchmark may be replaced.

    Raises
    ------
    InputError
        The folder cannot be used, or holds anything that is not to be replaced.
    """

    def __init__(self, name, folder: Path, columns, facts, overwrite):
        self.name = name
        self.folder = folder
        self.columns = columns
        self.rows = []
        self.header = {
            "program": PROGRAM,
            "benchmark": name,
            "command": " ".join(["hybrid-nbody", *sys.argv[1:]]),
            "started": _now(),
            "machine": facts,
            "columns": {column.key: column.meaning for column in columns},
        }
        claim(folder, name, overwrite)
        self.write_json("running")
        self._append([column.key for column in columns], mode="w")

    @property
    def csv(self) -> Path:
        """The file of rows."""
        return self.folder / f"{self.name}.csv"

    @property
    def json(self) -> Path:
        """The file of rows, machine and versions."""
        return self.folder / f"{self.name}.json"

    @property
    def picture(self) -> Path:
        """The file of the picture."""
        return self.folder / f"{self.name}.png"

    def add(self, row: dict) -> None:
        """Keep a row, on disk at once."""
        self.rows.append(row)
        self._append([row.get(column.key, "") for column in self.columns])

    def _append(self, values, mode="a"):
        with file_errors(self.csv), open(self.csv, mode, newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(values)

    def write_json(self, outcome: str) -> None:
        """Write everything, replacing the file as a whole."""
        content = {**self.header, "ended": _now(), "outcome": outcome, "rows": self.rows}
        part = self.json.with_suffix(".json.part")
        with file_errors(self.json):
            part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            part.replace(self.json)


class file_errors:
    """Turns the operating system's refusals to write a file into a `FileError`."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, OSError):
            raise FileError(
                f"{self.path}: cannot be written ({error.strerror or error})"
            ) from error


def claim(folder: Path, name: str, overwrite: bool) -> None:
    """Make `folder` for the results of a benchmark, and remove earlier ones of the same benchmark from it.

    Raises
    ------
    InputError
        It is a file, cannot be written, or holds anything that is not to be replaced; nothing is
        changed then.
    """
    check(folder, name, overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in _files(folder, name):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"--output: {folder} cannot be written: {error.strerror or error}"
        ) from error


def check(folder: Path, name: str, overwrite: bool) -> None:
    """Check that `claim` may have its way; changes nothing."""
    existing = next(
        path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()
    )
    if not existing.is_dir():
        raise InputError(
            f"--output: {existing if existing != folder.absolute() else folder} is a file, not a directory"
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"--output: {folder} cannot be written: no permission")
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    foreign = [path.name for path in entries if path not in _files(folder, name)]
    if foreign or (entries and not _is_ours(folder / f"{name}.json", name)):
        what = (foreign or [path.name for path in entries])[0]
        raise InputError(
            f"--output: {folder} holds {what}, which is not of `bench {name}`; choose another directory"
        )
    if entries and not overwrite:
        raise InputError(
            f"--output: {folder} holds results of `bench {name}` already; choose another directory, or give --overwrite"
        )


def _files(folder, name):
    return [folder / f"{name}.{ending}" for ending in ("csv", "json", "json.part", "png")]


def _is_ours(path, name):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content["program"] == PROGRAM and content["benchmark"] == name
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def table(columns, rows, width: int) -> Table:
    """Return the table of some rows, with the columns that a terminal of `width` characters has room for."""
    shown = [column for column in columns if column.title and any(column.cell(row) for row in rows)]
    while _width(result := _table(shown, rows)) > width and max(column.rank for column in shown):
        shown.remove(max(reversed(shown), key=lambda column: column.rank))
    return result


def _width(result) -> int:
    return Console(width=1000).measure(result).maximum


def _table(shown, rows):
    result = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for k, column in enumerate(shown):
        result.add_column(
            column.title, justify="right" if k else "left", no_wrap=k > 0, vertical="bottom"
        )
    for row in rows:
        result.add_row(
            *(Text(column.cell(row)) for column in shown),
            style="" if row.get("median_s") else "dim",
        )
    return result


def digits(count: int) -> Callable:
    """Return a function that shows a number with that many significant digits, and never in powers of ten."""

    def show(value) -> str:
        exponent = int(f"{value:.{count - 1}e}".split("e")[1]) if value else 0
        return f"{value:.{min(max(count - 1 - exponent, 0), 9)}f}"

    return show


def times(factor: float, show: Callable) -> Callable:
    """Return a function that shows a number times `factor`."""
    return lambda value: show(value * factor)
