"""Panels of the paths of a few bodies, in a plane and in space."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from hybrid_nbody.analysis.panels import View, frame_plane
from hybrid_nbody.analysis.style import BodyStyle, label, readable_ticks
from hybrid_nbody.files.views import Array

ZOOM = 0.85
"""Of the box in space: some versions of Matplotlib leave no place for what is written beside it."""


def draw_tracks(
    axes: Axes, tracks: Array, styles: Sequence[BodyStyle], view: View, plane: tuple[int, int]
) -> None:
    """Draw the paths of a few bodies, from a ring at the start to a dot at the end.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    tracks : ndarray
        (F, N, 3) float64, in the units of length.
    styles : sequence of BodyStyle
        Of the N bodies.
    view : View
        The cube to show.
    plane : tuple of int
        The two axes of space that are seen.
    """
    frame_plane(axes, view, plane)
    scaled = tracks[:, :, list(plane)] / 10.0**view.power
    for body, style in enumerate(styles):
        x, y = scaled[:, body].T
        colour = style.colour
        axes.plot(x, y, color=colour, linewidth=0.9, zorder=2)
        axes.plot(x[0], y[0], "o", color=colour, markersize=5, fillstyle="none", zorder=3)
        axes.plot(x[-1], y[-1], "o", color=colour, markersize=5, zorder=3, label=style.name or None)


def draw_tracks_in_space(axes: Any, tracks: Array, styles: Sequence[BodyStyle], view: View) -> None:
    """Draw the paths of a few bodies into three-dimensional axes; see `draw_tracks`."""
    scaled = tracks / 10.0**view.power
    for body, style in enumerate(styles):
        x, y, z = scaled[:, body].T
        colour = style.colour
        axes.plot(x, y, z, color=colour, linewidth=0.9)
        axes.plot(x[:1], y[:1], z[:1], "o", color=colour, markersize=5, fillstyle="none")
        axes.plot(x[-1:], y[-1:], z[-1:], "o", color=colour, markersize=5, label=style.name or None)
    sides = [view.extent((axis, axis))[:2] for axis in range(3)]
    axes.set(xlim=sides[0], ylim=sides[1], zlim=sides[2])
    axes.set_box_aspect((1, 1, 1), zoom=ZOOM)
    for axis, letter in zip((axes.xaxis, axes.yaxis, axes.zaxis), "xyz", strict=True):
        axis.set_label_text(label(letter, view.units, view.power))
        readable_ticks(axis)
