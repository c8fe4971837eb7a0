"""Telling how a run gets on, and the table at its end."""

import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hybrid_nbody.output import progress
from hybrid_nbody.output.progress import BarProgress, LineProgress, Status, duration
from hybrid_nbody.output.summary import (
    OUTPUT_EVENTS,
    PARTS,
    rate_line,
    time_shares,
    time_table,
    with_prefix,
)
from hybrid_nbody.simulation.model import Work
from hybrid_nbody.simulation.timings import Timings


def status(step, energy_error=None, step_seconds=0.5):
    """Return how far a run of a thousand steps is."""
    return Status(step, 1000, step * 0.001, step_seconds, 2.5e9, "interactions", energy_error)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


# ---- Lines ---------------------------------------------------------------------------------------


def test_a_line_says_how_far_how_fast_how_well_and_how_long(clock):
    lines = []
    LineProgress(lines.append).update(status(250, -1.234e-7))
    assert lines == [
        "step 250/1000 (25%)  t = 0.25  2.5 G interactions/s  dE/E -1.2e-07  6 min 15 s left"
    ]


def test_an_energy_that_nobody_measured_is_not_shown():
    assert status(250).details == "t = 0.25  2.5 G interactions/s"
    assert "dE/E +0.0e+00" in status(250, 0.0).details


def test_lines_come_soon_at_first_and_then_more_and_more_rarely(clock):
    lines, start = [], clock.now
    shown = LineProgress(lines.append)
    times = []
    for tick in range(40_000):
        clock.now = start + 0.1 * tick
        before = len(lines)
        shown.update(status(1))
        times += [clock.now - start] * (len(lines) - before)
    gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert times[0] == 0
    for time, gap in zip(times, gaps, strict=False):
        assert gap == pytest.approx(min(max(2.0, 0.1 * time), 60.0), abs=0.11, rel=0)


def test_the_last_step_is_always_shown(clock):
    lines = []
    shown = LineProgress(lines.append)
    for step in (1, 2, 1000):
        shown.update(status(step))
    shown.close()
    assert [line.split()[1] for line in lines] == ["1/1000", "1000/1000"]
    assert lines[1].startswith("step 1000/1000 (100%)")
    assert lines[1].endswith("  0 s left")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (400_000, "111 h 06 min"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds, text):
    assert duration(seconds) == text


# ---- The bar -------------------------------------------------------------------------------------


def test_the_bar_shows_the_latest_state_and_leaves_it_there():
    console = Console(file=io.StringIO(), force_terminal=True, width=110, color_system=None)
    bar = BarProgress(console)
    for step in (10, 500, 1000):
        bar.update(status(step, 1e-6))
    bar.close()
    shown = console.file.getvalue()
    for part in (
        "step 10/1000",
        "step 500/1000",
        "4 min 10 s left",
        "50%",
        "dE/E +1.0e-06",
        "2.5 G interactions/s",
    ):
        assert part in shown
    assert "step 1000/1000" in shown.splitlines()[-1] + shown.splitlines()[-2]


def test_a_bar_that_never_showed_anything_can_be_closed():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    BarProgress(console).close()
    assert "step" not in console.file.getvalue()


# ---- Figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 "),
        (1, "1 "),
        (0.1234, "0.123 "),
        (999.4, "999 "),
        (999.6, "1 k "),
        (12345, "12.3 k "),
        (999_499, "999 k "),
        (999_500, "1 M "),
        (2.42e12, "2.42 T "),
        (9.996e14, "1 P "),
        (1e18, "1e+03 P "),
    ],
)
def test_numbers_carry_three_digits_and_a_prefix(number, text):
    assert with_prefix(number) == text


@given(number=st.floats(1e-3, 9e17))
def test_a_number_with_a_prefix_is_right_to_three_digits(number):
    figure, prefix = with_prefix(number)[:-1].partition(" ")[::2]
    size = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[prefix]
    assert float(figure) * size == pytest.approx(number, rel=5.01e-3, abs=0)
    assert float(figure) < 1000


SECONDS = st.floats(0, 1e4)


@given(
    parts=st.dictionaries(st.sampled_from([*PARTS, "kick"]), SECONDS),
    events=st.dictionaries(st.sampled_from([*OUTPUT_EVENTS, "loop", "advance", "stop"]), SECONDS),
    more=SECONDS,
)
def test_shares_add_up_to_the_total(parts, events, more):
    in_parts, in_events = Timings(), Timings()
    in_parts.seconds, in_events.seconds = parts, events
    named = sum(parts.get(name, 0) for name in PARTS) + sum(
        events.get(name, 0) for name in OUTPUT_EVENTS
    )
    rows = time_shares(in_events, in_parts, named + more)
    assert sum(seconds for _, seconds in rows) == pytest.approx(named + more, rel=1e-12, abs=1e-9)
    names = [name for name, _ in rows]
    shown = [name for name in PARTS if parts.get(name, 0) > 0]
    assert names == [*shown, *(name for name in OUTPUT_EVENTS if events.get(name, 0) > 0), "rest"]
    assert all(seconds >= 0 for _, seconds in rows)


def test_the_table_has_a_line_for_each_part():
    rows = [("force", 9.0), ("exchange", 0.25), ("rest", 0.75)]
    assert time_table(rows, 10.0).splitlines() == [
        "where the time went",
        "  force             9.000 s   90.0%",
        "  exchange          0.250 s    2.5%",
        "  rest              0.750 s    7.5%",
        "  total            10.000 s",
    ]


def test_rates_are_those_of_the_whole_run():
    line = rate_line(Work("interactions", 8192.0**2, 20), 1000, 10.0)
    assert (
        line == "1000 steps in 10.000 s: 6.71 G interactions/s, 134.2 GFLOP/s at 20 operations each"
    )
