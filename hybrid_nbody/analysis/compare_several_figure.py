"""The picture of several runs: how far each is from the first, and their diagnostics."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hybrid_nbody.analysis.compare_figure import positive
from hybrid_nbody.analysis.compare_series import Series
from hybrid_nbody.analysis.compare_several import Several, compare_several
from hybrid_nbody.analysis.plots import FORMATS
from hybrid_nbody.analysis.style import (
    BODY_COLOURS,
    label,
    new_figure,
    our_look,
    plain,
    readable_ticks,
)
from hybrid_nbody.files.atomic import output_path, write_whole
from hybrid_nbody.files.run import open_run
from hybrid_nbody.progress import OnProgress

MOST_DIAGNOSTICS = 3
"""Most diagnostics that are drawn: those that differ most."""

MOST_NAMED = 16
"""Most runs that the legend names."""


def plot_several(
    paths: Sequence[str | Path],
    labels: Sequence[str] | None = None,
    output: str | Path | None = None,
    progress: OnProgress | None = None,
) -> tuple[Several, Path]:
    """Compare runs with the first of them, and draw the differences and diagnostics.

    Parameters
    ----------
    paths, labels, progress
        See `compare_several`.
    output : str or Path, optional
        A file ending in .png, .pdf or .svg, or a directory. By default ``compare.png`` in the
        directory of the first.

    Raises
    ------
    InputError, FileError
        As `compare_several`, or the picture cannot be written.
    """
    found = compare_several(paths, labels, progress)
    folder = found.paths[0].parent if output is None else Path(output)
    target = output_path("picture", folder, "compare.png", FORMATS)
    with our_look():
        picture = io.BytesIO()
        several_figure(found).savefig(picture, format=target.suffix[1:].lower())
    write_whole(target, picture.getvalue(), "picture")
    return found, target


def several_figure(found: Several) -> Figure:
    """Draw the differences of fields from the first run, and the diagnostics that differ most."""
    fields = list(dict.fromkeys(one.name for each in found.comparisons for one in each.fields))
    diagnostics = _most_different(found)
    number = max(len(fields) + len(diagnostics), 1)
    figure = new_figure(0.6 + 1.9 * number)
    panels = figure.subplots(number, 1, squeeze=False, sharex=True)[:, 0]
    for axes, name in zip(panels, fields, strict=False):
        _draw_differences(axes, found, name)
    for axes, name in zip(panels[len(fields) :], diagnostics, strict=False):
        _draw_diagnostic(axes, found, name)
    panels[0].legend(*_legend(found), loc="upper left", bbox_to_anchor=(1, 1))
    panels[-1].set_xlabel(label("time", ""))
    return figure


def _legend(found: Several) -> tuple[list[Line2D], list[str]]:
    """Return a line and a name for each run, as far as there is room."""
    named = list(zip(colours(len(found.labels)), found.labels, strict=True))[:MOST_NAMED]
    lines = [Line2D([], [], color=colour) for colour, _ in named]
    names = [plain(name) for _, name in named]
    return lines, [f"{names[0]} (first)", *names[1:]]


def colours(number: int) -> list[str]:
    """Return a colour for each of some runs: distinct ones, or a scale where there are many."""
    if number <= len(BODY_COLOURS):
        return list(BODY_COLOURS[:number])
    scale = colormaps["viridis"](np.linspace(0, 0.9, number))
    return [to_hex(colour) for colour in scale]


def _most_different(found: Several) -> list[str]:
    """Return the names of the single numbers that differ most from the first run."""
    with open_run(found.paths[0]) as run:
        single = [name for name in run.diagnostics if run.diagnostics[name].ndim == 1]
    most: dict[str, float] = {}
    for each in found.comparisons:
        for one in each.diagnostics:
            most[one.name] = max(most.get(one.name, 0.0), _relative(one))
    names = [name for name in single if most.get(name.replace("_", " "), 0.0) > 0]
    return sorted(names, key=lambda name: -most[name.replace("_", " ")])[:MOST_DIAGNOSTICS]


def _relative(one: Series) -> float:
    largest = one.largest[np.isfinite(one.largest)].max(initial=0.0)
    return float(largest / one.scale) if one.scale > 0 else 0.0


def _draw_differences(axes: Axes, found: Several, name: str) -> None:
    """Draw the largest differences of a field from the first run, relative to its scale there."""
    paints = colours(len(found.labels))[1:]
    for colour, each in zip(paints, found.comparisons, strict=True):
        for one in each.fields:
            if one.name == name and one.scale > 0 and one.largest.any():
                axes.plot(one.time, positive(one.largest / one.scale), color=colour)
    if axes.lines:
        axes.set_yscale("log")
    axes.set_ylabel(f"{name},\nrelative difference")
    readable_ticks(axes.xaxis)


def _draw_diagnostic(axes: Axes, found: Several, name: str) -> None:
    """Draw a diagnostic of all runs over time."""
    for colour, path in zip(colours(len(found.labels)), found.paths, strict=True):
        with open_run(path) as run:
            if name in run.diagnostics:
                axes.plot(run.diagnostics.time, run.diagnostics[name], color=colour)
                units = run.units(f"diagnostics/{name}")
    axes.set_ylabel(label(name.replace("_", " "), units))
    readable_ticks(axes.xaxis)
