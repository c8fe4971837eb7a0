"""Sweeps: every combination of some values, each in a directory of its own."""

import csv
import fcntl
import glob
import re
from pathlib import Path

import pytest
from support.command import call, refused
from support.runs import assert_same_run, run

from hybrid_nbody.errors import InputError
from hybrid_nbody.running.members import axes_of, members_of
from hybrid_nbody.running.sweep import CLAIM

JOB = """\
model: nbody
bodies: {kind: figure-eight}
time: {dt: 1e-2, steps: 20}
compute: {backend: cpu}
output: {directory: out, trajectory: {every_steps: 10}, checkpoint: {every_steps: 10}}
"""

SOFTENINGS = ["--set", "gravity.softening=0.01,0.02,-1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a configuration, in which the test works."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_commas_in_brackets_and_quotes_are_within_a_value():
    axes = axes_of(["time.dt=1e-3, 5e-4", "a.b=[1,2],[3,4]", "title='a, b'"])
    assert axes == {
        "time.dt": ["1e-3", "5e-4"],
        "a.b": ["[1,2]", "[3,4]"],
        "title": ["'a, b'"],
    }


def test_directories_are_named_by_the_values_that_differ():
    axes = {"time.dt": ["1", "2"], "a.n": ["8"], "c.n": ["1", "2"], "d.n": ["[0 1]", "3"]}
    names = [member.name for member in members_of(axes, Path("out"))]
    assert names[:2] == ["dt=1,c.n=1,d.n=_0_1_", "dt=1,c.n=1,d.n=3"]
    assert len(names) == 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["time.dt=1e-3"], "give several values"),
        (["time.dt=1e-3,"], "must be KEY=VALUE,VALUE"),
        (["time.dt=1,2", "time.dt=3"], "given twice"),
        (["output.directory=a,b"], "with --output DIR"),
    ],
)
def test_values_that_make_no_sweep_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        axes_of(settings)


def test_the_same_value_twice_is_refused():
    with pytest.raises(InputError, match="give each value once"):
        members_of({"time.dt": ["1", "1"]}, Path("out"))


def test_a_run_that_fails_leaves_the_others_and_is_in_the_table(folder):
    result = call(folder, "sweep", "job.yaml", *SOFTENINGS, "--jobs", "1")
    assert result.returncode == 3
    assert "softening=-1: --set gravity.softening=-1: gravity.softening: must be" in result.stdout
    rows = table("out-sweep/sweep.csv")
    assert [row["gravity.softening"] for row in rows] == ["0.01", "0.02", "-1"]
    assert [row["state"] for row in rows] == ["finished", "finished", "failed"]
    assert [row["step"] for row in rows] == ["20", "20", ""]
    run("job.yaml", "--set=gravity.softening=0.02", "--set=compute.threads=1")
    assert_same_run("out", "out-sweep/softening=0.02")


def test_a_sweep_that_was_ended_goes_on_where_it_was(folder):
    words = ["sweep", "job.yaml", "--set", "gravity.softening=0.01,0.02,0.03", "--jobs", "1"]
    run(*words)
    first, second, third = (Path(f"out-sweep/softening={n}") for n in ("0.01", "0.02", "0.03"))
    untouched = (first / "log.txt").read_text()
    (second / "checkpoint-0000000020.h5").unlink()
    with open(third / CLAIM, "w") as claim:  # as if another process were at it
        fcntl.flock(claim, fcntl.LOCK_EX)
        for checkpoint in third.glob("checkpoint-*"):
            checkpoint.unlink()
        said = call(folder, *words)
    assert said.returncode == 75
    assert "not all runs are finished: give the same command again" in said.stdout
    assert (first / "log.txt").read_text() == untouched
    assert "resuming out-sweep/softening=0.02 at step 10" in (second / "log.txt").read_text()
    assert [row["state"] for row in table("out-sweep/sweep.csv")] == [
        "finished",
        "finished",
        "not begun",
    ]
    said = call(folder, *words, "--set", "time.dt=2e-2").stdout
    assert "holds a run of another configuration (time.dt: 0.01 there, 0.02 now)" in said
    assert (first / "log.txt").read_text() == untouched


def test_a_run_that_stops_as_asked_has_ended(folder):
    (folder / "job.yaml").write_text(JOB + "stop: [{escape: 1.05}]\n")
    words = ["sweep", "job.yaml", "--set", "time.steps=15,500", "--jobs", "1"]
    for _ in range(2):
        assert "stopped" in run(*words).stdout
        rows = table("out-sweep/sweep.csv")
        assert [row["state"] for row in rows] == ["finished", "stopped"]
        assert "as asked" in rows[1]["reason"]
    assert "resuming" not in Path("out-sweep/steps=500/log.txt").read_text()


def test_a_sweep_of_which_no_run_can_be_is_refused(folder):
    text = refused(folder, "sweep", "job.yaml", "--set", "time.dtt=1,2")
    assert "did you mean 'dt'?" in text


def test_each_rank_does_runs_alone(mpirun, folder):
    words = ["-m", "hybrid_nbody", "sweep", "job.yaml", "--set", "gravity.softening=0.1,0.2,0.3"]
    result = mpirun(2, *words, cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("finished in") == 3
    states = [row["state"] for row in table("out-sweep/sweep.csv")]
    assert states == ["finished"] * 3


PAGE = Path(__file__).resolve().parents[2] / "docs" / "branch-and-sweep.md"


def test_the_examples_of_the_page(folder):
    """A branch with half the step, and a sweep of eight softenings, by two processes."""
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    texts = [text for kind, text in blocks if kind in ("sh", "yaml")]
    assert all(text.count("\n") <= 12 for text in texts)
    (folder / "cluster.yaml").write_text(next(text for kind, text in blocks if kind == "yaml"))
    said = ""
    for line in "".join(text for kind, text in blocks if kind == "sh").splitlines():
        words = [found for word in line.split()[1:] for found in glob.glob(word) or [word]]
        single = words[0] == "sweep" and "--together" not in words
        result = call(folder, *words, *(["--jobs", "2"] if single else []))
        assert result.returncode == 0, result.stderr
        said += result.stdout
    assert len(table("cluster-sweep/sweep.csv")) == 8
    assert {row["state"] for row in table("cluster-sweep/sweep.csv")} == {"finished"}
    assert len(table("together/sweep.csv")) == 8
    assert "9 runs, each against cluster" in said
