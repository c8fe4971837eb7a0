"""The loop: batches free of events, everything in its order, one decision for all ranks."""

import os
import signal
import time

import pytest
from support.ranks import RowsModel, this_rank

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.simulation.loop import QUEUED_SECONDS, Event, TimeLoop
from hybrid_nbody.simulation.schedule import (
    AnyOf,
    AtStep,
    Clock,
    EverySteps,
    EveryWallClock,
    StopRequested,
)
from hybrid_nbody.simulation.signals import StopSignals


class NoSignals:
    """Nobody asks to stop."""

    received = ""


class OneOf:
    """A rank that all others agree with.

    Parameters
    ----------
    size : int
        How many there are.
    """

    is_root = True

    def __init__(self, size):
        self.size = size

    def any(self, flag):
        return flag

    def broadcast(self, value):
        return value


END = 20_000


class FiniteModel(RowsModel):
    """A model that ends a loop that has missed its end."""

    def advance(self, steps):
        assert self.step + steps <= END
        super().advance(steps)


class PacedModel(FiniteModel):
    """A model whose steps take a tenth of a millisecond."""

    def advance(self, steps):
        super().advance(steps)
        time.sleep(1e-4 * steps)


@pytest.fixture
def loop(communicator):
    """Return a function that makes a loop over a model whose rows are functions of the step."""

    def make(model=None, signals=None, started=None):
        model = model or FiniteModel(4, communicator)
        return TimeLoop(model, communicator, signals or NoSignals(), started or time.monotonic())

    return make


def noting(simulation, notes, name, schedule):
    """Return an event that notes its name and the step."""
    return Event(name, schedule, lambda: notes.append((name, simulation.model.step)))


def stopping(simulation, step):
    """Return an event that finishes at a step."""
    return Event("finish", AtStep(step), lambda: simulation.stop("finished"))


# ---- Order and batches ---------------------------------------------------------------------------


@pytest.mark.mpi
def test_batches_end_where_something_is_due_and_events_keep_their_order(loop):
    simulation, notes = loop(), []
    simulation.events = [
        noting(simulation, notes, "a", EverySteps(6)),
        noting(simulation, notes, "b", EverySteps(4)),
        noting(simulation, notes, "never", AnyOf()),
        stopping(simulation, 13),
        noting(simulation, notes, "after the end", AnyOf(AtStep(13))),
    ]
    assert simulation.run() == simulation.outcome == "finished"
    assert simulation.model.batches == [4, 2, 2, 4, 1]
    assert simulation.model.step == 13
    b_alone = [("b", 4), ("a", 6), ("b", 8)]
    assert notes == [("a", 0), ("b", 0), *b_alone, ("a", 12), ("b", 12), ("after the end", 13)]


@pytest.mark.mpi
def test_a_loop_that_is_told_to_stop_at_once_advances_nothing(loop):
    simulation = loop()
    simulation.events = [stopping(simulation, 0)]
    assert simulation.run() == "finished"
    assert simulation.model.batches == []


@pytest.mark.mpi
def test_seconds_are_added_up_under_the_names_of_events(loop):
    simulation = loop()
    simulation.events = [
        Event("slow", EverySteps(2), lambda: time.sleep(0.02)),
        Event("quick", EverySteps(5), lambda: None),
        Event("never", AnyOf(), lambda: None),
        stopping(simulation, 5),
    ]
    start = time.perf_counter()
    simulation.run()
    seconds = time.perf_counter() - start
    assert list(simulation.timings.seconds) == ["loop", "slow", "quick", "advance", "finish"]
    assert 3 * 0.02 <= simulation.timings["slow"] < seconds
    assert simulation.timings["quick"] < simulation.timings["slow"]
    assert sum(simulation.timings.seconds.values()) <= seconds


def test_an_event_that_fails_ends_the_loop_and_its_time_is_counted(loop):
    simulation = loop()
    simulation.events = [Event("fails", AtStep(3), lambda: time.sleep(0.01) or 1 / 0)]
    with pytest.raises(ZeroDivisionError):
        simulation.run()
    assert simulation.model.step == 3
    assert simulation.timings["fails"] >= 0.01


