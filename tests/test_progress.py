"""Progress: lines in a pipe, a bar on a terminal, and streams without a reader."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from hybrid_nbody import progress
from hybrid_nbody.progress import (
    BarProgress,
    BestEffortStream,
    GrowingPause,
    LineProgress,
    Progress,
    SeveralProgress,
    duration,
    each_part,
    progress_on,
)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def terminal():
    """A terminal of 110 columns."""
    return Console(file=io.StringIO(), force_terminal=True, width=110, color_system=None)


# ---- Lines ---------------------------------------------------------------------------------------


def test_a_line_says_how_far_how_well_and_how_long(clock):
    lines = []
    shown = LineProgress("step", lines.append, each_part)
    clock.now += 125
    shown.update(250, 1000, "t = 0.25  dE/E -1.2e-07")
    assert lines == ["step 250/1000 (25%)  t = 0.25  dE/E -1.2e-07  6 min 15 s left"]


def test_the_time_left_counts_from_where_the_job_began(clock):
    lines = []
    shown = LineProgress("step", lines.append, each_part)
    shown.begin(900)
    shown.update(900, 1000)
    clock.now += 10
    shown.update(950, 1000)
    assert lines == ["step 900/1000 (90%)", "step 950/1000 (95%)  10 s left"]


def test_parts_that_are_not_alike_show_the_time_taken(clock):
    lines = []
    shown = LineProgress("row", lines.append, each_part, steady=False)
    clock.now += 70
    shown.update(1, 4, "now the next")
    assert lines == ["row 1/4 (25%)  now the next  1 min 10 s so far"]


def test_lines_come_at_each_tenth(clock):
    lines = []
    shown = LineProgress("frame", lines.append)
    for done in range(1, 26):
        shown(done, 25)
    assert [line.split()[1] for line in lines] == [
        f"{done}/25" for done in (3, 5, 8, 10, 13, 15, 18, 20, 23, 25)
    ]


def test_lines_come_soon_at_first_and_then_more_and_more_rarely(clock):
    lines, start = [], clock.now
    shown = LineProgress("step", lines.append, GrowingPause())
    times = []
    for tick in range(40_000):
        clock.now = start + 0.1 * tick
        before = len(lines)
        shown.update(1, 1000)
        times += [clock.now - start] * (len(lines) - before)
    gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert times[0] == 0
    for time, gap in zip(times, gaps, strict=False):
        assert gap == pytest.approx(min(max(2.0, 0.1 * time), 60.0), abs=0.11, rel=0)


def test_the_last_step_is_always_shown(clock):
    lines = []
    shown = LineProgress("step", lines.append, GrowingPause())
    for step in (1, 2, 1000):
        shown.update(step, 1000)
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


def test_the_bar_shows_the_latest_state_and_leaves_it_there(clock, terminal):
    bar = BarProgress("step", terminal)
    for step, seconds in ((10, 5), (500, 250), (1000, 500)):
        clock.now = 50.0 + seconds
        bar.update(step, 1000, "dE/E +1.0e-06")
    bar.close()
    shown = terminal.file.getvalue()
    for part in ("step 10/1000", "step 500/1000", "4 min 10 s left", "50%", "dE/E +1.0e-06"):
        assert part in shown
    assert "step 1000/1000" in shown.splitlines()[-1] + shown.splitlines()[-2]


def test_a_hundred_parts_are_shown_as_a_whole_number(clock, terminal):
    bar = BarProgress("frame", terminal)
    bar.update(20, 100)
    bar.close()
    assert "frame 20/100 " in terminal.file.getvalue()


def test_the_bar_is_not_drawn_at_every_update(clock, terminal):
    bar = BarProgress("part", terminal)
    for done in range(1, 1001):
        clock.now += 0.001
        bar.update(done, 1000)
    bar.close()
    shown = [done for done in range(1, 1001) if f"part {done}/1000 " in terminal.file.getvalue()]
    assert len(shown) <= 11
    assert shown[0] == 1
    assert shown[-1] == 1000


def test_a_bar_that_never_showed_anything_can_be_closed(terminal):
    BarProgress("step", terminal).close()
    assert "step" not in terminal.file.getvalue()


def test_square_brackets_in_details_are_no_markup(terminal):
    with BarProgress("row", terminal) as bar:
        bar.update(1, 2, "[bold]a[/] and [nonsense")
    assert "[bold]a[/] and [nonsense" in terminal.file.getvalue()


# ---- Streams -------------------------------------------------------------------------------------


class Closed(io.StringIO):
    """A stream that nobody reads any more."""

    def write(self, text):
        raise BrokenPipeError


def test_a_stream_whose_reader_is_gone_drops_the_text():
    stream = BestEffortStream(Closed())
    print("lost", file=stream, flush=True)
    assert not stream.isatty()
    print("lost", file=BestEffortStream(None), flush=True)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_on_a_stream(clock, monkeypatch, is_terminal):
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    with progress_on(stream, "frame") as shown:
        for done in range(1, 201):
            shown(done, 200)
    if is_terminal:
        assert "frame 200/200" in stream.getvalue()
    else:
        lines = [f"frame {20 * n}/200 ({10 * n}%)  0 s left" for n in range(1, 11)]
        assert stream.getvalue().splitlines() == lines


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_outlives_its_reader(monkeypatch, is_terminal):
    monkeypatch.setenv("TERM", "xterm")
    stream = Closed()
    stream.isatty = lambda: is_terminal
    with progress_on(stream, "frame") as shown:
        assert isinstance(shown, BarProgress if is_terminal else LineProgress)
        shown(1, 1)


def test_without_a_stream_nothing_is_shown():
    with progress_on(None, "frame") as shown:
        assert type(shown) is Progress
        shown(1, 1)


def test_several_ways_are_all_shown():
    first, second = [], []
    ways = (LineProgress("step", first.append, each_part), LineProgress("step", second.append))
    with SeveralProgress(*ways) as shown:
        shown.begin(0)
        shown.update(1, 20)
        shown.update(20, 20)
    assert [line.split(" (")[0] for line in first] == ["step 1/20", "step 20/20"]
    assert [line.split(" (")[0] for line in second] == ["step 20/20"]
