"""The interactive view of a report: a bounded number of frames, points and triangles."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from hybrid_nbody.analysis.isosurface import coarse_means, isosurface
from hybrid_nbody.analysis.panels import FEW_BODIES, View, view_of
from hybrid_nbody.analysis.scenes import samples_of
from hybrid_nbody.analysis.style import BODY_COLOURS, DENSITY_MAP
from hybrid_nbody.analysis.volume import volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.progress import Step, counted, no_step

FRAMES_OF_BODIES = 60
"""Largest number of frames of bodies on a page."""

POINTS = 3000
"""Largest number of bodies in each of these frames."""

FRAMES_OF_FLUID = 25
"""Largest number of frames of a surface on a page."""

TRIANGLES = 500_000
"""Largest number of triangles in all of these frames."""

GRIDS = (32, 16, 8)
"""Points along the longest edge of the grid of surfaces; the finest that is bounded is used."""

STEPS = 65_534
"""Largest rounded coordinate, at the end of the longest edge; 65535 marks points out of view."""

SAMPLED = 200_000

Surface = tuple[Array, Array]
"""Vertices and triangles."""

Surfaces = tuple[float, Array, list[Surface]]
"""The density on surfaces, the edges of the cells, and the surface of each frame."""


def frames_of_points(run: Run) -> list[int]:
    """Return the frames of bodies that a view holds, evenly apart."""
    return samples_of(range(run.number_of_frames), FRAMES_OF_BODIES)


def frames_of_surface(run: Run) -> list[int]:
    """Return the frames of a surface that a view holds, evenly apart."""
    return samples_of(range(run.number_of_frames), FRAMES_OF_FLUID)


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
        ``geometry`` ("points" or "surface"), ``caption``, ``box`` (its edges, the longest 1),
        ``times``, ``frames``: of points a text each, of surfaces a pair of texts, and ``colours``.
        A text is base64 of little-endian uint16: x, y, z of each point on a scale of 0 to 65534
        along the longest edge, or three vertices a triangle.
    """
    frames = frames_of_points(run)
    number = run.number_of_bodies
    chosen = np.sort(np.random.default_rng(0).permutation(number)[:POINTS])
    tracks = np.stack([run.positions(frame)[chosen] for frame in counted(frames, step)])
    view = _view_of_tracks(tracks, number, run.units("bodies/position"))
    return {
        "geometry": "points",
        "caption": _caption(len(chosen), number, view),
        "box": [1, 1, 1],
        "times": run.time[frames].tolist(),
        "frames": [_packed(_on_scale(points, view)) for points in tracks],
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
    legend = (
        ""
        if number <= FEW_BODIES
        else "Colours tell how far from the middle each body was at first."
    )
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


def surface_data(run: Run, name: str, step: Step = no_step) -> dict[str, Any]:
    """Return the surface on which a field on a grid has one value, ready for JSON.

    Parameters
    ----------
    run : Run
        An open run whose frames hold evenly spaced planes of the field.
    name : str
        The field.
    step : callable, optional
        Called after each of `frames_of_surface`.

    Returns
    -------
    dict
        See `points_data`.
    """
    frames = frames_of_surface(run)
    level, width, surfaces = _bounded_surfaces(run, name, frames, step)
    volume = volume_of(run, name)
    box = [volume.edge(axis) for axis in range(3)]
    what = name.rpartition("/")[2]
    return {
        "geometry": "surface",
        "caption": f"The surface on which the {what} is {level:.3g}, "
        f"of means over cubes {width.max():.3g} wide; "
        "the longest edge of the box is 1.",
        "box": box,
        "times": run.time[frames].tolist(),
        "frames": [_packed_surface(*surface, width, box) for surface in surfaces],
        "colours": [],
        "size": 1,
    }


def _bounded_surfaces(run: Run, name: str, frames: Sequence[int], step: Step) -> Surfaces:
    """Return what `_surfaces_on` does on the finest grid whose surfaces a page can hold."""
    found = _surfaces_on(run, name, counted(frames, step), GRIDS[0])
    for grid in GRIDS[1:]:  # seldom: that it comes to this cannot be counted before
        if _is_bounded(found[-1]):
            break
        found = _surfaces_on(run, name, frames, grid)
    return found


def _surfaces_on(run: Run, name: str, frames: Iterable[int], grid: int) -> Surfaces:
    coarse = [coarse_means(run, name, frame, grid) for frame in frames]
    level = _level([values for values, _ in coarse])
    return level, coarse[0][1], [isosurface(values, level) for values, _ in coarse]


def _is_bounded(surfaces: Sequence[Surface]) -> bool:
    """Return whether 16 bits number every vertex and the page stays small; only noise is larger."""
    most = max(len(vertices) for vertices, _ in surfaces)
    return most <= STEPS and sum(len(triangles) for _, triangles in surfaces) <= TRIANGLES


def _level(fields: Sequence[Array]) -> float:
    """Return a sixth of the mean density weighted by the density: sum of squares over sum."""
    total = sum(np.abs(values[np.isfinite(values)]).sum() for values in fields)
    square = sum((values[np.isfinite(values)] ** 2).sum() for values in fields)
    return float(square / total / 6) if total > 0 else 1.0


def _packed_surface(
    vertices: Array, triangles: Array, width: Array, box: Sequence[float]
) -> list[str]:
    # the first mean lies half its width into the box
    positions = ((vertices + 0.5) * width).clip(0, box)
    return [_packed(np.rint(positions * STEPS)), _packed(triangles)]


def _packed(numbers: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers).astype("<u2").tobytes()).decode()
