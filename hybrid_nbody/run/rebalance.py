"""Sharing the work out anew, during a run, when the speeds of the ranks have drifted."""

import gc
from dataclasses import replace

from hybrid_nbody.output.checkpoint import SAVED_ROLES
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.rows import redistribute
from hybrid_nbody.simulation.model import fields_of

LEAST_GAIN = 0.05
"""Part of a step's time that new shares must save."""


class Moved:
    """The state of a model, for ranks that own other rows than they did; read as a `Checkpoint` is.

    Parameters
    ----------
    model : Model
        Its state is copied to the host: it may go when this is made.
    partition : Partition
        Who owns what from now on.
    communicator : Communicator
        Every rank calls together.
    """

    def __init__(self, model, partition: Partition, communicator):
        self.number = partition.total
        self.scalars = model.scalars()
        self.communicator = communicator
        self.own = partition.share(communicator.rank)
        fields = fields_of(model, *SAVED_ROLES)
        self._rows = {field.name: redistribute(field, self.own, communicator) for field in fields}

    def rows(self, name: str, index):
        """Return the rows `index` of a field; all ranks call together, each for its own rows or for any others."""
        mine = self._rows[name]
        if self.communicator.any(not isinstance(index, slice) or index != self.own):
            return self.communicator.concatenate(mine)[index]
        return mine


class Rebalancer:
    """Looks at the speeds of the ranks and moves rows to the faster ones.

    Parameters
    ----------
    builder : NBodyBuilder or FluidBuilder
        Measures speeds and makes the model anew.
    built : Built
        What runs.
    say : callable
        Says a line in the log.

    Attributes
    ----------
    built : Built
        What runs now.
    """

    def __init__(self, builder, built, say):
        self.builder = builder
        self.built = built
        self.say = say
        self.speeds = None
        self.before = 0.0
        self.looked = built.model.step

    def look(self, simulation) -> None:
        """Share out anew if that pays, and give `simulation` the new model; all ranks call together.

        The state moves without loss of a bit. The root decides. Where no step was done since the
        last look, there is nothing new to see.
        """
        if simulation.model.step == self.looked:
            return
        self.looked = simulation.model.step
        present = self.built.exchange.partition
        better = better_shares(present, self._speeds(), self.builder.least)
        partition, gain = self.builder.communicator.broadcast(better)
        if gain > LEAST_GAIN:
            simulation.model = None  # so that its memory is free for the new one
            simulation.model = self._moved_to(partition)
            step = simulation.model.step
            counts = ", ".join(map(str, partition.counts))
            self.say(f"step {step}: shared out anew as {counts}: steps should take {gain:.0%} less")

    def _speeds(self):
        """Return the speeds since the last look and before it, averaged: one slow moment moves nothing far."""
        spent = self.built.model.timings["force"]
        now = self.builder.speeds(self.built, self.builder.communicator.gather(spent - self.before))
        if now is not None:
            self.before = spent
            pairs = zip(self.speeds or now, now, strict=True)
            self.speeds = [(old + new) / 2 if old and new else old or new for old, new in pairs]
        return self.speeds

    def _moved_to(self, partition):
        """Return the model with other shares."""
        model = self.built.model
        built = replace(self.built, model=None)
        self.built = built
        moved = Moved(model, partition, self.builder.communicator)
        seconds = model.timings.seconds
        del model
        gc.collect()  # its parts name each other: it would stay, beside the new one
        built.exchange.transport.release()
        self.built = self.builder.rearranged(built, partition, moved)
        self.built.model.timings.seconds.update(seconds)
        return self.built.model


def better_shares(present: Partition, speeds, least: int) -> tuple[Partition, float]:
    """Return shares that fit the speeds, and the part of a step's time that they save.

    Parameters
    ----------
    present : Partition
        The shares now.
    speeds : sequence of float or None
        Rows a second of each rank; those of one that had nothing to do are not known and 0. None
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


def _seconds(partition, speeds):
    """Return the time of a step with these shares: that of the slowest rank."""
    return max(
        count / speed for count, speed in zip(partition.counts, speeds, strict=True) if speed > 0
    )
