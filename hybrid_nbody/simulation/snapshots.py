"""Copies of a small state at several steps, taken faster than the host could look at each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.simulation.model import FRAME_ROLES, CopiesState, Field, Model, fields_of
from hybrid_nbody.simulation.schedule import Clock, Schedule, StepSchedule

MOST = 4096
"""Copies between two looks of the host, at most."""

FEWEST = 4
"""Fewer would save it little."""

LONGEST_INTERVAL = 128
"""Most steps between two snapshots of which several are queued at once; over more steps the pause
for a copy does not matter."""

MOST_BYTES = 8 << 20
"""Memory for those of one series."""


class Snapshots:
    """A state as it was at several steps, on the device of the only rank.

    Parameters
    ----------
    model : Model
        Has the state.
    number : int
        How many there will be: `most_snapshots` or fewer.

    Attributes
    ----------
    fields : list of Field
        The whole fields that are copied; frames may hold a part of them.
    taken : int
        How many there are so far.
    """

    def __init__(self, model: Model, number: int) -> None:
        self.model = model
        self._shown = fields_of(model, *FRAME_ROLES) if number else []
        self.fields = _copied(self._shown)
        self._memory: dict[str, Any] = {
            field.name: model.backend.empty((number, *field.array.shape), field.array.dtype)
            for field in self.fields
        }
        self._steps = np.zeros(number, np.int64)
        self._times = np.zeros(number)
        self.taken = 0

    @property
    def steps(self) -> NDArray[np.int64]:
        """Return when they were taken."""
        return self._steps[: self.taken]

    @property
    def times(self) -> NDArray[np.float64]:
        """Return the same in simulated time."""
        return self._times[: self.taken]

    def take(self) -> None:
        """Copy the present state."""
        place = self.taken
        for field in self.fields:
            self.model.backend.copy(field.array, self._memory[field.name][place])
        self._steps[place] = self.model.step
        self._times[place] = self.model.time
        self.taken += 1

    def take_ahead(self, interval: int, number: int) -> Callable[[], float] | None:
        """Queue the steps to the next snapshots and their copies, at once.

        Parameters
        ----------
        interval : int
            Steps to the first of them, and from each to the next.
        number : int
            How many snapshots; there may be fewer where steps take long.

        Returns
        -------
        callable or None
            Waits for the steps, and returns their seconds. None, nothing having been done, where
            it is no faster than to take one after another.
        """
        model = self.model
        if number < 2 or interval > LONGEST_INTERVAL or not isinstance(model, CopiesState):
            return None
        place = self.taken
        memory = {name: whole[place : place + number] for name, whole in self._memory.items()}
        before = model.step
        try:
            return model.queue_with_copies(interval, memory)
        finally:  # also of those before a step that cannot be taken
            steps = np.arange(before + interval, model.step + 1, interval)
            self.taken += len(steps)
            self._steps[place : self.taken] = steps
            self._times[place : self.taken] = model.times_at(steps)

    @property
    def copies(self) -> dict[str, Any]:
        """Return the copies of each field, by name: (steps, rows, …) of float64."""
        return {name: memory[: self.taken] for name, memory in self._memory.items()}

    @property
    def frames(self) -> dict[str, Any]:
        """Return what frames hold of each field, by name: (steps, rows, …) on the device."""
        copies = self.copies
        return {field.name: _part_in_frames(field, copies) for field in self._shown}


def most_snapshots(model: Model) -> int:
    """Return how many snapshots of a model's state may be taken between two looks of the host.

    It is 0 where too few would fit, or where a field of the frames is not on the device.
    """
    fields = _copied(fields_of(model, *FRAME_ROLES))
    if not all(_is_as_in_frames(field) for field in fields):
        return 0
    size = sum(field.array.nbytes for field in fields)
    number = min(MOST, MOST_BYTES // max(size, 1))
    return number if number >= FEWEST else 0


def _copied(shown: Sequence[Field]) -> list[Field]:
    """Return the fields to be copied for those of frames: themselves, or all that move."""
    moving = [field.part_of.moving if field.part_of else [field] for field in shown]
    return list({field.name: field for field in chain(*moving)}.values())


def _part_in_frames(field: Field, copies: dict[str, Any]) -> Any:
    """Return what frames hold of a field, given copies of the whole ones."""
    part = field.part_of
    return part.choose(copies[part.whole.name]) if part else copies[field.name]


def _is_as_in_frames(field: Field) -> bool:
    """Return whether the array of a field is what a frame of every row holds."""
    array = field.array
    if array is None or not isinstance(field.index, slice):
        return False
    return bool(array.dtype == field.dtype and array.shape == field.shape)


@dataclass(frozen=True)
class FrameSeries:
    """Frames at steps at which nothing else happens: the state is copied, and the steps go on.

    Attributes
    ----------
    name : str
        Under which it is timed.
    schedule : StepSchedule
        Of the frames.
    others : Schedule
        Of all else for which the loop has to stop.
    begin : callable
        Given copies of the state, begins what is done with frames; returns what ends it.
    """

    name: str
    schedule: StepSchedule
    others: Schedule
    begin: Callable[[Snapshots], Callable[[], None]]

    def stages(self, clock: Clock, most: int) -> list[int]:
        """Return the steps from now on to each snapshot, `most` or fewer, and to the next event."""
        event = clock.step + self.others.steps_ahead(clock)
        frames = islice(self.schedule.due_between(clock.step, event), most + 1)
        stops = [clock.step, *frames, event]
        stages: list[int] = np.diff(stops[: most + 2]).tolist()
        return stages
