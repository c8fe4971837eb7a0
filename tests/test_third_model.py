"""A model from outside the package has every command, by one registration and nothing else."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support import heat
from support.command import ROOT
from support.forked import run_fast
from support.heat import HeatKind, cosine_mode, decay_of_a_step
from support.runs import assert_same_run

from hybrid_nbody.cli.main import main
from hybrid_nbody.config.loader import load
from hybrid_nbody.files.run import open_run
from hybrid_nbody.running.models import MODELS, register

SCRIPT = Path(heat.__file__)
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([ROOT, str(SCRIPT.parents[1])])}

PLATE = """\
model: heat
title: A plate
plate: {rows: 24, columns: 15, diffusivity: 0.2, waves: 2}
time: {dt: 0.5, steps: 60}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 5}
  checkpoint: {every_steps: 20, keep: 2}
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Return the folder of an uninterrupted run on one rank; tests only read it."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "plate.yaml").write_text(PLATE.replace("OUT", str(folder / "out")))
    with_heat("run", folder / "plate.yaml")
    return folder / "out"


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Return a configuration in the current folder, whose run goes to ``out`` there."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plate.yaml"
    path.write_text(PLATE.replace("OUT", "out"))
    return path


@pytest.fixture
def finished(job, reference):
    """Return the folder ``out`` of the run, finished."""
    return Path(shutil.copytree(reference, "out"))


@pytest.fixture
def told(monkeypatch, capsys):
    """Return a function that calls a command in this process, which knows the model meanwhile."""
    monkeypatch.setitem(MODELS, "heat", HeatKind())

    def call(*arguments, code=0):
        assert main([str(argument) for argument in arguments]) == code
        found = capsys.readouterr()
        return found.err if code else found.out

    return call


def with_heat(*arguments, check=0):
    """Run a command of the script that registers the model, on one rank; return what it printed."""
    result = run_fast([SCRIPT, *arguments], environment=ENVIRONMENT, timeout=120)
    assert result.returncode == check, result.stdout + result.stderr
    return result.stdout