def test_the_clock_that_schedules_see_knows_step_wall_and_pace(loop, communicator):
    class Watching:
        seen = []

        def due(self, clock):
            self.seen.append(clock)
            return False

        def steps_ahead(self, clock):
            return 100

    simulation = loop(PacedModel(4, communicator), started=time.monotonic() - 100.0)
    simulation.events = [Event("watch", Watching(), lambda: None), stopping(simulation, 200)]
    simulation.run()
    assert [clock.step for clock in Watching.seen] == [0, 100, 200]
    assert Watching.seen[0].step_seconds == 0.0
    assert all(1e-4 <= clock.step_seconds < 1e-2 for clock in Watching.seen[1:])
    assert all(100.0 <= clock.wall_clock < 130.0 for clock in Watching.seen)
    assert Watching.seen[0] == Clock(0, Watching.seen[0].wall_clock, 0.0, False)


# ---- One decision for all ranks ------------------------------------------------------------------


@pytest.mark.mpi
def test_the_root_s_clock_decides_for_every_rank(loop, communicator):
    """Ranks that started at other times, by clocks of their own, still do the same."""
    model = PacedModel(4, communicator)
    simulation, notes = loop(model, started=time.monotonic() - 1000.0 * communicator.rank), []
    simulation.events = [
        noting(simulation, notes, "wall", EveryWallClock(0.002)),
        noting(simulation, notes, "limit", StopRequested(wall_limit=500.0)),
        stopping(simulation, 200),
    ]
    assert simulation.run() == "finished"
    assert len(notes) > 3
    assert all(name == "wall" for name, _ in notes)
    assert (
        communicator.gather((notes, simulation.model.batches))
        == [(notes, simulation.model.batches)] * communicator.size
    )


