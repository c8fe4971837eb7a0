"""Whole runs, as a user starts them: bits over ranks and threads, stops, restarts, failures."""

import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest
from support.forked import run_fast
from support.jobs import newest_checkpoint, wait_for_checkpoint
from support.runs import assert_same_run, contents, run, run_in_ways

from hybrid_nbody.files.run import open_run

CONFIG = """\
model: nbody
title: test
seed: 3
bodies: {kind: plummer, n: 300}
gravity: {softening: 0.02, precision: single}
time: {dt: 1e-3, steps: 600}
compute: {backend: cpu}
output:
  directory: OUT
  trajectory: {every_steps: 50}
  diagnostics: {every_steps: 25}
  checkpoint: {every_steps: 100, keep: 2}
"""


@pytest.fixture
def job(tmp_path):
    """Return a configuration file; its run goes to ``tmp_path / "out"``."""
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG.replace("OUT", str(tmp_path / "out")))
    return path


@pytest.fixture(scope="module")
def reference_run(tmp_path_factory):
    """Return the folder of the uninterrupted run on one thread; tests only read it."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "job.yaml").write_text(CONFIG.replace("OUT", str(folder / "out")))
    run(folder / "job.yaml", "--set", "compute.threads=1")
    return folder / "out"


WAYS = {
    "two-threads": (1, "compute.threads=2"),
    "two-ranks": (2,),
    "three-ranks": (3,),
    "four-ranks": (4,),
    "an-empty-share": (3, "compute.balance=[3, 0, 1]"),
    "measured-shares": (2, "compute.balance=measured"),
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
def test_bits_do_not_depend_on_ranks_threads_and_shares(runs, reference_run, way):
    assert_same_run(runs / way, reference_run)


def test_more_ranks_than_bodies(job, tmp_path, mpirun):
    options = ["--set", "bodies={kind: two-body}", "--set", "time.steps=10", "--overwrite"]
    result = mpirun(4, "-m", "hybrid_nbody", job, *options)
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out")["bodies/position"].shape == (2, 2, 3)


def test_a_run_whose_bodies_go_around_is_resumed_to_the_bit_on_as_many_ranks(
    job, tmp_path, reference_run, mpirun
):
    out = tmp_path / "out"
    options = ["compute.exchange=ring", "output.checkpoint={every_steps: 50, keep: 20}"]
    result = mpirun(3, "-m", "hybrid_nbody", job, *(f"--set={option}" for option in options))
    assert result.returncode == 0, result.stderr
    assert "exchange ring over host" in result.stdout
    shutil.copytree(out, tmp_path / "whole")
    for step in range(400, 601, 50):
        (out / f"checkpoint-{step:010d}.h5").unlink()
    result = mpirun(3, "-m", "hybrid_nbody", "resume", out)
    assert result.returncode == 0, result.stderr
    assert "step 350" in result.stdout
    assert_same_run(out, tmp_path / "whole")
    energy = contents(tmp_path / "whole")["diagnostics/total_energy"]
    np.testing.assert_allclose(
        energy, contents(reference_run)["diagnostics/total_energy"], rtol=1e-6
    )


QUICK = """
import sys
from hybrid_nbody.cli.main import main
from hybrid_nbody.output import part_writer
part_writer.PAUSE = 0.1
sys.exit(main())
"""
"""The program, but for parts of a trajectory that are written at once."""


def start(ranks, job, *options):
    """Start a run on several ranks; its output can be read line by line."""
    from conftest import _mpirun, _python

    command = [*_mpirun(), "-n", str(ranks), *_python(), "-c", QUICK, str(job), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_mpirun_stops_with_a_checkpoint_and_the_run_goes_on_elsewhere(
    job, tmp_path, mpirun, stop
):
    out = tmp_path / "out"
    long = ("--set", f"time.steps={10**8}", "--set", "output.trajectory={every_steps: 1000}")
    process = start(3, job, *long)
    wait_for_checkpoint(out, 100)
    process.send_signal(stop)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 75, text
    assert "continue with: hybrid-nbody resume" in text
    stopped = contents(out)["diagnostics/step"][-1]
    end = int(stopped) + 100
    result = mpirun(2, "-m", "hybrid_nbody", "resume", out, "--set", f"time.steps={end}")
    assert result.returncode == 0, result.stderr
    run(
        job,
        *long,
        "--set",
        f"time.steps={end}",
        "--set",
        f"output.directory={tmp_path / 'reference'}",
    )
    assert_same_run(out, tmp_path / "reference")


def test_sigkill_loses_nothing_but_the_steps_since_the_checkpoint(job, tmp_path, mpirun):
    out = tmp_path / "out"
    long = ("--set", f"time.steps={10**8}", "--set", "output.checkpoint={every_steps: 2000}")
    process = start(2, job, *long)
    wait_for_rows_behind_a_checkpoint(out)
    process.kill()
    process.communicate(timeout=60)
    time.sleep(1)  # the ranks die with their launcher
    end = contents(out)["diagnostics/step"][-1] + 1000
    options = ("--set", f"time.steps={end}", "--set", "output.checkpoint={every_steps: 2000}")
    result = mpirun(3, "-m", "hybrid_nbody", "resume", out, *options)
    assert result.returncode == 0, result.stderr
    run(job, *options, "--set", f"output.directory={tmp_path / 'reference'}")
    assert_same_run(out, tmp_path / "reference")


def wait_for_rows_behind_a_checkpoint(folder, patience=60.0):
    """Return once a run has written what is cut off when it goes on from its checkpoint."""
    wait_for_checkpoint(folder, 1000)
    until = time.monotonic() + patience
    while last_row(folder) <= newest_checkpoint(folder):
        assert time.monotonic() < until, "all rows were before the newest checkpoint"
        time.sleep(0.05)


def last_row(folder):
    """Return the step of the last row of diagnostics of a run that goes on."""
    with open_run(folder) as found:  # which copes with files that are merged meanwhile
        return found.diagnostics["step"][-1]


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_is_used(
    job, tmp_path, reference_run
):
    out = tmp_path / "out"
    run(job)
    newest = out / "checkpoint-0000000600.h5"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 4
    newest.write_bytes(data)
    text = run("resume", out).stdout
    assert "warning:" in text
    assert "checkpoint-0000000600.h5: damaged" in text
    assert "at step 500" in text
    assert_same_run(out, reference_run)


def test_no_valid_checkpoint_is_exit_4_with_what_was_tried(job, tmp_path):
    out = tmp_path / "out"
    run(job, "--set", "time.steps=100")
    for path in out.glob("checkpoint-*.h5"):
        path.write_bytes(path.read_bytes()[:1000])
    before = (out / "trajectory.h5").read_bytes()
    error = run("resume", out, check=4).stderr
    assert "no checkpoint to resume from" in error
    assert "checkpoint-0000000100.h5" in error
    assert (out / "trajectory.h5").read_bytes() == before


def test_a_damaged_trajectory_is_listed_anew(job, tmp_path):
    out = tmp_path / "out"
    run(job, "--set", "time.steps=100")
    (out / "trajectory.h5").write_bytes(b"not HDF5")
    text = run("resume", out, "--set", "time.steps=200").stdout
    assert "warning: " in text
    assert "listed instead" in text
    assert contents(out)["step"].tolist() == [0, 50, 100, 150, 200]


def test_a_trajectory_damaged_beyond_use_is_kept_aside(job, tmp_path):
    out = tmp_path / "out"
    run(job, "--set", "time.steps=100")
    (out / "trajectory.h5").write_bytes(b"not HDF5")
    (out / "trajectory" / "head-0000000000.h5").write_bytes(b"not HDF5")
    text = run("resume", out, "--set", "time.steps=200").stdout
    assert "kept as trajectory.damaged.h5" in text
    assert (out / "trajectory.damaged.h5").read_bytes() == b"not HDF5"
    assert contents(out)["step"].tolist() == [100, 150, 200]


def test_wall_limit_stops_early_with_exit_75(job, tmp_path, reference_run):
    # wall-clock time counts from the start of the program: the limit is over before the first step
    text = run(job, "--set", "time.wall_limit=1s", check=75).stdout
    assert "stopped early" in text
    run("resume", tmp_path / "out", "--set", "time.wall_limit=null")
    assert_same_run(tmp_path / "out", reference_run)


def test_resume_of_a_finished_run_extends_it(job, tmp_path, reference_run):
    run(job, "--set", "time.steps=350")
    run("resume", tmp_path / "out", "--set", "time.end=0.6")
    assert_same_run(tmp_path / "out", reference_run)


def test_a_run_that_blows_up_stops_with_exit_3_and_keeps_its_good_checkpoints(job, tmp_path):
    bodies = tmp_path / "bodies.csv"  # two that fall towards each other
    bodies.write_text("x,y,z,vx,vy,vz,m\n0,0,0,0,0,0,1\n1,0,0,0,0.02,0,1\n")
    options = [
        f"--set=bodies={{kind: file, path: {bodies}}}",
        "--set=gravity.softening=0",
        "--set=time.dt=0.01",
    ]
    error = run(
        job, *options, "--set", "output.checkpoint={every_steps: 1}", "--overwrite", check=3
    ).stderr
    assert "the energy ran away" in error
    assert "step " in error
    assert "body " in error
    run("resume", tmp_path / "out", check=3)
    saved = sorted((tmp_path / "out").glob("checkpoint-*.h5"))
    assert len(saved) == 2
    for path in saved:
        with h5py.File(path) as file:
            assert np.isfinite(file["bodies/position"][()]).all()


@pytest.mark.parametrize("command", ["run", "check"])
def test_numbers_out_of_range_are_told_without_warnings(job, command):
    options = ["--set", "bodies={kind: two-body, masses: [1e300, 1e300]}", "--set", "gravity.G=1e9"]
    result = run(command, job, *options, check=3 if command == "run" else 0)
    assert "Warning" not in result.stderr
    if command == "run":
        (line,) = result.stderr.splitlines()
        assert "is not a finite number" in line


def test_a_collision_that_is_no_number_names_the_body(job, tmp_path):
    bodies = tmp_path / "bodies.csv"
    bodies.write_text("x,y,z,vx,vy,vz,m\n0,0,0,0,0,0,1\n5,0,0,0,0,0,1\n5,0,0,0,0,0,1\n")
    options = [
        f"bodies={{kind: file, path: {bodies}}}",
        "gravity.softening=0",
        "output.trajectory=null",
    ]
    error = run(job, *(word for option in options for word in ("--set", option)), check=3).stderr
    assert "step 0 (t = 0): acceleration of body 1 is not a finite number" in error
    assert "Warning" not in error
    assert not list((tmp_path / "out").glob("checkpoint-*"))


LIMITED = """\
import resource, sys
from hybrid_nbody.parallel.communicator import start_mpi
start_mpi()  # which needs files of its own
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from hybrid_nbody.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


