"""Sharing the rows out again, during a run, when the speeds of the ranks have drifted."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.rows import redistribute
from hybrid_nbody.parallel.shares import RunSetup
from hybrid_nbody.running.ahead import free_model
from hybrid_nbody.running.contract import AnyBuilder
from hybrid_nbody.simulation.loop import TimeLoop
from hybrid_nbody.simulation.model import SAVED_ROLES, Model, RowIndex, fields_of

LEAST_GAIN = 0.05
"""Part of a step's time that new shares must save."""


class MemoryCheckpoint:
    """The state of a model in memory, redistributed to ranks that own other rows than before.

    Read as a `Checkpoint` is; see `hybrid_nbody.simulation.model.SavedState`.

    Parameters
    ----------
    model : Model
        Its state is copied to the host: the model may be dropped afterwards.
    partition : Partition
        Which rank owns which rows from now on.
    communicator : Communicator
        Every rank calls together.
    """

    def __init__(self, model: Model, partition: Partition, communicator: Communicator) -> None:
        self.number = partition.total
        self.scalars: Mapping[str, float] = model.scalars()
        self.communicator = communicator
        self.own = partition.share(communicator.rank)
        fields = fields_of(model, *SAVED_ROLES)
        shared = [field for field in fields if field.shape[0] == self.number]
        self._rows = {field.name: redistribute(field, self.own, communicator) for field in shared}
        self._whole = {
            field.name: redistribute(field, slice(0, field.shape[0]), communicator)
            for field in fields
            if field not in shared
        }

    def rows(self, name: str, index: RowIndex) -> np.ndarray:
        """Return rows of a field, a rank's own or any others; all ranks call together."""
        if name in self._whole:
            return self._whole[name][index]
        mine = self._rows[name]
        if self.communicator.any(not isinstance(index, slice) or index != self.own):
            return self.communicator.concatenate(mine)[index]
        return mine


class Rebalancer:
    """Measures the speeds of the ranks and moves rows to the faster ones.

    Parameters
    ----------
    builder : Builder
        Measures speeds and makes the model with new shares.
    setup : RunSetup
        What runs.
    say : callable
        Says a line in the log.

    Attributes
    ----------
    setup : RunSetup
        What runs now.
    """

    def __init__(
        self, builder: AnyBuilder, setup: RunSetup[Model], say: Callable[[str], None]
    ) -> None:
        self.builder = builder
        self.setup = setup
        self.say = say
        self.speeds: Sequence[float] | None = None
        self.busy_before = 0.0
        self.step_before = setup.model.step

    def look(self, simulation: TimeLoop) -> None:
        """Share the rows out again if that pays; `simulation` is given the new model.

        All ranks call together, and the root decides. The state moves without loss of a bit. Where
        no step was done since the last call, there is nothing new to measure.
        """
        if simulation.model.step == self.step_before:
            return
        self.step_before = simulation.model.step
        present = self.setup.exchange.partition
        better = better_shares(present, self._speeds(), self.builder.least)
        partition, gain = self.builder.communicator.broadcast(better)
        if gain > LEAST_GAIN:
            del simulation.model  # so that its memory is free for the new one
            simulation.model = self._moved_to(partition)
            step = simulation.model.step
            counts = ", ".join(map(str, partition.counts))
            self.say(f"step {step}: shared out anew as {counts}: steps should take {gain:.0%} less")

    def _speeds(self) -> Sequence[float] | None:
        """Return the speeds since the last look, averaged with those before.

        One slow moment then moves few rows.
        """
        busy = self.builder.busy_seconds(self.setup)
        seconds = self.builder.communicator.gather(busy - self.busy_before)
        now = self.builder.speeds(self.setup, seconds)
        if now is not None:
            self.busy_before = busy
            before = self.speeds or now
            self.speeds = [_mean(*pair) for pair in zip(before, now, strict=True)]
        return self.speeds

    def _moved_to(self, partition: Partition) -> Model:
        """Return the model with other shares."""
        model = self.setup.model
        setup = RunSetup(None, self.setup.placement, self.setup.exchange)
        del self.setup  # it would keep the model
        saved = MemoryCheckpoint(model, partition, self.builder.communicator)
        seconds = model.timings.seconds
        del model
        free_model()  # it would stay, beside the new one
        setup.exchange.transport.release()
        self.setup = self.builder.rearranged(setup, partition, saved)
        self.setup.model.timings.seconds.update(seconds)
        return self.setup.model


def _mean(before: float, now: float) -> float:
    """Return the mean of two speeds, or the one that is known."""
    return (before + now) / 2 if before and now else before or now


def better_shares(
    present: Partition, speeds: Sequence[float] | None, least: int
) -> tuple[Partition, float]:
    """Return shares that fit the speeds, and the part of a step's time that they save.

    Parameters
    ----------
    present : Partition
        The shares now.
    speeds : sequence of float or None
        Rows a second of each rank; those of a rank that had nothing to do are not known and 0. None
        where nothing was measured.
    least : int
        Rows that a rank has at least.
    """
    if speeds is None or not any(speeds):
        return present, 0.0
    better = Partition.weighted(present.total, speeds, least)
    now = _seconds(present, speeds)
    then = _seconds(better, speeds)
    return better, 1.0 - then / now


def _seconds(partition: Partition, speeds: Sequence[float]) -> float:
    """Return the time of a step with these shares: that of the slowest rank."""
    pairs = zip(partition.counts, speeds, strict=True)
    return max(count / speed for count, speed in pairs if speed > 0)
