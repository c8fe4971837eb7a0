"""Positions of bodies for figures: of one frame, or along their paths."""

import numpy as np

from hybrid_nbody.analysis.panels import FEW_BODIES
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import Run
from hybrid_nbody.files.views import Array
from hybrid_nbody.nbody.figures.sample import positions_of

TRACK_POINTS = 20_000
"""Most frames of a track: more cannot be seen, and those of a long run may not fit in memory."""


POSITION = "bodies/position"
"""The data set of the positions."""


def no_bodies(run: Run) -> str:
    """Return why there is no frame of bodies; empty if there is."""
    if not (run.number_of_frames and run.number_of_bodies):
        return "no frames of bodies"
    return "" if POSITION in run.fields else "the frames hold no positions"


def too_many(run: Run) -> str:
    """Return that there are more bodies than can be told apart; empty if there are not."""
    number = run.number_of_bodies
    if number <= FEW_BODIES:
        return ""
    return f"too many bodies ({number}); tracks are drawn of at most {FEW_BODIES}"


def points_of(run: Run, frame: int) -> Array:
    """Return the positions in a frame of the bodies that figures take: (M, 3).

    Raises
    ------
    InputError
        The run holds no bodies, or no such frame.
    """
    if not run.number_of_bodies:
        raise InputError(f"{run.path}: a run of model '{run.model}' has no bodies to draw")
    if POSITION not in run.fields:
        raise InputError(f"{run.path}: {no_bodies(run)}, of which figures of bodies are drawn")
    try:
        return positions_of(run, frame)
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
