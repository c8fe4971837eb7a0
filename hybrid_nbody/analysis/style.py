"""The common style of all pictures: sizes for a printed page, colours for the colour-blind."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from numpy.typing import ArrayLike

from hybrid_nbody.files.run import Run

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, BLACK, GREY = "#56B4E9", "#CC79A7", "#000000", "#666666"

BODY_COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, SKY, PURPLE, BLACK)
"""Okabe and Ito, "Color universal design" (2008), without yellow, which is invisible on white."""

ENERGY_COLOURS = {"kinetic": VERMILLION, "potential": BLUE, "total": BLACK}

DENSITY_MAP = "viridis"

WIDTH = 7.2
"""Width of a figure in inches: that of the text of a printed page."""

LONG = 12
"""Longest units that stand on the same line as the name of an axis."""

LOOK = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.titlesize": 10,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.4,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "axes.formatter.useoffset": False,
    "axes.formatter.use_mathtext": True,
    # a line of a million points is otherwise more than the renderer takes at once
    "agg.path.chunksize": 20000,
    "pdf.fonttype": 42,  # text that stays text in a paper
    "svg.fonttype": "none",
}


@contextmanager
def our_look() -> Iterator[None]:
    """Draw with `LOOK` in place of the user's settings, which are restored afterwards."""
    with style.context(LOOK, after_reset=True):
        yield


def power_of_ten(*arrays: ArrayLike) -> int:
    """Return the power of ten to take out of an axis; 0 if the largest number is in 0.05 … 5000."""
    largest = max(
        np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in map(np.asarray, arrays)
    )
    if largest == 0 or 0.05 <= largest < 5000:
        return 0
    return math.floor(math.log10(largest))


def label(name: str, units: str = "", power: int = 0) -> str:
    """Return the label of an axis, such as ``x (10^11 m)``, or ``x`` without units and power.

    Units that the name ends in, such as those of a total density, are not repeated.
    """
    inside = scaled_units("" if name.endswith(units) else units, power)
    separator = "\n" if len(units) > LONG else " "
    return f"{plain(name)}{separator}({inside})" if inside else plain(name)


def scaled_units(units: str, power: int = 0) -> str:
    """Return units after a power of ten, such as ``10^11 m``; empty for dimensionless numbers."""
    units = (
        ""
        if units in ("1", "none", "dimensionless")
        else re.sub(r"\^(-?\d+)", r"$^{\1}$", plain(units))
    )
    scale = f"$10^{{{power}}}$" if power else ""
    return " ".join(part for part in (scale, units) if part)


def readable_ticks(axis: Axis) -> None:
    """Place a few ticks at round numbers."""
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))


def few_ticks(axes: Axes) -> None:
    """Place few ticks on both axes, for panels that share the width of a page."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))


def readable_decades(axis: Axis) -> None:
    """Place ticks of a logarithmic axis at 1, 2 and 5 times powers of ten, or at powers only."""
    low, high = axis.get_view_interval()
    wide = high > 200 * low
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    if not wide:
        axis.set_major_formatter(
            _plain_numbers() if low >= 1e-3 and high < 1e4 else _numbers_with_powers()
        )
    axis.set_minor_formatter(NullFormatter())


def _plain_numbers() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:g}")


def _numbers_with_powers() -> LogFormatterSciNotation:
    """Return a formatter that labels every tick, as 2 x 10^-5; by default many have no label."""
    return LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(np.inf, np.inf))


def ticks_text(axis: Axis, text: Callable[[float], str]) -> None:
    """Write the major ticks of an axis as `text` says, and nothing at the minor ones."""
    axis.set_major_formatter(FuncFormatter(lambda value, position: text(value)))
    axis.set_minor_formatter(NullFormatter())


def ticks_from_zero(axis: Axis, text: Callable[[float], str]) -> None:
    """Write the major ticks of an axis that starts at zero as `text` says, and zero as 0."""
    ticks_text(axis, lambda value: text(value) if value else "0")


def time_ticks(axis: Axis, per_second: float) -> None:
    """Write the ticks of a logarithmic axis of seconds in another unit, at 1, 2, 5, 10, …."""
    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=20))
    ticks_text(axis, lambda seconds: f"{seconds * per_second:g}")


def decades(axis: Axis, text: Callable[[float], str]) -> None:
    """Name the decades of a logarithmic axis alone."""
    axis.set_major_locator(LogLocator(10, numticks=20))
    axis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=20))
    ticks_text(axis, text)


def fixed_ticks(axis: Axis, values: Iterable[float], text: str = "{:.0f}") -> None:
    """Place ticks at some values alone."""
    axis.set_major_locator(FixedLocator(sorted(values)))
    axis.set_minor_locator(NullLocator())
    ticks_text(axis, text.format)


def size_axis(axes: Axes, sizes: Iterable[float], base: float = 10) -> None:
    """Scale the x axis by logarithms, with ticks at some sizes alone."""
    axes.set_xscale("log", base=base)
    fixed_ticks(axes.xaxis, sizes)


def whole_decades(low: float, high: float) -> tuple[float, float]:
    """Return the powers of ten around two values: they alone have labels."""
    return 10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high))


def plain(text: str) -> str:
    """Return a text whose dollar signs matplotlib does not take for formulas."""
    return text.replace("$", r"\$")


# --- bodies -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BodyStyle:
    """The colour of a body, and its name in a legend; empty if it has none there."""

    colour: str
    name: str


def own_styles(names: Sequence[object]) -> list[BodyStyle]:
    """Return a colour of its own for each body, and its name; no names where colours repeat."""
    colours = [BODY_COLOURS[place % len(BODY_COLOURS)] for place in range(len(names))]
    told_apart = len(names) <= len(BODY_COLOURS)
    texts = [f"body {name}" if told_apart else "" for name in names]
    return [BodyStyle(colour, text) for colour, text in zip(colours, texts, strict=True)]


# --- figures --------------------------------------------------------------------------------------


def new_figure(height: float) -> Figure:
    """Return an empty figure of `height` inches and the common width."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def title(run: Run, frame: int | None = None, *more: str) -> str:
    """Return the title of the run, the time of a frame, and `more` texts."""
    parts = [plain(run.title)] if run.title else []
    if frame is not None:
        parts.append(moment(run, frame))
    return ", ".join([*parts, *more])


def moment(run: Run, frame: int) -> str:
    """Return the time of a frame in words."""
    units = scaled_units(run.units("time"))
    return f"time {run.time[frame]:.4g}" + (f" {units}" if units != "time" else "")
