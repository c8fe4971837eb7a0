"""Carrying out a benchmark: task after task, stopped whenever asked, and what it leaves behind."""

import csv
import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from hybrid_nbody.benchmarks.harness.machine import Devices
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, Stopped, table
from hybrid_nbody.benchmarks.harness.pictures import Draw, png
from hybrid_nbody.errors import STOPPED_EARLY, InputError
from hybrid_nbody.files.atomic import file_errors, write_whole
from hybrid_nbody.output import directory
from hybrid_nbody.output.terminal import open_console
from hybrid_nbody.progress import BarProgress, LineProgress, Progress, each_part
from hybrid_nbody.simulation.signals import StopSignals

PROGRAM = "hybrid_nbody"
ENDINGS = ("csv", "json", "png")
NOW = "%Y-%m-%dT%H:%M:%S%z"


class Results:
    """The directory of one benchmark, claimed for files of its name and kept up to date."""

    def __init__(
        self, name: str, folder: Path, columns: Sequence[Column], facts: Row, overwrite: bool
    ):
        self.folder = folder
        self.columns = columns
        self.rows: list[Row] = []
        self.csv, self.json, self.picture = _files(folder, name)
        self.header = {
            "program": PROGRAM,
            "benchmark": name,
            "command": " ".join(["hybrid-nbody", *sys.argv[1:]]),
            "started": time.strftime(NOW),
            "machine": facts,
            "columns": {column.key: column.meaning for column in columns},
        }
        claim(folder, name, overwrite)
        self.write_json("running")
        self._append([column.key for column in columns], mode="w")

    def add(self, row: Row) -> None:
        """Keep a row, on disk at once."""
        self.rows.append(row)
        self._append([row.get(column.key, "") for column in self.columns])

    def _append(self, values: Sequence, mode: str = "a") -> None:
        with file_errors(self.csv, "writing"), self.csv.open(mode, newline="") as file:
            csv.writer(file).writerow(values)

    def write_json(self, outcome: str) -> None:
        """Write everything, replacing the file as a whole."""
        ended = time.strftime(NOW)
        content = {**self.header, "ended": ended, "outcome": outcome, "rows": self.rows}
        write_whole(self.json, compact_json(content).encode(), "results")


def compact_json(content: dict[str, Any]) -> str:
    """Return results as JSON with one line a row, and one an entry otherwise."""
    texts = {key: json.dumps(value) for key, value in content.items()}
    texts["rows"] = "[\n  " + ",\n  ".join(map(json.dumps, content["rows"])) + "\n ]"
    lines = (f" {json.dumps(key)}: {text}" for key, text in texts.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def claim(folder: Path, name: str, overwrite: bool) -> None:
    """Make `folder` for the results of a benchmark, and remove earlier ones, after `check`."""
    check(folder, name, overwrite)
    with directory.refusal(folder, "written", "--output"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in _files(folder, name):
            path.unlink(missing_ok=True)


def check(folder: Path, name: str, overwrite: bool) -> None:
    """Raise `InputError` if a folder cannot be used, or holds anything else; change nothing."""
    directory.check_place(folder, "--output")
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    foreign = [path for path in entries if path not in _files(folder, name)]
    if entries and not _is_ours(folder / f"{name}.json", name):
        foreign = foreign or entries
    if foreign:
        raise InputError(
            f"--output: {folder} holds {foreign[0].name}, which is not of `bench {name}`; "
            "choose another directory"
        )
    if entries and not overwrite:
        raise InputError(
            f"--output: {folder} holds results of `bench {name}` already; "
            "choose another directory, or give --overwrite"
        )


def _files(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{ending}" for ending in ENDINGS]


def _is_ours(path: Path, name: str) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return bool(content["program"] == PROGRAM and content["benchmark"] == name)
    except (OSError, ValueError, KeyError, TypeError):
        return False


Agree = Callable[[bool], bool]
"""Takes whether this rank was asked to stop; returns whether any was."""


class Task(NamedTuple):
    """One row, which ``measure(rows, stop)`` returns, of a section; progress shows its label."""

    section: str
    label: str
    measure: Callable[[list[Row], Stop], Row]


class Plan(NamedTuple):
    """A whole benchmark: its rows, its picture, lines or tables for the end and the JSON.

    ``tabulate(columns, rows, width)`` returns the table of a section.
    """

    name: str
    columns: Sequence[Column]
    tasks: Sequence[Task]
    draw: Draw
    conclude: Callable = lambda rows: []
    tabulate: Callable = table
    summarise: Callable = lambda rows: {}


def carry_out(plan: Plan, devices: Devices, arguments: Namespace, agree: Agree = bool) -> int:
    """Measure all tasks, write everything, and return the exit code: 0, or 75 if it was stopped.

    `agree` is for several ranks that measure together; see `follow`.
    """
    results = Results(plan.name, arguments.output, plan.columns, devices.facts, arguments.overwrite)
    console = open_console()
    said = f"bench {plan.name}: {len(plan.tasks)} rows; {devices.description}"
    console.print(said, highlight=False)
    with StopSignals() as signals:
        finished = _measure(plan, results, console, _stopper(signals, agree))
    console.print()
    for line in plan.conclude(results.rows):
        console.print(line, highlight=False)
    outcome = "finished" if finished else f"stopped by {signals.received or 'Ctrl-C'}"
    results.header |= plan.summarise(results.rows)
    results.write_json(outcome)
    if results.rows:
        picture = png(plan.draw, results.rows, devices.facts)
        write_whole(results.picture, picture, "picture")
    kept = "" if finished else f"{outcome}: {len(results.rows)} of {len(plan.tasks)} rows kept; "
    files = [path.name for path in _files(results.folder, plan.name) if path.exists()]
    said = f"{kept}results in {results.folder}: {', '.join(files)}"
    console.print(said, highlight=False, soft_wrap=True)
    return 0 if finished else STOPPED_EARLY


def follow(plan: Plan, agree: Agree) -> int:
    """Measure the tasks with the root, on another rank; return the exit code."""
    rows: list[Row] = []
    with StopSignals() as signals:
        stop = _stopper(signals, agree)
        try:
            for task in plan.tasks:
                stop()
                rows.append(task.measure(rows, stop))
        except Stopped:
            return STOPPED_EARLY
    return 0


def _stopper(signals: Any, agree: Agree) -> Stop:
    def stop() -> None:
        if agree(bool(signals.received)):
            raise Stopped

    return stop


def _measure(plan: Plan, results: Results, console: Console, stop: Stop) -> bool:
    """Do the tasks, a table after each section; return whether all were done."""
    write = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    progress: Progress = LineProgress("rows done", write, each_part, steady=False)
    if console.is_terminal:
        progress = BarProgress("rows done", console, transient=True, steady=False)
    try:
        for section, tasks in groupby(plan.tasks, key=lambda task: task.section):
            first = len(results.rows)
            try:
                for task in tasks:
                    stop()
                    details = f"now {section.split(':')[0]}: {task.label}"
                    progress.update(len(results.rows), len(plan.tasks), details)
                    results.add(task.measure(results.rows, stop))
            finally:
                if rows := results.rows[first:]:
                    shown = plan.tabulate(plan.columns, rows, console.width)
                    console.print("", Text(section, "bold"), shown, sep="\n")
        return True
    except (Stopped, KeyboardInterrupt):
        return False
    finally:
        progress.close()
