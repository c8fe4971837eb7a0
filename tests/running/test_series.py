"""Runs of few bodies with many frames: the host looks at several copies of the state at once."""

import numpy as np
import pytest
from support.command import call
from support.ranks import answer_of
from support.runs import contents, run

FEW = """\
model: nbody
bodies: {kind: plummer, n: 65}
gravity: {softening: 0.05}
time: {dt: 1e-3, steps: 200}
compute: {threads: 1}
output: {directory: out, trajectory: {every_steps: 3}, diagnostics: null, checkpoint: null}
"""

RUNAWAY = """\
model: nbody
bodies: {kind: file, path: fast.csv}
gravity: {softening: 1, precision: double}
time: {dt: 1, steps: 400}
compute: {threads: 1}
output: {directory: out, trajectory: {every_steps: 3}, diagnostics: null, checkpoint: null}
"""

FAST = """\
x,y,z,vx,vy,vz,m
0,0,0,1e152,0,0,1e-9
1,0,0,0,0,0,1e-9
"""

COLLISION = """\
model: nbody
bodies: {kind: file, path: pair.csv}
time: {dt: 0.01, steps: 400, integrator: hermite4}
compute: {threads: 1, backend: cpu}
output: {directory: out, trajectory: {every_steps: 1}, diagnostics: null, checkpoint: null}
"""

PAIR = """\
x,y,z,vx,vy,vz,m
-0.5,0,0,0,0,0,1
0.5,0,0,0,0,0,1
"""

SERIES = ()
ONE_BY_ONE = ("--set", "stop=[{closest: 1e-30}]")
"""A look at a condition in every step leaves no frame between two events."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.yaml").write_text(FEW)
    (tmp_path / "runaway.yaml").write_text(RUNAWAY)
    (tmp_path / "fast.csv").write_text(FAST)
    (tmp_path / "collision.yaml").write_text(COLLISION)
    (tmp_path / "pair.csv").write_text(PAIR)
    return tmp_path


@pytest.mark.parametrize(
    "held",
    [
        "",
        "every_body: 2",
        "ids: [64, 3, 7]",
        "precision: float32",
        "fields: [position]",
        "ids: [5], fields: [velocity], precision: float32",
    ],
)
def test_frames_of_a_series_are_those_taken_one_by_one(folder, backend_name, held):
    frames = f"--set=output.trajectory={{every_steps: 3, {held}}}"
    check_series(200, f"--set=compute.backend={backend_name}", frames)


@pytest.mark.parametrize("bodies", [65, 300])
def test_frames_between_which_bodies_are_sorted_are_those_too(folder, bodies, backend_name):
    settings = (f"--set=bodies.n={bodies}", "--set=time.steps=1100")
    check_series(1100, f"--set=compute.backend={backend_name}", *settings)


def check_series(steps, *settings):
    """Compare the frames of a run with those taken one by one."""
    run("run", "few.yaml", *settings)
    series = contents("out")
    assert series["step"].tolist() == sorted({*range(0, steps, 3), steps})
    run("run", "few.yaml", *settings, "--overwrite", *ONE_BY_ONE)
    one_by_one = contents("out")
    assert series.keys() == one_by_one.keys()
    for name, values in series.items():
        np.testing.assert_array_equal(values, one_by_one[name], err_msg=name)


COUNTED = """
import json, sys
from hybrid_nbody.cli.main import main
from hybrid_nbody.output.trajectory import Trajectory

steps, copy_frames = [], Trajectory.copy_frames

def counted(self, snapshots):
    steps.extend(snapshots.steps.tolist())
    return copy_frames(self, snapshots)

Trajectory.copy_frames = counted
assert main(sys.argv[1:]) == 0
print(json.dumps(steps))
"""


@pytest.mark.parametrize(
    ("setting", "most"),
    [
        ("title=few", 66),
        ("output.trajectory={every_time: 0.003}", 66),
        ("output.diagnostics={every_steps: 6}", 33),
        ("output.trajectory={every_steps: 3, every_body: 2}", 66),
        ("output.trajectory={every_steps: 3, fields: [velocity], precision: float32}", 66),
        ("stop=[{closest: 1e-30}]", 0),
    ],
)
def test_frames_come_in_series_where_nothing_else_happens(folder, setting, most):
    steps = answer_of(COUNTED, "run", "few.yaml", "--set", setting)
    frames = contents("out")["step"].tolist()
    assert len(frames) == 68
    assert most - 5 <= len(steps) <= most
    assert set(steps) <= set(frames)


def outcomes(folder, name, *settings):
    """Return what a run says at its end, and the steps of its frames, in a series and without."""
    found = []
    for way in (SERIES, ONE_BY_ONE):
        result = call(folder, "run", name, "--overwrite", *settings, *way)
        assert result.returncode == 3, result.stdout + result.stderr
        found.append((result.stderr, contents("out")["step"].tolist()))
    return found


def test_a_run_that_goes_wrong_keeps_the_frames_before_and_says_the_same(folder, backend_name):
    device = f"--set=compute.backend={backend_name}"
    series, one_by_one = outcomes(folder, "runaway.yaml", device)
    assert series == one_by_one
    message, steps = series
    assert steps == list(range(0, 135, 3))
    assert "step 135 (t = 135): velocity of body 0 is not a finite number" in message
    assert "the state was good at step 132" in message


@pytest.mark.parametrize("held", ["position", "velocity"])
def test_a_run_that_leaves_all_numbers_says_the_same_whatever_frames_hold(folder, held):
    (folder / "fast.csv").write_text("x,y,z,vx,vy,vz,m\n1.78e308,0,0,1e304,0,0,1e-9\n")
    frames = f"--set=output.trajectory={{every_steps: 1, fields: [{held}]}}"
    series, one_by_one = outcomes(folder, "runaway.yaml", frames, "--set=time.integrator=euler")
    assert series == one_by_one
    assert "position of body 0 is not a finite number" in series[0]
    assert len(series[1]) > 100


def test_a_step_that_cannot_be_taken_loses_no_frame_before_it(folder):
    series, one_by_one = outcomes(folder, "collision.yaml")
    assert series == one_by_one
    message, steps = series
    assert "too short" in message
    assert len(steps) > 20
    assert steps == list(range(len(steps)))
