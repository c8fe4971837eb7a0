"""``bench fluid``: the fluid model and the steps that led to it, from one thread to a GPU."""

from argparse import Namespace
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybrid_nbody.analysis import style
from hybrid_nbody.benchmarks.fluid import layouts
from hybrid_nbody.benchmarks.fluid.model import PHASES_PART, SOLVERS_PART
from hybrid_nbody.benchmarks.fluid.problems import Settings
from hybrid_nbody.benchmarks.harness import machine, measure, options, pictures
from hybrid_nbody.benchmarks.harness.measure import Column, Row, only
from hybrid_nbody.benchmarks.harness.pictures import rate_text, time_text
from hybrid_nbody.benchmarks.harness.record import Plan, carry_out
from hybrid_nbody.errors import InputError

COLUMNS = (
    Column("part", "part of the benchmark"),
    measure.DEVICE,
    Column("cells", "cells along an edge; along x an even number, but for phases and solvers"),
    Column("rung", "what was measured", "Rung", note="note"),
    Column("note", "what the machine lacks for this rung, or what was cut short"),
    Column("threads", "threads of a CPU"),
    Column("block", "threads of a block along x, y and z"),
    Column("steps", "steps of the run, from the first one on"),
    *measure.timing_columns(" of a step, an iteration or a solve", "of these", rank=4)[:-1],
    Column("cells_per_s", "cells of a step a second", "M cells\n/s", "3 M"),
    Column("updates_per_s", "cell-iterations a second", "G cells\n/s", "3 G"),
    Column("iterations", "of the solver: of a step, or of a solve", "itera-\ntions", "3"),
    Column("speedup", "speed-up over the first rung of the table", "× first", "3"),
    Column("bytes_per_cell", "assumed to move in an iteration", "bytes a\ncell", "g"),
    Column("bytes_per_s", "bytes a second, as assumed", "GB/s", "3 G"),
    Column("share_of_copy", "of the bytes/s of a copy in the same run", "of a\ncopy", ".0%"),
    Column("residual", "largest, over the largest right-hand side", "residual", ".1e"),
    Column("total", "total density at the end, with ghosts", "total\ndensity", "7", 2),
    Column("total_error", "its relative difference from the known total", "off by", ".0e", 2),
    Column("error", "difference from float64 on a small grid, over the largest", "error", ".0e", 1),
    Column("same_bits", "whether the model gives the same bits on a small grid", "bits", "", 3),
)

PARTS = {part.name: part for part in (PHASES_PART, *layouts.PARTS, SOLVERS_PART)}
USERS = {
    option: [name for name, part in PARTS.items() if part.option == f"--{option}"]
    for option in ("sizes", "large", "poisson")
}
"""The parts by name, and those that each option for the edges of grids is for."""

SMALLEST = 4
BYTES_PER_CELL = 128
STAGED_BYTES = 24
"""Upper bounds on what a cell needs where it is computed, and in memory to be uploaded to a GPU."""


def run(arguments: Namespace) -> int:
    """Carry out ``bench fluid`` and return the exit code."""
    parts = options.words("--parts", arguments.parts, tuple(PARTS))
    options.check_used(arguments, "parts", USERS)
    given = {f"--{name}": getattr(arguments, name) for name in USERS}
    asked = {
        name: options.numbers(name, text, SMALLEST)
        for name, text in given.items()
        if text is not None
    }
    devices = machine.find_devices(arguments.backend)
    settings = Settings(devices, arguments.backend, arguments.repeats, asked)
    chosen = [PARTS[part] for part in parts]
    for part in chosen:
        for device in filter(settings.wants, part.sizes):
            check_memory(devices, part.option, max(settings.edges(part, device)), device)
    tasks = [task for part in chosen for task in part.tasks(settings)]
    if not tasks:
        left = f"--backend {arguments.backend} leaves nothing of --parts {arguments.parts}"
        raise InputError(f"{left}: it needs a GPU")
    return carry_out(Plan("fluid", COLUMNS, tasks, draw, best_lines), devices, arguments)


def check_memory(devices: machine.Devices, option: str, edge: int, device: str) -> None:
    """Raise `InputError` if a grid that a device computes does not fit in memory."""
    sizes = {machine.IN_MEMORY: BYTES_PER_CELL}
    if device == "gpu" and devices.gpu is not None:
        sizes = {machine.IN_MEMORY: STAGED_BYTES, machine.ON_GPU: BYTES_PER_CELL}
    for where, free in machine.memories(devices):
        if size := sizes.get(where):
            fits = int((free / size) ** (1 / 3))
            needed = f"{option}: {edge}^3 cells need", size * edge**3
            machine.check_fit(*needed, where, free, f"; at most {fits}^3 cells fit")


def best_lines(rows: Sequence[Row]) -> list[str]:
    """Return in words which shape of block was the fastest, and what the best layout reaches."""
    lines = []
    kinds = [*only(rows, part="layouts"), *only(rows, part="blocks")]
    for _, own in measure.groups(measure.having(kinds, "updates_per_s"), "part", "device"):
        best = max(own, key=lambda row: row["updates_per_s"])
        what = f"{best['part'].removesuffix('s')}, {best['device'].upper()}"
        rate = f"{best['updates_per_s'] * 1e-9:.3g} G cell-iterations/s"
        lines.append(f"fastest {what}: {best['rung']}, {rate}")
    return lines


