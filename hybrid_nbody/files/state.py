"""The states that a run has left in its files, checkpoints and frames, and how one is chosen."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.checkpoint import Checkpoint, Index, checkpoints, load_checkpoint
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.files.seals import stated_digest

CHOICE = re.compile(r"(?P<folder>.+)@(?P<what>step|time):(?P<value>[^@]*)", re.DOTALL)
"""A directory with a step or a time, as a person writes it."""

SLACK = 1e-9
"""Largest difference of equal times, relative to the larger."""

MOST_LISTED = 4
"""Most states of a kind that a message lists."""

Source = tuple[str, int | None]
"""A field of the frames, and which of its components; None for all."""


@dataclass(frozen=True)
class Wanted:
    """The state of a run that a person asks for.

    Attributes
    ----------
    folder : Path
    step : int or None
    time : float or None
        At most one of the two; without any, the newest checkpoint, or else the last frame.
    """

    folder: Path
    step: int | None = None
    time: float | None = None

    @classmethod
    def read(cls, text: str) -> "Wanted":
        """Return what ``DIR``, ``DIR@step:1200`` or ``DIR@time:3.5`` asks for.

        Raises
        ------
        InputError
            The step or the time is no number.
        """
        found = CHOICE.fullmatch(text)
        if found is None:
            return cls._without_choice(text)
        folder = Path(found["folder"])
        by_step = found["what"] == "step"
        try:
            if by_step:
                return cls(folder, step=int(found["value"]))
            return cls(folder, time=float(found["value"]))
        except ValueError:
            kind = "whole number" if by_step else "number"
            wrong = f"{found['what']} must be a {kind} (got '{found['value']}')"
            raise InputError(f"--from {text}: the {wrong}") from None

    @classmethod
    def _without_choice(cls, text: str) -> "Wanted":
        folder, mark, choice = text.rpartition("@")
        if mark and not Path(text).exists() and Path(folder).is_dir():
            raise InputError(
                f"--from {text}: write @step:{choice or 1200} or @time:{choice or 3.5}"
            )
        return cls(Path(text))

    def is_at(self, step: int, time: float) -> bool:
        """Return whether a state is the one that is asked for."""
        if self.step is not None:
            return step == self.step
        assert self.time is not None
        return abs(time - self.time) <= SLACK * max(abs(time), abs(self.time))

    def __str__(self) -> str:
        """Return the step or the time in words."""
        return f"step {self.step}" if self.step is not None else f"time {self.time:g}"


@dataclass(frozen=True)
class StoredState:
    """A state on disk, of which each rank reads its own rows; a `SavedState`.

    Attributes
    ----------
    path : Path
        A checkpoint, or a trajectory.
    frame : int or None
        Which frame of a trajectory; None for a checkpoint.
    config : str
        The configuration of the run, as YAML.
    number : int
        Rows of all ranks; 0 if it is not known yet.
    scalars : mapping of str to float
        The state that all ranks share; of a frame ``step`` and ``time`` alone.
    sources : mapping of str to (str, int or None)
        For the fields of the state, where a frame has them.
    """

    path: Path
    frame: int | None
    config: str
    number: int
    scalars: Mapping[str, float]
    sources: Mapping[str, Source]

    @property
    def step(self) -> int:
        """Return the step of the state in its run."""
        return int(self.scalars["step"])

    @property
    def time(self) -> float:
        """Return the time of the state."""
        return float(self.scalars["time"])

    @property
    def origin(self) -> str:
        """Return in a line which state of which run this is."""
        at = f"step {self.step}, t = {self.time:.17g}"
        if self.frame is not None:
            return f"{self.path.parent}, {at}, frame {self.frame}"
        digest = stated_digest(self.path, "checkpoint")
        return f"{self.path.parent}, {at}, {self.path.name}, sha256 {digest}"

    def rows(self, name: str, index: Index) -> NDArray[Any]:
        """Return the global rows `index` of a field, in that order; raises as a checkpoint does."""
        if self.frame is None:
            whole = Checkpoint(self.path, self.config, self.number, self.scalars)
            return whole.rows(name, index)
        field, component = self.sources[name]
        with open_run(self.path) as run:
            found = _rows_of_frame(run, field, self.frame, index)
        return found if component is None else np.ascontiguousarray(found[..., component])


def _rows_of_frame(run: Run, field: str, frame: int, index: Index) -> NDArray[Any]:
    """Return rows of a frame in the order of `index`, of which files are read in one stretch."""
    if isinstance(index, slice):
        return np.asarray(run.part(field, frame, (index,)))
    if not len(index):
        return np.asarray(run.part(field, frame, (slice(0, 0),)))
    first = int(index.min())
    stretch = run.part(field, frame, (slice(first, int(index.max()) + 1),))
    return np.asarray(stretch[index - first])


def find_state(wanted: Wanted) -> StoredState:
    """Return the state of a run that is asked for; a checkpoint rather than a frame.

    Raises
    ------
    InputError
        There is no run, or no such state; the message says what is at hand.
    FileError
        The trajectory cannot be read.
    """
    folder = wanted.folder
    if not folder.is_dir():
        what = "a file, not a directory" if folder.is_file() else "no such directory"
        raise InputError(
            f"--from {folder}: {what}; give the directory of a run, or DIR@step:1200, DIR@time:3"
        )
    newest = wanted.step is None and wanted.time is None
    saved: list[Checkpoint] = []
    for path in checkpoints(folder):
        with suppress(FileError):  # damaged, or removed by the run, which goes on
            saved.append(load_checkpoint(path))
            found = saved[-1]
            if newest or wanted.is_at(found.step, float(found.scalars["time"])):
                return StoredState(path, None, found.config, found.number, found.scalars, {})
    return _frame(wanted, newest, saved)


def _frame(wanted: Wanted, newest: bool, saved: Sequence[Checkpoint]) -> StoredState:
    """Return a frame of a run: the last one, or that of a step or time."""
    try:
        run = open_run(wanted.folder)
    except InputError as error:
        if not saved:
            raise InputError(f"--from {error}") from error
        raise _not_found(wanted, saved, np.empty(0, int), np.empty(0)) from error
    with run:
        steps = run.step
        times = run.time
        at = [
            frame
            for frame, (step, time) in enumerate(zip(steps, times, strict=True))
            if newest or wanted.is_at(int(step), float(time))
        ]
        if not at:
            raise _not_found(wanted, saved, steps, times)
        clock = {"step": float(steps[at[-1]]), "time": float(times[at[-1]])}
        config = str(run.attributes.get("config", ""))
        return StoredState(run.path, at[-1], config, 0, clock, {})


def _not_found(
    wanted: Wanted, saved: Sequence[Checkpoint], steps: NDArray[Any], times: NDArray[Any]
) -> InputError:
    """Return the error of a state that is not there, with what is at hand."""
    kept = sorted((found.step, float(found.scalars["time"])) for found in saved)
    shown = list(zip(steps.tolist(), times.tolist(), strict=True))
    hand = [_listed("checkpoint", kept), _listed("frame", shown)]
    at_hand = "; ".join(filter(None, hand)) or "no checkpoint and no frame"
    what = f"nothing of {wanted}" if wanted.step is not None or wanted.time is not None else "empty"
    return InputError(f"--from {wanted.folder}: {what}; at hand: {at_hand}")


def _listed(name: str, states: Sequence[tuple[int, float]]) -> str:
    """Return the steps and times of some states in words; empty for none."""
    if not states:
        return ""
    if len(states) > MOST_LISTED:
        first, last = states[0], states[-1]
        span = f"step {first[0]} (t = {first[1]:g}) to {last[0]} (t = {last[1]:g})"
        return f"{len(states)} {name}s, {span}"
    each = ", ".join(f"step {step} (t = {time:g})" for step, time in states)
    return f"{name}{'s' if len(states) > 1 else ''} of {each}"