def on_ranks(mpirun, ranks, *arguments):
    """Run a command of the script on several ranks; return what it printed."""
    result = mpirun(ranks, SCRIPT, *arguments, env=ENVIRONMENT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_a_mode_decays_as_it_must(job, reference):
    """The eigenvalue of the five-point stencil to rounding, that of the Laplacian to its error."""
    config = load(job, models={"heat": HeatKind()})
    start = cosine_mode(config.plate)
    with open_run(reference) as run:
        steps = run.step
        assert steps.tolist() == list(range(0, 61, 10))
        factors = decay_of_a_step(config) ** steps
        temperatures = run.field("heat/temperature", slice(None))
        expected = factors[:, None, None] * start
        np.testing.assert_allclose(temperatures, expected, rtol=0, atol=1e-13)
        largest = run.diagnostics["largest"]
        times = run.diagnostics.time
        assert np.abs(run.diagnostics["heat"]).max() < 1e-12
    lengths = np.array([config.plate.rows, config.plate.columns])
    rate = config.plate.diffusivity * ((np.pi * config.plate.waves / lengths) ** 2).sum()
    np.testing.assert_allclose(largest / largest[0], np.exp(-rate * times), rtol=0.05)


def test_a_run_that_is_resumed_on_other_ranks_has_the_bits_of_one_that_was_not(
    job, reference, tmp_path, mpirun
):
    """Two ranks, then three, then one; the last part begins between two checkpoints."""
    out = ["--set", "output.directory=parts"]
    text = on_ranks(mpirun, 2, "run", job, *out, "--set", "time.steps=25")
    assert "exchange halo over host" in text
    assert "12 rows" in text
    text = on_ranks(mpirun, 3, "resume", "parts", "--set", "time.steps=47")
    assert "resuming parts at step 25" in text
    assert "8 rows" in text
    with_heat("resume", "parts", "--set", "time.steps=60")
    assert_same_run(tmp_path / "parts", reference)


def test_a_run_whose_checkpoint_is_lost_goes_on_from_the_one_before(finished, reference):
    (finished / "checkpoint-0000000060.h5").unlink()
    assert "at step 40" in with_heat("resume", finished)
    assert_same_run(finished, reference)


def test_check_says_what_it_would_do(job, told):
    lines = told("check", job).splitlines()
    assert lines[0] == f"{job}: a valid configuration"
    assert "  plate        24 x 15 cells" in lines
    assert "  memory       about 3.12 kB per rank: 1 array" in lines
    assert "  work         2.16e+04 cells stepped" in lines
    assert lines[-1].startswith("  output       out: 7 frames, 13 rows of diagnostics, 2 check")


def test_a_faulty_configuration_names_its_keys_and_the_models(job, told):
    options = ["--set", "plate.rows=0", "--set", "plate.colums=3"]
    text = told("check", job, *options, code=2)
    assert "plate.rows: must be at least 1 (got 0)" in text
    assert "plate.colums: unknown key; did you mean 'columns'?" in text
    text = told("check", job, "--set", "model=gravy", code=2)
    assert "must be one of nbody, fluid, heat" in text


def test_what_a_resumed_run_may_change_is_said_by_the_model(finished, told):
    text = told("resume", finished, "--set", "plate.diffusivity=1", code=2)
    assert "a resumed run can only change title, time.end" in text


def test_a_branch_of_it_goes_on_with_another_diffusivity(finished, told):
    folder = finished.with_name("branch")
    words = ["--set", "plate.diffusivity=0.05", "--set", "time.steps=70"]
    told("run", "--from", finished, *words, "--set", f"output.directory={folder}")
    with open_run(folder) as run:
        assert run.step.tolist() == [60, 70]


def test_more_ranks_than_rows_are_refused_by_the_model(job, mpirun):
    result = mpirun(3, SCRIPT, "run", job, "--set", "plate.rows=2", env=ENVIRONMENT)
    assert result.returncode == 2
    assert result.stderr.count("plate.rows: a rank needs one row at least") == 1


def test_shares_follow_given_weights(job, reference, tmp_path, mpirun):
    options = ["--set", "compute.balance=[3, 1]", "--set", "output.directory=uneven"]
    assert "18 rows" in on_ranks(mpirun, 2, "run", job, *options)
    assert_same_run(tmp_path / "uneven", reference)


# --- readers ------------------------------------------------------------------------------------


def test_info_tells_of_the_run_the_most_telling_first(finished, told):
    lines = told("info", finished).splitlines()
    assert "  model         heat" in lines
    assert "  temperature   24 x 15 numbers a frame" in lines
    assert next(line for line in lines if "last values" in line).split()[2] == "largest"


def test_a_run_of_a_model_that_is_not_known_is_told_of_and_drawn(finished, capsys):
    """By the program as it is, without the registration."""
    assert "heat" not in MODELS
    assert main(["info", "out"]) == 0
    told = capsys.readouterr().out
    assert "  temperature   24 x 15 numbers a frame\n" in told
    assert main(["info", "out/checkpoint-0000000060.h5"]) == 0
    assert "time 30, step 60" in capsys.readouterr().out
    assert main(["plot", "out"]) == 0
    assert capsys.readouterr().out == "out/diagnostics.png\n"
    with Image.open("out/diagnostics.png") as picture:
        assert picture.width == 1440
    assert main(["movie", "out"]) == 2
    assert main(["report", "out"]) == 0
    assert "The diagnostics of the run against time." in Path("out/report.html").read_text()


def test_plot_draws_the_diagnostics(finished, told):
    assert told("plot", finished) == "out/diagnostics.png\n"
    text = told("plot", finished, "--kind", "slices", code=2)
    assert "no picture of kind 'slices' of a run of model 'heat'; there are diagnostics" in text


def test_two_runs_are_compared(finished, reference, told):
    assert "no difference, to the last bit" in told("compare", finished, reference)


# --- the table ----------------------------------------------------------------------------------


def test_a_name_is_given_once(monkeypatch):
    monkeypatch.setattr("hybrid_nbody.running.models.MODELS", dict(MODELS))
    register(HeatKind())
    with pytest.raises(ValueError, match="there is a model of the name 'heat' already"):
        register(HeatKind())


OF_MODELS = ("nbody", "fluid", "api", "benchmarks")
"""Packages that may know models by their names."""

PACKAGE = Path(ROOT) / "hybrid_nbody"


def general_sources():
    """Return all files of the package but those of models."""
    found = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    return [path for path in found if path.parts[0] not in OF_MODELS]


@pytest.mark.parametrize("model", MODELS)
def test_no_general_package_names_a_model(model):
    """But for the table of models, and for the configuration that `square` writes."""
    sources = general_sources()
    assert {path.parts[0] for path in sources} >= {"cli", "running", "output", "config"}
    texts = {str(path): (PACKAGE / path).read_text() for path in sources}
    words = (f'"{model}"', f"hybrid_nbody.{model}")
    named = {path for path, text in texts.items() if any(word in text for word in words)}
    assert named <= {"running/models.py", "cli/square.py"}
