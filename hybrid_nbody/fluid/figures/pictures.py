"""Figures of a fluid: slices through the density with arrows of the velocity, its sums along the axes, diagnostics."""

import numpy as np
from matplotlib.figure import Figure

from hybrid_nbody.analysis.panels import colour_norm, draw_arrows, draw_plane, round_values
from hybrid_nbody.analysis.style import BLACK, BLUE, GREEN, VERMILLION, label, new_figure, title
from hybrid_nbody.analysis.time_series import draw_decades, draw_series
from hybrid_nbody.analysis.volume import columns, slice_of, volume_of
from hybrid_nbody.errors import InputError
from hybrid_nbody.fluid.figures.names import DENSITY, VELOCITY

PLANES = {2: (0, 1), 1: (0, 2), 0: (2, 1)}
"""For the axis that is looked along, the two that are seen, across and up."""

MOST_SLICES = 3

SERIES = (
    (draw_series, "total density", {"total_density": (BLACK, "")}),
    (draw_series, "kinetic energy", {"kinetic_energy": (VERMILLION, "")}),
    (draw_series, "largest speed", {"max_speed": (BLUE, "")}),
    (draw_series, "CFL number", {"cfl": (BLUE, "")}),
    (
        draw_decades,
        "divergence",
        {
            "divergence_before": (VERMILLION, "before projection"),
            "divergence_after": (BLUE, "after"),
        },
    ),
    (draw_series, "iterations a solve", {"iterations_per_solve": (GREEN, "")}),
)
"""The panels of the diagnostics: how each is drawn, its name, and its quantities."""


def no_density(run) -> str:
    """Say why there is no frame of the density; nothing where there is."""
    return "" if run.number_of_frames and DENSITY in run.fields else "no frames of the density"


def no_box(run) -> str:
    """Say why the density cannot be seen through the box; nothing where it can."""
    if no_density(run):
        return no_density(run)
    return "" if volume_of(run, DENSITY).evenly else "the frames hold a few planes only"


def no_diagnostics(run) -> str:
    """Say why there are no diagnostics of a fluid; nothing where there are."""
    known = run.diagnostics.number_of_rows and not _missing_series(run)
    return "" if known else "no diagnostics of a fluid"


def diagnostics_figure(run, frame=-1) -> Figure:
    """Draw total density, kinetic energy, largest speed, divergence and iterations against time.

    Parameters
    ----------
    run : Run
        An open run of a fluid.
    frame : int, optional
        Not used: diagnostics are those of the whole run.

    Raises
    ------
    InputError
        The run holds no such diagnostics.
    """
    if no_diagnostics(run):
        raise InputError(f"{run.path}: {no_diagnostics(run)} in this run of model '{run.model}'")
    figure = new_figure(5.4)
    panels = figure.subplots(3, 2, sharex=True)
    for axes, (draw, name, names) in zip(panels.flat, SERIES, strict=True):
        draw(axes, run, names, name)
        if len(names) > 1:
            axes.legend(
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=2,
                borderaxespad=0.2,
                handlelength=1.5,
            )
    for axes in panels[:-1].flat:
        axes.set_xlabel("")
    figure.align_ylabels()
    figure.suptitle(title(run))
    return figure


def slices_figure(run, frame=-1) -> Figure:
    """Draw the density in the three planes through the middle of the box, with arrows of the velocity in them.

    Of a run whose frames hold chosen planes of z, up to three of these are drawn.

    Parameters
    ----------
    run : Run
        An open run of a fluid.
    frame : int, optional
        Negative frames count from the end.

    Raises
    ------
    InputError
        The run holds no density, or no such frame.
    """
    volume = _volume(run, frame)
    places = _places(volume)
    figure, panels = _three_panels(volume, places)
    drawn = _draw_slices(panels, run, frame, places, volume)
    longest = _draw_velocities(panels, run, frame, places, volume)
    _colour_bar(figure, drawn, panels[-1], label("density", run.units(DENSITY)))
    arrows = [f"arrows up to {longest:.3g} {run.units(VELOCITY)}"] if longest > 0 else []
    figure.suptitle(title(run, frame, *_size(volume), *arrows))
    return figure


def _draw_slices(panels, run, frame, places, volume):
    """Draw the density in each plane; return the last image, whose scale of colours they share."""
    planes = [slice_of(run, DENSITY, frame, axis, index) for axis, index in places]
    norm = colour_norm(planes)
    for axes, (axis, index), values in zip(panels, places, planes, strict=True):
        drawn = draw_plane(axes, _upright(values, axis), volume, PLANES[axis], norm)
        axes.set_title(f"{'xyz'[axis]} = {volume.place(axis)[index]:.3g}")
    return drawn


