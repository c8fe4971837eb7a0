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
    """

    values: Mapping[str, str]
    folder: Path
    state: str
    reason: str = ""

    def columns(self) -> dict[str, Any]:
        """Return all columns: values, state, time, step and the last row of diagnostics."""
        told = {"state": self.state, "directory": self.folder.name}
        return {**self.values, **told, **last_diagnostics(self.folder), "reason": self.reason}


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
    names = list(dict.fromkeys(name for row in rows for name in row if name != "reason"))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*names, "reason"], lineterminator="\n")
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
        The columns; those that no row has are left out.
    """
    shown = [key for key in keys if any(key in row for row in rows)]
    heads = [key.rpartition(".")[2].replace("_", " ") for key in shown]
    cells = [[_cell(row.get(key, "")) for key in shown] for row in rows[:MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in (heads, *cells)
    ]
    more = len(rows) - MOST_ROWS
    return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:WIDEST]
