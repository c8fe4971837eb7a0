"""Diagnostics against time: the panels of all models, and the figure of a model without its own."""

import math

import numpy as np
from matplotlib.figure import Figure

from hybrid_nbody.analysis.presentation import Figures, Picture, of_one_frame
from hybrid_nbody.analysis.style import (
    BLACK,
    BLUE,
    ENERGY_COLOURS,
    GREY,
    label,
    new_figure,
    power_of_ten,
    readable_decades,
    readable_ticks,
    title,
)
from hybrid_nbody.errors import InputError

COLUMNS = 2
PANEL_HEIGHT = 1.6
MARGIN = 0.6
"""Inches, of a row of panels and of the title."""


# --- energies -------------------------------------------------------------------------------------


def draw_energies(axes, run):
    """Draw kinetic, potential and total energy against time."""
    diagnostics = run.diagnostics
    units = run.units("diagnostics/total_energy")
    series = {name: diagnostics[f"{name}_energy"] for name in ENERGY_COLOURS}
    time = diagnostics.time
    power = power_of_ten(*series.values())
    time_power = power_of_ten(time)
    for name, values in series.items():
        axes.plot(
            time / 10.0**time_power,
            values / 10.0**power,
            color=ENERGY_COLOURS[name],
            label=name,
            **_marks(values),
        )
    axes.set_ylabel(label("energy", units, power))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.5
    )
    _fit_time(axes, run, time_power)


def draw_energy_error(axes, run):
    """Draw the relative error of the total energy against time, with its largest value in words."""
    time = run.diagnostics.time
    error = run.diagnostics.relative_energy_error
    time_power = power_of_ten(time)
    power = power_of_ten(error)
    axes.axhline(0, color=GREY, linewidth=0.6)
    axes.plot(time / 10.0**time_power, error / 10.0**power, color=BLACK, **_marks(error))
    axes.set_ylabel(label("relative error", "", power))
    _fit_time(axes, run, time_power)


def _marks(values):
    # A line through a single row would not be seen.
    return {"marker": "o", "markersize": 4} if len(values) == 1 else {}


def _fit_time(axes, run, power):
    axes.set_xlabel(label("time", run.units("diagnostics/time"), power))
    axes.margins(x=0)
    readable_ticks(axes.xaxis)
    readable_ticks(axes.yaxis)


# --- any quantities -------------------------------------------------------------------------------


def draw_series(axes, run, names, name):
    """Draw diagnostics against time.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    run : Run
        An open run.
    names : mapping
        From a quantity of the diagnostics to its colour and to what a legend calls it.
    name : str
        What the axis is called.
    """
    power = power_of_ten(*(run.diagnostics[quantity] for quantity in names))
    _draw_lines(
        axes,
        run,
        names,
        label(name, _units(run, names), power),
        lambda values: values / 10.0**power,
    )
    readable_ticks(axes.yaxis)


def draw_decades(axes, run, names, name):
    """Draw diagnostics on a logarithmic axis, as `draw_series` does; what is not greater than 0 leaves a gap."""
    _draw_lines(
        axes,
        run,
        names,
        label(name, _units(run, names)),
        lambda values: np.where(values > 0, values, np.nan),
    )
    if any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
        axes.set_yscale("log")
        readable_decades(axes.yaxis)


def _draw_lines(axes, run, names, name, scaled):
    time = run.diagnostics.time
    power = power_of_ten(time)
    for quantity, (colour, words) in names.items():
        values = scaled(run.diagnostics[quantity])
        marks = (
            {"marker": "o", "markersize": 4} if len(values) == 1 else {}
        )  # a line through it would not be seen
        axes.plot(time / 10.0**power, values, color=colour, label=words, **marks)
    axes.set_ylabel(name)
    axes.set_xlabel(label("time", run.units("diagnostics/time"), power))
    axes.margins(x=0)
    readable_ticks(axes.xaxis)


def _units(run, names):
    return run.units(f"diagnostics/{next(iter(names))}")


# --- a figure of all of them ----------------------------------------------------------------------


def names_of(run) -> list[str]:
    """Return the diagnostics that are one number at a time."""
    diagnostics = run.diagnostics
    names = [name for name in diagnostics if name not in ("time", "step")]
    return [name for name in names if len(run.shape(f"diagnostics/{name}")) == 1]


def reason(run) -> str:
    """Say why a run has no diagnostics to draw; nothing where it has."""
    known = run.diagnostics.number_of_rows and names_of(run)
    return "" if known else "no diagnostics"


def diagnostics_figure(run, frame=-1) -> Figure:
    """Draw each diagnostic against time, a panel each.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int, optional
        Not used: diagnostics are those of the whole run.

    Raises
    ------
    InputError
        The run holds no diagnostics.
    """
    if reason(run):
        raise InputError(f"{run.path}: {reason(run)} in this run of model '{run.model}'")
    names = names_of(run)
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    figure = new_figure(MARGIN + PANEL_HEIGHT * rows)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        draw_series(axes, run, {name: (BLUE, "")}, name.replace("_", " "))
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    figure.suptitle(title(run))
    return figure


DIAGNOSTICS = Figures(
    {
        "diagnostics": Picture(
            of_one_frame(diagnostics_figure), reason, "The diagnostics of the run against time."
        )
    }
)