def _draw_velocities(panels, run, frame, places, volume):
    """Draw the velocity as arrows over each plane; return the speed of the longest, 0 if there are none."""
    velocities = _velocities(run, frame, places)
    longest = _longest(velocities, places)
    if longest > 0:
        for axes, (axis, _), velocity in zip(panels, places, velocities, strict=True):
            draw_arrows(axes, _upright(velocity, axis), volume, PLANES[axis], longest)
    return longest


def projection_figure(run, frame=-1) -> Figure:
    """Draw the density seen through the whole box along each axis: its integral along the line of sight.

    Parameters and errors are those of `slices_figure`; frames that hold a few chosen planes are
    refused as well.
    """
    volume = _volume(run, frame)
    if not volume.evenly:
        raise InputError(
            f"{run.path}: the frames hold a few planes only (output.planes); nothing to look through"
        )
    sums = columns(run, DENSITY, frame)
    places = [(axis, 0) for axis in PLANES]
    figure, panels = _three_panels(volume, places)
    norm = colour_norm(sums)
    for axes, axis in zip(panels, PLANES, strict=True):
        drawn = draw_plane(axes, _upright(sums[axis], axis), volume, PLANES[axis], norm)
        axes.set_title(f"along {'xyz'[axis]}")
    _colour_bar(figure, drawn, panels[-1], label("column density", f"{run.units(DENSITY)} length"))
    figure.suptitle(title(run, frame, *_size(volume)))
    return figure


# --- their parts ----------------------------------------------------------------------------------


def _missing_series(run):
    needed = {"time"}.union(*(names for _, _, names in SERIES))
    return needed - set(run.diagnostics)


def _volume(run, frame):
    """Return where the cells of the density are, once it is sure that there is such a frame."""
    if DENSITY not in run.fields:
        raise InputError(f"{run.path}: no density in the frames of this run of model '{run.model}'")
    try:
        run.part(DENSITY, frame, (0, 0, 0))
    except IndexError as error:
        raise InputError(str(error)) from error
    return volume_of(run, DENSITY)


def _places(volume):
    """Return the slices to draw: the axis across each, and which of the stored cells along it."""
    if volume.evenly:
        return [(axis, volume.middle(axis)) for axis in PLANES]
    number = len(volume.stored[2])
    return [
        (2, index)
        for index in np.unique(np.linspace(0, number - 1, MOST_SLICES).round().astype(int)).tolist()
    ]


def _velocities(run, frame, places):
    """Return the velocity in each slice, or None where the frames hold none."""
    if VELOCITY not in run.fields:
        return [None] * len(places)
    return [slice_of(run, VELOCITY, frame, axis, index) for axis, index in places]


def _longest(velocities, places):
    """Return the largest speed within any of the slices; 0 without velocities."""
    found = [
        np.hypot(*(velocity[..., component] for component in PLANES[axis]))
        for velocity, (axis, _) in zip(velocities, places, strict=True)
        if velocity is not None
    ]
    return max(
        (float(np.max(speed, initial=0.0, where=np.isfinite(speed))) for speed in found),
        default=0.0,
    )


def _upright(values, axis):
    """Turn a slice across an axis, its later axis first as stored, so that its first axis points up in the picture."""
    return values if PLANES[axis][0] < PLANES[axis][1] else np.swapaxes(values, 0, 1)


def _three_panels(volume, places):
    """Return a figure as high as its highest panel, and a panel for each slice, as wide as its part of the box."""
    sides = [[volume.edge(axis) for axis in PLANES[axis]] for axis, _ in places]
    widths = [across for across, _ in sides]
    inches = 4.9 / sum(widths)
    figure = new_figure(float(np.clip(max(up for _, up in sides) * inches, 0.8, 6.0)) + 1.1)
    return figure, figure.subplots(1, len(places), width_ratios=widths, squeeze=False)[0]


def _size(volume):
    return [f"{' x '.join(map(str, volume.cells))} cells"]


def _colour_bar(figure, drawn, axes, name):
    """Add the scale of colours to the right of `axes`, exactly as high as they are."""
    ticks = round_values(drawn.norm)
    figure.colorbar(
        drawn, cax=axes.inset_axes((1.04, 0, 0.05, 1)), label=name, ticks=ticks
    ).minorticks_off()
