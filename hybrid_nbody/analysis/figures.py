"""What all figures of a run share: their width and their title."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hybrid_nbody.analysis.style import plain, scaled_units

WIDTH = 7.2
"""Inches: the text of a printed page."""


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
