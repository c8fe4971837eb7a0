"""The bodies of several components, told apart by their colours."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hybrid_nbody.analysis.panels import View, frame_plane, view_of
from hybrid_nbody.analysis.style import (
    BODY_COLOURS,
    BodyStyle,
    few_ticks,
    new_figure,
    own_styles,
    title,
)
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.components import components_in
from hybrid_nbody.nbody.figures.sample import counted_bodies, stride_of
from hybrid_nbody.nbody.figures.tracks import no_bodies, points_of

PLANES = ((0, 1), (0, 2), (1, 2))

MOST_COLUMNS = 6
"""Names beside each other in a legend."""

Members = dict[str, NDArray[np.intp]]


def no_components(run: Run) -> str:
    """Return why there are no components; empty if there are."""
    if reason := no_bodies(run):
        return reason
    if not run.config.get("bodies"):
        return "the bodies are of one component"
    try:
        names = components_in(run)
    except InputError as error:
        return str(error)
    return "" if len(names) > 1 else "the bodies are of one component"


def components_figure(run: Run, frame: int = -1) -> Figure:
    """Draw the bodies of one frame in three planes, each component in a colour.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int, optional
        Negative frames count from the end.

    Raises
    ------
    InputError
        The run has one component, or no such frame.
    """
    if reason := no_components(run):
        raise InputError(f"{run.path}: no picture of kind 'components': {reason}")
    points = points_of(run, frame)
    view = view_of(points, run.units("bodies/position"))
    members = members_of(run)
    figure = new_figure(2.8)
    panels = figure.subplots(1, len(PLANES))
    for axes, plane in zip(panels, PLANES, strict=True):
        frame_plane(axes, view, plane)
        _draw(axes, points, members, view, plane)
        few_ticks(axes)
    handles, names = panels[0].get_legend_handles_labels()
    columns = min(len(names), MOST_COLUMNS)
    figure.legend(handles, names, loc="outside lower center", ncols=columns, markerscale=4)
    figure.suptitle(title(run, frame, counted_bodies(run)))
    return figure


def members_of(run: Run) -> Members:
    """Return which of the bodies that figures take are in each component, by its name."""
    drawn = run.id[:: stride_of(run)]
    ids = components_in(run)
    return {
        name: np.flatnonzero((drawn >= own.start) & (drawn < own.stop)) for name, own in ids.items()
    }


def styles_of(run: Run) -> list[BodyStyle]:
    """Return the style of each body: the colour of its component, or one of its own.

    The first body of a component carries its name.
    """
    if no_components(run):
        return own_styles(run.id.tolist())
    styles = own_styles(range(run.number_of_bodies))
    for place, (name, rows) in enumerate(members_of(run).items()):
        colour = BODY_COLOURS[place % len(BODY_COLOURS)]
        for body in rows:
            styles[body] = BodyStyle(colour, name if body == rows[0] else "")
    return styles


def _draw(axes: Axes, points: Array, members: Members, view: View, plane: tuple[int, int]) -> None:
    """Draw the components in the order of the list, those that are wide below the others."""
    size = float(np.clip(12000 / max(len(points), 1), 0.4, 6.0))
    for place, (name, rows) in enumerate(members.items()):
        own = points[rows]
        x, y = (own[view.contains(own)][:, list(plane)] / 10.0**view.power).T
        colour = BODY_COLOURS[place % len(BODY_COLOURS)]
        below = -width_of(own)
        axes.scatter(x, y, size, colour, linewidths=0, zorder=below, label=name, rasterized=True)


def width_of(points: Array) -> float:
    """Return the median distance of points from their middle; 0 for none."""
    if not len(points):
        return 0.0
    distance = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    return float(np.median(distance))
