"""Figures of a fluid: slices with arrows of the velocity, projections, and diagnostics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybrid_nbody.analysis.panels import colour_norm, draw_arrows, draw_plane, round_values
from hybrid_nbody.analysis.style import BLACK, BLUE, GREEN, VERMILLION, label, new_figure, title
from hybrid_nbody.analysis.time_series import Curves, draw_decades, draw_series
from hybrid_nbody.analysis.volume import columns, slice_of
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.cells import Volume, volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.fluid.figures import DENSITY, VELOCITY, fields
from hybrid_nbody.fluid.figures.overlay import SEEN_THROUGH, draw_solid, draw_streamlines
from hybrid_nbody.fluid.figures.solids import Solids

PLANES = {2: (0, 1), 1: (0, 2), 0: (2, 1)}
"""From the axis along the line of sight to the two axes across and up."""

MOST_SLICES = 3

Slices = Sequence[tuple[int, int]]
"""Slices: the axis across each, and the index of the stored cells along it."""

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
            "divergence": (BLUE, ""),
        },
    ),
    (draw_series, "iterations per solve", {"iterations_per_solve": (GREEN, "")}),
)
"""The panels of the diagnostics: how each is drawn, its name, and its quantities.

A run has those of its grid: the staggered one has no divergence before the projection.
"""


def no_density(run: Run) -> str:
    """Return why there is no frame of the density; empty if there is."""
    return "" if run.number_of_frames and DENSITY in run.fields else "no frames of the density"


def no_slices(run: Run) -> str:
    """Return why there is no plane to draw; empty if there is."""
    usual = fields.instead_of_density(run)
    return "" if run.number_of_frames and usual else no_density(run)


def no_velocity(run: Run) -> str:
    """Return why there is no frame of the velocity; empty if there is."""
    return "" if run.number_of_frames and VELOCITY in run.fields else "no frames of the velocity"


def no_box(run: Run) -> str:
    """Return why the density cannot be integrated through the box; empty if it can."""
    if no_density(run):
        return no_density(run)
    return "" if volume_of(run, DENSITY).evenly else "the frames hold a few planes only"


def no_diagnostics(run: Run) -> str:
    """Return why there are no diagnostics of a fluid; empty if there are."""
    known = run.diagnostics.number_of_rows and all(_known(run, names) for *_, names in SERIES)
    return "" if known else "no diagnostics of a fluid"


def diagnostics_figure(run: Run, frame: int = -1) -> Figure:
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
    for axes, (draw, name, all_names) in zip(panels.flat, SERIES, strict=True):
        names = _known(run, all_names)
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


def slices_figure(run: Run, frame: int = -1) -> Figure:
    """Draw the density in three planes through the middle, with arrows of the velocity.

    If the frames hold chosen planes of z, up to three of these are drawn; without a density the
    speed or another field.

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
    if other := fields.instead_of_density(run):
        return field_figure(run, other, frame)
    volume = _volume(run, frame)
    slices = _slices_of(volume)
    figure, panels = _three_panels(volume, slices)
    planes = [slice_of(run, DENSITY, frame, axis, index) for axis, index in slices]
    drawn = _draw_planes(panels, planes, slices, volume)
    longest = _draw_velocities(panels, run, frame, slices, volume)
    _draw_solids(panels, run, frame, slices, volume)
    _colour_bar(figure, drawn, panels[-1], label("density", run.units(DENSITY)))
    arrows = [f"arrows up to {longest:.3g} {run.units(VELOCITY)}"] if longest > 0 else []
    figure.suptitle(title(run, frame, *_size(volume), *arrows))
    return figure


