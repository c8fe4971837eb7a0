"""The time loop: advance as many steps as are free of events, then do what is due."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybrid_nbody.simulation.model import Model, Ranks
from hybrid_nbody.simulation.schedule import AnyOf, Clock, Schedule
from hybrid_nbody.simulation.signals import StopRequests
from hybrid_nbody.simulation.timings import Timings


@dataclass(frozen=True)
class Event:
    """An action on a schedule: done on every rank together, timed under its name."""

    name: str
    schedule: Schedule
    action: Callable[[], None]


class TimeLoop:
    """A model, and what happens while it advances.

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
        Seconds spent in `Model.advance` (under ``advance``), in planning (``loop``) and in each
        event.
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

    def run(self) -> str:
        """Advance the model until an event calls `stop`; return the outcome."""
        self._any_event = AnyOf(*(event.schedule for event in self.events))
        while True:
            with self.timings.measure("loop"):
                due, steps = self._plan()
            for event in due:
                with self.timings.measure(event.name):
                    event.action()
            if self.outcome:
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
        start = time.perf_counter()
        self.model.advance(steps)
        seconds = time.perf_counter() - start
        self.timings.add("advance", seconds)
        self.step_seconds = seconds / steps
