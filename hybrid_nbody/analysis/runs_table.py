"""A table of many runs: what distinguishes them, and the last diagnostics of each."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.files.atomic import write_whole
from hybrid_nbody.files.run import open_run

MOST_ROWS = 50
"""Most rows on a terminal; the file has all."""

LAST = ("warning", "reason")
"""Columns that come last."""

GAP = "  "
"""Between two columns."""

WIDEST = 24
"""Characters of a value on a terminal."""


@dataclass(frozen=True)
class Row:
    """A run of the table.

    Attributes
    ----------
    values : mapping of str to str
        What distinguishes it from the others.
    folder : Path
    state : str
        How far it is, in a word or two.
    reason : str
        Why it failed, or what stopped it; empty if nothing did.
    warning : str
        The diagnostics beyond their limits; empty without any.
    """

    values: Mapping[str, str]
    folder: Path
    state: str
    reason: str = ""
    warning: str = ""

    def columns(self) -> dict[str, Any]:
        """Return all columns: values, state, time, step and the last row of diagnostics."""
        told = {"state": self.state, "directory": self.folder.name}
        notes = {"warning": self.warning, "reason": self.reason}
        return {**self.values, **told, **last_diagnostics(self.folder), **notes}


def last_diagnostics(folder: Path) -> dict[str, float | int]:
    """Return the last row of diagnostics of a run by column; empty where there is none."""
    try:
        with open_run(folder) as run:
            if not run.diagnostics.number_of_rows:
                return {}
            found = {name: values[-1].item() for name, values in run.diagnostics.items()}
    except HybridNBodyError:
        return {}
    clock = {name: found.pop(name) for name in ("time", "step")}
    return clock | found


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a table with all columns of all rows; an empty cell where a row has none.

    Raises
    ------
    FileError
        It cannot be written.
    """
    names = dict.fromkeys(name for row in rows for name in row if name not in LAST)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*names, *LAST], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode(), "table")


def text_of(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    """Return some columns of a table in lines for a terminal.

    Parameters
    ----------
    rows : sequence of mapping
        Of `Row.columns`.
    keys : sequence of str
        The columns; those that are empty in all rows are left out.
    """
    columns = [_column(rows, key) for key in _filled(rows, keys)]
    return "\n".join([*_lines(columns), *_left_out(rows)])


def text_in_blocks(
    rows: Sequence[Mapping[str, Any]], first: str, keys: Sequence[str], width: int
) -> str:
    """Return a table in lines of some width: blocks of columns below each other.

    Parameters
    ----------
    rows : sequence of mapping
    first : str
        The column that each block begins with.
    keys : sequence of str
        The others; those that are empty in all rows are left out.
    width : int
        Characters of a line; a single column may be wider.
    """
    names = _column(rows, first)
    blocks: list[list[list[str]]] = []
    for key in _filled(rows, keys):
        column = _column(rows, key)
        if not blocks or _width([*blocks[-1], column]) > width:
            blocks.append([names])
        blocks[-1].append(column)
    texts = ["\n".join(_lines(block)) for block in blocks]
    return "\n".join(["\n\n".join(texts), *_left_out(rows)])


def _filled(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
    return [key for key in keys if any(row.get(key, "") != "" for row in rows)]


def _column(rows: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Return the head of a column and its cells, all of one width."""
    head = key.rpartition(".")[2].replace("_", " ")
    texts = [head, *(_cell(row.get(key, "")) for row in rows[:MOST_ROWS])]
    width = max(map(len, texts))
    return [text.ljust(width) for text in texts]


def _lines(columns: Sequence[Sequence[str]]) -> list[str]:
    return [GAP.join(line).rstrip() for line in zip(*columns, strict=True)]


def _width(columns: Sequence[Sequence[str]]) -> int:
    return len(GAP.join(column[0] for column in columns))


def _left_out(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    more = len(rows) - MOST_ROWS
    return [f"… and {more} more"] if more > 0 else []


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:WIDEST]
