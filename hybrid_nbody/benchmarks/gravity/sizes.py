"""``bench sizes``: the kernels of a run against the number of bodies, in every precision."""

import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache, partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybrid_nbody.analysis import style
from hybrid_nbody.backends.base import Backend
from hybrid_nbody.benchmarks.harness import machine, measure, options, pictures
from hybrid_nbody.benchmarks.harness.measure import Column, Row, Stop, timed
from hybrid_nbody.benchmarks.harness.record import Plan, Task, carry_out
from hybrid_nbody.benchmarks.harness.runs import ProductionRun, check, massive_box, rates
from hybrid_nbody.nbody.precision import PRECISIONS
from hybrid_nbody.progress import duration

SIZES = tuple(2**k for k in range(6, 21))
LONGEST_ROW = 60.0
"""Seconds: a row that would take longer is left out, unless its size was asked for."""

COLUMNS = (
    measure.DEVICE,
    measure.PRECISION,
    measure.BODIES.shown("Bodies", note="note"),
    Column("note", "why a row was not measured"),
    *measure.timing_columns(" of a force", "forces"),
    measure.GFLOPS,
    Column("share_of_ceiling", "of single precision's issue slots", "of the\nceiling", ".1%"),
    *measure.CHECKS[-2:],
)


def run(arguments: Namespace) -> int:
    """Carry out ``bench sizes`` and return the exit code."""
    asked = options.sizes(arguments)
    devices = machine.find_devices(arguments.backend)
    machine.check_memory(devices, asked or SIZES[:1])
    sweep = Sweep(devices, asked, arguments.repeats)
    tasks = [
        task
        for precision in PRECISIONS
        for backend in devices.wanted(arguments.backend)
        for task in sweep.tasks(backend, precision)
    ]
    return carry_out(Plan("sizes", COLUMNS, tasks, draw, sweep.conclude), devices, arguments)


class Sweep:
    """All rows: those of each backend and precision at every size."""

    def __init__(self, devices: machine.Devices, asked: Sequence[int], repeats: int):
        self.sizes = sorted(asked or SIZES)
        self.longest = math.inf if asked else LONGEST_ROW
        self.repeats = repeats
        self.peak = cache(lambda: machine.measure_peak(devices.gpu))
        self.problem = cache(massive_box)

    def tasks(self, backend: Backend, precision: str) -> Iterator[Task]:
        bodies = "random in [-5, 5]^3, masses in [1, 10]"
        section = f"{precision} on {backend.description}: pack and force, {bodies}"
        for number in self.sizes:
            head = {"device": backend.name, "precision": precision, "bodies": number}
            yield Task(section, f"{number} bodies", partial(self._row, head, backend))

    def _row(self, head: Row, backend: Backend, rows: list[Row], stop: Stop) -> Row:
        earlier = series(rows, head["device"], head["precision"])
        expected = measure.expected_seconds(earlier, head["bodies"]) * (self.repeats + 3)
        if expected > self.longest:
            return head | {"note": f"left out: about {duration(expected)}"}
        run = ProductionRun(backend, self.problem(head["bodies"]), head["precision"])
        checked = check(run, head["bodies"], stop)
        taken = timed(backend, run.force, self.repeats, stop)
        row = head | taken.columns | checked | rates(run, taken.median, head["bodies"])
        if (head["device"], head["precision"]) == ("gpu", "single"):
            row["share_of_ceiling"] = row["interactions_per_s"] / self.peak().ceiling()
        return row

    def conclude(self, rows: Sequence[Row]) -> list[str]:
        """Return the peak of the GPU and the crossovers, in words."""
        lines = [self.peak().description] if measure.having(rows, "share_of_ceiling") else []
        for precision in PRECISIONS:
            if series(rows, "cpu", precision) and series(rows, "gpu", precision):
                found = crossover(rows, precision)
                text = "and the CPU do not cross"
                if found:
                    text = f"is faster than the CPU from about {found[0]:.0f} bodies on"
                lines.append(f"{precision}: the GPU {text}")
        return lines


def series(rows: Sequence[Row], device: str, precision: str) -> list[Row]:
    """Return the measured rows of a device and a precision, in the order of their sizes."""
    return measure.having(measure.only(rows, device=device, precision=precision))


def crossover(rows: Sequence[Row], precision: str) -> tuple[float, float] | None:
    """Return the bodies from which the GPU is faster than the CPU, and the rate there, if any."""
    both = (series(rows, device, precision) for device in ("cpu", "gpu"))
    rates = ({row["bodies"]: row["interactions_per_s"] for row in own} for own in both)
    return measure.crossing(*rates)


STAR: pictures.Look = {"markersize": 11, "mec": style.BLACK, "mew": 0.6, "zorder": 4}


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the rate against bodies for each backend and precision, and mark the crossovers."""
    figure = pictures.new_figure(4.0, facts)
    axes = figure.subplots()
    axes.set_yscale("log")
    rows = measure.having(rows)
    for (device, precision), group in measure.groups(rows, "device", "precision"):
        name = f"{device.upper()}, {precision}"
        colour = pictures.PRECISION_COLOURS[precision]
        found = crossover(rows, precision) if device == "gpu" else None
        if found:
            name += f": faster from {found[0]:.0f} bodies"
            axes.plot(*found, "*", color=colour, **STAR)
        look: pictures.Look = {"color": colour, "label": name}
        line = "o-" if device == "gpu" else "s--"
        pictures.draw_line(axes, group, "bodies", "interactions_per_s", line, **look)
    _draw_ceiling(axes, rows)
    axes.set_ylim(*style.whole_decades(*axes.get_ylim()))
    style.decades(axes.yaxis, pictures.rate_text)
    style.size_axis(axes, {row["bodies"] for row in rows}, base=2)
    axes.tick_params(axis="x", labelsize=6)
    axes.set(xlabel="bodies", ylabel=pictures.RATE)
    axes.legend(loc="lower right")
    return figure


def _draw_ceiling(axes: Axes, rows: list[Row]) -> None:
    """Draw the issue-slot ceiling of single precision, if a GPU was measured."""
    row = next((row for row in rows if row.get("share_of_ceiling")), None)
    if row:
        ceiling = row["interactions_per_s"] / row["share_of_ceiling"]
        axes.axhline(ceiling, color=style.SKY, linewidth=1.2)
        axes.set_ylim(top=2 * ceiling)
        name = f"ceiling of single: {pictures.rate_text(ceiling)}"
        above: pictures.Look = {"xytext": (0, 3), "textcoords": "offset points", "fontsize": 7}
        axes.annotate(name, (0.01, ceiling), xycoords=axes.get_yaxis_transform(), **above)
