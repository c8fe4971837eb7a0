"""The time loop: advance as many steps as are free of events, then do what is due."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybrid_nbody.simulation.model import Model, Ranks, RunsAhead
from hybrid_nbody.simulation.schedule import AnyOf, Clock, Schedule
from hybrid_nbody.simulation.signals import StopRequests
from hybrid_nbody.simulation.timings import Timings


@dataclass(frozen=True)
class Event:
    """An action on a schedule: done on every rank together, timed under its name.

    Attributes
    ----------
    name : str
    schedule : Schedule
    action : callable
        May leave work on the device that it does not wait for.
    finish : callable, optional
        Waits for that work: called once the device has been given the next steps.
    """

    name: str
    schedule: Schedule
    action: Callable[[], None]
    finish: Callable[[], None] | None = None


@dataclass(frozen=True)
class Batch:
    """Some steps that a device has been given.

    Attributes
    ----------
    steps : int
    seconds : callable
        Waits for them, and returns the seconds that they took.
    """

    steps: int
    seconds: Callable[[], float]


class TimeLoop:
    """A model, and what happens while it advances.

    A device that works on its own is given a batch of steps while it works on the one before, so
    that it does not wait for what the host does between them.

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
        self._any_event = AnyOf()
        self.timings = Timings()
        self.step_seconds = 0.0
        self.signalled = False
        self.outcome = ""
        self._batches: deque[Batch] = deque()
        self._unfinished: list[Event] = []

    def run(self) -> str:
        """Advance the model until an event calls `stop`; return the outcome."""
        self._any_event = AnyOf(*(event.schedule for event in self.events))
        while True:
            with self.timings.measure("loop"):
                due, steps = self._plan()
            for event in due:
                with self.timings.measure(event.name):
                    event.action()
            self._unfinished = [event for event in due if event.finish]
            if self.outcome:
                self._wait_for_all_but(0)
                self._finish_events()
                return self.outcome
            self._advance(steps)

    def stop(self, outcome: str) -> None:
        """End the run once the events that are due have been done."""
        self.outcome = outcome

    def wall_clock(self) -> float:
        """Return the seconds since the program started, on this rank."""
        return time.monotonic() - self.started

    def _plan(self) -> tuple[Sequence[Event], int]:
        """Return the events due now and the steps until the next.

        The root decides, every rank receives.
        """
        self.signalled = self.communicator.any(bool(self.signals.received))
        decision = self._decision() if self.communicator.is_root else ([], 0)
        due, steps = self.communicator.broadcast(decision)
        return [self.events[number] for number in due], steps

    def _decision(self) -> tuple[list[int], int]:
        """Return the numbers of the events due now and the steps until the next."""
        clock = Clock(self.model.step, self.wall_clock(), self.step_seconds, self.signalled)
        due = [number for number, event in enumerate(self.events) if event.schedule.due(clock)]
        return due, self._any_event.steps_ahead(clock)

    def _advance(self, steps: int) -> None:
        """Take steps, or give them to a device that is not done with those before."""
        ahead = isinstance(self.model, RunsAhead) and self.model.runs_ahead
        if not ahead:
            self._finish_events()
        with self.timings.measure("advance"):
            self._batches.append(Batch(steps, self._begin(steps)))
        self._wait_for_all_but(1 if ahead else 0)
        self._finish_events()

    def _begin(self, steps: int) -> Callable[[], float]:
        """Begin steps; return what waits for them and returns their seconds."""
        if isinstance(self.model, RunsAhead):
            return self.model.queue(steps)
        start = time.perf_counter()
        self.model.advance(steps)
        seconds = time.perf_counter() - start
        return lambda: seconds

    def _wait_for_all_but(self, number: int) -> None:
        """Wait until no more than `number` batches of steps are left to the device."""
        while len(self._batches) > number:
            batch = self._batches.popleft()
            with self.timings.measure("advance"):
                self.step_seconds = batch.seconds() / batch.steps

    def _finish_events(self) -> None:
        """Do what is left of the latest events."""
        for event in self._unfinished:
            assert event.finish is not None
            with self.timings.measure(event.name):
                event.finish()
        self._unfinished = []
