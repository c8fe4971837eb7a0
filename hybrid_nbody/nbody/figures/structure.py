"""Figures of the structure of bodies: tracks in space, radii, profiles, and the activity map."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from hybrid_nbody.analysis.panels import DOTS, view_of
from hybrid_nbody.analysis.style import (
    BLUE,
    BODY_COLOURS,
    DENSITY_MAP,
    VERMILLION,
    label,
    new_figure,
    power_of_ten,
    readable_decades,
    readable_ticks,
    title,
)
from hybrid_nbody.analysis.tracks import draw_tracks_in_space
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.thinning import chosen_bodies, thinned_by
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.figures.components import styles_of
from hybrid_nbody.nbody.figures.profiles import (
    BODIES_OF_A_SHELL,
    FRACTIONS,
    lagrangian_radii,
    profile_of,
)
from hybrid_nbody.nbody.figures.sample import (
    counted_bodies,
    masses_of,
    positions_of,
    stride_of,
    velocities_of,
)
from hybrid_nbody.nbody.figures.tracks import no_bodies, points_of, too_many, tracks_of
from hybrid_nbody.progress import Step, counted, no_step

ACTIVITY = "activity/map"
"""The data set of the activity map: (T, D, D), rows along y of the unit square."""

VELOCITY = "bodies/velocity"
"""The data set of the velocities."""

RADII_FRAMES = 400
"""Most frames of Lagrangian radii: more points of a curve cannot be seen."""

FEWEST_OF_RADII = 10
FEWEST_OF_PROFILES = 3 * BODIES_OF_A_SHELL


def no_tracks_in_space(run: Run) -> str:
    """Return why there are no tracks in space; empty if there are."""
    return no_bodies(run) or too_many(run)


def no_radii(run: Run) -> str:
    """Return why there are no Lagrangian radii against time; empty if there are."""
    once = "a single frame" if run.number_of_frames == 1 else ""
    return no_bodies(run) or _too_few(run, FEWEST_OF_RADII) or once


def no_profiles(run: Run) -> str:
    """Return why there are no profiles; empty if there are."""
    planar = "the bodies lie in a plane" if _is_planar(run) else ""
    still = "" if VELOCITY in run.fields else "the frames hold no velocities"
    few = _too_few(run, FEWEST_OF_PROFILES)
    return no_bodies(run) or few or planar or still or _chosen_by_id(run)


def _chosen_by_id(run: Run) -> str:
    """Return that the bodies in frames say nothing of the others, if they were chosen."""
    chosen = chosen_bodies(run.config) if thinned_by(run.config) == 1 else ""
    return f"the frames hold some bodies alone ({chosen})" if chosen else ""


def no_activity(run: Run) -> str:
    """Return why there is no activity map; empty if there is."""
    missing = "" if ACTIVITY in run.fields else "the frames hold no activity map"
    return no_bodies(run) or missing


def _is_planar(run: Run) -> bool:
    """Return whether bodies lie in the plane z = 0; several components may leave it."""
    bodies = run.config.get("bodies")
    if not isinstance(bodies, dict) or any(bodies.get("rotation", ())):
        return False
    return bodies.get("kind") == "random-square" or bodies.get("dimensions") == 2


def _too_few(run: Run, least: int) -> str:
    number = run.number_of_bodies
    return f"{number} bodies are too few; it takes {least}" if number < least else ""


def _require(run: Run, kind: str, reason: str) -> None:
    """Raise an InputError if there is a reason against a kind of picture."""
    if reason:
        raise InputError(f"{run.path}: no picture of kind '{kind}': {reason}")


def space_figure(run: Run, frame: int = -1) -> Figure:
    """Draw the paths of a few bodies in space; see `pictures.tracks_figure`."""
    _require(run, "tracks-3d", no_tracks_in_space(run))
    tracks = tracks_of(run, frame)
    figure = new_figure(5.0)
    axes = figure.add_subplot(projection="3d")
    view = view_of(tracks.reshape(-1, 3), run.units("bodies/position"))
    styles = styles_of(run)
    draw_tracks_in_space(axes, tracks, styles, view)
    if any(style.name for style in styles):
        axes.legend(loc="center left", bbox_to_anchor=(1.15, 0.5))
    figure.suptitle(title(run, frame))
    return figure


def frames_of_radii(run: Run) -> list[int]:
    """Return the frames of Lagrangian radii: at most `RADII_FRAMES`, equidistant."""
    equidistant = np.linspace(0, run.number_of_frames - 1, RADII_FRAMES).round()
    return [int(frame) for frame in np.unique(equidistant)]


def lagrangian_figure(run: Run, frame: int = -1, step: Step = no_step) -> Figure:
    """Draw the radii about the centre of mass that hold 10 to 90 % of the mass, against time.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int, optional
        Not used: the radii are those of the whole run, of `frames_of_radii`.
    step : callable, optional
        Called after each of these frames.

    Raises
    ------
    InputError
        The run holds no bodies, too few of them, or a single frame.
    """
    _require(run, "lagrangian", no_radii(run))
    frames = frames_of_radii(run)
    mass = masses_of(run)
    radii = np.array(
        [lagrangian_radii(positions_of(run, index), mass) for index in counted(frames, step)]
    )
    figure = new_figure(3.4)
    _draw_radii(figure.subplots(), run, run.time[frames], radii)
    figure.suptitle(title(run, None, "Lagrangian radii about the centre of mass"))
    return figure


def _draw_radii(axes: Axes, run: Run, time: Array, radii: Array) -> None:
    power = power_of_ten(radii)
    time_power = power_of_ten(time)
    for column, fraction in enumerate(FRACTIONS):
        name = f"{fraction:.0%} of the mass"
        axes.plot(
            time / 10.0**time_power,
            radii[:, column] / 10.0**power,
            color=BODY_COLOURS[column],
            label=name,
        )
    if (radii > 0).any():
        axes.set_yscale("log")
        readable_decades(axes.yaxis)
    axes.set_xlabel(label("time", run.units("time"), time_power))
    axes.set_ylabel(label("radius", run.units("bodies/position"), power))
    axes.margins(x=0)
    readable_ticks(axes.xaxis)
    handles, names = axes.get_legend_handles_labels()
    # in the order of the curves, from above
    axes.legend(handles[::-1], names[::-1], loc="center left", bbox_to_anchor=(1, 0.5))


def profiles_figure(run: Run, frame: int = -1) -> Figure:
    """Draw density and velocity dispersion against the distance from the centre of mass.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int, optional
        Negative frames count from the end.

    Raises
    ------
    InputError
        The run holds no bodies, too few of them, or no such frame.
    """
    _require(run, "profiles", no_profiles(run))
    points = points_of(run, frame)
    # of those that are not taken too, by the figure or by the run
    weight = masses_of(run) * stride_of(run) * thinned_by(run.config)
    found = profile_of(points, velocities_of(run, frame), weight)
    figure = new_figure(3.0)
    left, right = figure.subplots(1, 2)
    units = run.units("bodies/position")
    length = f"({units})" if " " in units else units
    volume = f"{run.units('bodies/mass')} / {length}^3"
    _draw_profile(left, found.radius, found.density, VERMILLION, units)
    left.set_ylabel(label("density", volume))
    _draw_profile(right, found.radius, found.dispersion, BLUE, units)
    right.set_ylabel(label("velocity dispersion", run.units("bodies/velocity")))
    shells = f"{len(found.radius)} shells"
    figure.suptitle(title(run, frame, f"{counted_bodies(run)} in {shells}"))
    return figure


def _draw_profile(axes: Axes, radius: Array, values: Array, colour: str, units: str) -> None:
    axes.plot(radius, values, "o-", color=colour, markersize=3)
    axes.set_xlabel(label("distance", units))
    for set_scale, axis, numbers in (
        (axes.set_xscale, axes.xaxis, radius),
        (axes.set_yscale, axes.yaxis, values),
    ):
        if (numbers[np.isfinite(numbers)] > 0).any():
            set_scale("log")
            readable_decades(axis)


def activity_figure(run: Run, frame: int = -1) -> Figure:
    """Draw the activity map of a frame, the bodies in the unit square over it.

    Parameters
    ----------
    run : Run
        An open run.
    frame : int, optional
        Negative frames count from the end.

    Raises
    ------
    InputError
        The run holds no activity map, or no such frame.
    """
    _require(run, "activity", no_activity(run))
    points = points_of(run, frame)
    figure = new_figure(5.6)
    axes = figure.subplots()
    drawn, _ = draw_activity(axes, run.field(ACTIVITY, frame), points, run.units("bodies/position"))
    figure.colorbar(drawn, ax=axes, label=label("activity", run.units(ACTIVITY)))
    cells = " x ".join(map(str, run.shape(ACTIVITY)[1:]))
    figure.suptitle(title(run, frame, counted_bodies(run), f"{cells} cells"))
    return figure


def draw_activity(
    axes: Axes,
    values: Array,
    points: Array,
    units: str,
    norm: Normalize | None = None,
    colormap: str = DENSITY_MAP,
) -> tuple[AxesImage, PathCollection]:
    """Draw a map of the unit square and bodies over it; return the image and the dots.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    values : ndarray
        (D, D), rows along y.
    points : ndarray
        (N, 3) float64; more than 50000 are not drawn.
    units : str
        The units of length.
    norm : matplotlib.colors.Normalize, optional
        From values to colours; by default from 0 to the largest value.
    colormap : str, optional
        One of matplotlib's.
    """
    norm = norm or Normalize(0.0, float(np.max(values, initial=0.0)) or 1.0)
    extent = (0, 1, 0, 1)
    image = axes.imshow(
        values, origin="lower", extent=extent, cmap=colormap, norm=norm, interpolation="nearest"
    )
    shown = points if len(points) <= DOTS else points[:0]
    size = float(np.clip(4000 / max(len(shown), 1), 0.3, 12.0))
    dots = axes.scatter(shown[:, 0], shown[:, 1], s=size, c="white", linewidths=0, zorder=3)
    axes.set(
        xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=label("x", units), ylabel=label("y", units)
    )
    return image, dots
