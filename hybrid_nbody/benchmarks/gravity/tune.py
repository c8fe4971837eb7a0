"""``bench tune``: which variants of the GPU kernels are the fastest here, kept for later runs."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.tuning import tuning_file
from hybrid_nbody.benchmarks.harness import measure, options, pictures
from hybrid_nbody.benchmarks.harness.machine import check_memory, find_devices
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, Times, timed
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.runs import ProductionRun, check, massive_box
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.nbody.kernels.gpu.layout import DEFAULTS, MOST_FEW, Tuning, keep_tuning
from hybrid_nbody.nbody.precision import PRECISIONS
from hybrid_nbody.nbody.stages import LEAPFROG, StepPlan
from hybrid_nbody.output.terminal import open_console

SIZES = tuple(2**k for k in range(10, 18))
TARGETS = range(1, 7)
JERK_TARGETS = range(1, 5)
FEW = (32, 64, 96, MOST_FEW)
MORE = (256, 512, 1024)
"""Bodies whose steps are timed in one block and as a graph, and as a graph alone."""

STEPS = 2000
"""Steps of a timing with a few bodies: so many that the first, without a graph, hardly count."""

ACCELERATIONS = "accelerations"
JERKS = "accelerations and jerks"
STEP = "a step"
ONE_BLOCK = "one block"
GRAPH = "graph of kernels"

COLUMNS = (
    measure.PRECISION,
    Column("sum", "what was computed"),
    measure.BODIES,
    Column("choice", "targets of a lane, or how steps of few bodies are launched"),
    *measure.timing_columns(),
    measure.ERROR_MEDIAN,
)


def run(arguments: Namespace) -> int:
    """Carry out ``bench tune`` and return the exit code."""
    sizes = sorted(options.sizes(arguments, SIZES))
    devices = find_devices("gpu")
    check_memory(devices, sizes)
    calibration = Calibration(devices.gpu, sizes, arguments.repeats)
    plan = Plan("tune", COLUMNS, calibration.tasks, draw, calibration.conclude, pivot)
    code = carry_out(plan, devices, arguments)
    if not arguments.dry_run:
        calibration.keep()
    return code


class Calibration:
    """All rows, and what is chosen once those of a precision are there."""

    def __init__(self, backend: GpuBackend, sizes: Sequence[int], repeats: int):
        self.backend = backend
        self.repeats = repeats
        self.problem = cache(massive_box)
        self.tasks = [task for precision in PRECISIONS for task in self._tasks(precision, sizes)]
        self.chosen: dict[str, Tuning] = {}

    def _tasks(self, precision: str, sizes: Sequence[int]) -> Iterator[Task]:
        """Yield accelerations, jerks at the largest size, and steps of few bodies."""
        rows: list[tuple[str, int, Any]]
        rows = [(ACCELERATIONS, size, targets) for size in sizes for targets in TARGETS]
        rows += [(JERKS, sizes[-1], targets) for targets in JERK_TARGETS]
        rows += [(STEP, size, how) for size in FEW for how in (ONE_BLOCK, GRAPH)]
        rows += [(STEP, size, GRAPH) for size in MORE]
        for what, number, choice in rows:
            head = {"precision": precision, "sum": what, "bodies": number, "choice": str(choice)}
            heading = "" if what == STEP else ", by targets of a lane"
            section = f"{precision}, {what}{heading}: G interactions/s"
            yield Task(section, f"{number} bodies, {choice}", partial(self._row, head))

    def _row(self, head: Row, rows: list[Row], stop: Stop) -> Row:
        number = head["bodies"]
        made = self.backend, self.problem(number), head["precision"]
        run = ProductionRun(*made, symmetric=False, tuning=variant(head))
        checked = {"error_median": check(run, number, stop)["error_median"]}
        taken = times_of(head["sum"], run, self.repeats, stop)
        return head | taken.columns | {"interactions_per_s": number**2 / taken.median} | checked

    def conclude(self, rows: Sequence[Row]) -> list[str]:
        """Note what is chosen of the precisions of which no row is missing, and describe it."""
        lines = []
        for precision, default in DEFAULTS.items():
            own = measure.only(rows, precision=precision)
            all_rows = sum(task.section.startswith(f"{precision},") for task in self.tasks)
            texts = ["not finished, so nothing is chosen"]
            if len(own) == all_rows:
                self.chosen[precision] = choose(own)
                texts = self.chosen[precision].differences(default)
            lines += [f"{precision}: {text}" for text in texts]
        return lines

    def keep(self) -> None:
        """Keep what was chosen for later runs, and say where."""
        model = self.backend.model
        with file_errors(tuning_file(model), "writing"):
            paths = {keep_tuning(model, *found) for found in self.chosen.items()}
        for path in paths:
            said = f"kept for runs on {model}: {path}"
            open_console().print(said, highlight=False, soft_wrap=True)


def variant(row: Row) -> Tuning:
    """Return the tuning under which a row is measured."""
    number = row["bodies"]
    choice = row["choice"]
    if row["sum"] == STEP:
        return Tuning(number if choice == ONE_BLOCK else 0, ((number, 1),), 1)
    jerk_targets = min(int(choice), JERK_TARGETS[-1])  # so both sums share a module
    return Tuning(0, ((number, int(choice)),), jerk_targets)


def times_of(what: str, run: ProductionRun, repeats: int, stop: Stop) -> Times:
    """Return the times of a sum, or of a step in a batch: no graph can capture its graphs."""
    if what == ACCELERATIONS:
        return timed(run.backend, run.force, repeats, stop)
    if what == JERKS:
        return timed(run.backend, run.jerks(), repeats, stop)
    batch = partial(run.kernels.run, run.state, StepPlan(LEAPFROG, run.problem.dt), STEPS)
    batch()
    return measure.timings(run.backend, batch, repeats, stop, STEPS)


def fastest(rows: Sequence[Row], what: str) -> dict[int, str]:
    """Return the fastest choice for each size, ascending, from the rows of a precision."""
    sizes = sorted(measure.groups(measure.only(rows, sum=what), "bodies"))
    best = {number: min(own, key=lambda row: row["median_s"]) for (number,), own in sizes}
    return {number: row["choice"] for number, row in best.items()}


def choose(rows: Sequence[Row]) -> Tuning:
    """Return the tuning that the rows of a precision show to be the fastest."""
    few = 0
    for number, choice in fastest(rows, STEP).items():
        if choice != ONE_BLOCK:
            break
        few = number
    (jerk_targets,) = fastest(rows, JERKS).values()
    return Tuning(few, _merged(fastest(rows, ACCELERATIONS)), int(jerk_targets))


def _merged(choices: dict[int, str]) -> tuple[tuple[int, int], ...]:
    """Return (bodies, targets) of each choice, once for neighbouring sizes that share it."""
    neighbours = groupby(choices, key=choices.__getitem__)
    return tuple((max(sizes), int(choice)) for choice, sizes in neighbours)


def pivot(columns: Sequence[Column], rows: Sequence[Row], width: int) -> Table:
    """Return the rates of a section: a row a size, a column a choice, the fastest in bold."""
    best = fastest(rows, rows[0]["sum"])
    bold = [row for row in rows if row["choice"] == best[row["bodies"]]]
    names = (lambda row: str(row["bodies"]), lambda row: row["choice"])
    return measure.pivot_table("bodies", rows, *names, bold)


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the rate against the targets of a lane: a panel a precision, a line a size."""
    rows = measure.only(rows, sum=ACCELERATIONS)
    sizes = sorted({row["bodies"] for row in rows})
    colours = dict(zip(sizes, colormaps["viridis"](np.linspace(0, 0.9, len(sizes))), strict=True))
    precisions = measure.groups(rows, "precision")
    figure = pictures.new_figure(3.6, facts, "gpu")
    panels = figure.subplots(1, max(1, len(precisions)), squeeze=False, sharey=True)[0]
    for axes, ((precision,), own) in zip(panels, precisions, strict=False):
        for (size,), group in measure.groups(own, "bodies"):
            _draw_choices(axes, group, colours[size])
        axes.set_xlabel("targets of a lane")
        axes.set_title(precision, loc="left")
    panels[0].set(yscale="log", ylabel=pictures.RATE)
    style.decades(panels[0].yaxis, pictures.rate_text)
    lines = panels[0].get_legend_handles_labels()
    title = "bodies; a ring marks the fastest"
    figure.legend(*lines, loc="outside lower center", ncols=4, title=title)
    return figure


def _draw_choices(axes: Axes, rows: list[Row], colour: Any) -> None:
    """Draw one size, with a ring around the fastest choice."""
    points = {int(row["choice"]): row["interactions_per_s"] for row in rows}
    best = max(points, key=points.__getitem__)
    size = f"{rows[0]['bodies']}"
    axes.plot(list(points), list(points.values()), "o-", color=colour, markersize=2.5, label=size)
    axes.plot(best, points[best], "o", markersize=8, mfc="none", mec=colour)
