"""A window in which bodies move over their activity map."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hybrid_nbody.analysis.panels import DOTS
from hybrid_nbody.analysis.presentation import WindowFrame
from hybrid_nbody.analysis.style import label, our_look
from hybrid_nbody.nbody.figures.structure import ACTIVITY, draw_activity

POSITION = "bodies/position"

PAUSE = 0.02
"""Shortest time between two frames in seconds; the window handles its events then."""


def show(frames: Iterator[WindowFrame], title: str) -> None:
    """Show frames until there are no more, the window is closed, or Ctrl-C is pressed.

    Parameters
    ----------
    frames : iterator of WindowFrame
        Times and fields: the (N, 3) positions and the (D, D) activity map, its rows along y.
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
    first = next(frames).fields
    image, dots = draw_activity(axes, first[ACTIVITY], first[POSITION], "length")
    has_dots = len(first[POSITION]) <= DOTS
    figure.colorbar(image, ax=axes, label=label("activity", "1"))
    for frame in frames:
        if not pyplot.fignum_exists(figure.number):
            return
        activity = frame.fields[ACTIVITY]
        largest = max(largest, float(np.max(activity)))  # the scale must not flicker
        image.set(data=activity, clim=(0, largest or 1.0))
        plane = frame.fields[POSITION][:, :2]
        dots.set_offsets(plane if has_dots else plane[:0])
        axes.set_title(f"{title}, time {frame.time:.3g}", loc="left")
        pyplot.pause(PAUSE)
