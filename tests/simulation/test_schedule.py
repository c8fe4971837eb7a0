"""Schedules: `due` and `steps_ahead` agree, nothing is skipped, and no rounding adds up."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hybrid_nbody.simulation.schedule import (
    NEVER,
    AfterStart,
    AnyOf,
    AtStep,
    Clock,
    EverySteps,
    EveryTime,
    EveryWallClock,
    StopRequested,
)

STARTS = st.integers(0, 1000) | st.integers(10**8 - 1000, 10**8 + 1000)
DECIMALS = st.builds(
    lambda digits, places: f"{digits}e-{places}", st.integers(1, 999), st.integers(0, 9)
)


def due_steps(schedule, start, steps=300):
    """Return the steps of a range at which a schedule is due."""
    return [step for step in range(start, start + steps) if schedule.due(Clock(step))]


def visited_steps(schedule, start, steps=300):
    """Return the steps at which a loop that asks ``steps_ahead`` finds the schedule due."""
    step, found = start, []
    while step < start + steps:
        if schedule.due(Clock(step)):
            found.append(step)
        ahead = schedule.steps_ahead(Clock(step))
        assert ahead >= 1
        step += ahead
    return found


def check_agreement(schedule, start):
    """Check that a loop meets every step that is due and stops at no other, but where it starts."""
    due = due_steps(schedule, start)
    assert visited_steps(schedule, start) == due
    for step in range(start, start + 30):
        ahead = schedule.steps_ahead(Clock(step))
        following = next((later for later in due if later > step), None)
        assert ahead == following - step if following else step + ahead >= start + 300


def check_between(schedule, start):
    """Check that the steps between two are those at which it is due, without these two."""
    due = due_steps(schedule, start)
    assert list(schedule.due_between(start - 1, start + 300)) == due
    inside = [step for step in due if start < step < start + 299]
    assert list(schedule.due_between(start, start + 299)) == inside


@given(interval=st.integers(1, 400), start=STARTS)
def test_not_at_the_start(interval, start):
    schedule = AfterStart(EverySteps(interval))
    check_agreement(schedule, start)
    assert due_steps(schedule, start) == [
        step for step in due_steps(EverySteps(interval), start) if step > 0
    ]


# ---- Steps ---------------------------------------------------------------------------------------


@given(interval=st.integers(1, 400), start=STARTS)
def test_every_so_many_steps(interval, start):
    schedule = EverySteps(interval)
    check_agreement(schedule, start)
    check_between(schedule, start)
    assert due_steps(schedule, start) == [
        step for step in range(start, start + 300) if step % interval == 0
    ]


@given(step=st.integers(0, 400), start=st.integers(0, 300))
def test_at_one_step(step, start):
    schedule = AtStep(step)
    check_agreement(schedule, start)
    assert due_steps(schedule, start) == [step] * (start <= step < start + 300)
    assert schedule.steps_ahead(Clock(step)) == schedule.steps_ahead(Clock(step + 1)) == NEVER


# ---- Simulated time ------------------------------------------------------------------------------


def steps_of_multiples(interval, dt, start, steps=300):
    """Return the first steps at or after multiples of an interval, in decimal arithmetic."""
    ratio = Fraction(interval) / Fraction(dt)
    first, last = math.floor(start / ratio) - 1, math.ceil((start + steps) / ratio) + 1
    if last - first > 2 * steps:  # more than one a step
        return list(range(start, start + steps))
    found = {math.ceil(multiple * ratio) for multiple in range(max(first, 0), last + 1)}
    return [step for step in range(start, start + steps) if step in found]


@given(interval=DECIMALS, dt=DECIMALS, start=STARTS)
@example(interval="0.3", dt="0.1", start=10**8 - 1)  # 0.3 / 0.1 < 3 in floating point
@example(interval="0.05", dt="1e-3", start=0)
@example(interval="1", dt="0.3", start=10**8 - 1)  # dt does not divide the interval
@example(interval="1e-4", dt="1e-3", start=7)  # more than one a step
@example(interval="1.5", dt="1", start=10**8 - 1)
# 93 intervals are 16 million steps, not one more
@example(interval="16e-2", dt="93e-8", start=16 * 10**6 - 100)
@example(interval="78e-3", dt="18e-9", start=13 * 10**6 - 100)
def test_every_multiple_of_an_interval_of_time(interval, dt, start):
    schedule = EveryTime(float(interval), float(dt))
    check_agreement(schedule, start)
    check_between(schedule, start)
    assert due_steps(schedule, start) == steps_of_multiples(interval, dt, start)


@given(interval=st.floats(1e-6, 1e6), dt=st.floats(1e-6, 1e6), start=STARTS)
def test_any_numbers_agree_and_skip_nothing(interval, dt, start):
    schedule = EveryTime(interval, dt)
    check_agreement(schedule, start)
    check_between(schedule, start)
    ratio = max(Fraction(interval) / Fraction(dt), 1)
    found = len(due_steps(schedule, start))
    assert 300 / ratio - 1 <= found + 1e-6
    assert found <= 300 / ratio + 1 + 1e-6


def test_two_hundred_million_steps_later_it_is_still_on_time():
    schedule = EveryTime(0.7, 0.1)
    # 2e8 is 4 more than a multiple of 7
    assert due_steps(schedule, 2 * 10**8, 15) == [2 * 10**8 + 3, 2 * 10**8 + 10]
    # numbers that no decimals stand for
    assert EveryTime(1 / 3, 1e-3 / 3).steps_ahead(Clock(0)) == 1000


# ---- Several -------------------------------------------------------------------------------------

SIMPLE = (
    st.builds(EverySteps, st.integers(1, 400))
    | st.builds(AtStep, st.integers(0, 400))
    | st.builds(EveryTime, st.floats(0.1, 50), st.just(0.25))
)


@given(schedules=st.lists(SIMPLE, max_size=4), start=st.integers(0, 300))
@example(schedules=[], start=0)
def test_either_is_due_when_any_of_several_is(schedules, start):
    check_agreement(AnyOf(*schedules), start)
    each = [due_steps(schedule, start) for schedule in schedules]
    assert due_steps(AnyOf(*schedules), start) == sorted(set().union(*each))
    assert AnyOf(*schedules, AnyOf()).steps_ahead(Clock(start)) == min(
        (schedule.steps_ahead(Clock(start)) for schedule in schedules), default=NEVER
    )


def test_every_one_of_several_is_asked():
    """Those that keep time of their own must notice that they were due beside another one."""
    walls = EveryWallClock(10.0), EveryWallClock(10.0)
    assert AnyOf(*walls).due(Clock(0, wall_clock=5.0))
    assert [wall.next for wall in walls] == [15.0, 15.0]


# ---- Wall-clock time -----------------------------------------------------------------------------


@given(seconds=st.floats(0.01, 10), step_seconds=st.floats(1e-6, 20))
def test_wall_clock_events_come_about_as_often_as_asked_for(seconds, step_seconds):
    schedule, wall, times = EveryWallClock(seconds), 0.0, []
    for _ in range(50):
        if schedule.due(Clock(0, wall, step_seconds)):
            times.append(wall)
        wall += step_seconds * schedule.steps_ahead(Clock(0, wall, step_seconds))
    assert times[0] == 0.0
    gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert gaps and min(gaps) >= seconds * (1 - 1e-9)
    assert max(gaps) <= seconds + step_seconds * (1 + 1e-9)


def test_steps_of_unknown_length_are_taken_one_by_one():
    assert Clock(0).steps_within(100.0) == 1
    assert Clock(0, step_seconds=0.5).steps_within(0.1) == 1
    assert Clock(0, step_seconds=0.5).steps_within(1.6) == 3
    schedule = EveryWallClock(5.0)
    assert (
        schedule.due(Clock(0, wall_clock=1.0))
        and not schedule.due(Clock(1, wall_clock=5.9))
        and schedule.due(Clock(2, wall_clock=6.0))
    )


@given(
    wall_limit=st.floats(5, 100),
    look_every=st.floats(0.01, 2),
    margin=st.floats(0, 3),
    step_seconds=st.floats(1e-4, 2),
)
def test_a_run_stops_before_its_wall_limit_but_not_long_before(
    wall_limit, look_every, margin, step_seconds
):
    stop = StopRequested(wall_limit, look_every, margin)
    between_looks = max(look_every, step_seconds)
    assume(wall_limit / between_looks < 20_000)
    wall = 0.0
    while not stop.due(Clock(0, wall, step_seconds)):
        wall += step_seconds * stop.steps_ahead(Clock(0, wall, step_seconds))
    if wall > 0:
        assert wall <= (wall_limit - margin) * (1 + 1e-9)
    assert wall > wall_limit - margin - between_looks - 1e-9


def test_a_run_without_a_limit_stops_on_a_signal_alone():
    stop = StopRequested(math.inf)
    assert not stop.due(Clock(0, wall_clock=1e12))
    assert stop.due(Clock(0, signalled=True))
    assert stop.steps_ahead(Clock(0, step_seconds=0.01)) == 25  # a look every quarter of a second


@pytest.mark.parametrize(("step_seconds", "steps"), [(0.0, 1), (1e-3, 250), (10.0, 1)])
def test_signals_are_looked_for_several_times_a_second(step_seconds, steps):
    assert StopRequested().steps_ahead(Clock(0, step_seconds=step_seconds)) == steps