def field_figure(run: Run, field: str, frame: int = -1, streamlines: bool = False) -> Figure:
    """Draw a field in three planes through the middle.

    Parameters
    ----------
    run : Run
        An open run of a fluid.
    field : str
        One of `fields.FIELDS`, or a scalar of the run.
    frame : int, optional
        Negative frames count from the end.
    streamlines : bool, optional
        Whether streamlines of the velocity are drawn over it.

    Raises
    ------
    InputError
        The run holds no such field, or no such frame.
    """
    fields.require(run, field)
    stored = fields.shown_as(field).stored
    _check_frame(run, stored, frame)
    volume = volume_of(run, stored)
    slices = _slices_of(volume)
    planes = [fields.plane_of(run, field, frame, axis, index) for axis, index in slices]
    figure, panels = _three_panels(volume, slices)
    drawn = _draw_planes(panels, planes, slices, volume)
    if streamlines:
        _draw_streamlines(panels, run, frame, slices, volume)
    _draw_solids(panels, run, frame, slices, volume)
    _colour_bar(figure, drawn, panels[-1], fields.label_of(run, field))
    if note := fields.note_on(run, field):
        figure.supxlabel(note, fontsize="small")
    figure.suptitle(title(run, frame, *_size(volume)))
    return figure


def _draw_planes(
    panels: Sequence[Axes], planes: Sequence[Array], slices: Slices, volume: Volume
) -> Any:
    """Draw values in each plane; return the last image, whose scale of colours they share."""
    norm = colour_norm(planes)
    for axes, (axis, index), values in zip(panels, slices, planes, strict=True):
        drawn = draw_plane(axes, _upright(values, axis), volume, PLANES[axis], norm)
        axes.set_title(f"{'xyz'[axis]} = {volume.centres(axis)[index]:.3g}")
    return drawn


def _draw_streamlines(
    panels: Sequence[Axes], run: Run, frame: int, slices: Slices, volume: Volume
) -> None:
    """Draw streamlines over each plane, but for the obstacles."""
    if reason := no_velocity(run):
        raise InputError(f"{run.path}: {reason}")
    solids = Solids(run)
    for axes, (axis, index) in zip(panels, slices, strict=True):
        velocity = _upright(slice_of(run, VELOCITY, frame, axis, index), axis)
        solid = solids.cells_in_plane(volume, frame, axis, index) if solids else None
        within = None if solid is None else _upright(solid, axis)
        draw_streamlines(axes, velocity, volume, PLANES[axis], within)


def _draw_solids(
    panels: Sequence[Axes], run: Run, frame: int, slices: Slices, volume: Volume
) -> None:
    """Draw obstacles over each plane, if there are some."""
    solids = Solids(run)
    if not solids:
        return
    for axes, (axis, index) in zip(panels, slices, strict=True):
        distances = solids.in_plane(volume, frame, axis, float(volume.centres(axis)[index]))
        draw_solid(axes, _upright(distances, axis), volume, PLANES[axis])


def _draw_velocities(
    panels: Sequence[Axes], run: Run, frame: int, slices: Slices, volume: Volume
) -> float:
    """Draw the velocity as arrows over each plane; return the speed of the longest, or 0."""
    velocities = _velocities(run, frame, slices)
    longest = _longest(velocities, slices)
    if longest > 0:
        for axes, (axis, _), velocity in zip(panels, slices, velocities, strict=True):
            draw_arrows(axes, _upright(velocity, axis), volume, PLANES[axis], longest)
    return longest


def projection_figure(run: Run, frame: int = -1) -> Figure:
    """Draw the density integrated through the whole box along each axis.

    Parameters and errors are those of `slices_figure`; frames that hold a few chosen planes are
    refused as well.
    """
    volume = _volume(run, frame)
    if not volume.evenly:
        raise InputError(
            f"{run.path}: the frames hold a few planes only (output.planes); "
            "nothing to look through"
        )
    sums = columns(run, DENSITY, frame)
    slices = [(axis, 0) for axis in PLANES]
    figure, panels = _three_panels(volume, slices)
    norm = colour_norm(sums)
    for axes, axis in zip(panels, PLANES, strict=True):
        drawn = draw_plane(axes, _upright(sums[axis], axis), volume, PLANES[axis], norm)
        axes.set_title(f"along {'xyz'[axis]}")
    _draw_silhouettes(panels, run, frame, volume)
    _colour_bar(figure, drawn, panels[-1], label("column density", f"{run.units(DENSITY)} length"))
    figure.suptitle(title(run, frame, *_size(volume)))
    return figure


