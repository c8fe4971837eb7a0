"""Panels of bodies and of fields: bodies seen along an axis, planes of a field."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import AsinhNorm, LogNorm, Normalize
from scipy.ndimage import gaussian_filter

from hybrid_nbody.analysis.style import (
    DENSITY_MAP,
    BodyStyle,
    label,
    own_styles,
    power_of_ten,
    readable_ticks,
)
from hybrid_nbody.files.cells import Volume
from hybrid_nbody.files.views import Array

FEW_BODIES = 32
"""Most bodies that each have a colour of their own."""

DOTS = 50_000
"""Most bodies that are drawn as dots; more are counted on a grid."""

CELLS = 240
"""Cells of the grid along one side of a picture."""


ARROWS = 18
"""Arrows along the longer side of a plane, at most."""

ARROW: dict[str, Any] = {
    "angles": "xy",
    "scale_units": "xy",
    "scale": 1,
    "facecolor": "white",
    "edgecolor": "black",
    "linewidth": 0.25,
    "width": 0.008,
    "headwidth": 3.5,
    "headlength": 4,
    "headaxislength": 3.5,
    "minlength": 0,
    "pivot": "mid",
}
"""Style of an arrow: white with a black edge, to be visible on any colour."""

DECADES = 2
"""Powers of ten below the largest value at which the colours turn from logarithmic to linear."""


# --- bodies ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """The cube of space that a picture shows in each of its planes.

    Attributes
    ----------
    centre : ndarray
        (3,) float64, in the units of length.
    half : float
        Half of its edge.
    power : int
        The power of ten taken out of the axes.
    units : str
        The units of length.
    """

    centre: Array
    half: float
    power: int
    units: str

    def contains(self, points: Array) -> Array:
        """Return which of the points (N, 3) are in the cube: (N,) bool."""
        inside: Array = np.abs(points - self.centre) <= self.half
        return np.asarray(inside.all(axis=1))

    def extent(self, plane: tuple[int, int]) -> tuple[float, float, float, float]:
        """Return left, right, bottom and top of a plane (two axes), in scaled units."""
        scale = 10.0**self.power
        sides = [
            ((self.centre[axis] - self.half) / scale, (self.centre[axis] + self.half) / scale)
            for axis in plane
        ]
        return (*sides[0], *sides[1])


def view_of(points: Array, units: str) -> View:
    """Return the cube that shows all bodies except a few far away, such as ejected ones.

    Along each axis, bodies more than 2.5 times as far from the median as nine tenths of all are
    left out. A uniform sphere or box is then seen whole, and about 97 % of a Plummer sphere.

    Parameters
    ----------
    points : ndarray
        (N, 3) float64, in the units of length; points that are not finite are left out.
    units : str
        The units of length.
    """
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return View(np.zeros(3), 1.0, 0, units)
    if len(points) <= FEW_BODIES:
        return _cube((points.min(axis=0) + points.max(axis=0)) / 2, points, 1.2, units)
    centre = np.median(points, axis=0)
    distance = np.abs(points - centre)
    near = (distance <= 2.5 * np.quantile(distance, 0.9, axis=0)).all(axis=1)
    return _cube(centre, points[near], 1.05, units)


def _cube(centre: Array, points: Array, margin: float, units: str) -> View:
    half = margin * np.abs(points - centre).max() or 1.0
    return View(centre, half, power_of_ten(np.abs(centre) + half), units)


def frame_plane(axes: Axes, view: View, plane: tuple[int, int]) -> None:
    """Set limits, labels and equal scales of a plane (two axes of space)."""
    left, right, bottom, top = view.extent(plane)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_xlabel(label("xyz"[plane[0]], view.units, view.power))
    axes.set_ylabel(label("xyz"[plane[1]], view.units, view.power))
    readable_ticks(axes.xaxis)
    readable_ticks(axes.yaxis)


def draw_bodies(
    axes: Axes,
    points: Array,
    view: View,
    plane: tuple[int, int],
    norm: Normalize | None,
    styles: Sequence[BodyStyle] = (),
) -> Any:
    """Draw bodies seen along the third axis; return the artist for a colour bar, or None.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    points : ndarray
        (N, 3) float64, in the units of length.
    view : View
        The cube to show.
    plane : tuple of int
        The two axes of space that are seen.
    norm : LogNorm or None
        From bodies per area to colours, see `density_norm`; None draws each body in its style.
    styles : sequence of BodyStyle, optional
        Of each body, whose names go into a legend; by default each has a colour of its own.
    """
    frame_plane(axes, view, plane)
    if norm is None:
        return _draw_few(axes, points, view, plane, styles)
    return _draw_dots(axes, points, view, plane, norm)


def _draw_few(
    axes: Axes, points: Array, view: View, plane: tuple[int, int], styles: Sequence[BodyStyle]
) -> None:
    x, y = (points[:, list(plane)] / 10.0**view.power).T
    colours = [style.colour for style in styles or own_styles(range(len(points)))]
    axes.scatter(x, y, s=28, c=colours, linewidths=0, zorder=3)
    for style in styles:
        if style.name:
            axes.scatter([], [], s=28, c=style.colour, linewidths=0, label=style.name)


def _draw_dots(
    axes: Axes, points: Array, view: View, plane: tuple[int, int], norm: Normalize
) -> Any:
    points = points[view.contains(points)]
    density = density_at(points, view, plane)
    order = np.argsort(density, kind="stable")  # the densest on top
    x, y = (points[order][:, list(plane)] / 10.0**view.power).T
    size = float(np.clip(12000 / max(len(points), 1), 0.4, 6.0))
    return axes.scatter(
        x, y, s=size, c=density[order], cmap=DENSITY_MAP, norm=norm, linewidths=0, rasterized=True
    )


def draw_density(
    axes: Axes, density: Array, view: View, plane: tuple[int, int], norm: Normalize | None
) -> Any:
    """Draw a density, see `surface_density`; return the image for a colour bar."""
    frame_plane(axes, view, plane)
    shown = np.ma.masked_less_equal(density, 0)
    return axes.imshow(
        shown.T, origin="lower", extent=view.extent(plane), cmap=DENSITY_MAP, norm=norm
    )


def surface_density(
    points: Array, view: View, plane: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Count the bodies of the view on a grid.

    Returns
    -------
    density : ndarray
        (CELLS, CELLS) float64, bodies per scaled area.
    columns, rows : ndarray
        (M,) int64, the cell of each body of the view.
    """
    left, right, bottom, _ = view.extent(plane)
    cell = (right - left) / CELLS
    x, y = (points[view.contains(points)][:, list(plane)] / 10.0**view.power).T
    columns = np.clip(((x - left) / cell).astype(np.int64), 0, CELLS - 1)
    rows = np.clip(((y - bottom) / cell).astype(np.int64), 0, CELLS - 1)
    counts = np.bincount(columns * CELLS + rows, minlength=CELLS * CELLS)
    return counts.reshape(CELLS, CELLS) / cell**2, columns, rows


