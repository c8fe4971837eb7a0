"""Common parts of the pictures of benchmarks: figures, axes of rates and times, bars."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
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
BESIDE: Look = {"textcoords": "offset points", "va": "center"}
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


def machine_title(facts: Facts, device: str = "") -> str:
    """Return the machine in a line: its processor, its GPU, or both."""
    cpu = f"{facts['cpu']}, {counted(facts['threads'], 'thread')}"
    parts = {"gpu": cpu, "cpu": facts.get("gpu", "")}
    return ", ".join(text for other, text in parts.items() if text and other != device)


def distinct(rows: Iterable[Row], key: str) -> list:
    """Return the different values of a column, in the order in which they come."""
    return list(dict.fromkeys(row[key] for row in rows))


def groups(rows: Iterable[Row], *keys: str) -> list[tuple[tuple, list[Row]]]:
    """Return the values of some columns, and the rows in a row that have them."""
    found = groupby(rows, key=lambda row: tuple(row[key] for key in keys))
    return [(values, list(group)) for values, group in found]


def having(rows: Iterable[Row], key: str = "interactions_per_s") -> list[Row]:
    """Return the rows that have a figure: those that were measured."""
    return [row for row in rows if row.get(key)]


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
    points = [(row[x], row[y]) for row in rows]
    axes.plot(*zip(*points, strict=True), how, **{"markersize": 3.5} | look)


def draw_bar(axes: Axes, y: float, length: float, colour: str, height: float = 0.72) -> None:
    """Draw a horizontal bar."""
    axes.barh(y, length, height=height, color=colour, **BAR)


def write_beside(axes: Axes, text: str, end: float, y: float, size: float = 7) -> None:
    """Write a text to the right of a point."""
    axes.annotate(text, (end, y), (5, 0), fontsize=size, **BESIDE)


def mark_limit(axes: Axes, limit: float, y: float) -> None:
    """Draw a line across a bar."""
    axes.plot([limit] * 2, [y - 0.45, y + 0.45], color=style.BLACK, linewidth=1.8)


def name_bars(
    axes: Axes, names: Mapping[int, str] | Mapping[float, str], bottom: float, size: float = 7.5
) -> None:
    """Name bars from the top down, by their y."""
    axes.set_yticks(list(names), list(names.values()))
    axes.set_ylim(bottom, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=size)
