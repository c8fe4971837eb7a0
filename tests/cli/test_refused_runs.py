"""Runs that are refused for what is out of range, or for what an earlier one left behind."""

import pytest
from support.command import call, refused
from support.ranks import run_python

GOOD = """\
model: nbody
bodies: {kind: plummer, n: 10}
gravity: {softening: 0.01}
time: {dt: 1e-3, steps: 5}
compute: {backend: cpu, threads: 1}
output: {directory: out}
"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder that holds a good configuration."""
    (tmp_path / "job.yaml").write_text(GOOD)
    return tmp_path


def test_a_softening_beyond_the_range_is_refused(folder):
    message = refused(folder, "job.yaml", "--set", "gravity.softening=1e200")
    assert message.startswith("gravity.softening: must be at most 1e150 (got 1e+200)")


def contents(folder):
    """Return what every file of a folder holds."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_fails_at_step_0_writes_nothing_and_costs_no_earlier_run(folder):
    (folder / "b.csv").write_text("x,y,z,vx,vy,vz,m\n1,0,0,0,0,0,1\n1,0,0,0,0,0,1\n")
    collision = ["--set", "bodies={kind: file, path: b.csv}", "--set", "gravity.softening=0"]
    assert call(folder, "job.yaml", *collision).returncode == 3
    assert not (folder / "out").exists()
    assert call(folder, "job.yaml").returncode == 0
    before = contents(folder)
    assert call(folder, "job.yaml", *collision, "--overwrite").returncode == 3
    assert contents(folder) == before


def test_a_run_that_left_its_initial_state_alone_does_not_block_the_next(folder):
    pair = "--set=bodies={kind: two-body}"
    too_long = ["--set=time.dt=10", "--set=output.diagnostics={every_steps: 1}"]
    failed = call(folder, "job.yaml", pair, *too_long)
    assert "step 1 (t = 10): the energy ran away" in failed.stderr
    assert (folder / "out" / "trajectory.h5").exists()
    assert "--overwrite" not in call(folder, "check", "job.yaml").stdout
    assert call(folder, "job.yaml").returncode == 0
    assert "holds a run already" in refused(folder, "job.yaml")


def test_a_run_that_ended_before_its_first_checkpoint_is_not_to_be_resumed(folder):
    assert call(folder, "job.yaml").returncode == 0
    for path in (folder / "out").glob("checkpoint-*"):
        path.unlink()
    message = refused(folder, "job.yaml")
    assert "holds a run that ended before its first checkpoint, which cannot be resumed" in message
    assert "resume out" not in message
    message = refused(folder, "resume", "out", code=4)
    assert "start it again: hybrid-nbody run FILE --overwrite" in message
    assert "resume it" not in call(folder, "check", "job.yaml").stdout
    assert call(folder, "job.yaml", "--overwrite").returncode == 0


INTERRUPTED = """
import sys, threading
from hybrid_nbody.cli.main import main
from hybrid_nbody.nbody.model import NBodyModel

def interrupted(model, steps):
    raise {error}

NBodyModel.queue = interrupted
code = main(["run", sys.argv[1], "--set", f"output.directory={sys.argv[2]}"])
print(code, [thread.name for thread in threading.enumerate()])
"""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        ("KeyboardInterrupt", 75, "stopped at once by Ctrl-C"),
        ("MemoryError('no 8 GB')", 2, "MemoryError: no 8 GB"),
    ],
)
def test_a_script_whose_run_is_broken_off_has_no_thread_that_writes(folder, error, code, line):
    """Such a thread could hold HDF5's lock when Python ends, which then waits for ever."""
    script = INTERRUPTED.replace("{error}", error)
    result = run_python(script, folder / "job.yaml", folder / "out")
    assert f"{code} ['MainThread'" in result.stdout
    assert "part writer" not in result.stdout
    assert f"error: {line}" in (folder / "out/log.txt").read_text()
    assert call(folder, "job.yaml").returncode == 0


OF_THE_SYSTEM = """
import sys
from hybrid_nbody.cli import check
from hybrid_nbody.cli.main import main

def failing(*arguments, **options):
    raise {error}

check.check = failing
print(main(["check", sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        ("PermissionError(13, 'Permission denied', 'out')", 4, "Permission denied: 'out'"),
        ("BrokenPipeError(32, 'Broken pipe')", 0, ""),
    ],
)
def test_an_error_of_the_system_is_a_line_and_no_traceback(folder, error, code, line):
    result = run_python(OF_THE_SYSTEM.replace("{error}", error), folder / "job.yaml")
    assert line in result.stderr
    assert "Traceback" not in result.stderr
    assert bool(result.stderr) == bool(line)
    assert str(code) in result.stdout or not line
