"""Sweeps: every combination of some values, each in a directory of its own."""

import csv
import fcntl
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time
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


def test_a_sweep_of_another_configuration_leaves_the_earlier_one(folder):
    words = ["sweep", "job.yaml", "--jobs", "1", "--set", "gravity.softening=0.01,0.02"]
    run(*words)
    before = Path("out-sweep/sweep.csv").read_bytes()
    said = refused(folder, *words, "--set", "time.dt=2e-2")
    assert said.startswith(
        "out-sweep/softening=0.01 holds a run of another configuration (time.dt: 0.01 there, 0.02 "
        "now); give --overwrite, or another --output"
    )
    assert Path("out-sweep/sweep.csv").read_bytes() == before
    run(*words, "--set", "time.dt=2e-2", "--overwrite")
    assert [row["time"] for row in table("out-sweep/sweep.csv")] == ["0.4", "0.4"]


def test_the_table_keeps_the_rows_of_other_runs_that_are_there(folder):
    words = ["sweep", "job.yaml", "--jobs", "1", "--set"]
    run(*words, "gravity.softening=0.01,0.02,0.03")
    shutil.rmtree("out-sweep/softening=0.03")
    said = run(*words, "gravity.softening=0.01,0.04").stdout
    assert "table in out-sweep/sweep.csv; rows kept of other runs that are there: 1" in said
    rows = table("out-sweep/sweep.csv")
    assert [row["gravity.softening"] for row in rows] == ["0.01", "0.04", "0.02"]
    assert [row["step"] for row in rows] == ["20"] * 3


def test_the_table_of_systems_computed_together_is_not_overwritten(folder):
    (folder / "out-sweep").mkdir()
    words = ["sweep", "job.yaml", "--set", "gravity.softening=0.01,0.02"]
    (folder / "out-sweep/sweep.csv").write_text("gravity.softening,state,file\n1,finished,a\n")
    said = refused(folder, *words)
    assert "is not the table of a sweep of single runs: it has no column 'directory'" in said
    (folder / "out-sweep/sweep.csv").write_text("gravity.softening,directory\n1,softening=1\n")
    assert "is of a sweep without --together" in refused(folder, *words, "--together")


FEW = """\
model: nbody
bodies: {kind: two-body, eccentricity: 0.5}
time: {dt: 0.02, steps: 300}
compute: {backend: cpu}
output: {directory: out}
"""


@pytest.mark.parametrize("how", ["--jobs=1", "--together"])
def test_runs_beyond_a_limit_are_told_of_and_marked(folder, how):
    (folder / "job.yaml").write_text(FEW)
    said = run("sweep", "job.yaml", "--set", "gravity.softening=0,2", how).stdout
    assert re.search(
        r"^1 of 2 runs exceed \|relative energy error\| = 0.001: softening=0 \(\S+\); "
        "do not trust its orbits; (take|halve) time.dt",
        said,
        re.MULTILINE,
    )
    rows = table("out-sweep/sweep.csv")
    assert [row["warning"] for row in rows] == ["relative_energy_error", ""]
    assert [row["state"] for row in rows] == ["finished"] * 2


FLUID = """\
model: fluid
grid: {cells: 16}
time: {dt: 0.05, steps: 2}
compute: {backend: cpu}
fluid: {grid: collocated}
solver: {method: red-black, max_iterations: 1}
sources:
  events: [{steps: [0, 1], velocity: [1, 1, 0], sphere: {centre: [7.5, 4, 7.5], radius: 2}}]
output: {directory: out}
"""


def test_fluids_beyond_a_limit_are_told_of(folder):
    (folder / "job.yaml").write_text(FLUID)
    said = run("sweep", "job.yaml", "--set", "solver.max_iterations=1,400", "--jobs", "1").stdout
    assert re.search(
        r"^1 of 2 runs exceed \|poisson residual\| = 0.05: max_iterations=1 \(\S+\); the pressure "
        "is not solved; take solver.method multigrid, or more solver.max_iterations$",
        said,
        re.MULTILINE,
    )
    warnings = [row["warning"] for row in table("out-sweep/sweep.csv")]
    assert warnings == ["poisson_residual", ""]


@pytest.mark.parametrize("to_all", [False, True])
def test_a_ctrl_c_is_told_of_once(folder, to_all):
    """Whether the terminal sends it to all processes, or somebody to the first."""
    (folder / "job.yaml").write_text(JOB.replace("steps: 20", "steps: 200000000"))
    words = ["sweep", "job.yaml", "--set", "gravity.softening=0.01,0.02,0.03", "--jobs", "3"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hybrid_nbody", *words],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    logs = [Path(f"out-sweep/softening={n}/log.txt") for n in ("0.01", "0.02", "0.03")]
    try:
        until = time.monotonic() + 60
        while not all(log.exists() and "step " in log.read_text() for log in logs):
            assert time.monotonic() < until
            time.sleep(0.1)
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert errors.count("\n") == 1, errors
    assert errors.startswith("hybrid_nbody: Ctrl-C: finishing the current step")
    assert "SIGTERM" not in output
    assert "stopped early" not in output
    assert "not all runs are finished: give the same command again" in output


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
