"""Scenes of movies: the axes are drawn once, then only what moves.

The scale of colours and the cube of space are the same for the whole movie. They follow from a few
equidistant frames.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import AsinhNorm, LogNorm, Normalize
from matplotlib.figure import Figure

from hybrid_nbody.analysis.look import USUAL, Look
from hybrid_nbody.analysis.panels import DECADES
from hybrid_nbody.analysis.style import DENSITY_MAP, moment, plain
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array

# 768 x 672 pixels: encoders require even numbers.
SIZE = (6.4, 5.6)
"""Width and height of a picture in inches."""

DPI = 120
"""Dots per inch."""

LEAST_DPI = 80
"""Dots per inch of a small picture, in which text could not be read otherwise."""

SAMPLES = 12
"""Number of frames from which the scales follow."""

XY = (0, 1)


class Scene:
    """A figure of which some artists move. Subclasses draw in `build` and move in `show`.

    Parameters
    ----------
    run : Run
        An open run.
    frames : sequence of int
        The frames that will be shown, in this order.
    look : Look, optional
        Size, colours, plane and camera.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        Its canvas holds the pixels.
    """

    def __init__(self, run: Run, frames: Sequence[int], look: Look = USUAL) -> None:
        self.run = run
        self.frames = frames
        self.look = look
        self.figure = _figure(look.size)
        self.canvas: Any = FigureCanvasAgg(self.figure)  # matplotlib does not type its methods
        self.axes = self.figure.subplots()
        self.moving = [*self.build(samples_of(frames)), self._clock()]
        self._still: Any = None

    def build(self, samples: Sequence[int]) -> list[Any]:
        """Draw the axes and everything that does not move.

        Parameters
        ----------
        samples : list of int
            Some of the frames, from which the scales of space and colours for all of them follow.

        Returns
        -------
        list of matplotlib.artist.Artist
            The artists that move, in the order in which they are drawn.
        """
        raise NotImplementedError

    def show(self, frame: int) -> None:
        """Move the artists to a frame, an index into the run's frames."""
        raise NotImplementedError

    def _clock(self) -> Any:
        self.axes.set_title(plain(self.run.title) or " ", loc="left")
        return self.axes.text(1, 1.012, "", transform=self.axes.transAxes, ha="right", va="bottom")

    def render(self, frame: int) -> Array:
        """Return the pixels of a frame: (height, width, 4) uint8, valid until the next call."""
        if self._still is None:
            self._draw_still()
        self.show(frame)
        self.moving[-1].set_text(moment(self.run, frame))
        self.canvas.restore_region(self._still)
        for artist in self.moving:
            self.axes.draw_artist(artist)
        return np.asarray(self.canvas.buffer_rgba())

    def _draw_still(self) -> None:
        for artist in self.moving:
            artist.set_animated(True)
        self.canvas.draw()
        self.figure.set_layout_engine("none")
        self._still = self.canvas.copy_from_bbox(self.figure.bbox)

    @property
    def colormap(self) -> str:
        """Return the name of the colour map."""
        return self.look.colormap or DENSITY_MAP

    def in_range(self, norm: Normalize) -> Normalize:
        """Return a scale of colours over the range that is asked for, if one is.

        Raises
        ------
        InputError
            A logarithmic scale is to begin at 0 or below.
        """
        if self.look.range is None:
            return norm
        low, high = self.look.range
        if isinstance(norm, AsinhNorm):
            return AsinhNorm(max(abs(low), abs(high)) / 10**DECADES, low, high)
        if isinstance(norm, LogNorm) and low <= 0:
            raise InputError(
                f"--range {low:g},{high:g}: LOW must be above 0, for colours are logarithmic"
            )
        return type(norm)(low, high)

    def refuse(self, reason: str, *options: str) -> None:
        """Refuse options of the look that this kind of movie does not take.

        Raises
        ------
        InputError
            One of them is given.
        """
        for option in options:
            if getattr(self.look, option) is not None:
                raise InputError(f"--{option}: {reason}")

    def _bar(self, drawn: Any, name: str, **options: Any) -> Any:
        return self.figure.colorbar(drawn, ax=self.axes, label=name, shrink=0.86, **options)


def _figure(size: tuple[int, int] | None) -> Figure:
    """Return an empty figure of a size in pixels; text grows with its height."""
    if size is None:
        return Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    width, height = size
    dpi = max(LEAST_DPI, height / SIZE[1])
    inches = ((width + 0.01) / dpi, (height + 0.01) / dpi)  # the canvas rounds down
    return Figure(figsize=inches, dpi=dpi, layout="constrained")


def samples_of(frames: Sequence[int], most: int = SAMPLES) -> list[int]:
    """Return at most `most` equidistant frames, among them the first and the last."""
    indices = np.unique(np.linspace(0, len(frames) - 1, most).round().astype(int))
    return [frames[index] for index in indices]