FILLED = """\
import resource, sys
from hybrid_nbody.parallel.communicator import start_mpi
start_mpi()  # which needs files of its own
import os
reserve, name, left = os.posix_fallocate, sys.argv[1], [int(sys.argv[2])]
def reserve_and_fill(descriptor, *arguments):
    reserve(descriptor, *arguments)
    left[0] -= name in os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
    if not left[0]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
os.posix_fallocate = reserve_and_fill
from hybrid_nbody.cli.main import main
sys.exit(main(sys.argv[3:]))
"""
"""The disk fills once room is found for the nth file whose name has a word in it."""


EVERY = {"trajectory": 5, "checkpoint": 25}


@pytest.mark.parametrize(
    ("script", "frames"),
    [
        pytest.param([LIMITED, 4_000], 0, id="at the first frame"),
        pytest.param([FILLED, "checkpoint", 2], 2, id="later"),
    ],
)
def test_a_full_disk_is_exit_4_and_earlier_files_stay_readable(job, tmp_path, script, frames):
    """A file-size limit stops writing as a full disk does."""
    options = [f"--set=output.{name}={{every_steps: {n}}}" for name, n in EVERY.items()]
    result = run_fast(["-c", *script, job, *options])
    assert result.returncode == 4, result.stderr
    assert "the file size limit is reached" in result.stderr
    assert "Traceback" not in result.stderr
    if frames:
        steps = contents(tmp_path / "out")["step"]
        assert len(steps) >= frames
        assert (np.diff(steps) == 5).all()
        run("resume", tmp_path / "out", *options)
        assert contents(tmp_path / "out")["step"][-1] == 600


