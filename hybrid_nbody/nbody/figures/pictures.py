"""Figures of bodies: energies, bodies in three planes, tracks of a few, and an overview."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure

from hybrid_nbody.analysis.panels import (
    FEW_BODIES,
    View,
    view_of,
)
from hybrid_nbody.analysis.style import few_ticks, new_figure, scaled_units, title
from hybrid_nbody.analysis.time_series import draw_energies, draw_energy_error
from hybrid_nbody.analysis.tracks import draw_tracks
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run
from hybrid_nbody.nbody.figures.components import styles_of
from hybrid_nbody.nbody.figures.planes import Planes, planes_of
from hybrid_nbody.nbody.figures.sample import stored_bodies
from hybrid_nbody.nbody.figures.tracks import no_bodies, points_of, too_many, tracks_of

PLANES = ((0, 1), (0, 2), (1, 2))

MOST_COLUMNS = 7
"""Names beside each other in a legend."""


def no_energies(run: Run) -> str:
    """Return why there are no energies; empty if there are."""
    needed = {"time", "kinetic_energy", "potential_energy", "total_energy", "relative_energy_error"}
    known = run.diagnostics.number_of_rows > 0 and needed <= set(run.diagnostics)
    return "" if known else "no energies in the diagnostics"


def no_overview(run: Run) -> str:
    """Return why there is no overview; empty if there is."""
    return no_energies(run) or no_bodies(run)


def no_tracks(run: Run) -> str:
    """Return why there are no tracks; empty if there are."""
    return no_bodies(run) or too_many(run)


def energies_figure(run: Run, frame: int = -1) -> Figure:
    """Draw kinetic, potential and total energy against time, and the relative energy error below.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int, optional
        Not used: energies are those of the whole run.

    Raises
    ------
    InputError
        The run holds no energies.
    """
    _need_energies(run)
    figure = new_figure(4.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 3))
    _draw_energy_panels(above, below, run)
    figure.suptitle(title(run))
    return figure


def snapshot_figure(run: Run, frame: int = -1) -> Figure:
    """Draw the bodies of one frame in three planes, coloured by their number per area.

    Bodies that all lie at z = 0 are drawn in that plane alone: in the others they form a line.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int, optional
        Negative frames count from the end.

    Raises
    ------
    InputError
        The run holds no bodies, or no such frame.
    """
    points = points_of(run, frame)
    planes = PLANES if points[:, 2].any() else PLANES[:1]
    shown = planes_of(run, frame, points, planes)
    figure = new_figure(_height(planes, shown.norm))
    panels = figure.subplots(1, len(planes), squeeze=False)[0]
    for axes, plane in zip(panels, planes, strict=True):
        drawn = shown.draw(axes, plane)
        few_ticks(axes)
    _colour_bar(figure, drawn, panels[-1], shown.view)
    _legend(figure, panels[0])
    figure.suptitle(title(run, frame, _bodies_shown(run, shown)))
    return figure


def _height(planes: Sequence[tuple[int, int]], norm: Normalize | None) -> float:
    """Return the height of a snapshot in inches; three planes share the width."""
    if len(planes) == 1:
        return 4.8
    return 2.5 if norm else 2.8


def tracks_figure(run: Run, frame: int = -1) -> Figure:
    """Draw the paths of a few bodies in three planes, up to and including a frame.

    Paths that all lie at z = 0 are drawn in that plane alone.

    Parameters
    ----------
    run : Run
        An open run of at most 32 bodies.
    frame : int, optional
        The last frame drawn; negative ones count from the end.

    Raises
    ------
    InputError
        The run holds no bodies, too many of them, or no such frame.
    """
    tracks = tracks_of(run, frame)
    view = view_of(tracks.reshape(-1, 3), run.units("bodies/position"))
    planes = PLANES if tracks[..., 2].any() else PLANES[:1]
    figure = new_figure(_height(planes, None))
    panels = figure.subplots(1, len(planes), squeeze=False)[0]
    styles = styles_of(run)
    for axes, plane in zip(panels, planes, strict=True):
        draw_tracks(axes, tracks, styles, view, plane)
        few_ticks(axes)
    _legend(figure, panels[0])
    figure.suptitle(title(run, frame))
    return figure


def overview_figure(run: Run, frame: int = -1) -> Figure:
    """Draw energies and bodies in one picture: tracks of a few, else the x-y plane of a frame.

    Parameters and errors are those of `snapshot_figure` and `energies_figure`.
    """
    _need_energies(run)
    figure = new_figure(3.8)
    halves: Any = figure.subfigures(1, 2)
    left, right = halves
    above, below = left.subplots(2, 1, sharex=True, height_ratios=(4, 3))
    _draw_energy_panels(above, below, run)
    figure.suptitle(_draw_main_plane(right, run, frame))
    return figure


# --- their parts ----------------------------------------------------------------------------------


def _need_energies(run: Run) -> None:
    if no_energies(run):
        raise InputError(f"{run.path}: {no_energies(run)} of this run of model '{run.model}'")


def _draw_energy_panels(above: Axes, below: Axes, run: Run) -> None:
    draw_energies(above, run)
    draw_energy_error(below, run)
    above.set_xlabel("")
    above.tick_params(labelbottom=False)
    above.figure.align_ylabels([above, below])


def _draw_main_plane(figure: SubFigure, run: Run, frame: int) -> str:
    """Draw the x-y plane for an overview, and return its title."""
    axes = figure.subplots()
    units = run.units("bodies/position")
    if run.number_of_bodies <= FEW_BODIES:
        tracks = tracks_of(run, frame)
        view = view_of(tracks.reshape(-1, 3), units)
        draw_tracks(axes, tracks, styles_of(run), view, PLANES[0])
        return title(run, frame)
    shown = planes_of(run, frame, points_of(run, frame), PLANES[:1])
    _colour_bar(figure, shown.draw(axes, PLANES[0]), axes, shown.view)
    return title(run, frame, _bodies_shown(run, shown))


def _bodies_shown(run: Run, shown: Planes) -> str:
    """Return in words how many bodies there are, and how many of them are out of view."""
    outside = f", {shown.outside} outside the picture" if shown.outside else ""
    return f"{stored_bodies(run)}{outside}"


def _legend(figure: Figure, axes: Axes) -> None:
    """Add a legend of what a panel names below the panels; none where it names nothing."""
    handles, names = axes.get_legend_handles_labels()
    if names:
        columns = min(len(names), MOST_COLUMNS)
        figure.legend(handles, names, loc="outside lower center", ncols=columns, handletextpad=0.1)


def _colour_bar(figure: Figure | SubFigure, drawn: Any, axes: Axes, view: View) -> None:
    """Add the scale of colours to the right of `axes`, exactly as high as they are."""
    if drawn is None:
        return
    length = scaled_units(view.units, view.power)
    area = f"({length})²" if " " in length else f"{length}²"
    name = f"bodies per area (1 / {area})" if length else "bodies per area"
    figure.colorbar(drawn, cax=axes.inset_axes((1.04, 0, 0.05, 1)), label=name)
