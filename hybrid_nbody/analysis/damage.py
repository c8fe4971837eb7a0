"""Going on without the frames of a run that are damaged."""

from collections.abc import Callable
from typing import TypeVar

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.run import Run

Result = TypeVar("Result")


def on_whole_frames(action: Callable[[], Result], *runs: Run) -> Result:
    """Return the result of `action`; if it meets a damaged frame, of another try without these.

    Raises
    ------
    FileError
        Nothing is left, or something else than a frame cannot be read.
    """
    try:
        return action()
    except FileError:
        left_out = [run.leave_out_damaged() for run in runs]
        if not any(left_out):
            raise
    return action()
