"""Timing: what is counted, how often, and when it stops."""

import itertools

import pytest

from hybrid_nbody.benchmarks.harness import measure
from hybrid_nbody.benchmarks.harness.measure import Stopped, Times, calls_for, targets_within, timed


class FakeBackend:
    """A device whose clock moves when work is done, and at no other time."""

    now = 0.0

    def mark(self):
        return self.now

    def elapsed(self, start, end):
        return end - start

    def capture(self, action):
        return action

    def work(self, *seconds):
        """Return an action that takes these times, one after another, the last one for ever."""
        times = itertools.chain(seconds, itertools.repeat(seconds[-1]))

        def action():
            self.now += next(times)

        return action


def never():
    """Nobody asks to stop."""


def test_mean_deviation_and_median():
    times = Times((1.0, 2.0, 6.0))
    assert (times.mean, times.median) == (3.0, 2.0)
    assert times.sd == pytest.approx(7**0.5)  # of a sample: 14 / 2
    assert Times((1.0,)).sd == 0.0


def test_the_first_calls_are_not_counted():
    backend = FakeBackend()
    taken = timed(backend, backend.work(100.0, 50.0, 1.0, 2.0, 3.0), repeats=3, stop=never)
    assert taken == Times((1.0, 2.0, 3.0), calls=1)


def test_short_calls_are_repeated_within_a_timing():
    backend = FakeBackend()
    taken = timed(backend, backend.work(1e-4), repeats=2, stop=never)
    assert taken.calls == 20
    assert taken.median == pytest.approx(1e-4)
    assert calls_for(0.0) == measure.MOST_CALLS


def test_a_request_to_stop_is_heard_before_every_call():
    """Those that are not counted, too: a call can take a minute."""
    backend, heard = FakeBackend(), []

    def stop():
        heard.append(backend.now)
        if len(heard) == 3:
            raise Stopped

    with pytest.raises(Stopped):
        timed(backend, backend.work(1.0), repeats=5, stop=stop)
    assert heard == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("seconds_a_target", "expected"), [(1e-6, 100_000), (1e-4, 5000), (1e-2, 50), (10.0, 1)]
)
def test_slow_loops_do_fewer_targets(seconds_a_target, expected):
    backend = FakeBackend()

    def step(targets):
        backend.now += targets * seconds_a_target

    assert targets_within(backend, step, 100_000, never, longest=0.5) == pytest.approx(
        expected, abs=1
    )


# ---- Rows ----------------------------------------------------------------------------------------


def test_a_speed_up_is_that_over_the_first_measured_row_of_the_same_part():
    rows = [
        {"part": "layouts", "note": "needs a GPU"},
        {"part": "blocks", "median_s": 8.0},
        {"part": "layouts", "median_s": 4.0},
        {"part": "layouts", "median_s": 1.0},
    ]
    row = {"part": "layouts", "median_s": 2.0}
    assert measure.speedup(rows, row, "part") == {"speedup": 2.0}
    assert measure.speedup(rows[:2], row, "part") == {"speedup": 1.0}
    assert measure.speedup(rows, {"part": "layouts", "note": "needs a GPU"}, "part") == {}


def test_a_pivot_table_has_a_line_and_a_column_a_choice_and_the_best_in_bold():
    rows = [
        {"block": 64, "unroll": 1, "interactions_per_s": 1e9},
        {"block": 64, "unroll": 4, "interactions_per_s": 4e9},
        {"block": 128, "unroll": 4, "interactions_per_s": 3e9},
    ]
    names = ("{block}".format_map, "unroll {unroll}".format_map)
    table = measure.pivot_table("block", rows, *names, rows[1:2])
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert [column.header for column in table.columns] == ["block", "unroll 1", "unroll 4"]
    assert cells == [["64", "128"], ["1.00", ""], ["4.00", "3.00"]]
    assert [str(cell.style) for cell in table.columns[2].cells] == ["bold", ""]
