"""What a movie shows: each scene draws its axes once, and then only what moves.

The scale of colours and the cube of space stay the same for the whole movie. They come from a few
frames, evenly apart.
"""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hybrid_nbody.analysis.style import plain

SIZE = (6.4, 5.6)
DPI = 120
"""Inches and dots an inch: 768 x 672 pixels. Encoders want even numbers."""

SAMPLES = 12
"""Frames that the scales are chosen from."""

XY = (0, 1)


class Scene:
    """A figure of which some artists move. Subclasses draw in `build` and move in `show`.

    Parameters
    ----------
    run : Run
        An open run.
    frames : sequence of int
        The frames that will be shown, in this order.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        Its canvas holds the pixels.
    """

    def __init__(self, run, frames):
        self.run = run
        self.frames = frames
        self.figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.subplots()
        self.times = run.time
        self.moving = [*self.build(samples_of(frames)), self._clock()]
        self._still = None

    def build(self, samples) -> list:
        """Draw the axes and what stands still.

        Parameters
        ----------
        samples : list of int
            Some of the frames, from which the scales of space and of colours follow; these then
            hold for all.

        Returns
        -------
        list of matplotlib.artist.Artist
            What moves, in the order in which it is drawn.
        """
        raise NotImplementedError

    def show(self, frame) -> None:
        """Move the artists to a frame, an index into the run's frames."""
        raise NotImplementedError

    def _clock(self):
        self.axes.set_title(plain(self.run.title) or " ", loc="left")
        return self.axes.text(1, 1.012, "", transform=self.axes.transAxes, ha="right", va="bottom")

    def render(self, frame) -> np.ndarray:
        """Return the pixels of a frame: (height, width, 4) uint8, valid until the next call."""
        canvas = self.figure.canvas
        if self._still is None:
            self._draw_still()
        self.show(frame)
        self.moving[-1].set_text(f"time {self.times[frame]:.4g}")
        canvas.restore_region(self._still)
        for artist in self.moving:
            self.axes.draw_artist(artist)
        return np.asarray(canvas.buffer_rgba())

    def _draw_still(self):
        for artist in self.moving:
            artist.set_animated(True)
        self.figure.canvas.draw()
        self.figure.set_layout_engine("none")
        self._still = self.figure.canvas.copy_from_bbox(self.figure.bbox)

    def _bar(self, drawn, name, **options):
        return self.figure.colorbar(drawn, ax=self.axes, label=name, shrink=0.86, **options)


def samples_of(frames, most=SAMPLES) -> list[int]:
    """Return some of the frames, evenly apart, the first and the last among them."""
    places = np.unique(np.linspace(0, len(frames) - 1, most).round().astype(int))
    return [frames[place] for place in places]
