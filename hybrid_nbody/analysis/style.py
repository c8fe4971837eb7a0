"""The look that all pictures share: sizes for a printed page, and colours that the colour-blind can tell apart."""

import math
import re
from contextlib import contextmanager

import numpy as np
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, BLACK, GREY = "#56B4E9", "#CC79A7", "#000000", "#666666"

BODY_COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, SKY, PURPLE, BLACK)
"""Okabe and Ito, "Color universal design" (2008), without the yellow, which is lost on white
paper."""

ENERGY_COLOURS = {"kinetic": VERMILLION, "potential": BLUE, "total": BLACK}

DENSITY_MAP = "viridis"

WIDTH = 7.2
"""Width of a figure in inches: that of the text of a printed page."""

LONG = 12
"""Units of more characters stand on a line of their own below what they are the units of."""

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
def our_look():
    """Draw with our look, whatever the user's settings are, and leave those untouched."""
    with style.context(LOOK, after_reset=True):
        yield


def power_of_ten(*arrays) -> int:
    """Return the power to take out of numbers so that an axis reads well; 0 if the largest is in 0.05 to 5000."""
    largest = max(
        np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in map(np.asarray, arrays)
    )
    if largest == 0 or 0.05 <= largest < 5000:
        return 0
    return math.floor(math.log10(largest))


def label(name, units="", power=0) -> str:
    """Return the label of an axis, such as ``x (10^11 m)``; without brackets where there is nothing to put there.

    Units that the name ends in, such as those of a total density, are not said again.
    """
    inside = scaled_units("" if name.endswith(units) else units, power)
    separator = "\n" if len(units) > LONG else " "
    return f"{plain(name)}{separator}({inside})" if inside else plain(name)


def scaled_units(units, power=0) -> str:
    """Return units with a power of ten before them, such as ``10^11 m``; empty where there is nothing to say."""
    units = (
        ""
        if units in ("1", "none", "dimensionless")
        else re.sub(r"\^(-?\d+)", r"$^{\1}$", plain(units))
    )
    scale = f"$10^{{{power}}}$" if power else ""
    return " ".join(part for part in (scale, units) if part)


def readable_ticks(axis):
    """Place a few ticks at round numbers."""
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))


def few_ticks(axes):
    """Place so few ticks on both axes that numbers do not touch where three planes share the width of a page."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))


def readable_decades(axis):
    """Place ticks of a logarithmic axis at 1, 2 and 5 times powers of ten, or at the powers if they are many."""
    low, high = axis.get_view_interval()
    wide = high > 200 * low
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    if not wide:
        axis.set_major_formatter(
            _plain_numbers() if low >= 1e-3 and high < 1e4 else _numbers_with_powers()
        )
    axis.set_minor_formatter(NullFormatter())


def _plain_numbers():
    return FuncFormatter(lambda value, _: f"{value:g}")


def _numbers_with_powers():
    """Return what writes every tick as 2 x 10^-5; by default many are left without a number."""
    return LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(np.inf, np.inf))


def plain(text) -> str:
    """Return a text that matplotlib draws as it stands: a dollar sign in a title is no formula."""
    return text.replace("$", r"\$")


# --- figures --------------------------------------------------------------------------------------


def new_figure(height) -> Figure:
    """Return an empty figure of a height in inches."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def title(run, frame=None, *more) -> str:
    """Return the title of the run, the time of a frame, and what else there is to say."""
    parts = [plain(run.title)] if run.title else []
    if frame is not None:
        units = scaled_units(run.units("time"))
        parts.append(f"time {run.time[frame]:.4g}" + (f" {units}" if units != "time" else ""))
    return ", ".join([*parts, *more])
