"""The diagnostics of any run against time: what is drawn of a model that brings no figures of its own."""

import math

from matplotlib.figure import Figure

from hybrid_nbody.analysis.field_panels import draw_series
from hybrid_nbody.analysis.figures import new_figure, title
from hybrid_nbody.analysis.presentation import Figures, Picture, of_one_frame
from hybrid_nbody.analysis.style import BLUE
from hybrid_nbody.errors import InputError

COLUMNS = 2
PANEL_HEIGHT = 1.6
MARGIN = 0.6
"""Inches, of a row of panels and of the title."""


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
