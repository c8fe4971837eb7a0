"""Whole runs of a fluid, as a user starts them: totals of the course, bits over ranks, restarts,
refusals.
"""

import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.command import refused
from support.runs import assert_same_run, run, run_in_ways

ROOT = Path(__file__).parents[1]
COURSE_EVENTS = ROOT.parent / "shared" / "reference" / "events-course.txt"

ONE_THREAD = "compute.backend=cpu", "compute.threads=1"
"""Several wait for each other where tests share the cores."""

CONFIG = """\
model: fluid
title: test
grid: {cells: [12, 10, 14]}
fluid: {grid: collocated, viscosity: 1e-3, diffusion: 1e-3}
solver: {max_iterations: 20, tolerance: 1e-6}
sources:
  events:
    - {steps: [0, 3], density: 2, sphere: {centre: [5, 5, 5], radius: 2}}
    - {step: 1, velocity: [3, -1, 2]}
    - {step: 12, velocity: [0, 0, -2], mode: add, box: [[2, 8], [2, 8], [3, 9]]}
time: {dt: 0.1, steps: 20}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 4}
  diagnostics: {every_steps: 2}
  checkpoint: {every_steps: 5, keep: 2}
"""


@pytest.fixture
def job(tmp_path):
    """Return a configuration file; its run goes to ``tmp_path / "out"``."""
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG.replace("OUT", str(tmp_path / "out")))
    return path


@pytest.fixture(scope="module")
def reference_run(tmp_path_factory):
    """Return the folder of the uninterrupted run on one rank and thread; tests only read it."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "job.yaml").write_text(CONFIG.replace("OUT", str(folder / "out")))
    run(folder / "job.yaml")
    return folder / "out"


def last_total(folder):
    """Return the total density at the end of a run, ghosts included."""
    with h5py.File(folder / "trajectory.h5", "r") as file:
        return file["diagnostics/total_density_with_ghosts"][-1]


# ---- Totals of the course ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "settings", "total"),
    [
        (42, (), 162887.8),
        (42, ("sources.carry_over=false",), 38.9511),
        (42, ("solver.method=lexicographic",), 160074.0),
        (84, (), 119693.7),
        (84, ("sources.carry_over=false",), 45.9216),
    ],
)
def test_totals_of_the_plume(tmp_path, size, settings, total):
    options = [
        f"--set={setting}"
        for setting in (*settings, *ONE_THREAD, f"output.directory={tmp_path}/out")
    ]
    run(ROOT / "input" / f"plume_{size}.yaml", *options)
    np.testing.assert_allclose(last_total(tmp_path / "out"), total, rtol=1e-4, atol=0)


@pytest.mark.skipif(not COURSE_EVENTS.exists(), reason="the course's list of events is not here")
@pytest.mark.parametrize(
    ("settings", "total"),
    [
        ((), 83230.9),
        (("solver.method=lexicographic",), 81981.8),
        (("sources.carry_over=false",), 48.927),
    ],
)
def test_totals_of_the_courses_own_list(tmp_path, settings, total):
    path = tmp_path / "course.yaml"
    text = (ROOT / "input" / "plume_42.yaml").read_text()
    head, tail = text[: text.index("  events:")], text[text.index("time:") :]
    path.write_text(f"{head}  file: {COURSE_EVENTS}\n{tail}")
    options = [
        f"--set={setting}"
        for setting in (*settings, *ONE_THREAD, f"output.directory={tmp_path}/out")
    ]
    run(path, *options)
    np.testing.assert_allclose(last_total(tmp_path / "out"), total, rtol=1e-4, atol=0)


# ---- Bits and restarts ---------------------------------------------------------------------------


WAYS = {
    "two-ranks-of-two-threads": (2, "compute.threads=2"),
    "three-ranks": (3,),
    "four-ranks": (4,),
    "uneven-slabs": (3, "compute.balance=[4, 1, 2]"),
}
"""Ranks and settings that must not change a bit."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory, mpirun, reference_run):
    """Return the folder in which each of these runs is, in a folder of its name.

    The one on one rank has compiled what they need.
    """
    folder = tmp_path_factory.mktemp("runs")
    (folder / "job.yaml").write_text(CONFIG)
    run_in_ways(mpirun, folder / "job.yaml", WAYS)
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_bits_do_not_depend_on_ranks_threads_and_slabs(runs, reference_run, way):
    assert_same_run(runs / way, reference_run)


