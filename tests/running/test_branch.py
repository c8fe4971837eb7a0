"""Runs that start from a state of another run."""

import re
import shutil

import numpy as np
import pytest
from support.command import refused
from support.runs import contents, run

from hybrid_nbody.config.loader import loads
from hybrid_nbody.errors import InputError
from hybrid_nbody.running.branch import branch_of
from hybrid_nbody.running.models import MODELS

BODIES = """\
model: nbody
bodies: {kind: figure-eight}
time: {dt: 1e-2, steps: 30}
compute: {backend: cpu, threads: 1}
output:
  directory: bodies
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 10}
  checkpoint: {every_steps: 20, keep: 9}
"""

FLUID = """\
model: fluid
grid: {cells: [8, 6, 10]}
fluid: {grid: collocated}
solver: {max_iterations: 5}
sources: {events: [{steps: [0, 9], density: 1}, {step: 2, velocity: [0, 1, 0]}]}
time: {dt: 0.1, end: 2}
compute: {backend: cpu, threads: 1}
output:
  directory: fluid
  trajectory: {every_steps: 5}
  diagnostics: {every_steps: 5}
  checkpoint: {every_steps: 10, keep: 9}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of three bodies with checkpoints at steps 20 and 30, and one of a fluid."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, text in {"bodies": BODIES, "fluid": FLUID}.items():
            (folder / f"{name}.yaml").write_text(text)
            run(f"{name}.yaml")
    return folder


@pytest.fixture
def folder(runs, tmp_path, monkeypatch):
    """A folder with copies of both, in which the test works."""
    shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_half_the_step_goes_on_in_time_from_the_same_bodies(folder):
    """As a run of the bodies in the checkpoint does, from time 0."""
    said = run("run", "--from", "bodies@step:20", "--set", "time.dt=5e-3").stdout
    assert "from bodies, step 20, t = 0.2" in said
    found = contents("bodies-from-20")
    assert found["step"].tolist() == [40, 50, 60]
    np.testing.assert_allclose(found["time"], [0.2, 0.25, 0.3], rtol=1e-14, atol=0)
    assert found["diagnostics/step"].tolist() == [40, 50, 60]
    path = "bodies/checkpoint-0000000020.h5"
    of_file = [f"bodies={{kind: file, path: {path}}}", "time={dt: 5e-3, steps: 20}"]
    run("bodies.yaml", *(f"--set={one}" for one in (*of_file, "output.directory=file")))
    np.testing.assert_array_equal(
        found["bodies/position"], contents("file")["bodies/position"], strict=True
    )


def test_a_frame_is_as_good_as_a_checkpoint(folder):
    run("run", "--from", "bodies@step:20", "--set=time.dt=2e-2", "--set=output.directory=one")
    for checkpoint in folder.glob("bodies/checkpoint-*"):
        checkpoint.unlink()
    run("run", "--from", "bodies@time:0.2", "--set=time.dt=2e-2", "--set=output.directory=two")
    one, two = contents("one"), contents("two")
    assert one["step"].tolist() == two["step"].tolist() == [10, 15]
    np.testing.assert_array_equal(one["bodies/position"], two["bodies/position"], strict=True)


@pytest.mark.parametrize(("at", "error"), [("step:10", 0), ("time:0.5", 1e-6)])
def test_a_fluid_goes_on_as_if_it_had_not_been_branched(folder, at, error):
    """From a frame, as at step 5, without the density that is still to be taken back."""
    run("run", "--from", f"fluid@{at}", "--set=output.directory=out")
    whole, found = contents("fluid"), contents("out")
    first = len(whole["step"]) - len(found["step"])
    for name in ("step", "time", "fluid/density", "fluid/velocity"):
        np.testing.assert_allclose(
            found[name], whole[name][first:], rtol=0, atol=error, err_msg=name
        )


def test_where_it_comes_from_is_kept_when_it_is_resumed(folder):
    run("run", "--from", "bodies@step:20", "--set=output.directory=out")
    run("resume", "out", "--set=time.steps=35")
    origin = "started from  bodies, step 20, t = 0.2, checkpoint-0000000020.h5"
    assert origin in run("info", "out").stdout
    assert origin in run("info", "out/checkpoint-0000000035.h5").stdout
    assert "started from" not in run("info", "bodies").stdout


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        ("bodies@step:25", [], "checkpoints of step 20 (t = 0.2), step 30 (t = 0.3); frames of"),
        ("bodies@time:x", [], "the time must be a number (got 'x')"),
        ("bodies@20", [], "write @step:20 or @time:20"),
        ("nothing", [], "no such directory; give"),
        ("bodies.yaml", [], "a file, not a directory; give"),
        ("bodies", [], "give a later end: --set time.end=..."),
        ("bodies@step:20", ["bodies.n=4"], "keeps bodies.n"),
        ("bodies@step:20", ["time.dt=0.03"], "0.03 does not divide t = 0.2"),
        ("bodies@step:20", ["output.directory=bodies"], "the run to start from, which stays"),
        ("fluid@step:5", ["time.dt=0.05"], "one at step 9 is still to come"),
    ],
)
def test_refusals_say_what_is_at_hand_and_what_to_do(folder, source, settings, message):
    with pytest.raises(InputError, match=re.escape(message)):
        branch_of(source, settings)


def test_the_command_line_says_how_it_is_written(folder):
    assert "not both" in refused(folder, "run", "bodies.yaml", "--from", "bodies")
    branch = "hybrid-nbody run --from bodies --set time.dt=1"
    assert branch in refused(folder, "resume", "bodies", "--set", "time.dt=1")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("output.stride=2", r"1 of every 2 cells along an axis \(output.stride\)"),
        ("output.fields=[density]", r"no velocity \(output.fields\)"),
        ("output.planes=[3]", r"some planes alone \(output.planes\)"),
    ],
)
def test_thinned_frames_of_a_fluid_are_refused(setting, message):
    with pytest.raises(InputError, match=message):
        MODELS["fluid"].sources(loads(FLUID, "fluid.yaml", [setting], models=MODELS))


def test_rounded_frames_of_bodies_are_taken_with_a_warning():
    setting = "output.trajectory.precision=float32"
    config = loads(BODIES, "bodies.yaml", [setting], models=MODELS)
    assert "float32" in MODELS["nbody"].sources(config)[1]


def test_events_that_are_past_stay_so(folder):
    """Steps of twice the length would put them at steps 5 to 9 once more."""
    run("run", "--from", "fluid@step:10", "--set=time.dt=0.2", "--set=output.directory=out")
    density = contents("out")["diagnostics/total_density"]
    np.testing.assert_allclose(density, density[0], rtol=1e-6, atol=0)