@pytest.mark.parametrize(
    ("reservations", "settings", "file"),
    [
        (1, (), "trajectory/head-0000000000.h5"),
        (2, (), "trajectory.h5"),
        (3, (), "trajectory/part-0000000000-"),
        (3, ("output.trajectory=null", "output.diagnostics=null"), "checkpoint-0000000100.h5"),
    ],
)
def test_a_disk_that_fills_after_room_was_found_is_one_line_on_the_file(
    job, tmp_path, reservations, settings, file
):
    """No file can be written any more, the log neither; its failure is not the one to tell."""
    any_file = ""
    words = [any_file, reservations, job, *(f"--set={setting}" for setting in settings)]
    result = run_fast(["-c", FILLED, *words])
    assert result.returncode == 4, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"hybrid_nbody: error: {tmp_path / 'out' / file}")
    assert line.endswith("the file size limit is reached")


def test_a_full_disk_ends_all_ranks(job, tmp_path, mpirun):
    """Only the root writes, and only the root fails: the others end with it."""
    only_checkpoints = ["--set", "output.trajectory=null", "--set", "output.diagnostics=null"]
    result = mpirun(3, "-c", LIMITED, "24000", str(job), *only_checkpoints, timeout=30)
    assert result.returncode == 4, result.stderr
    assert result.stderr.count("the file size limit is reached") == 1
    assert "hybrid_nbody: error: rank 0: " in result.stderr
    assert "checkpoint-0000000100.h5" in result.stderr
