"""Snapshots: the steps are those of the frames, and each copy is the state of its step."""

import time
from itertools import accumulate
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ranks import RowsModel, this_rank

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.simulation import loop
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.model import Field, Role
from hybrid_nbody.simulation.schedule import AnyOf, AtStep, Clock, EverySteps, EveryTime
from hybrid_nbody.simulation.snapshots import (
    FEWEST,
    LONGEST_INTERVAL,
    MOST,
    MOST_BYTES,
    FrameSeries,
    Snapshots,
    most_snapshots,
)

SCHEDULES = st.one_of(
    st.integers(1, 30).map(EverySteps),
    st.integers(1, 30).map(lambda tenths: EveryTime(tenths / 10, 0.1)),
)


NO_SIGNALS = SimpleNamespace(received="")


class DeviceModel(RowsModel):
    """Rows that are functions of the step, in arrays of a device."""

    def __init__(self, number=5):
        super().__init__(number, this_rank())
        self.backend = CpuBackend()
        self.arrays = {}

    def fields(self):
        found = super().fields()
        return {name: self._on_device(field) for name, field in found.items()}

    def _on_device(self, field):
        if field.dtype.kind in "iu":
            return field
        rows = field.host(0, field.rows)
        array = self.arrays.setdefault(field.name, rows)
        array[...] = rows
        return Field(**vars(field) | {"array": array})

    def advance(self, steps):
        super().advance(steps)
        self.fields()


# ---- When they are taken -------------------------------------------------------------------------


@given(SCHEDULES, st.integers(0, 10**6), st.integers(1, 500), st.integers(1, 9))
def test_they_are_taken_at_the_steps_of_the_frames_before_the_next_event(
    schedule, step, ahead, most
):
    series = FrameSeries("frames", schedule, AnyOf(AtStep(step + ahead)), begin=None)
    stages = series.stages(Clock(step), most)
    *taken, stop = accumulate(stages, initial=step)
    due = [at for at in range(step + 1, step + ahead) if schedule.due(Clock(at))]
    assert taken[1:] == due[:most]
    assert stop == [*due, step + ahead][len(taken) - 1]


EVERY_THREE = EverySteps(3)


def frames_of(model, others, series=True, signals=NO_SIGNALS, copied=None, schedule=EVERY_THREE):
    """Return the steps at which the loop calls an event for a frame, and those of the copies."""
    simulation = TimeLoop(model, this_rank(), signals, time.monotonic())
    called = []
    copied = [] if copied is None else copied
    simulation.events = [
        Event("frame", schedule, lambda: called.append(model.step), waits=False),
        Event("other", others, lambda: None),
        Event("finish", AtStep(40), lambda: simulation.stop("finished")),
    ]

    def begin(snapshots):
        return lambda: copied.append(snapshots.steps.tolist())

    if series:
        rest = AnyOf(*(event.schedule for event in simulation.events[1:]))
        simulation.series = FrameSeries("frames", schedule, rest, begin)
    simulation.run()
    return called, copied


def test_the_loop_copies_the_state_at_frames_between_other_events():
    called, copied = frames_of(DeviceModel(), EverySteps(15))
    assert called == [0, 15, 30]
    assert copied == [[3, 6, 9, 12], [18, 21, 24, 27], [33, 36, 39]]


class AheadModel(DeviceModel):
    """The same, which takes its steps while the host goes on."""

    runs_ahead = True

    def queue(self, steps):
        self.advance(steps)
        return lambda: 1e-3 * steps


def test_a_device_that_runs_ahead_copies_them_too():
    assert frames_of(AheadModel(), EverySteps(15)) == frames_of(DeviceModel(), EverySteps(15))


