"""Common parts of the pictures of benchmarks: figures, axes of rates and times, bars."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybrid_nbody.analysis import style
from hybrid_nbody.benchmarks.harness.measure import Row, counted
from hybrid_nbody.output.summary import with_prefix

Look = dict[str, Any]
"""Keyword arguments of matplotlib."""

DPI = 200
DEVICE_COLOURS = {"cpu": style.ORANGE, "gpu": style.BLUE}
PRECISION_COLOURS = {"single": style.BLUE, "mixed": style.GREEN, "double": style.VERMILLION}
BAR: Look = {"alpha": 0.85, "linewidth": 0}
RATE = "interactions/s"
TIME_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))

Facts = Mapping[str, Any]
Draw = Callable[[Sequence[Row], Facts], Figure]
"""The facts of a machine; takes the rows of a benchmark and these, and returns a figure."""


def png(draw: Draw, rows: Sequence[Row], facts: Facts, dpi: int = DPI) -> bytes:
    """Draw the rows of a benchmark in our look; return the picture as a PNG file has it."""
    picture = io.BytesIO()
    with style.our_look():
        draw(rows, facts).savefig(picture, format="png", dpi=dpi)
    return picture.getvalue()


def new_figure(height: float, facts: Facts, device: str = "", before: str = "") -> Figure:
    """Return a figure with the machine as its title, after other words; see `machine_title`."""
    figure = style.new_figure(height)
    figure.suptitle(before + machine_title(facts, device))
    return figure


def machine_title(facts: Facts, device: str = "") -> str:
    """Return the machine in a line: its processor, its GPU, or both."""
    cpu = f"{facts['cpu']}, {counted(facts['threads'], 'thread')}"
    parts = {"gpu": cpu, "cpu": facts.get("gpu", "")}
    return ", ".join(text for other, text in parts.items() if text and other != device)


def rate_text(rate: float) -> str:
    """Return a rate in short, such as ``2.36 T``."""
    return with_prefix(rate).strip()


def time_text(seconds: float) -> str:
    """Return a time in short, such as ``3.1 ms``."""
    fitting = (unit for unit in TIME_UNITS if seconds * unit[1] >= 0.9995)
    name, factor = next(fitting, TIME_UNITS[-1])
    return f"{seconds * factor:.3g} {name}"


def draw_line(axes: Axes, rows: list[Row], x: str, y: str, how: str = "o-", **look: Any) -> None:
    """Draw one column of rows against another."""
    values = ([row[key] for row in rows] for key in (x, y))
    axes.plot(*values, how, **{"markersize": 3.5} | look)


def draw_bar(
    axes: Axes, y: float, length: float, colour: str, text: str = "", limit: float = 0
) -> None:
    """Draw a horizontal bar, a line across it at a limit if there is one, and a text beside."""
    axes.barh(y, length, height=0.72, color=colour, **BAR)
    if limit:
        axes.plot([limit] * 2, [y - 0.45, y + 0.45], color=style.BLACK, linewidth=1.8)
    write_beside(axes, text, max(length, limit), y)


def write_beside(axes: Axes, text: str, end: float, y: float, size: float = 7) -> None:
    """Write a text to the right of a point."""
    axes.annotate(text, (end, y), (5, 0), fontsize=size, textcoords="offset points", va="center")


def name_bars(
    axes: Axes, names: Mapping[int, str] | Mapping[float, str], bottom: float, size: float = 7.5
) -> None:
    """Name bars from the top down, by their y."""
    axes.set_yticks(list(names), list(names.values()))
    axes.set_ylim(bottom, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=size)