def density_at(points: Array, view: View, plane: tuple[int, int]) -> Array:
    """Return the bodies per scaled area around each body of the view: (M,) float64.

    It is smoothed over about twenty bodies.
    """
    density, columns, rows = surface_density(points, view, plane)
    width = np.clip(CELLS * np.sqrt(20 / (4 * np.pi * max(len(rows), 1))), 1.5, 8.0)
    smooth: Array = gaussian_filter(density, width)
    return smooth[columns, rows]


def density_norm(points: Array, view: View, planes: Sequence[tuple[int, int]]) -> LogNorm | None:
    """Return the common scale of colours of the planes of a picture, or None for a few bodies.

    It spans at least two decades, so that the noise of a uniform density does not look like
    structure.
    """
    if len(points) <= FEW_BODIES or not view.contains(points).any():
        return None
    return norm_of([density_at(points, view, plane) for plane in planes])


def norm_of(densities: Sequence[Array]) -> LogNorm | None:
    """Return the common scale of colours of densities, see `density_norm`; None if all are 0."""
    values = np.concatenate([density.ravel() for density in densities])
    values = values[values > 0]
    if not len(values):
        return None
    return LogNorm(min(values.min(), values.max() / 100), values.max())


# --- planes of a field ----------------------------------------------------------------------------


