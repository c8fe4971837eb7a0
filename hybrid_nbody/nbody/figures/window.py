"""A window in which bodies move over their activity map, where there is a display."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from hybrid_nbody.analysis.panels import DOTS
from hybrid_nbody.analysis.style import label, our_look
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.figures.structure import draw_activity

PAUSE = 0.02
"""Shortest time between two frames in seconds; the window handles its events then."""


@dataclass(frozen=True)
class WindowFrame:
    """A frame of bodies over their activity map.

    Attributes
    ----------
    time : float
    position : (N, 3) array of float64
    activity : (D, D) array
        The activity map, its rows along y.
    """

    time: float
    position: Array
    activity: Array


def can_show() -> bool:
    """Return whether there is a display, and a toolkit with which matplotlib opens windows."""
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        return False
    from matplotlib import pyplot
    from matplotlib.backends.registry import BackendFilter, backend_registry

    try:
        backend = matplotlib.get_backend()
        pyplot.switch_backend(backend)
    except ImportError:  # the user's choice is not installed
        return False
    registry: Any = backend_registry  # matplotlib does not type its methods
    return backend.lower() in registry.list_builtin(BackendFilter.INTERACTIVE)


def show(frames: Iterator[WindowFrame], title: str) -> None:
    """Show frames until there are no more, the window is closed, or Ctrl-C is pressed.

    Parameters
    ----------
    frames : iterator of WindowFrame
    title : str
    """
    from matplotlib import pyplot

    with our_look():
        figure = pyplot.figure(figsize=(6.4, 5.6), layout="constrained")
        try:
            _play(figure, pyplot, frames, title)
        except KeyboardInterrupt:
            pass
        finally:
            pyplot.close(figure)


def _play(figure: Figure, pyplot: Any, frames: Iterator[WindowFrame], title: str) -> None:
    axes = figure.subplots()
    largest = 0.0
    first = next(frames)
    image, dots = draw_activity(axes, first.activity, first.position, "length")
    has_dots = len(first.position) <= DOTS
    figure.colorbar(image, ax=axes, label=label("activity", "1"))
    for frame in frames:
        if not pyplot.fignum_exists(figure.number):
            return
        largest = max(largest, float(np.max(frame.activity)))  # the scale must not flicker
        image.set(data=frame.activity, clim=(0, largest or 1.0))
        plane = frame.position[:, :2]
        dots.set_offsets(plane if has_dots else plane[:0])
        axes.set_title(f"{title}, time {frame.time:.3g}", loc="left")
        pyplot.pause(PAUSE)