@pytest.mark.mpi
@pytest.mark.parametrize("who", ["the root", "the last"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_on_one_rank_stops_all_at_the_same_step(loop, communicator, who, number):
    with StopSignals() as signals:
        simulation, notes = loop(PacedModel(4, communicator), signals), []
        stop = StopRequested(look_every=0.01)
        simulation.events = [
            Event(
                "signal",
                AtStep(3),
                lambda: os.kill(os.getpid(), number) if chosen(communicator, who) else None,
            ),
            noting(simulation, notes, "checkpoint", stop),
            Event("stop", stop, lambda: simulation.stop("stopped")),
            stopping(simulation, END),
        ]
        assert simulation.run() == "stopped"
    where = communicator.gather((simulation.model.step, notes))
    assert (
        where
        == [(simulation.model.step, [("checkpoint", simulation.model.step)])] * communicator.size
    )
    assert 3 < simulation.model.step < END
    assert signals.received == (number.name if chosen(communicator, who) else "")


def chosen(communicator, who):
    """Return whether this rank is the one that a test means."""
    return communicator.rank == (0 if who == "the root" else communicator.size - 1)


# ---- A device that works while the host goes on --------------------------------------------------


class AheadModel(RowsModel):
    """A model that notes when steps are queued and when somebody waits for them."""

    runs_ahead = True
    giving_seconds = 0.0

    def __init__(self, notes, communicator):
        super().__init__(4, communicator)
        self.notes = notes

    def advance(self, steps):
        self.queue(steps)()

    def queue(self, steps):
        if self.giving_seconds:
            time.sleep(self.giving_seconds * steps)
        self.step += steps
        last = self.step
        self.notes.append(f"queue {last}")

        def wait():
            self.notes.append(f"wait {last}")
            return self.seconds * steps

        return wait


def run_ahead(loop, communicator, runs_ahead=True, seconds=0.5, giving_seconds=0.0):
    """Return what happens in six steps with an event every two, and the loop."""
    notes = []
    model = AheadModel(notes, communicator)
    model.runs_ahead = runs_ahead
    model.seconds = seconds
    model.giving_seconds = giving_seconds
    simulation = loop(model)

    def note(text):
        return lambda: notes.append(f"{text} {model.step}")

    def look():
        note("look")()
        return note("finish")

    simulation.events = [
        Event("look", EverySteps(2), look, waits=False),
        stopping(simulation, 6),
    ]
    assert simulation.run() == "finished"
    return notes, simulation


def test_a_device_gets_the_next_steps_before_the_host_waits_for_the_last(loop, communicator):
    notes, simulation = run_ahead(loop, communicator)
    assert notes == [
        *("look 0", "queue 2", "finish 2"),
        *("look 2", "queue 4", "wait 2", "finish 4"),
        *("look 4", "queue 6", "wait 4", "finish 6"),
        *("look 6", "finish 6", "wait 6"),
    ]
    assert simulation.step_seconds == 0.5


def test_a_device_gets_several_short_batches_in_advance(loop, communicator):
    notes, _ = run_ahead(loop, communicator, seconds=QUEUED_SECONDS / 20)
    assert notes == [
        *("look 0", "queue 2", "finish 2"),
        *("look 2", "queue 4", "wait 2", "finish 4"),
        *("look 4", "queue 6"),
        *("look 6", "finish 6", "finish 6", "wait 4", "wait 6"),
    ]


def test_a_host_that_waits_within_steps_ends_an_event_after_one_of_them(loop, communicator):
    notes, _ = run_ahead(loop, communicator, seconds=0.02, giving_seconds=0.015)
    if communicator.size == 1:  # no messages take long
        assert "queue 5" not in notes
        return
    assert notes == [
        *("look 0", "queue 2", "finish 2"),
        *("look 2", "queue 4", "wait 2", "finish 4"),  # how long a step takes is known now
        *("look 4", "queue 5", "wait 4", "finish 5", "queue 6", "wait 5"),
        *("look 6", "finish 6", "wait 6"),
    ]


@pytest.mark.parametrize("waits", [True, False])
def test_what_events_leave_is_done_before_one_that_waits(loop, communicator, waits):
    notes = []
    model = AheadModel(notes, communicator)
    model.seconds = QUEUED_SECONDS / 20
    simulation = loop(model)

    def look():
        return lambda: notes.append(f"finish {model.step}")

    simulation.events = [
        Event("look", AtStep(6), look, waits=False),
        Event("beat", EverySteps(2), lambda: None, waits=False),
        Event("row", AtStep(8), lambda: notes.append("row"), waits=waits),
        stopping(simulation, 12),
    ]
    simulation.run()
    assert ("finish 8" in notes[: notes.index("row")]) == waits


def test_all_ranks_run_ahead_or_none(loop, communicator):
    notes, _ = run_ahead(loop, communicator, runs_ahead=communicator.rank == 0)
    before_steps = notes[:3] == ["look 0", "finish 0", "queue 2"]
    assert before_steps == (communicator.size > 1)


def test_events_are_finished_before_steps_that_the_host_takes_itself(loop, communicator):
    notes, _ = run_ahead(loop, communicator, runs_ahead=False)
    assert notes == [
        *("look 0", "finish 0", "queue 2", "wait 2"),
        *("look 2", "finish 2", "queue 4", "wait 4"),
        *("look 4", "finish 4", "queue 6", "wait 6"),
        *("look 6", "finish 6"),
    ]


# ---- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "shared", "ended"), [(1, False, True), (2, True, True), (2, False, False)]
)
def test_what_all_ranks_end_together_is_left_where_one_alone_has_failed(ranks, shared, ended):
    class Failing(FiniteModel):
        runs_ahead = True

        def queue(self, steps):
            error = NumericalError("a rank is lost")
            raise error.on_all_ranks() if shared else error

    done = []
    several = OneOf(ranks)
    simulation = TimeLoop(Failing(4, this_rank()), several, NoSignals(), time.monotonic())
    simulation.events = [
        Event("trajectory", EverySteps(2), lambda: lambda: done.append("frame"), waits=False),
        stopping(simulation, 9),
    ]
    with pytest.raises(NumericalError):
        simulation.run()
    assert bool(done) == ended
