"""Pictures of a run: energies, the bodies in three planes, the tracks of a few bodies, and an overview of it all.

Each ``*_figure`` function returns a matplotlib figure that belongs to nobody else: no window opens, and neither the
user's settings nor ``pyplot`` are touched. `plot_run` writes them to files, in the look of `style.our_look`.
"""

import difflib
import io
from contextlib import suppress
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hybrid_nbody.analysis.panels import (
    FEW_BODIES,
    density_norm,
    draw_bodies,
    draw_energies,
    draw_energy_error,
    draw_tracks,
    view_of,
)
from hybrid_nbody.analysis.run import open_run
from hybrid_nbody.analysis.style import BODY_COLOURS, our_look, plain, scaled_units
from hybrid_nbody.errors import FileError, InputError

WIDTH = 7.2
"""Inches: the text of a printed page."""

DPI = 200
PLANES = ((0, 1), (0, 2), (1, 2))
TRACK_POINTS = 20_000
"""Frames of a track at most: more cannot be seen, and those of a long run need not fit in memory."""

FORMATS = (".png", ".pdf", ".svg")


def plot_run(path, kind=None, output=None, frame=-1, dpi=DPI) -> list[Path]:
    """Draw pictures of a run and write them to files.

    Parameters
    ----------
    path : str or Path
        The run's directory or its trajectory; the run may still be going on.
    kind : str, optional
        ``energies``, ``snapshot``, ``tracks`` or ``overview``. By default the energies, the snapshot and, for up to
        32 bodies, the tracks.
    output : str or Path, optional
        A file ending in .png, .pdf or .svg, or a directory for files named after their kind. By default the run's
        directory.
    frame : int, optional
        The frame of a snapshot; negative ones count from the end.
    dpi : float, optional
        Dots an inch; pictures are 7.2 inches wide.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        There is no such run, kind, frame or picture format, or the run holds nothing of that kind.
    FileError
        The run cannot be read or a picture cannot be written.
    """
    _check_kind(kind)
    with open_run(path) as run:
        kinds = [kind] if kind else _default_kinds(run)
        targets = _targets(run, kinds, output)
        with our_look():
            for name, target in zip(kinds, targets, strict=True):
                _write(FIGURES[name](run, frame), target, dpi)
    return targets


def _check_kind(kind):
    if kind is not None and kind not in FIGURES:
        near = difflib.get_close_matches(str(kind), FIGURES, 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise InputError(f"no picture of kind '{kind}'; there are {', '.join(FIGURES)}{hint}")


def _default_kinds(run):
    kinds = ["energies"] if run.diagnostics.number_of_rows and "total_energy" in run.diagnostics else []
    if run.number_of_frames and run.number_of_bodies:
        kinds += ["snapshot"] + (["tracks"] if run.number_of_bodies <= FEW_BODIES else [])
    if not kinds:
        raise InputError(f"{run.path}: nothing to plot yet, neither diagnostics nor frames of bodies")
    return kinds


def _targets(run, kinds, output):
    output = Path(output) if output is not None else run.path.parent
    if output.is_dir():
        return [output / f"{kind}.png" for kind in kinds]
    if output.suffix.lower() not in FORMATS:
        raise InputError(f"{output}: neither a directory nor a file ending in {', '.join(FORMATS)}")
    if len(kinds) > 1:
        raise InputError(
            f"{output}: one file for {len(kinds)} pictures ({', '.join(kinds)}); name one kind, or a directory"
        )
    return [output]


def _write(figure, target, dpi):
    picture = io.BytesIO()
    figure.savefig(picture, format=target.suffix[1:].lower(), dpi=dpi)
    partial = target.with_name(f".{target.name}.part")  # a full disk must not cost the picture of before
    try:
        partial.write_bytes(picture.getvalue())
        partial.replace(target)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise FileError(f"{target}: cannot write the picture ({error.strerror or error})") from error


# --- figures -------------------------------------------------------------------------------------------------------


def energies_figure(run, frame=-1) -> Figure:
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
    figure = _figure(4.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 3))
    _draw_energy_panels(above, below, run)
    figure.suptitle(_title(run))
    return figure


