"""What is drawn into one pair of axes: energies, their error, bodies seen along an axis, tracks of bodies."""

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import LogNorm
from scipy.ndimage import gaussian_filter

from hybrid_nbody.analysis.style import (
    BLACK,
    BODY_COLOURS,
    DENSITY_MAP,
    ENERGY_COLOURS,
    GREY,
    label,
    power_of_ten,
    readable_ticks,
)

FEW_BODIES = 32
"""Up to so many bodies each has a colour of its own."""

DOTS = 50_000
"""Up to so many bodies each is a dot; more are counted on a grid."""

CELLS = 240
"""Cells of the grid along one side of a picture."""


# --- time series ----------------------------------------------------------------------------------


def draw_energies(axes, run):
    """Draw kinetic, potential and total energy against time."""
    diagnostics = run.diagnostics
    units = run.units("diagnostics/total_energy")
    series = {name: diagnostics[f"{name}_energy"] for name in ENERGY_COLOURS}
    time = diagnostics.time
    power = power_of_ten(*series.values())
    time_power = power_of_ten(time)
    for name, values in series.items():
        axes.plot(
            time / 10.0**time_power,
            values / 10.0**power,
            color=ENERGY_COLOURS[name],
            label=name,
            **_marks(values),
        )
    axes.set_ylabel(label("energy", units, power))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.5
    )
    _fit_time(axes, run, time_power)


def draw_energy_error(axes, run):
    """Draw the relative error of the total energy against time, with its largest value in words."""
    time = run.diagnostics.time
    error = run.diagnostics.relative_energy_error
    time_power = power_of_ten(time)
    power = power_of_ten(error)
    axes.axhline(0, color=GREY, linewidth=0.6)
    axes.plot(time / 10.0**time_power, error / 10.0**power, color=BLACK, **_marks(error))
    axes.set_ylabel(label("relative error", "", power))
    _fit_time(axes, run, time_power)


def _marks(values):
    # A line through a single row would not be seen.
    return {"marker": "o", "markersize": 4} if len(values) == 1 else {}


def _fit_time(axes, run, power):
    axes.set_xlabel(label("time", run.units("diagnostics/time"), power))
    axes.margins(x=0)
    readable_ticks(axes.xaxis)
    readable_ticks(axes.yaxis)


# --- bodies ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """The cube of space that a picture shows, the same in its three planes.

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

    centre: np.ndarray
    half: float
    power: int
    units: str

    def contains(self, points) -> np.ndarray:
        """Which of the points (N, 3) are in the cube: (N,) bool."""
        return (np.abs(points - self.centre) <= self.half).all(axis=1)

    def extent(self, plane) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of a plane (two axes), in scaled units."""
        scale = 10.0**self.power
        sides = [
            ((self.centre[axis] - self.half) / scale, (self.centre[axis] + self.half) / scale)
            for axis in plane
        ]
        return (*sides[0], *sides[1])


def view_of(points, units) -> View:
    """Choose the cube to show: all bodies, but for a few that are far out, such as ejected ones.

    Along each axis, bodies more than 2.5 times as far from the median as nine tenths of all are
    left out. So a uniform sphere or box is seen whole, and of a Plummer sphere about 97 % of the
    bodies.

    Parameters
    ----------
    points : ndarray
        (N, 3) float64, in the units of length; bodies at infinity or nowhere are left out.
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


def _cube(centre, points, room, units):
    half = room * np.abs(points - centre).max() or 1.0
    return View(centre, half, power_of_ten(np.abs(centre) + half), units)


def frame_plane(axes, view, plane):
    """Set limits, labels and equal scales of a plane (two axes of space)."""
    left, right, bottom, top = view.extent(plane)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_xlabel(label("xyz"[plane[0]], view.units, view.power))
    axes.set_ylabel(label("xyz"[plane[1]], view.units, view.power))
    readable_ticks(axes.xaxis)
    readable_ticks(axes.yaxis)


def draw_bodies(axes, points, view, plane, norm):
    """Draw bodies seen along the third axis, and return what a colour bar needs, or None.

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
        From bodies per area to colours, see `density_norm`; None gives each of a few bodies its own
        colour.
    """
    frame_plane(axes, view, plane)
    if norm is None:
        return _draw_few(axes, points, view, plane)
    if len(points) > DOTS:
        return _draw_grid(axes, points, view, plane, norm)
    return _draw_dots(axes, points, view, plane, norm)


