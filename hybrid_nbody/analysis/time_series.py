"""Diagnostics against time: the panels of all models, and the figure of a model without its own."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
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
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array

Curves = Mapping[str, tuple[str, str]]
"""From a quantity of the diagnostics to its colour and its name in a legend."""

COLUMNS = 2
"""Panels side by side."""

PANEL_HEIGHT = 1.6
"""Height of a row of panels, in inches."""

MARGIN = 0.6
"""Height of the title, in inches."""


# --- energies -------------------------------------------------------------------------------------


def draw_energies(axes: Axes, run: Run) -> None:
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


def draw_energy_error(axes: Axes, run: Run) -> None:
    """Draw the relative error of the total energy against time, around a line at 0."""
    time = run.diagnostics.time
    error = run.diagnostics.relative_energy_error
    time_power = power_of_ten(time)
    power = power_of_ten(error)
    axes.axhline(0, color=GREY, linewidth=0.6)
    axes.plot(time / 10.0**time_power, error / 10.0**power, color=BLACK, **_marks(error))
    axes.set_ylabel(label("relative error", "", power))
    _fit_time(axes, run, time_power)


def _marks(values: Array) -> dict[str, Any]:
    """Return the marker of a curve of a single row, which would not be seen as a line."""
    return {"marker": "o", "markersize": 4} if len(values) == 1 else {}


def _fit_time(axes: Axes, run: Run, power: int) -> None:
    axes.set_xlabel(label("time", run.units("diagnostics/time"), power))
    axes.margins(x=0)
    readable_ticks(axes.xaxis)
    readable_ticks(axes.yaxis)


# --- any quantities -------------------------------------------------------------------------------


def draw_series(axes: Axes, run: Run, names: Curves, name: str) -> None:
    """Draw diagnostics against time.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    run : Run
        An open run.
    names : mapping
        From a quantity of the diagnostics to its colour and its name in a legend.
    name : str
        Name of the axis.
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


def draw_decades(axes: Axes, run: Run, names: Curves, name: str) -> None:
    """Draw diagnostics on a logarithmic axis; see `draw_series`. Values up to 0 leave gaps."""
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


def _draw_lines(
    axes: Axes, run: Run, names: Curves, name: str, scaled: Callable[[Array], Array]
) -> None:
    time = run.diagnostics.time
    power = power_of_ten(time)
    for quantity, (colour, words) in names.items():
        values = scaled(run.diagnostics[quantity])
        axes.plot(time / 10.0**power, values, color=colour, label=words, **_marks(values))
    axes.set_ylabel(name)
    axes.set_xlabel(label("time", run.units("diagnostics/time"), power))
    axes.margins(x=0)
    readable_ticks(axes.xaxis)


def _units(run: Run, names: Curves) -> str:
    return run.units(f"diagnostics/{next(iter(names))}")


# --- a figure of all of them ----------------------------------------------------------------------


def names_of(run: Run) -> list[str]:
    """Return the names of the scalar diagnostics."""
    diagnostics = run.diagnostics
    names = [name for name in diagnostics if name not in ("time", "step")]
    return [name for name in names if len(run.shape(f"diagnostics/{name}")) == 1]


def reason(run: Run) -> str:
    """Return why a run has no diagnostics to draw; empty if it has."""
    known = run.diagnostics.number_of_rows and names_of(run)
    return "" if known else "no diagnostics"


def diagnostics_figure(run: Run, frame: int = -1) -> Figure:
    """Draw every scalar diagnostic against time, in a panel of its own.

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