def _draw_silhouettes(panels: Sequence[Axes], run: Run, frame: int, volume: Volume) -> None:
    """Draw obstacles as they are seen along each axis, if there are some."""
    solids = Solids(run)
    if not solids:
        return
    for axes, axis in zip(panels, PLANES, strict=True):
        distances = _upright(solids.through(volume, frame, axis), axis)
        draw_solid(axes, distances, volume, PLANES[axis], SEEN_THROUGH)


# --- their parts ----------------------------------------------------------------------------------


def _known(run: Run, names: Curves) -> Curves:
    """Return those of the quantities of a panel that a run has."""
    return {name: curve for name, curve in names.items() if name in run.diagnostics}


def _volume(run: Run, frame: int) -> Volume:
    """Return the positions of the cells of the density after checking the frame."""
    if DENSITY not in run.fields:
        raise InputError(f"{run.path}: no density in the frames of this run of model '{run.model}'")
    _check_frame(run, DENSITY, frame)
    return volume_of(run, DENSITY)


def _check_frame(run: Run, name: str, frame: int) -> None:
    """Raise `InputError` if a field has no such frame."""
    try:
        run.part(name, frame, (0, 0, 0))
    except IndexError as error:
        raise InputError(str(error)) from error


def _slices_of(volume: Volume) -> Slices:
    """Return the slices to draw, see `Slices`."""
    if volume.evenly:
        return [(axis, volume.middle(axis)) for axis in PLANES]
    number = len(volume.stored[2])
    return [
        (2, index)
        for index in np.unique(np.linspace(0, number - 1, MOST_SLICES).round().astype(int)).tolist()
    ]


def _velocities(run: Run, frame: int, slices: Slices) -> list[Array]:
    """Return the velocity in each slice; empty if the frames hold none."""
    if VELOCITY not in run.fields:
        return []
    return [slice_of(run, VELOCITY, frame, axis, index) for axis, index in slices]


def _longest(velocities: Sequence[Array], slices: Slices) -> float:
    """Return the largest speed within any of the slices; 0 without velocities."""
    longest = 0.0
    for velocity, (axis, _) in zip(velocities, slices, strict=False):
        across, up = PLANES[axis]
        speed = np.hypot(velocity[..., across], velocity[..., up])
        longest = max(longest, float(np.max(speed, initial=0.0, where=np.isfinite(speed))))
    return longest


def _upright(values: Array, axis: int) -> Array:
    """Return a slice across an axis, transposed if needed, with the upward axis first."""
    return values if PLANES[axis][0] < PLANES[axis][1] else np.swapaxes(values, 0, 1)


def _three_panels(volume: Volume, slices: Slices) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure and a panel for each slice, all on the same scale."""
    sides = [[volume.edge(axis) for axis in PLANES[axis]] for axis, _ in slices]
    widths = [across for across, _ in sides]
    inches = 4.9 / sum(widths)
    figure = new_figure(float(np.clip(max(up for _, up in sides) * inches, 0.8, 6.0)) + 1.1)
    return figure, figure.subplots(1, len(slices), width_ratios=widths, squeeze=False)[0]


def _size(volume: Volume) -> list[str]:
    return [f"{' x '.join(map(str, volume.cells))} cells"]


def _colour_bar(figure: Figure, drawn: Any, axes: Axes, name: str) -> None:
    """Add the scale of colours to the right of `axes`, exactly as high as they are."""
    ticks = round_values(drawn.norm)
    figure.colorbar(
        drawn, cax=axes.inset_axes((1.04, 0, 0.05, 1)), label=name, ticks=ticks
    ).minorticks_off()
