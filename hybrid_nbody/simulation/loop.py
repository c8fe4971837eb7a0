"""The time loop: advance as many steps as are free of events, then do what is due."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, cast

from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.simulation.model import Model, Ranks, RunsAhead
from hybrid_nbody.simulation.schedule import AnyOf, Clock, Schedule
from hybrid_nbody.simulation.signals import StopRequests
from hybrid_nbody.simulation.snapshots import FrameSeries, Snapshots, most_snapshots
from hybrid_nbody.simulation.timings import Timings

SERIES_SECONDS = 0.25
"""Seconds for which a series of frames goes on before the host looks for signals and events."""

Later = Callable[[], None]
"""What is left of an event until the device has done its part: waits for it, and ends the event."""

QUEUED_SECONDS = 0.01
"""Seconds of steps that a device is given in advance: a host is late by milliseconds at times."""

LONG_STEP = 1e-3
"""Seconds of a step that takes much longer than planning what comes next."""

MOST_BATCHES = 8
"""Batches that it is given in advance at most; a long one is enough."""


@dataclass(frozen=True)
class Event:
    """An action on a schedule: done on every rank together, timed under its name.

    Attributes
    ----------
    name : str
    schedule : Schedule
    action : callable
        May leave work on the device that it does not wait for: it returns what does, and is called
        once the device has been given more steps.
    waits : bool, optional
        Whether everything that earlier actions have left is to be done before this one.
    """

    name: str
    schedule: Schedule
    action: Callable[[], Later | None]
    waits: bool = True


class Batch(NamedTuple):
    """Some steps that a device has been given.

    Attributes
    ----------
    steps : int
    seconds : callable
        Waits for them, and returns the seconds that they took.
    """

    steps: int
    seconds: Callable[[], float]


class Deferred(NamedTuple):
    """The rest of an event, which waits for the device.

    Attributes
    ----------
    name : str
        The event.
    batches : int
        How many batches of steps the device had been given before.
    finish : callable
        Waits for the device and ends the event.
    """

    name: str
    batches: int
    finish: Later


class Decision(NamedTuple):
    """What the root decides at a step.

    Attributes
    ----------
    due : sequence of int
        The numbers of the events that are due.
    stages : sequence of int
        Steps until the next event; the state is copied between two stages.
    ahead : int
        Batches of steps that may be left to the device while the host goes on.
    """

    due: Sequence[int]
    stages: Sequence[int]
    ahead: int


TakeAhead = Callable[[Snapshots, int, int], bool]
"""``take_ahead(snapshots, interval, number)`` takes some of them at once, or returns False."""


def take_snapshots(
    snapshots: Snapshots,
    stages: Sequence[int],
    advance: Callable[[int], None],
    take_ahead: TakeAhead,
) -> Iterator[None]:
    """Take a snapshot after each stage; yield whenever the host may look.

    Stages in a row of as many steps are left to `take_ahead` if it can take them, or some of them.
    """
    for steps, alike in groupby(stages):
        wanted = snapshots.taken + len(list(alike))
        while snapshots.taken < wanted:
            if not take_ahead(snapshots, steps, wanted - snapshots.taken):
                advance(steps)
                snapshots.take()
            yield


def _take_ahead_keeping(keep: Callable[[Callable[[], float]], object]) -> TakeAhead:
    """Return what takes several snapshots at once, and gives `keep` what waits for them."""

    def take_ahead(snapshots: Snapshots, interval: int, number: int) -> bool:
        wait = snapshots.take_ahead(interval, number)
        if wait:
            keep(wait)
        return wait is not None

    return take_ahead


class TimeLoop:
    """A model, and what happens while it advances.

    A device that works on its own is given batches of steps while it works on those before, so that
    it does not wait for what the host does between them.

    Parameters
    ----------
    model : Model
        The workload. An event may put another one in its place, at the same step: take it from here
        each time.
    communicator : Communicator
        Its ranks.
    signals : StopSignals
        Tells of requests to stop.
    started : float
        ``time.monotonic()`` at which the program started, for wall-clock time.

    Attributes
    ----------
    events : list of Event
        What happens, in this order where several are due; given before `run`.
    series : FrameSeries or None
        Frames for which steps need not end; given before `run`, by the only rank.
    timings : Timings
        Seconds in which the host waited for steps (under ``advance``), in planning (``loop``) and
        in each event.
    step_seconds : float
        Seconds of a step when they were last measured; 0 before.
    signalled : bool
        Whether a signal asked any rank to stop.
    outcome : str
        Why the run ended; empty while it goes on.
    """

    def __init__(
        self, model: Model, communicator: Ranks, signals: StopRequests, started: float
    ) -> None:
        self.model = model
        self.communicator = communicator
        self.signals = signals
        self.started = started
        self.events: list[Event] = []
        self.series: FrameSeries | None = None
        self._any_event = AnyOf()
        self._most_snapshots = 0
        self.timings = Timings()
        self.step_seconds = 0.0
        self.signalled = False
        self.outcome = ""
        self._works_alone = False  # whether the devices of all ranks take steps by themselves
        self._batches: deque[Batch] = deque()
        self._given = 0  # batches so far
        self._giving_seconds = 0.0  # of a step in which the host queued the last batch
        self._deferred: deque[Deferred] = deque()

    def run(self) -> str:
        """Advance the model until an event calls `stop`; return the outcome."""
        self._any_event = AnyOf(*(event.schedule for event in self.events))
        self._works_alone = not self.communicator.any(not self._runs_ahead())
        if self.series:
            self._most_snapshots = most_snapshots(self.model)
        while True:
            with self.timings.measure("loop"):
                decision = self._plan()
            for number in decision.due:
                self._act(self.events[number])
            if self.outcome:
                self._wait_for_all_but(0)
                self._finish(all_of_them=True)
                return self.outcome
            self._advance(decision)

    def _runs_ahead(self) -> bool:
        """Return whether the device of this rank takes steps while the host goes on."""
        return isinstance(self.model, RunsAhead) and self.model.runs_ahead

    def stop(self, outcome: str) -> None:
        """End the run once the events that are due have been done."""
        self.outcome = outcome

    def wall_clock(self) -> float:
        """Return the seconds since the program started, on this rank."""
        return time.monotonic() - self.started

    def _plan(self) -> Decision:
        """Return what is due now and comes next: the root decides, every rank receives."""
        self.signalled = self.communicator.any(bool(self.signals.received))
        decision = self._decision() if self.communicator.is_root else Decision([], [], 0)
        return self.communicator.broadcast(decision)

    def _decision(self) -> Decision:
        """Return what is due now and comes next."""
        clock = Clock(self.model.step, self.wall_clock(), self.step_seconds, self.signalled)
        due = [number for number, event in enumerate(self.events) if event.schedule.due(clock)]
        leaves_work = any(not self.events[number].waits for number in due)
        if leaves_work and self._host_waits:
            return Decision(due, [1], ahead=1)
        stages = self._stages(clock)
        return Decision(due, stages, self._batches_ahead(sum(stages)))

    @property
    def _host_waits(self) -> bool:
        """Return whether the hosts of several ranks wait for their devices within long steps.

        A device has about half a step left after that: too little for all messages that an event
        takes, so it is finished after one more step.
        """
        waits = self._giving_seconds > 0.5 * self.step_seconds
        return waits and self.step_seconds >= LONG_STEP and self.communicator.size > 1

    def _stages(self, clock: Clock) -> Sequence[int]:
        """Return the steps to each snapshot, if any, and to the next event."""
        if self.series and self._most_snapshots:
            return self.series.stages(clock, self._most_snapshots)
        return [self._any_event.steps_ahead(clock)]

    def _batches_ahead(self, steps: int) -> int:
        """Return how many batches of `steps` steps may be left to the device."""
        if not self._works_alone:
            return 0
        seconds = self.step_seconds * steps
        if seconds == 0.0:
            return 1
        return min(max(1, int(QUEUED_SECONDS / seconds)), MOST_BATCHES)

    def _act(self, event: Event) -> None:
        """Do what is due, and keep what it leaves."""
        if event.waits:
            self._finish(all_of_them=True)
        with self.timings.measure(event.name):
            finish = event.action()
        if finish:
            self._deferred.append(Deferred(event.name, self._given, finish))

    def _advance(self, decision: Decision) -> None:
        """Take steps, or give them to a device that is not done with those before."""
        if self._works_alone:
            self._queue(decision)
            return
        self._finish(all_of_them=True)
        before = self.model.step
        with self.timings.measure("advance"):
            start = time.perf_counter()
            take_ahead = _take_ahead_keeping(lambda wait: wait())
            snapshots = self._in_stages(decision.stages, self.model.advance, take_ahead)
            seconds = time.perf_counter() - start
        self.step_seconds = seconds / (self.model.step - before)
        self._begin_series(snapshots)

    def _queue(self, decision: Decision) -> None:
        """Give the device steps; wait for the oldest of them if it has more than it needs."""
        model = cast(RunsAhead, self.model)
        before = self.model.step
        waits: list[Callable[[], float]] = []

        def give(steps: int) -> None:
            waits.append(model.queue(steps))

        with self.timings.measure("advance"):
            start = time.perf_counter()
            take_ahead = _take_ahead_keeping(waits.append)
            snapshots = self._in_stages(decision.stages, give, take_ahead)
            seconds = time.perf_counter() - start
        steps = self.model.step - before
        self._giving_seconds = seconds / steps
        self._batches.append(Batch(steps, lambda: sum(wait() for wait in waits)))
        self._given += 1
        self._begin_series(snapshots)
        self._wait_for_all_but(decision.ahead)
        self._finish()

    def _in_stages(
        self,
        stages: Sequence[int],
        advance: Callable[[int], None],
        take_ahead: TakeAhead,
    ) -> Snapshots:
        """Advance by all stages, or until the host should look; return copies of the state between.

        Where a step cannot be taken, the frames before it are written: by all ranks, or by none if
        one alone has failed.
        """
        *first, last = stages
        until = time.monotonic() + SERIES_SECONDS
        snapshots = Snapshots(self.model, len(first))
        try:
            for _ in take_snapshots(snapshots, first, advance, take_ahead):
                if time.monotonic() > until or self.signals.received:
                    return snapshots
            advance(last)
        except HybridNBodyError as error:
            if error.shared or self.communicator.size == 1:
                self._begin_series(snapshots)
                self._finish(all_of_them=True)
            raise
        return snapshots

    def _begin_series(self, snapshots: Snapshots) -> None:
        """Begin to make frames of copies of the state, and keep what ends that."""
        if not self.series or not snapshots.taken:
            return
        with self.timings.measure(self.series.name):
            finish = self.series.begin(snapshots)
        self._deferred.append(Deferred(self.series.name, self._given, finish))

    def _wait_for_all_but(self, number: int) -> None:
        """Wait until no more than `number` batches of steps are left to the device."""
        while len(self._batches) > number:
            batch = self._batches.popleft()
            with self.timings.measure("advance"):
                self.step_seconds = batch.seconds() / batch.steps

    def _finish(self, all_of_them: bool = False) -> None:
        """Do what is left of events: of those whose turn has come on the device, or of all."""
        done = self._given - (0 if all_of_them else len(self._batches))
        while self._deferred and self._deferred[0].batches <= done:
            deferred = self._deferred.popleft()
            with self.timings.measure(deferred.name):
                deferred.finish()