class CopyingModel(AheadModel):
    """The same, whose device copies the state within its steps, if there are not too many."""

    def __init__(self, number=5, most=4):
        super().__init__(number)
        self.most = most
        self.groups = []

    def times_at(self, steps):
        return 0.5 * steps

    def queue_with_copies(self, interval, copies):
        if interval > self.most:
            return None
        number = len(next(iter(copies.values())))
        for k in range(number):
            self.advance(interval)
            for name, memory in copies.items():
                memory[k] = self.arrays[name]
        self.groups.append((interval, number))
        return lambda: 1e-3 * interval * number


@pytest.mark.parametrize("ahead", [True, False])
def test_a_host_looks_at_many_copies_at_once(ahead):
    model = CopyingModel()
    model.runs_ahead = ahead
    simulation = TimeLoop(model, this_rank(), NO_SIGNALS, time.monotonic())
    steps = MOST + 500
    end = AtStep(steps)
    simulation.events = [Event("finish", end, lambda: simulation.stop("finished"))]
    lengths = []

    def begin(snapshots):
        lengths.append(snapshots.taken)
        return lambda: None

    simulation.series = FrameSeries("frames", EverySteps(1), end, begin)
    simulation.run()
    assert max(lengths) == MOST
    assert len(lengths) == -(-steps // (MOST + 1))


@pytest.mark.parametrize("most", [2, 3])
def test_a_device_copies_several_states_at_once_where_it_can(most):
    model = CopyingModel(most=most)
    assert frames_of(model, EverySteps(15)) == frames_of(DeviceModel(), EverySteps(15))
    assert model.groups == ([(3, 4), (3, 4), (3, 3)] if most == 3 else [])


def test_a_device_may_copy_fewer_states_than_there_is_memory_for():
    class Slow(CopyingModel):
        def queue_with_copies(self, interval, copies):
            return super().queue_with_copies(
                interval, {name: memory[:2] for name, memory in copies.items()}
            )

    model = Slow()
    assert frames_of(model, EverySteps(15)) == frames_of(DeviceModel(), EverySteps(15))
    assert set(model.groups) == {(3, 2)}


def test_frames_at_unlike_distances_are_copied_one_by_one():
    schedule = EveryTime(1.75, 0.5)
    model = CopyingModel()
    found = frames_of(model, EverySteps(36), schedule=schedule)
    assert found == frames_of(DeviceModel(), EverySteps(36), schedule=schedule)
    assert found[1][0] == [4, 7, 11, 14, 18, 21, 25, 28, 32, 35]
    assert model.groups == []


@pytest.mark.parametrize(("interval", "number"), [(LONGEST_INTERVAL + 1, 2), (LONGEST_INTERVAL, 1)])
def test_where_several_at_once_are_no_faster_they_are_taken_one_by_one(interval, number):
    model = CopyingModel(most=LONGEST_INTERVAL + 1)
    snapshots = Snapshots(model, 4)
    assert snapshots.take_ahead(interval, number) is None
    assert model.step == 0
    assert snapshots.take_ahead(LONGEST_INTERVAL, 2)() == 1e-3 * 2 * LONGEST_INTERVAL
    assert snapshots.steps.tolist() == [LONGEST_INTERVAL, 2 * LONGEST_INTERVAL]


def test_the_host_looks_again_after_a_while(monkeypatch):
    monkeypatch.setattr(loop, "SERIES_SECONDS", -1.0)
    called, copied = frames_of(DeviceModel(), EverySteps(15))
    assert called == list(range(0, 40, 3))  # where the copy that ended a series was taken, too
    assert copied == [[step] for step in range(3, 40, 3) if step % 15]


@pytest.mark.parametrize(("kind", "first"), [(DeviceModel, 3), (CopyingModel, 5)])
def test_a_signal_ends_a_series(kind, first):
    """What a device was given at once before is taken."""
    signals = SimpleNamespace(received="")

    class Signalled(kind):
        def advance(self, steps):
            super().advance(steps)
            if self.step == 9:
                signals.received = "SIGTERM"

    _, copied = frames_of(Signalled(), EverySteps(18), signals=signals)
    assert copied[0] == list(range(3, 18, 3))[:first]


class FailingModel(DeviceModel):
    """A model that cannot go beyond step 11."""

    def advance(self, steps):
        if self.step + steps > 11:
            raise NumericalError("cannot be taken").on_all_ranks()
        super().advance(steps)


def test_copies_before_a_step_that_cannot_be_taken_are_not_lost():
    copied = []
    with pytest.raises(NumericalError):
        frames_of(FailingModel(), EverySteps(15), copied=copied)
    assert copied == [[3, 6, 9]]


@pytest.mark.parametrize("series", [True, False])
def test_where_it_is_not_worth_it_every_frame_is_an_event(series):
    model = DeviceModel(MOST_BYTES // 48) if series else DeviceModel()
    called, copied = frames_of(model, EverySteps(15), series)
    assert called == list(range(0, 40, 3))
    assert copied == []


# ---- What they hold ------------------------------------------------------------------------------


def check_copies(snapshots):
    """Compare the copies with the states of their steps."""
    names = {field.name for field in snapshots.fields}
    assert names == {"bodies/position", "bodies/velocity"}
    for k, step in enumerate(snapshots.steps):
        expected = DeviceModel().at(step).fields()
        for name in names:
            np.testing.assert_array_equal(snapshots.copies[name][k], expected[name].array)


def test_each_is_the_state_of_its_step():
    model = DeviceModel()
    snapshots = Snapshots(model, 3)
    for step in (4, 6, 7):
        model.advance(step - model.step)
        snapshots.take()
    model.advance(1)
    assert snapshots.steps.tolist() == [4, 6, 7]
    assert snapshots.times.tolist() == [2.0, 3.0, 3.5]
    check_copies(snapshots)


def test_so_are_those_that_a_device_takes_at_once():
    model = CopyingModel()
    snapshots = Snapshots(model, 4)
    model.advance(4)
    snapshots.take()
    snapshots.take_ahead(3, 2)
    model.advance(1)
    snapshots.take()
    assert snapshots.steps.tolist() == [4, 7, 10, 11]
    assert snapshots.times.tolist() == [2.0, 3.5, 5.0, 5.5]
    check_copies(snapshots)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(5, MOST), (MOST_BYTES // (48 * FEWEST), FEWEST), (MOST_BYTES // (48 * FEWEST) + 1, 0)],
)
def test_a_large_state_is_not_copied_often(number, expected):
    assert most_snapshots(DeviceModel(number)) == expected


def test_frames_of_what_is_not_on_the_device_are_taken_one_by_one():
    model = DeviceModel()
    fields = model.fields()
    fields["shown"] = Field(**vars(fields["bodies/position"]) | {"role": Role.SHOWN, "array": None})
    assert most_snapshots(SimpleNamespace(fields=lambda: fields)) == 0


# ---- What the guard says of them -----------------------------------------------------------------


@pytest.fixture
def taken():
    """Return copies of steps 1 to 4."""
    model = DeviceModel()
    snapshots = Snapshots(model, 4)
    for _ in range(4):
        model.advance(1)
        snapshots.take()
    return snapshots


def guard_of(snapshots):
    return Guard(SimpleNamespace(model=snapshots.model), this_rank(), None)


def test_good_ones_are_accepted(taken):
    guard = guard_of(taken)
    checked = guard.start_check_of(taken)()
    assert checked.good == 4
    guard.accept(checked)
    assert guard.good_step == 4


def test_the_first_bad_one_is_named_with_its_row(taken):
    taken.copies["bodies/position"][3, 0, 0] = np.nan
    taken.copies["bodies/velocity"][2, 4, 1] = np.inf
    taken.copies["bodies/velocity"][2, 3, 2] = np.nan
    guard = guard_of(taken)
    checked = guard.start_check_of(taken)()
    assert checked.good == 2
    with pytest.raises(NumericalError, match=r"step 3 \(t = 1.5\): velocity of body 3 ") as caught:
        guard.accept(checked)
    assert "the state was good at step 2" in str(caught.value)
    assert caught.value.shared
