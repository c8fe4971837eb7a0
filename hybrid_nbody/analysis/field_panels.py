"""What is drawn into one pair of axes for a fluid: a plane of the density, arrows of the velocity, a time series."""

import math

import numpy as np
from matplotlib.colors import AsinhNorm

from hybrid_nbody.analysis.style import (
    DENSITY_MAP,
    label,
    power_of_ten,
    readable_decades,
    readable_ticks,
)

ARROWS = 18
"""Arrows along the longer side of a plane, at most."""

ARROW = {
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
"""How an arrow looks: white with a black edge, to be seen on any colour."""

DECADES = 2
"""Below the largest density by so many powers of ten, the colours go from logarithmic to linear."""


def colour_norm(planes):
    """Return the scale of colours that the planes of a picture share.

    It is linear near 0 and logarithmic far from it: smoke spreads over many powers of ten, and is 0
    where none is.
    """
    values = np.concatenate(
        [plane[np.isfinite(plane)].ravel() for plane in planes] or [np.zeros(1)]
    )
    low = float(values.min(initial=0.0))
    high = float(values.max(initial=0.0))
    largest = max(abs(low), abs(high)) or 1.0
    return AsinhNorm(largest / 10**DECADES, vmin=low, vmax=high if high > low else low + largest)


def round_values(norm) -> list[float]:
    """Return 0 and the powers of ten, of both signs, that can be told apart on a scale of `colour_norm`."""
    largest = max(abs(norm.vmin), abs(norm.vmax))
    highest = math.floor(math.log10(largest))
    powers = [10.0**power for power in range(highest - DECADES + 1, highest + 1)]
    values = [-power for power in reversed(powers)] + [0.0] + powers
    return [value for value in values if norm.vmin <= value <= norm.vmax]


def draw_plane(axes, values, volume, plane, norm):
    """Draw a plane of a field in colours, and return what a colour bar needs.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    values : ndarray
        The stored cells of the plane, the second axis of `plane` first.
    volume : Volume
        Where the cells are.
    plane : tuple of int
        The two axes of space that are seen: 0, 1, 2 for x, y, z.
    norm : matplotlib.colors.Normalize
        From values to colours.
    """
    drawn = axes.imshow(
        values,
        origin="lower",
        extent=volume.extent(plane),
        cmap=DENSITY_MAP,
        norm=norm,
        interpolation="nearest",
    )
    axes.set(xlim=(0, volume.edge(plane[0])), ylim=(0, volume.edge(plane[1])), aspect="equal")
    axes.set_xlabel(label("xyz"[plane[0]], "length"))
    axes.set_ylabel(label("xyz"[plane[1]], "length"))
    readable_ticks(axes.xaxis)
    readable_ticks(axes.yaxis)
    return drawn


def draw_arrows(axes, velocity, volume, plane, longest):
    """Draw the velocity within a plane as arrows.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where `draw_plane` has drawn.
    velocity : ndarray
        (rows, columns, 3), the stored cells of the plane.
    volume : Volume
        Where the cells are.
    plane : tuple of int
        The two axes of space that are seen.
    longest : float
        Speed of an arrow that reaches to the next one.
    """
    across, up = (volume.place(axis) for axis in plane)
    step = -(-max(len(across), len(up)) // ARROWS)
    chosen = np.s_[step // 2 :: step]
    arrows = velocity[chosen, chosen][..., list(plane)]
    gap = step * max(_gap(across), _gap(up))
    lengths = np.moveaxis(arrows, -1, 0) * (gap / longest)
    axes.quiver(across[chosen], up[chosen], *lengths, **ARROW)


def _gap(place):
    return float(place[1] - place[0]) if len(place) > 1 else 0.0


def draw_series(axes, run, names, name):
    """Draw diagnostics against time.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    run : Run
        An open run.
    names : mapping
        From a quantity of the diagnostics to its colour and to what a legend calls it.
    name : str
        What the axis is called.
    """
    power = power_of_ten(*(run.diagnostics[quantity] for quantity in names))
    _draw_lines(
        axes,
        run,
        names,
        label(name, _units(run, names), power),
        lambda values: values / 10.0**power,
    )
    readable_ticks(axes.yaxis)


def draw_decades(axes, run, names, name):
    """Draw diagnostics on a logarithmic axis, as `draw_series` does; what is not greater than 0 leaves a gap."""
    _draw_lines(
        axes,
        run,
        names,
        label(name, _units(run, names)),
        lambda values: np.where(values > 0, values, np.nan),
    )
    if any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
        axes.set_yscale("log")
        readable_decades(axes.yaxis)


def _draw_lines(axes, run, names, name, scaled):
    time = run.diagnostics.time
    power = power_of_ten(time)
    for quantity, (colour, words) in names.items():
        values = scaled(run.diagnostics[quantity])
        marks = (
            {"marker": "o", "markersize": 4} if len(values) == 1 else {}
        )  # a line through it would not be seen
        axes.plot(time / 10.0**power, values, color=colour, label=words, **marks)
    axes.set_ylabel(name)
    axes.set_xlabel(label("time", run.units("diagnostics/time"), power))
    axes.margins(x=0)
    readable_ticks(axes.xaxis)


def _units(run, names):
    return run.units(f"diagnostics/{next(iter(names))}")
