"""Bodies as points in the interactive view of a report."""

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
from hybrid_nbody.nbody.figures.sample import positions_of, stride_of
from hybrid_nbody.progress import Step, counted, no_step

FRAMES = 60
"""Largest number of frames on a page."""

POINTS = 3000
"""Largest number of bodies in each of these frames."""

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
    return {
        "geometry": "points",
        "caption": _caption(len(chosen), number, view),
        "box": [1, 1, 1],
        "times": run.time[frames].tolist(),
        "frames": [packed(_on_scale(points, view)) for points in tracks],
        "colours": _colours(tracks[0], view),
        "size": 9 if number <= FEW_BODIES else 3,
    }


def _view_of_tracks(tracks: Array, number: int, units: str) -> View:
    """Return the cube that shows the bodies in all frames, from a sample of their positions."""
    points = tracks.reshape(-1, 3)
    return view_of(
        points[:: max(1, len(points) // SAMPLED)] if number > FEW_BODIES else points, units
    )


def _caption(shown: int, number: int, view: View) -> str:
    bodies = f"{shown} of {number} bodies" if shown < number else f"{number} bodies"
    legend = "" if number <= FEW_BODIES else "Colours show how far from the centre each body began."
    return f"{bodies}; the box is {2 * view.half:.3g} {view.units} wide. {legend}"


def _on_scale(points: Array, view: View) -> Array:
    """Return points (N, 3) as whole numbers up to `STEPS`; those out of view are `STEPS` + 1."""
    inside = np.isfinite(points).all(axis=1) & view.contains(points)
    scaled = np.full(points.shape, STEPS + 1)
    scaled[inside] = np.rint(
        (points[inside] - view.centre + view.half) / (2 * view.half) * STEPS
    ).clip(0, STEPS)
    return scaled


def _colours(points: Array, view: View) -> list[Any]:
    """Return the colours of bodies: their own for a few, by their first distance for many."""
    if len(points) <= FEW_BODIES:
        return [to_rgb(BODY_COLOURS[body % len(BODY_COLOURS)]) for body in range(len(points))]
    distance = np.linalg.norm(points - view.centre, axis=1)
    rank = np.argsort(np.argsort(-distance, kind="stable")) / len(points)
    colours: list[Any] = np.round(colormaps[DENSITY_MAP](rank)[:, :3], 2).tolist()
    return colours
