"""Positions of bodies for figures: of one frame, or along their paths."""

import numpy as np

from hybrid_nbody.analysis.panels import FEW_BODIES
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array

TRACK_POINTS = 20_000
"""Most frames of a track: more cannot be seen, and those of a long run may not fit in memory."""


def no_bodies(run: Run) -> str:
    """Return why there is no frame of bodies; empty if there is."""
    return "" if run.number_of_frames and run.number_of_bodies else "no frames of bodies"


def too_many(run: Run) -> str:
    """Return that there are more bodies than can be told apart; empty if there are not."""
    number = run.number_of_bodies
    if number <= FEW_BODIES:
        return ""
    return f"too many bodies ({number}); tracks are drawn of at most {FEW_BODIES}"


def points_of(run: Run, frame: int) -> Array:
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


def tracks_of(run: Run, frame: int) -> Array:
    """Return the positions up to `frame` at no more than about `TRACK_POINTS` frames: (F, N, 3).

    Raises
    ------
    InputError
        The run holds no bodies, too many of them, or no such frame.
    """
    last = points_of(run, frame)
    if run.number_of_bodies > FEW_BODIES:
        raise InputError(
            f"{run.path}: {run.number_of_bodies} bodies are too many for tracks, "
            f"which show {FEW_BODIES}"
        )
    end = frame % run.number_of_frames
    earlier = run.positions(slice(0, end, -(-(end + 1) // TRACK_POINTS)))
    return np.concatenate([earlier, last[None]])
