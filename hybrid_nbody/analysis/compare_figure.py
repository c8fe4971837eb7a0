"""The picture of a comparison: the differences between two runs over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybrid_nbody.analysis.compare import Comparison
from hybrid_nbody.analysis.compare_series import Series
from hybrid_nbody.analysis.style import (
    BODY_COLOURS,
    GREY,
    label,
    new_figure,
    plain,
    power_of_ten,
    readable_decades,
    readable_ticks,
)
from hybrid_nbody.files.views import Array

MOST_LINES = len(BODY_COLOURS)


def compare_figure(found: Comparison) -> Figure:
    """Draw the relative differences of fields and of diagnostics against time.

    They are relative to the largest value of the quantity in the first run.

    Parameters
    ----------
    found : Comparison
        From `compare.compare`.
    """
    groups = [("of the frames", found.fields), ("of the diagnostics", found.diagnostics)]
    groups = [(name, series) for name, series in groups if series]
    figure = new_figure(0.6 + 2.4 * len(groups))
    panels = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axes, (name, series) in zip(panels, groups, strict=True):
        _draw(axes, name, series)
    figure.suptitle(plain(_title(found)))
    return figure


def _title(found: Comparison) -> str:
    """Return the names of the runs, with a title that they share or have each."""
    first, second = found.titles
    if first == second:
        against = f"{found.names[0]} against {found.names[1]}"
        return f"{first}: {against}" if first else against
    named = [
        f"{title or 'run'} ({name})" for title, name in zip(found.titles, found.names, strict=True)
    ]
    return " against ".join(named)


def _draw(axes: Axes, name: str, series: Sequence[Series]) -> None:
    time = series[0].time
    power = power_of_ten(time)
    if not _draw_differences(axes, series, 10.0**power):
        axes.text(
            0.5,
            0.5,
            "no difference",
            transform=axes.transAxes,
            ha="center",
            va="center",
            color=GREY,
        )
        axes.set(yticks=[])
    axes.set_ylabel(f"relative difference\n{name}")
    axes.set_xlabel(label("time", "", power))
    axes.set_xlim(*_span(time / 10.0**power))
    readable_ticks(axes.xaxis)


def _draw_differences(axes: Axes, series: Sequence[Series], unit: float) -> bool:
    """Draw the largest differences against time in a `unit`; return whether there are any."""
    # The largest comes first; a quantity that is 0 in the first run has no relative difference.
    shown = sorted(
        (one for one in series if one.scale > 0), key=lambda one: -_finite_peak(one) / one.scale
    )
    drawn = [one for one in shown if _finite_peak(one) > 0][:MOST_LINES]
    for one, colour in zip(drawn, BODY_COLOURS, strict=False):
        axes.plot(one.time / unit, positive(one.largest / one.scale), color=colour, label=one.name)
        if np.any(one.rms != one.largest):
            axes.plot(one.time / unit, positive(one.rms / one.scale), color=colour, linestyle=":")
    if drawn:
        axes.set_title("largest; dotted: rms", loc="right", color=GREY)
        axes.set_yscale("log")
        readable_decades(axes.yaxis)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return bool(drawn)


def _finite_peak(one: Series) -> float:
    return float(np.max(one.largest, initial=0.0, where=np.isfinite(one.largest)))


def positive(values: Array) -> Array:
    """Return values with NaN where a logarithmic axis has no position."""
    return np.where(values > 0, values, np.nan)


def _span(time: Array) -> tuple[float, float]:
    return (time[0], time[-1]) if time[-1] > time[0] else (time[0] - 0.5, time[0] + 0.5)
