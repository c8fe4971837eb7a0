"""What is drawn over a plane of a fluid: obstacles and streamlines."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from hybrid_nbody.files.cells import Volume
from hybrid_nbody.files.views import Array

FILL = (0.78, 0.78, 0.78)
OUTLINE = (0.15, 0.15, 0.15)
WIDTH = 0.004
"""Half the width of an outline, in lengths of the longest edge of the box."""

SEEN_THROUGH = 0.45
"""Opacity of an obstacle where the box is looked through."""

LINE: dict[str, Any] = {"color": "white", "linewidth": 0.6, "arrowsize": 0.6, "density": 1.2}


def draw_solid(
    axes: Axes, distances: Array, volume: Volume, plane: tuple[int, int], opacity: float = 1.0
) -> Any:
    """Draw obstacles over a plane; return the image.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where the plane is drawn.
    distances : ndarray
        Signed distances from the obstacles at points of the whole plane, the second axis of `plane`
        first.
    volume : Volume
    plane : tuple of int
        The two axes of space that are seen.
    opacity : float, optional
        That of the obstacle within its outline.
    """
    across, up = (volume.edge(axis) for axis in plane)
    colours = colours_of_solid(distances, up / len(distances), opacity)
    return axes.imshow(colours, origin="lower", extent=(0, across, 0, up), zorder=3)


def colours_of_solid(distances: Array, gap: float, opacity: float = 1.0) -> Array:
    """Return red, green, blue and opacity at each point: (rows, columns, 4) float64.

    Parameters
    ----------
    distances : ndarray
        Signed distances from the obstacles.
    gap : float
        The distance between points, over which edges are made smooth.
    opacity : float, optional
        That of the obstacle within its outline.
    """
    within = np.clip(0.5 - distances / gap, 0.0, 1.0)
    width = max(WIDTH, 0.5 * gap)
    on_outline = np.clip(0.5 + (width - np.abs(distances)) / gap, 0.0, 1.0)
    colours = np.empty((*distances.shape, 4))
    colours[..., :3] = np.array(FILL) + on_outline[..., None] * np.subtract(OUTLINE, FILL)
    colours[..., 3] = np.maximum(opacity * within, on_outline)
    return colours


def draw_streamlines(
    axes: Axes, velocity: Array, volume: Volume, plane: tuple[int, int], solid: Array | None
) -> None:
    """Draw streamlines of the velocity within a plane.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where the plane is drawn.
    velocity : ndarray
        (rows, columns, 3), the stored cells of the plane.
    volume : Volume
    plane : tuple of int
        The two axes of space that are seen.
    solid : ndarray of bool or None
        The stored cells in which no line is drawn.
    """
    across, up = (volume.centres(axis) for axis in plane)
    if min(len(across), len(up)) < 2:
        return
    u, v = (np.ma.masked_invalid(velocity[..., axis], copy=True) for axis in plane)
    if solid is not None:
        u[solid] = np.ma.masked
        v[solid] = np.ma.masked
    if np.ma.max(np.hypot(u, v)) > 0:
        axes.streamplot(across, up, u, v, **LINE)
