"""Carrying out a benchmark: task after task, with progress, each row kept at once, stopped whenever asked."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from hybrid_nbody.benchmarks.harness.measure import Stopped
from hybrid_nbody.benchmarks.harness.results import Results, table
from hybrid_nbody.errors import STOPPED_EARLY
from hybrid_nbody.output.terminal import open_console
from hybrid_nbody.progress import BarProgress, LineProgress, Progress, each_part
from hybrid_nbody.simulation.signals import StopSignals


@dataclass(frozen=True)
class Task:
    """One row to be measured.

    Attributes
    ----------
    section : str
        Title of the table that the row stands in.
    label : str
        What progress calls it.
    measure : callable
        Takes the rows so far and a function that raises `Stopped`; returns the row, a dict.
    """

    section: str
    label: str
    measure: Callable


@dataclass(frozen=True)
class Plan:
    """A whole benchmark.

    Attributes
    ----------
    name : str
    columns : sequence of Column
    tasks : list of Task
    draw : callable
        Takes the rows, the facts of the machine and a path; draws the picture there.
    conclude : callable, optional
        Takes the rows; returns lines, or tables, to show at the end.
    tabulate : callable, optional
        Takes the columns, the rows of a section and the width of the terminal; returns a table.
    summarise : callable, optional
        Takes the rows; returns a dict, what the JSON says of them as a whole.
    """

    name: str
    columns: tuple
    tasks: list
    draw: Callable
    conclude: Callable = lambda rows: []
    tabulate: Callable = table
    summarise: Callable = lambda rows: {}


def carry_out(plan: Plan, devices, arguments, agree=bool) -> int:
    """Measure all tasks, write everything, and return the exit code: 0, or 75 if it was stopped.

    Parameters
    ----------
    plan : Plan
    devices : Devices
        What is measured.
    arguments : Namespace
        Where results go.
    agree : callable, optional
        Takes whether this rank was asked to stop; returns whether any was, where several measure
        (see `follow`).

    Raises
    ------
    InputError
        The output directory cannot be used; nothing is changed then.
    FileError
        A file cannot be written.
    """
    results = Results(plan.name, arguments.output, plan.columns, devices.facts, arguments.overwrite)
    console = open_console()
    console.print(
        f"bench {plan.name}: {len(plan.tasks)} rows; {devices.description}", highlight=False
    )
    with StopSignals() as signals:
        finished = _measure(plan, results, console, _stopper(signals, agree))
    console.print()
    for line in plan.conclude(results.rows):
        console.print(line, highlight=False)
    outcome = "finished" if finished else f"stopped by {signals.received or 'Ctrl-C'}"
    results.header |= plan.summarise(results.rows)
    results.write_json(outcome)
    if results.rows:
        plan.draw(results.rows, devices.facts, results.picture)
    kept = "" if finished else f"{outcome}: {len(results.rows)} of {len(plan.tasks)} rows kept; "
    names = ", ".join(
        path.name for path in (results.csv, results.json, results.picture) if path.exists()
    )
    console.print(f"{kept}results in {results.folder}: {names}", highlight=False, soft_wrap=True)
    return 0 if finished else STOPPED_EARLY


def follow(plan: Plan, agree) -> int:
    """Take part in the tasks that the root carries out, on another rank, and return the exit code.

    A task is measured by all ranks together and gives each the same row; `agree` as for
    `carry_out`.
    """
    rows = []
    with StopSignals() as signals:
        stop = _stopper(signals, agree)
        try:
            for task in plan.tasks:
                stop()
                rows.append(task.measure(rows, stop))
        except Stopped:
            return STOPPED_EARLY
    return 0


def _stopper(signals, agree):
    def stop():
        if agree(bool(signals.received)):
            raise Stopped

    return stop


def _measure(plan, results, console, stop) -> bool:
    """Do the tasks, a table after each section; return whether all were done."""
    show = Report(console, len(plan.tasks))
    try:
        for section, tasks in groupby(plan.tasks, key=lambda task: task.section):
            first = len(results.rows)
            try:
                for task in tasks:
                    stop()
                    show.begin(task)
                    results.add(task.measure(results.rows, stop))
            finally:
                show.section(section, results.rows[first:], plan)
        return True
    except (Stopped, KeyboardInterrupt):
        return False
    finally:
        show.close()


class Report:
    """Shows which row is being measured, and a table after each section."""

    def __init__(self, console, total: int):
        self.console = console
        self.total = total
        self.done = 0
        self.progress = self._progress()

    def _progress(self) -> Progress:
        if self.console.is_terminal:
            return BarProgress("rows done", self.console, transient=True, steady=False)
        return LineProgress("rows done", self._write, each_part, steady=False)

    def _write(self, line):
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def begin(self, task):
        """Show which row is being measured."""
        section = task.section.split(":")[0]
        self.progress.update(self.done, self.total, f"now {section}: {task.label}")
        self.done += 1

    def section(self, title, rows, plan):
        """Show the table of a section, if it has rows."""
        if rows:
            table = plan.tabulate(plan.columns, rows, self.console.width)
            self.console.print("", Text(title, "bold"), table, sep="\n")

    def close(self):
        """Take the bar away."""
        self.progress.close()