def _draw_few(axes, points, view, plane):
    x, y = (points[:, list(plane)] / 10.0**view.power).T
    colours = [BODY_COLOURS[index % len(BODY_COLOURS)] for index in range(len(points))]
    axes.scatter(x, y, s=28, c=colours, linewidths=0, zorder=3)


def _draw_dots(axes, points, view, plane, norm):
    points = points[view.contains(points)]
    density = density_at(points, view, plane)
    order = np.argsort(density, kind="stable")  # the densest on top
    x, y = (points[order][:, list(plane)] / 10.0**view.power).T
    size = float(np.clip(12000 / max(len(points), 1), 0.4, 6.0))
    return axes.scatter(
        x, y, s=size, c=density[order], cmap=DENSITY_MAP, norm=norm, linewidths=0, rasterized=True
    )


def _draw_grid(axes, points, view, plane, norm):
    counts, _, _ = surface_density(points, view, plane)
    shown = np.ma.masked_less_equal(counts, 0)
    return axes.imshow(
        shown.T, origin="lower", extent=view.extent(plane), cmap=DENSITY_MAP, norm=norm
    )


def surface_density(points, view, plane):
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


def density_at(points, view, plane) -> np.ndarray:
    """Return the bodies per scaled area around each body of the view, smoothed over about twenty: (M,) float64."""
    density, columns, rows = surface_density(points, view, plane)
    width = np.clip(CELLS * np.sqrt(20 / (4 * np.pi * max(len(rows), 1))), 1.5, 8.0)
    return gaussian_filter(density, width)[columns, rows]


def density_norm(points, view, planes):
    """Return the scale of colours that the planes of a picture share, or None for a few bodies.

    It spans two decades at least: the noise of a uniform density must not look like structure.
    """
    if len(points) <= FEW_BODIES or not view.contains(points).any():
        return None
    if len(points) <= DOTS:
        values = np.concatenate([density_at(points, view, plane) for plane in planes])
    else:
        values = np.concatenate(
            [surface_density(points, view, plane)[0].ravel() for plane in planes]
        )
    values = values[values > 0]
    return LogNorm(min(values.min(), values.max() / 100), values.max())


# --- tracks ---------------------------------------------------------------------------------------


def draw_tracks(axes, tracks, names, view, plane):
    """Draw the paths of a few bodies; a ring is where each began, a dot where it is.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    tracks : ndarray
        (F, N, 3) float64, in the units of length.
    names : sequence
        The N identities of the bodies, for a legend.
    view : View
        The cube to show.
    plane : tuple of int
        The two axes of space that are seen.
    """
    frame_plane(axes, view, plane)
    scaled = tracks[:, :, list(plane)] / 10.0**view.power
    for body, name in enumerate(names):
        x, y = scaled[:, body].T
        colour = BODY_COLOURS[body % len(BODY_COLOURS)]
        axes.plot(x, y, color=colour, linewidth=0.9, zorder=2)
        axes.plot(x[0], y[0], "o", color=colour, markersize=5, fillstyle="none", zorder=3)
        axes.plot(x[-1], y[-1], "o", color=colour, markersize=5, zorder=3, label=f"body {name}")


def draw_tracks_in_space(axes, tracks, names, view):
    """Draw the paths of a few bodies into axes of three dimensions; parameters and marks as in `draw_tracks`."""
    scaled = tracks / 10.0**view.power
    for body, name in enumerate(names):
        x, y, z = scaled[:, body].T
        colour = BODY_COLOURS[body % len(BODY_COLOURS)]
        axes.plot(x, y, z, color=colour, linewidth=0.9)
        axes.plot(x[:1], y[:1], z[:1], "o", color=colour, markersize=5, fillstyle="none")
        axes.plot(x[-1:], y[-1:], z[-1:], "o", color=colour, markersize=5, label=f"body {name}")
    sides = [view.extent((axis, axis))[:2] for axis in range(3)]
    axes.set(xlim=sides[0], ylim=sides[1], zlim=sides[2], box_aspect=(1, 1, 1))
    for axis, letter in zip((axes.xaxis, axes.yaxis, axes.zaxis), "xyz", strict=True):
        axis.set_label_text(label(letter, view.units, view.power))
        readable_ticks(axis)