def colour_norm(planes: Sequence[Array]) -> AsinhNorm:
    """Return the common scale of colours of the planes of a picture.

    It is linear near 0 and logarithmic far from it: smoke spans many powers of ten, and is 0 in
    parts of the box.
    """
    values = np.concatenate(
        [plane[np.isfinite(plane)].ravel() for plane in planes] or [np.zeros(1)]
    )
    low = float(values.min(initial=0.0))
    high = float(values.max(initial=0.0))
    largest = max(abs(low), abs(high)) or 1.0
    return AsinhNorm(largest / 10**DECADES, vmin=low, vmax=high if high > low else low + largest)


def limits_of(norm: Normalize) -> tuple[float, float]:
    """Return the lowest and the highest value of a scale of colours, both of which are set."""
    if norm.vmin is None or norm.vmax is None:
        raise ValueError("a scale of colours without limits")
    return float(norm.vmin), float(norm.vmax)


def round_values(norm: Normalize) -> list[float]:
    """Return 0 and the powers of ten that are distinguishable on a scale of `colour_norm`."""
    low, high = limits_of(norm)
    largest = max(abs(low), abs(high))
    highest = math.floor(math.log10(largest))
    powers = [10.0**power for power in range(highest - DECADES + 1, highest + 1)]
    values = [-power for power in reversed(powers)] + [0.0] + powers
    return [value for value in values if low <= value <= high]


def draw_plane(
    axes: Axes,
    values: Array,
    volume: Volume,
    plane: tuple[int, int],
    norm: Normalize,
    colormap: str = DENSITY_MAP,
) -> Any:
    """Draw a plane of a field in colours; return the image for a colour bar.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    values : ndarray
        The stored cells of the plane, the second axis of `plane` first.
    volume : Volume
        Positions of the cells.
    plane : tuple of int
        The two axes of space that are seen: 0, 1, 2 for x, y, z.
    norm : matplotlib.colors.Normalize
        From values to colours.
    colormap : str, optional
        One of matplotlib's.
    """
    drawn = axes.imshow(
        values,
        origin="lower",
        extent=volume.extent(plane),
        cmap=colormap,
        norm=norm,
        interpolation="nearest",
    )
    axes.set(xlim=(0, volume.edge(plane[0])), ylim=(0, volume.edge(plane[1])), aspect="equal")
    axes.set_xlabel(label("xyz"[plane[0]], "length"))
    axes.set_ylabel(label("xyz"[plane[1]], "length"))
    readable_ticks(axes.xaxis)
    readable_ticks(axes.yaxis)
    return drawn


def draw_arrows(
    axes: Axes, velocity: Array, volume: Volume, plane: tuple[int, int], longest: float
) -> None:
    """Draw the velocity within a plane as arrows.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where `draw_plane` has drawn.
    velocity : ndarray
        (rows, columns, 3), the stored cells of the plane.
    volume : Volume
        Positions of the cells.
    plane : tuple of int
        The two axes of space that are seen.
    longest : float
        Speed of an arrow that reaches to the next one.
    """
    across, up = (volume.centres(axis) for axis in plane)
    step = -(-max(len(across), len(up)) // ARROWS)
    chosen = np.s_[step // 2 :: step]
    arrows = velocity[chosen, chosen][..., list(plane)]
    gap = step * max(_gap(across), _gap(up))
    lengths = np.moveaxis(arrows, -1, 0) * (gap / longest)
    axes.quiver(across[chosen], up[chosen], *lengths, **ARROW)


def _gap(centres: Array) -> float:
    return float(centres[1] - centres[0]) if len(centres) > 1 else 0.0