@pytest.mark.parametrize("settings", [(), ("sources.carry_over=true",)])
def test_a_run_resumed_on_other_ranks_equals_one_that_was_not_interrupted(
    job, tmp_path, settings, mpirun
):
    options = [
        f"--set={setting}" for setting in (*settings, "output.checkpoint={every_steps: 5, keep: 5}")
    ]
    run(job, *options)
    shutil.copytree(tmp_path / "out", tmp_path / "reference")
    for step in (10, 15, 20):
        (tmp_path / "out" / f"checkpoint-{step:010d}.h5").unlink()
    result = mpirun(2, "-m", "hybrid_nbody", "resume", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert_same_run(tmp_path / "out", tmp_path / "reference")


def test_checkpoints_between_rows_change_no_row(reference_run, tmp_path):
    folder = tmp_path / "out"
    words = f"output.directory={folder}", "output.checkpoint=null"
    run(reference_run.parent / "job.yaml", *(f"--set={word}" for word in words))
    assert_same_run(folder, reference_run)


def test_a_file_of_events_is_not_needed_to_resume(job, tmp_path):
    events = tmp_path / "events.txt"
    events.write_text("20\nsource 5 2\nforce 1 0 2 15\n")
    run(
        job,
        "--set",
        f"sources.file={events}",
        "--set",
        f"output.directory={tmp_path / 'reference'}",
    )
    run(
        job,
        "--set",
        f"sources.file={events}",
        "--set",
        "time.steps=16",
        "--set",
        "output.trajectory=null",
    )
    events.unlink()
    run("resume", tmp_path / "out", "--set", "time.steps=20")
    assert last_total(tmp_path / "out") == last_total(tmp_path / "reference")


# ---- Refusals ------------------------------------------------------------------------------------


def test_fewer_planes_than_ranks_are_refused_with_the_numbers(job, tmp_path, mpirun):
    result = mpirun(
        4, "-m", "hybrid_nbody", job, "--set", "grid.cells=[8, 8, 3]", "--set", "sources.events=[]"
    )
    assert result.returncode == 2
    assert re.search(r"grid.cells: 3 planes along z for 4 ranks", result.stderr), result.stderr
    assert not (tmp_path / "out").exists()


def test_lexicographic_needs_a_single_rank(job, mpirun):
    result = mpirun(2, "-m", "hybrid_nbody", job, "--set", "solver.method=lexicographic")
    assert result.returncode == 2
    assert "runs on one rank (2 were started); use red-black" in result.stderr


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("grid.cells=[2, 8, 8]", "at least 3"),
        ("time.steps=10", "sources.events"),
        ("fluid.boundary=slippery", "free-slip"),
    ],
)
def test_bad_input_is_refused(job, tmp_path, setting, words):
    assert words in refused(tmp_path, job, "--set", setting)


def test_a_fluid_that_is_no_number_any_more_ends_with_exit_3(job, tmp_path):
    result = run(
        job, "--set", "sources.events=[{steps: [5, 6], density: 3e38, mode: add}]", check=3
    )
    assert "plane" in result.stderr
    assert "events of huge numbers" in result.stderr


def test_what_advection_makes_is_warned_of_on_the_way_and_at_the_end(job, tmp_path):
    """Taken back or not; and a pressure that is not solved."""
    solver = ["--set", "solver={method: red-black, max_iterations: 1}"]
    assert "which fluid.conserve took back" in run(job, *solver).stdout
    said = run(job, *solver, "--set", "fluid.conserve=false", "--overwrite").stdout
    assert "fluid.conserve takes it back" in said
    log = (tmp_path / "out" / "log.txt").read_text()
    for name in ("advection_error", "poisson_residual"):
        warning = rf"warning: {name} is -?[0-9.e-]+, beyond 0\.0\d: "
        assert len(re.findall(warning, said)) == len(re.findall(warning, log)) == 2