def snapshot_figure(run, frame=-1) -> Figure:
    """Draw the bodies of one frame in three planes, coloured by their number per area.

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
    points = _points(run, frame)
    view = view_of(points, run.units("bodies/position"))
    norm = density_norm(points, view, PLANES)
    figure = _figure(2.5 if norm else 2.8)  # a colour bar leaves less width to the planes
    panels = figure.subplots(1, 3)
    for axes, plane in zip(panels, PLANES, strict=True):
        drawn = draw_bodies(axes, points, view, plane, norm)
    _colour_bar(figure, drawn, panels[-1], view)
    figure.suptitle(_title(run, frame, points, view))
    return figure


def tracks_figure(run, frame=-1) -> Figure:
    """Draw the paths of a few bodies in three planes, up to and including a frame.

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
    tracks = _tracks(run, frame)
    view = view_of(tracks.reshape(-1, 3), run.units("bodies/position"))
    figure = _figure(2.8)
    panels = figure.subplots(1, 3)
    for axes, plane in zip(panels, PLANES, strict=True):
        draw_tracks(axes, tracks, run.id, view, plane)
    if run.number_of_bodies <= len(BODY_COLOURS):  # beyond that the colours repeat
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), handletextpad=0.1)
    figure.suptitle(_title(run, frame))
    return figure


def overview_figure(run, frame=-1) -> Figure:
    """Draw energies and bodies in one picture: the tracks of a few bodies, else the x-y plane of a frame.

    Parameters and errors are those of `snapshot_figure` and `energies_figure`.
    """
    _need_energies(run)
    figure = _figure(3.8)
    left, right = figure.subfigures(1, 2)
    _draw_energy_panels(*left.subplots(2, 1, sharex=True, height_ratios=(4, 3)), run)
    figure.suptitle(_draw_main_plane(right, run, frame))
    return figure


FIGURES = {
    "energies": energies_figure,
    "snapshot": snapshot_figure,
    "tracks": tracks_figure,
    "overview": overview_figure,
}


# --- their parts ---------------------------------------------------------------------------------------------------


def _figure(height):
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _need_energies(run):
    needed = {"time", "kinetic_energy", "potential_energy", "total_energy", "relative_energy_error"}
    if not run.diagnostics.number_of_rows or needed - set(run.diagnostics):
        raise InputError(f"{run.path}: no energies in the diagnostics of this run of model '{run.model}'")


def _draw_energy_panels(above, below, run):
    draw_energies(above, run)
    draw_energy_error(below, run)
    above.set_xlabel("")
    above.tick_params(labelbottom=False)
    above.figure.align_ylabels([above, below])


def _draw_main_plane(figure, run, frame):
    """Draw the x-y plane for an overview, and return its title."""
    axes, units = figure.subplots(), run.units("bodies/position")
    if run.number_of_bodies <= FEW_BODIES:
        tracks = _tracks(run, frame)
        draw_tracks(axes, tracks, run.id, view_of(tracks.reshape(-1, 3), units), PLANES[0])
        return _title(run, frame)
    points = _points(run, frame)
    view = view_of(points, units)
    drawn = draw_bodies(axes, points, view, PLANES[0], density_norm(points, view, PLANES[:1]))
    _colour_bar(figure, drawn, axes, view)
    return _title(run, frame, points, view)


def _points(run, frame):
    if not run.number_of_bodies:
        raise InputError(f"{run.path}: a run of model '{run.model}' has no bodies to draw")
    try:
        return run.positions(frame)
    except IndexError as error:
        raise InputError(str(error)) from error


def _tracks(run, frame):
    """Read the positions from the first frame to `frame`, thinned evenly to TRACK_POINTS: (F, N, 3) float64."""
    last = _points(run, frame)
    if run.number_of_bodies > FEW_BODIES:
        raise InputError(f"{run.path}: {run.number_of_bodies} bodies are too many for tracks, which show {FEW_BODIES}")
    end = frame % run.number_of_frames
    earlier = run.positions(slice(0, end, -(-(end + 1) // TRACK_POINTS)))
    return np.concatenate([earlier, last[None]])


def _title(run, frame=None, points=None, view=None):
    parts = [plain(run.title)] if run.title else []
    if frame is not None:
        units = scaled_units(run.units("time"))
        parts.append(f"time {run.time[frame]:.4g}" + (f" {units}" if units != "time" else ""))
    if points is not None:
        outside = len(points) - int(view.contains(points).sum())
        parts.append(f"{len(points)} bodies" + (f", {outside} outside the picture" if outside else ""))
    return ", ".join(parts)


def _colour_bar(figure, drawn, axes, view):
    """Add the scale of colours to the right of `axes`, exactly as high as they are."""
    if drawn is None:
        return
    length = scaled_units(view.units, view.power)
    area = f"({length})²" if " " in length else f"{length}²"
    name = f"bodies per area (1 / {area})" if length else "bodies per area"
    figure.colorbar(drawn, cax=axes.inset_axes((1.04, 0, 0.05, 1)), label=name)
