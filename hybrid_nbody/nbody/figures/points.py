"""Bodies as points in the interactive view of a report."""

from itertools import cycle
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from hybrid_nbody.analysis.panels import FEW_BODIES, View, view_of
from hybrid_nbody.analysis.scene3d import STEPS, packed
from hybrid_nbody.analysis.scenes import samples_of
from hybrid_nbody.analysis.style import BODY_COLOURS, DENSITY_MAP
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.figures.components import members_of, no_components, styles_of
from hybrid_nbody.nbody.figures.sample import positions_of, stride_of
from hybrid_nbody.progress import Step, counted, no_step

FRAMES = 60
"""Largest number of frames on a page."""

POINTS = 3000
"""Largest number of bodies in each of these frames."""

TRAIL = 8
LONG_TRAIL = 30
"""Frames that paths go back, of many bodies and of a few."""

SAMPLED = 200_000
"""Number of positions, about, that decide which part of space is shown."""


def frames_of_points(run: Run) -> list[int]:
    """Return the frames of bodies that a view holds, evenly apart."""
    return samples_of(range(run.number_of_frames), FRAMES)


def points_data(run: Run, step: Step = no_step) -> dict[str, Any]:
    """Return bodies as points, ready for JSON.

    Parameters
    ----------
    run : Run
        An open run with frames of bodies.
    step : callable, optional
        Called after each of `frames_of_points`.

    Returns
    -------
    dict
        See `analysis.scene3d`.
    """
    frames = frames_of_points(run)
    number = run.number_of_bodies
    drawn = -(-number // stride_of(run))
    chosen = np.sort(np.random.default_rng(0).permutation(drawn)[:POINTS])
    tracks = np.stack([positions_of(run, frame)[chosen] for frame in counted(frames, step)])
    view = _view_of_tracks(tracks, number, run.units("bodies/position"))
    colours, legend = _coloured(run, tracks[0], chosen, view)
    few = number <= FEW_BODIES
    return {
        "geometry": "points",
        "caption": _caption(len(chosen), number, view),
        "box": [1, 1, 1],
        "origin": (view.centre - view.half).tolist(),
        "scale": 2 * view.half,
        "units": _shown_units(view.units),
        "times": run.time[frames].tolist(),
        "time_units": _shown_units(run.units("time")),
        "frames": [packed(_on_scale(points, view)) for points in tracks],
        "colours": colours,
        "legend": legend,
        "size": 9 if few else 3,
        "trail": LONG_TRAIL if few else TRAIL,
        "trails": few,
    }


def _shown_units(units: str) -> str:
    """Return units; none where they are named after what they measure."""
    return "" if units in ("length", "time") else units


def _view_of_tracks(tracks: Array, number: int, units: str) -> View:
    """Return the cube that shows the bodies in all frames, from a sample of their positions."""
    points = tracks.reshape(-1, 3)
    return view_of(
        points[:: max(1, len(points) // SAMPLED)] if number > FEW_BODIES else points, units
    )


def _caption(shown: int, number: int, view: View) -> str:
    bodies = f"{shown} of {number} bodies" if shown < number else f"{number} bodies"
    return f"{bodies}; the box is {2 * view.half:.3g} {view.units} wide."


def _on_scale(points: Array, view: View) -> Array:
    """Return points (N, 3) as whole numbers up to `STEPS`; those out of view are `STEPS` + 1."""
    inside = np.isfinite(points).all(axis=1) & view.contains(points)
    scaled = np.full(points.shape, STEPS + 1)
    scaled[inside] = np.rint(
        (points[inside] - view.centre + view.half) / (2 * view.half) * STEPS
    ).clip(0, STEPS)
    return scaled


def _coloured(
    run: Run, points: Array, chosen: Array, view: View
) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Return the colour of each body, and names and colours for a legend.

    Bodies have the colours of their components; a few have their own; of many the colour shows how
    far from the centre they began.
    """
    if run.number_of_bodies <= FEW_BODIES:
        styles = styles_of(run)
        colours = [to_rgb(style.colour) for style in styles]
        named = zip(styles, colours, strict=True)
        return colours, [(style.name, colour) for style, colour in named if style.name]
    if not no_components(run):
        return _by_component(run, chosen)
    distance = np.linalg.norm(points - view.centre, axis=1)
    rank = np.argsort(np.argsort(-distance, kind="stable")) / len(points)
    by_distance: list[Any] = np.round(colormaps[DENSITY_MAP](rank)[:, :3], 2).tolist()
    ends = np.round(colormaps[DENSITY_MAP]([1.0, 0.0])[:, :3], 2).tolist()
    return by_distance, [("began at the centre", ends[0]), ("began far from it", ends[1])]


def _by_component(run: Run, chosen: Array) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Return what `_coloured` does, with the colour of its component for each body."""
    members = members_of(run)
    colours = map(to_rgb, cycle(BODY_COLOURS))
    legend: list[tuple[str, Any]] = list(zip(members, colours, strict=False))
    component = np.zeros(-(-run.number_of_bodies // stride_of(run)), int)
    for place, rows in enumerate(members.values()):
        component[rows] = place
    return [legend[place][1] for place in component[chosen]], legend