LINE_COLOURS = (style.VERMILLION, style.ORANGE, style.GREEN, style.BLUE, style.SKY, style.BLACK)
PHASES_HEIGHT = 2.3


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the parts that have rows, one below the other: phases as lines, all else as bars."""
    parts = measure.groups(measure.having(rows, "median_s"), "part")
    heights = [_height(part, group) for (part,), group in parts] or [1.0]
    figure = pictures.new_figure(0.6 + sum(heights) + 0.45 * len(heights), facts)
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, ((part,), group) in zip(panels, parts, strict=False):
        panel, title = PANELS[part]
        panel(axes, group)
        axes.set_title(title, loc="left")
    return figure


def _height(part: str, rows: list[Row]) -> float:
    """Return the height of a panel: one line a bar, and one between tables."""
    tables = len(measure.groups(rows, "device", "cells"))
    return PHASES_HEIGHT if part in ("phases", "edges") else 0.3 + 0.19 * (len(rows) + tables - 1)


def _draw_phases(axes: Axes, rows: list[Row]) -> None:
    """Draw the time of a step against the size, a line a phase."""
    for ((name,), own), colour in zip(measure.groups(rows, "rung"), LINE_COLOURS, strict=False):
        pictures.draw_line(axes, own, "cells", "median_s", color=colour, label=name)
        seconds = own[-1]["median_s"]
        pictures.write_beside(axes, time_text(seconds), own[-1]["cells"], seconds)
    axes.set(xscale="log", yscale="log", xlabel="cells")
    exponents = np.log10([row["median_s"] for row in rows])
    top = np.floor(exponents.max() + 0.1) + 1
    axes.set_ylim(10.0 ** np.floor(exponents.min()), 10.0**top)
    axes.margins(x=0.2)
    style.fixed_ticks(axes.xaxis, {row["cells"] for row in rows}, "{:.0f}³")
    style.decades(axes.yaxis, time_text)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_curve(axes: Axes, rows: list[Row]) -> None:
    """Draw cell-iterations a second against the size, a line a device."""
    for (device,), own in measure.groups(rows, "device"):
        colour = pictures.DEVICE_COLOURS[device]
        pictures.draw_line(axes, own, "cells", "updates_per_s", color=colour)
    axes.set_ylim(0, 1.15 * max(row["updates_per_s"] for row in rows))
    style.ticks_from_zero(axes.yaxis, rate_text)
    axes.set_xlabel("cells along an edge")


def _draw_bars(axes: Axes, rows: list[Row], key: str, label: Callable, text: Callable) -> None:
    """Draw a bar a row and its limit; ``text(row)`` stands beside it, ``label(value)`` at ticks."""
    names: dict[int, str] = {}
    y = 0
    for _, table in measure.groups(rows, "device", "cells"):
        for row in table:
            colour = pictures.DEVICE_COLOURS[row["device"]]
            pictures.draw_bar(axes, y, row[key], colour, text(row), row.get("limit", 0))
            names[y] = f"{row['rung']}, {row['cells']}³"
            y += 1
        y += 1
    least = min(row[key] for row in rows)
    most = max(max(row[key], row.get("limit", 0)) for row in rows)
    if most < 20 * least:
        axes.set_xlim(0, 1.45 * most)
        style.ticks_from_zero(axes.xaxis, label)
    else:  # they differ too much to start at zero
        axes.set_xscale("log")
        axes.set_xlim(least / 2, most * (most / (least / 2)) ** 0.5)
        style.decades(axes.xaxis, label)
    pictures.name_bars(axes, names, y - 1.4, size=7)


def _draw_rates(axes: Axes, rows: list[Row]) -> None:
    """Draw cell-iterations a second, with a line where copying as many bytes would end."""
    rows = [dict(row) for row in measure.having(rows, "updates_per_s")]
    for row in measure.having(rows, "share_of_copy"):
        row["limit"] = row["updates_per_s"] / row["share_of_copy"]

    def text(row: Row) -> str:
        share = f", {row['share_of_copy']:.0%}" if "limit" in row else ""
        return f"{rate_text(row['updates_per_s'])}{share}"

    _draw_bars(axes, rows, "updates_per_s", rate_text, text)


def _draw_solvers(axes: Axes, rows: list[Row]) -> None:
    """Draw the time of each solve, with its iterations."""

    def text(row: Row) -> str:
        return f"{time_text(row['median_s'])}, {measure.counted(row['iterations'], 'iteration')}"

    _draw_bars(axes, rows, "median_s", time_text, text)


PANELS = {
    "phases": (_draw_phases, "Phases: time of a step of the plume"),
    "layouts": (_draw_rates, "Layouts: cell-iterations/s (line: a copy of as many bytes)"),
    "convergence": (_draw_rates, "Convergence tests: cell-iterations/s"),
    "blocks": (_draw_rates, "Shapes of blocks, interleaved arrays: cell-iterations/s"),
    "edges": (_draw_curve, "Edges: cell-iterations/s of the model"),
    "solvers": (_draw_solvers, "Solvers: time to a relative residual of 0.001"),
}
