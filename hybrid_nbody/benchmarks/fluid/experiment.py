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
from hybrid_nbody.benchmarks.harness.measure import Column, Row
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

SMALLEST = 4
BYTES_PER_CELL = 128
STAGED_BYTES = 24
"""Upper bounds on what a cell needs where it is computed, and in memory to be uploaded to a GPU."""


def run(arguments: Namespace) -> int:
    """Carry out ``bench fluid`` and return the exit code."""
    parts = options.words("--parts", arguments.parts, tuple(PARTS))
    check_used(arguments, parts)
    asked = {
        option: options.numbers(option, text, SMALLEST)
        for option, text in (("--sizes", arguments.sizes), ("--poisson", arguments.poisson))
        if text is not None
    }
    if arguments.large is not None:
        asked["--large"] = [options.number("--large", arguments.large, SMALLEST)]
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


def check_used(arguments: Namespace, parts: Sequence[str]) -> None:
    """Raise `InputError` if an option for the edges of grids is of no use to the chosen parts."""
    for option in sorted({part.option for part in PARTS.values()}):
        users = [name for name, part in PARTS.items() if part.option == option]
        given = getattr(arguments, option.removeprefix("--")) is not None
        if given and not set(users) & set(parts):
            chosen = ",".join(parts)
            raise InputError(f"{option}: is for {', '.join(users)} alone (got --parts {chosen})")


def check_memory(devices: machine.Devices, option: str, edge: int, device: str) -> None:
    """Raise `InputError` if a grid that a device computes does not fit in memory."""
    on_gpu = device == "gpu" and devices.gpu is not None
    sizes = {machine.IN_MEMORY: STAGED_BYTES, machine.ON_GPU: BYTES_PER_CELL}
    sizes = sizes if on_gpu else {machine.IN_MEMORY: BYTES_PER_CELL}
    for where, free in machine.memories(devices):
        if size := sizes.get(where):
            fits = int((free / size) ** (1 / 3))
            needed = f"{option}: {edge}^3 cells need", size * edge**3
            machine.check_fit(*needed, where, free, f"; at most {fits}^3 cells fit")


def best_lines(rows: Sequence[Row]) -> list[str]:
    """Return in words which shape of block was the fastest, and what the best layout reaches."""
    lines = []
    for part, what in (("blocks", "block"), ("layouts", "layout")):
        for device in ("cpu", "gpu"):
            found = measure.alike(rows, {"part": part, "device": device}, "part", "device")
            own = pictures.having(found, "updates_per_s")
            if own:
                best = max(own, key=lambda row: row["updates_per_s"])
                rate = f"{best['updates_per_s'] * 1e-9:.3g} G cell-iterations/s"
                lines.append(f"fastest {what}, {device.upper()}: {best['rung']}, {rate}")
    return lines


LINE_COLOURS = (style.VERMILLION, style.ORANGE, style.GREEN, style.BLUE, style.SKY, style.BLACK)
PHASES_HEIGHT = 2.3
LABEL_SIZE = 6.5


def draw(rows: Sequence[Row], facts: pictures.Facts) -> Figure:
    """Draw the parts that have rows, one below the other: phases as lines, all else as bars."""
    parts = pictures.groups(pictures.having(rows, "median_s"), "part")
    heights = [_height(part, group) for (part,), group in parts] or [1.0]
    figure = style.new_figure(0.6 + sum(heights) + 0.45 * len(heights))
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, ((part,), group) in zip(panels, parts, strict=False):
        panel, title = PANELS[part]
        panel(axes, group)
        axes.set_title(title, loc="left")
    figure.suptitle(pictures.machine_title(facts))
    return figure


def _height(part: str, rows: list[Row]) -> float:
    """Return the height of a panel: one line a bar, and one between tables."""
    tables = len(pictures.groups(rows, "device", "cells"))
    return PHASES_HEIGHT if part in ("phases", "edges") else 0.3 + 0.19 * (len(rows) + tables - 1)


def _draw_phases(axes: Axes, rows: list[Row]) -> None:
    """Draw the time of a step against the size, a line a phase."""
    for name, colour in zip(pictures.distinct(rows, "rung"), LINE_COLOURS, strict=False):
        own = [row for row in rows if row["rung"] == name]
        pictures.draw_line(axes, own, "cells", "median_s", color=colour, label=name)
        seconds = own[-1]["median_s"]
        pictures.write_beside(axes, time_text(seconds), own[-1]["cells"], seconds, LABEL_SIZE)
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
    for (device,), own in pictures.groups(rows, "device"):
        colour = pictures.DEVICE_COLOURS[device]
        pictures.draw_line(axes, own, "cells", "updates_per_s", color=colour)
    axes.set_ylim(0, 1.15 * max(row["updates_per_s"] for row in rows))
    style.ticks_text(axes.yaxis, lambda value: rate_text(value) if value else "0")
    axes.set_xlabel("cells along an edge")


def _draw_bars(axes: Axes, rows: list[Row], key: str, label: Callable, text: Callable) -> None:
    """Draw a bar a row and its limit; ``text(row)`` stands beside it, ``label(value)`` at ticks."""
    names: dict[int, str] = {}
    y = 0
    for _, table in pictures.groups(rows, "device", "cells"):
        for row in table:
            colour = pictures.DEVICE_COLOURS[row["device"]]
            pictures.draw_bar(axes, y, row[key], colour, height=0.75)
            end = max(row[key], row.get("limit", 0))
            pictures.write_beside(axes, text(row), end, y, LABEL_SIZE)
            if "limit" in row:
                pictures.mark_limit(axes, row["limit"], y)
            names[y] = f"{row['rung']}, {row['cells']}³"
            y += 1
        y += 1
    least = min(row[key] for row in rows)
    most = max(max(row[key], row.get("limit", 0)) for row in rows)
    if most < 20 * least:
        axes.set_xlim(0, 1.45 * most)
        style.ticks_text(axes.xaxis, lambda value: label(value) if value else "0")
    else:  # they differ too much to start at zero
        axes.set_xscale("log")
        axes.set_xlim(least / 2, most * (most / (least / 2)) ** 0.5)
        style.decades(axes.xaxis, label)
    pictures.name_bars(axes, names, y - 1.4, size=7)


def _draw_layouts(axes: Axes, rows: list[Row]) -> None:
    """Draw the rate of each layout, with a line where copying its bytes would end."""
    compared = pictures.having(rows, "share_of_copy")
    limited = [row | {"limit": row["updates_per_s"] / row["share_of_copy"]} for row in compared]
    _draw_rates(axes, limited)


def _draw_rates(axes: Axes, rows: list[Row]) -> None:
    """Draw cell-iterations a second, and the share of a copy where there is one."""

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
    "layouts": (_draw_layouts, "Layouts: cell-iterations/s (line: a copy of as many bytes)"),
    "convergence": (_draw_rates, "Convergence tests: cell-iterations/s"),
    "blocks": (_draw_rates, "Shapes of blocks, interleaved arrays: cell-iterations/s"),
    "edges": (_draw_curve, "Edges: cell-iterations/s of the model"),
    "solvers": (_draw_solvers, "Solvers: time to a relative residual of 0.001"),
}
