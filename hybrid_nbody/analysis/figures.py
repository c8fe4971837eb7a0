"""What all figures of a run share: their width, what stands above them, and the bodies that they show."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hybrid_nbody.analysis.panels import FEW_BODIES
from hybrid_nbody.analysis.style import plain, scaled_units
from hybrid_nbody.errors import InputError

WIDTH = 7.2
"""Inches: the text of a printed page."""

TRACK_POINTS = 20_000
"""Frames of a track at most: more cannot be seen, and those of a long run need not fit in
memory."""


def new_figure(height) -> Figure:
    """Return an empty figure of a height in inches."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def title(run, frame=None, *more) -> str:
    """Return the title of the run, the time of a frame, and what else there is to say."""
    parts = [plain(run.title)] if run.title else []
    if frame is not None:
        units = scaled_units(run.units("time"))
        parts.append(f"time {run.time[frame]:.4g}" + (f" {units}" if units != "time" else ""))
    return ", ".join([*parts, *more])


def points_of(run, frame) -> np.ndarray:
    """Return the positions of the bodies in a frame: (N, 3) float64.

    Raises
    ------
    InputError
        The run holds no bodies, or no such frame.
    """
    if not run.number_of_bodies:
        raise InputError(f"{run.path}: a run of model '{run.model}' has no bodies to draw")
    try:
        return run.positions(frame)
    except IndexError as error:
        raise InputError(str(error)) from error


def tracks_of(run, frame) -> np.ndarray:
    """Return the positions from the first frame to `frame`, thinned evenly to `TRACK_POINTS`: (F, N, 3) float64.

    Raises
    ------
    InputError
        The run holds no bodies, too many of them, or no such frame.
    """
    last = points_of(run, frame)
    if run.number_of_bodies > FEW_BODIES:
        raise InputError(
            f"{run.path}: {run.number_of_bodies} bodies are too many for tracks, which show {FEW_BODIES}"
        )
    end = frame % run.number_of_frames
    earlier = run.positions(slice(0, end, -(-(end + 1) // TRACK_POINTS)))
    return np.concatenate([earlier, last[None]])
