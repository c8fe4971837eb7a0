"""When things happen: schedules are rules about a clock, and they compose.

All but `EveryWallClock` are pure; give each event one of its own. Schedules are asked on the root
alone and its answer is sent to every rank, so they may look at the wall clock.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Protocol

NEVER = 1 << 62
"""Steps ahead of an event that no step brings about."""


class Clock(NamedTuple):
    """The state of the loop that a schedule can see.

    Attributes
    ----------
    step : int
        Steps done since the initial state.
    wall_clock : float
        Seconds since the program started.
    step_seconds : float
        Seconds that a step takes, by the latest measure; 0 when not known yet.
    signalled : bool
        Whether any rank was asked to stop by a signal.
    """

    step: int
    wall_clock: float = 0.0
    step_seconds: float = 0.0
    signalled: bool = False

    def steps_within(self, seconds: float) -> int:
        """Return how many steps fit into `seconds`, at least one."""
        return max(1, int(seconds / self.step_seconds)) if self.step_seconds > 0 else 1


class Schedule(Protocol):
    """A rule that says when something is due."""

    def due(self, clock: Clock) -> bool:
        """Return whether it is due now."""

    def steps_ahead(self, clock: Clock) -> int:
        """Return how many steps are free of it, at least one."""


class StepSchedule(Schedule, Protocol):
    """A schedule that depends on the step alone."""

    def due_between(self, first: int, last: int) -> Iterable[int]:
        """Return the steps after `first` and before `last` at which it is due, ascending."""


@dataclass(frozen=True)
class EverySteps:
    """Due at every multiple of `interval` steps, step 0 included."""

    interval: int

    def due(self, clock: Clock) -> bool:
        """See `Schedule.due`."""
        return clock.step % self.interval == 0

    def steps_ahead(self, clock: Clock) -> int:
        """See `Schedule.steps_ahead`."""
        return self.interval - clock.step % self.interval

    def due_between(self, first: int, last: int) -> Iterable[int]:
        """See `StepSchedule.due_between`."""
        return range(first + self.interval - first % self.interval, last, self.interval)


@dataclass(frozen=True)
class EveryTime:
    """Due at the first step at or after every multiple of an interval of simulated time.

    Step 0 is included.

    Attributes
    ----------
    interval : float
        Simulated time between two events.
    dt : float
        Length of a step.
    """

    interval: float
    dt: float

    def due(self, clock: Clock) -> bool:
        """See `Schedule.due`."""
        return self._step_of(self._multiple_at(clock.step)) == clock.step

    def steps_ahead(self, clock: Clock) -> int:
        """See `Schedule.steps_ahead`."""
        return self._step_of(self._multiple_at(clock.step) + 1) - clock.step

    def due_between(self, first: int, last: int) -> Iterable[int]:
        """See `StepSchedule.due_between`."""
        steps = map(self._step_of, itertools.count(self._multiple_at(first) + 1))
        return itertools.takewhile(lambda step: step < last, steps)

    @cached_property
    def _ratio(self) -> tuple[int, int]:
        """Steps in an interval as a fraction of whole numbers.

        No rounding then adds up, however long the run.
        Denominators below 1e9 take 0.3 / 0.1 for the 3 that it means. More than one event a step is
        one event a step.
        """
        ratio = Fraction(str(self.interval)) / Fraction(str(self.dt))
        ratio = max(ratio.limit_denominator(10**9), Fraction(1))
        return ratio.numerator, ratio.denominator

    def _multiple_at(self, step: int) -> int:
        """Return the number of the last multiple reached at `step`."""
        steps, intervals = self._ratio
        return step * intervals // steps

    def _step_of(self, multiple: int) -> int:
        """Return the first step at or after a multiple."""
        steps, intervals = self._ratio
        return -(-multiple * steps // intervals)


@dataclass(frozen=True)
class AtStep:
    """Due at one step."""

    step: int

    def due(self, clock: Clock) -> bool:
        """See `Schedule.due`."""
        return clock.step == self.step

    def steps_ahead(self, clock: Clock) -> int:
        """See `Schedule.steps_ahead`."""
        return self.step - clock.step if clock.step < self.step else NEVER


@dataclass(frozen=True)
class AfterStart:
    """Due when another schedule is, but not at step 0."""

    schedule: Schedule

    def due(self, clock: Clock) -> bool:
        """See `Schedule.due`."""
        return clock.step > 0 and self.schedule.due(clock)

    def steps_ahead(self, clock: Clock) -> int:
        """See `Schedule.steps_ahead`."""
        return self.schedule.steps_ahead(clock)


class EveryWallClock:
    """Due about every `seconds` of wall-clock time, the first time at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.next = 0.0

    def due(self, clock: Clock) -> bool:
        """Return whether it is due; if so, the next time is counted from now."""
        if clock.wall_clock < self.next:
            return False
        self.next = clock.wall_clock + self.seconds
        return True

    def steps_ahead(self, clock: Clock) -> int:
        """See `Schedule.steps_ahead`."""
        return clock.steps_within(max(self.next - clock.wall_clock, 0.0))


@dataclass(frozen=True)
class StopRequested:
    """Due when a signal came in, or when the wall-clock limit would be passed before the next look.

    Attributes
    ----------
    wall_limit : float
        Seconds that the program may take; infinite for no limit.
    look_every : float
        Seconds between two looks.
    margin : float
        Seconds kept back for the checkpoint and the end.
    """

    wall_limit: float = math.inf
    look_every: float = 0.25
    margin: float = 2.0

    def due(self, clock: Clock) -> bool:
        """See `Schedule.due`."""
        next_look = max(self.look_every, clock.step_seconds)
        return clock.signalled or clock.wall_clock + next_look + self.margin > self.wall_limit

    def steps_ahead(self, clock: Clock) -> int:
        """See `Schedule.steps_ahead`."""
        return clock.steps_within(self.look_every)


class AnyOf:
    """Due when any of several schedules is; never, if there are none.

    Each is asked once, also where it is given twice, or by another of this kind.
    """

    def __init__(self, *schedules: Schedule) -> None:
        parts = [one.schedules if isinstance(one, AnyOf) else (one,) for one in schedules]
        self.schedules: tuple[Schedule, ...] = tuple(dict.fromkeys(itertools.chain(*parts)))

    def due(self, clock: Clock) -> bool:
        """See `Schedule.due`."""
        return any([schedule.due(clock) for schedule in self.schedules])  # a list: all are asked

    def steps_ahead(self, clock: Clock) -> int:
        """See `Schedule.steps_ahead`."""
        return min([schedule.steps_ahead(clock) for schedule in self.schedules], default=NEVER)
