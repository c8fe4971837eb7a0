"""``bench frames``: how many steps its runs take, and what a user gets."""

import json

import pytest
from support.command import call

from hybrid_nbody.benchmarks.gravity.frames import FEWEST_STEPS, WholeRuns, steps_for
from hybrid_nbody.benchmarks.harness.measure import Stopped
from hybrid_nbody.errors import FileError


class Clock:
    """Steps that take as long each, but for the first ones."""

    def __init__(self, step, first=5.0):
        self.step = step
        self.first = first
        self.calls = []

    def seconds(self, steps):
        self.calls.append(steps)
        return self.step * steps + (self.first if len(self.calls) == 1 else 0.0)


@pytest.mark.parametrize("step", [3e-7, 1e-4, 5e-3])
def test_runs_last_about_as_long_as_is_asked_for(step):
    clock = Clock(step)
    assert steps_for(2.0, clock.seconds) * step == pytest.approx(2.0, rel=1e-3, abs=0)
    assert sum(clock.calls) * step < 2.5


def test_runs_of_slow_steps_have_few_of_them():
    assert steps_for(2.0, Clock(1.0).seconds) == FEWEST_STEPS


def test_a_run_that_fails_says_why(tmp_path):
    runs = WholeRuns(tmp_path, {"device": "cpu", "bodies": -1}, 1, lambda: None)
    with pytest.raises(FileError, match=r"a run of the benchmark failed: .*bodies\.n"):
        runs.seconds(10)


def test_no_run_begins_after_a_request_to_stop(tmp_path):
    def stop():
        raise Stopped

    with pytest.raises(Stopped):
        WholeRuns(tmp_path, {"device": "cpu", "bodies": 3}, 1, stop).seconds(10)
    assert list(tmp_path.iterdir()) == []


def test_a_row_compares_runs_with_frames_and_without(tmp_path):
    words = ("--sizes", "40", "--seconds", "20ms", "--repeats", 2, "--every", 7, "--threads", 1)
    result = call(tmp_path, "bench", "frames", "--backend", "cpu", "--output", "out", *words)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "out" / "frames.json").read_text())["rows"]
    assert [(row["bodies"], row["every_steps"], row["repeats"]) for row in rows] == [(40, 7, 2)]
    for row in rows:
        assert row["ratio"] > 0
        cost = (row["ratio"] - 1) * row["without_s"] * 7
        assert row["frame_s"] == pytest.approx(cost, rel=1e-9, abs=0)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["frames.csv", "frames.json", "frames.png"]
    assert "a frame every 7 steps on a CPU" in result.stdout
