"""``bench compare``: how much slower or faster each row of a benchmark has become."""

import json
import math
import statistics
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape

from hybrid_nbody.benchmarks.harness import options
from hybrid_nbody.benchmarks.harness.measure import Column, Row, table
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.output.terminal import open_console

RATES = ("interactions_per_s", "updates_per_s", "cells_per_s", "rate", "bytes_per_s")
"""Columns of speed, of which a row has one at most; a time alone may be that of other work."""

COLUMNS = (
    Column("row", "the keys of the row", "Row"),
    Column("old_s", "median time in the old results in s", "old\nms", "4 ms", rank=1),
    Column("new_s", "the same in the new results", "new\nms", "4 ms", rank=1),
    Column("ratio", "new time over old time, for the same work", "new /\nold", ".3f"),
    Column("scatter", "relative standard deviation of both", "±", ".1%"),
    Column("verdict", "whether the row is slower than allowed", "\n"),
)


class Saved(NamedTuple):
    """Results in a file: of a benchmark on a machine, with the measured rows by their names."""

    path: Path
    benchmark: str
    machine: Mapping[str, Any]
    rows: Mapping[str, Row]


def run(arguments: Namespace) -> int:
    """Carry out ``bench compare``; return 1 if a row is slower than allowed, else 0."""
    allowed = options.quantity("--slower", arguments.slower, options.SHARE)
    old = read(arguments.old, arguments.keys)
    new = read(arguments.new, arguments.keys)
    rows = compared(old, new, allowed)
    console = open_console()
    for name, values in differences(old.machine, new.machine).items():
        console.print(f"warning: the machines differ in {name}: {escape(values)}", highlight=False)
    console.print(table(COLUMNS, rows, console.width))
    for line in summary(old, new, rows, allowed):
        console.print(escape(line), highlight=False, soft_wrap=True)
    return int(any(row["verdict"] for row in rows))


def read(path: Path, keys: Mapping[str, Sequence[str]]) -> Saved:
    """Return the results in a file; `keys` tell the rows of each benchmark apart."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        name = content["benchmark"]
        names = {_name(row, keys[name]): row for row in content["rows"]}
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: does not hold results of a benchmark") from error
    measured = {name: row for name, row in names.items() if speed(row)}
    return Saved(path, {"flat": "square"}.get(name, name), content.get("machine", {}), measured)


def _name(row: Row, keys: Iterable[str]) -> str:
    """Return the values of the keys in a line."""
    words = []
    for key, value in ((key, row[key]) for key in keys if row.get(key)):
        counted = f"{value} {key}" if key.endswith("s") else f"{key} {value}"
        words.append(counted if isinstance(value, int) else value)
    return ", ".join(words)


def speed(row: Row) -> float:
    """Return the work that a row does in a second; 0 if it was not measured."""
    found = [row[key] for key in RATES if row.get(key)]
    if found:
        return found[0]
    return 1 / row["median_s"] if row.get("median_s") else 0.0


def scatter(row: Row) -> float:
    """Return the relative standard deviation of the timings of a row."""
    return row["sd_s"] / row["mean_s"] if row.get("mean_s") else 0.0


def compared(old: Saved, new: Saved, allowed: float) -> list[Row]:
    """Return a row of `COLUMNS` for each row that both results have, in the order of the new."""
    if old.benchmark != new.benchmark:
        raise InputError(
            f"{old.path} holds results of `bench {old.benchmark}`, {new.path} of "
            f"`bench {new.benchmark}`; compare two of the same benchmark"
        )
    common = [name for name in new.rows if name in old.rows]
    if not common:
        raise InputError(f"{old.path} and {new.path} have no measured row in common")
    return [_compared(name, old.rows[name], new.rows[name], allowed) for name in common]


def _compared(name: str, before: Row, after: Row, allowed: float) -> Row:
    ratio = speed(before) / speed(after)
    return {
        "row": name,
        "old_s": before.get("median_s"),
        "new_s": after.get("median_s"),
        "median_s": after.get("median_s"),
        "ratio": ratio,
        "scatter": math.hypot(scatter(before), scatter(after)),
        "verdict": "slower" if ratio > 1 + allowed else "",
    }


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Return what two machines differ in, apart from the release of this program."""
    return {
        name: f"{old.get(name, 'unknown')} and {new.get(name, 'unknown')}"
        for name in {**old, **new}
        if name != "hybrid_nbody" and old.get(name) != new.get(name)
    }


def summary(old: Saved, new: Saved, rows: Sequence[Row], allowed: float) -> list[str]:
    """Return in words which rows only one file has, and how the others compare."""
    lines = [f"only in {old.path}: {name}" for name in old.rows if name not in new.rows]
    lines += [f"only in {new.path}: {name}" for name in new.rows if name not in old.rows]
    middle = statistics.median(row["ratio"] for row in rows)
    slowest = max(rows, key=lambda row: row["ratio"])
    largest = f"largest {slowest['ratio']:.3f} ({slowest['row']})"
    slower = f"{sum(bool(row['verdict']) for row in rows)} slower by more than {100 * allowed:g}%"
    return [*lines, f"{len(rows)} rows compared, median ratio {middle:.3f}, {largest}; {slower}"]
