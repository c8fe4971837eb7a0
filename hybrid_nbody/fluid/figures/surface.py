"""A surface of equal density in the interactive view of a report."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hybrid_nbody.analysis.isosurface import coarse_means, isosurface
from hybrid_nbody.analysis.scene3d import STEPS, packed
from hybrid_nbody.analysis.scenes import samples_of
from hybrid_nbody.analysis.volume import volume_of
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.fluid.figures import DENSITY
from hybrid_nbody.progress import Step, counted, no_step

FRAMES = 25
"""Largest number of frames on a page."""

TRIANGLES = 500_000
"""Largest number of triangles in all of these frames."""

GRIDS = (32, 16, 8)
"""Points along the longest edge of the grid of surfaces; the finest that is bounded is used."""

SURFACE = (0.36, 0.56, 0.75)
"""Red, green and blue of the surface, as the script of the page has it."""

Surface = tuple[Array, Array]
"""Vertices and triangles."""

Surfaces = tuple[float, Array, list[Surface]]
"""The density on surfaces, the edges of the cells, and the surface of each frame."""


def frames_of_surface(run: Run) -> list[int]:
    """Return the frames of a surface that a view holds, evenly apart."""
    return samples_of(range(run.number_of_frames), FRAMES)


def surface_data(run: Run, step: Step = no_step) -> dict[str, Any]:
    """Return a surface of equal density in each frame, ready for JSON.

    Parameters
    ----------
    run : Run
        An open run whose frames hold evenly spaced planes of the density.
    step : callable, optional
        Called after each of `frames_of_surface`.

    Returns
    -------
    dict
        See `analysis.scene3d`.
    """
    frames = frames_of_surface(run)
    level, width, surfaces = _bounded_surfaces(run, frames, step)
    volume = volume_of(run, DENSITY)
    box = [volume.edge(axis) for axis in range(3)]
    return {
        "geometry": "surface",
        "caption": f"The surface on which the density is {level:.3g}, "
        f"of means over cubes {width.max():.3g} wide; "
        "the longest edge of the box is 1.",
        "box": box,
        "origin": [0.0, 0.0, 0.0],
        "scale": 1.0,
        "units": "",
        "times": run.time[frames].tolist(),
        "time_units": "",
        "frames": [_packed_surface(*surface, width, box) for surface in surfaces],
        "colours": [],
        "legend": [(f"density {level:.3g}", SURFACE)],
        "size": 1,
        "trail": 0,
        "trails": False,
    }


def _bounded_surfaces(run: Run, frames: Sequence[int], step: Step) -> Surfaces:
    """Return what `_surfaces_on` does on the finest grid whose surfaces a page can hold."""
    found = _surfaces_on(run, counted(frames, step), GRIDS[0])
    for grid in GRIDS[1:]:  # seldom: that it comes to this cannot be counted before
        if _is_bounded(found[-1]):
            break
        found = _surfaces_on(run, frames, grid)
    return found


def _surfaces_on(run: Run, frames: Iterable[int], grid: int) -> Surfaces:
    coarse = [coarse_means(run, DENSITY, frame, grid) for frame in frames]
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
    return [packed(np.rint(positions * STEPS)), packed(triangles)]
