"""Runs that are refused for what is out of range, or for what an earlier one left behind."""

import pytest
from support.command import call, refused

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


def test_a_run_that_failed_before_its_first_checkpoint_is_not_to_be_resumed(folder):
    (folder / "b.csv").write_text("x,y,z,vx,vy,vz,m\n1,0,0,0,0,0,1\n1,0,0,0,0,0,1\n")
    options = ["--set", "bodies={kind: file, path: b.csv}", "--set", "gravity.softening=0"]
    assert call(folder, "job.yaml", *options).returncode == 3
    message = refused(folder, "job.yaml")
    assert "holds a run that ended before its first checkpoint, which cannot be resumed" in message
    assert "resume out" not in message
    message = refused(folder, "resume", "out", code=4)
    assert "start it again: hybrid-nbody run FILE --overwrite" in message
    assert "resume it" not in call(folder, "check", "job.yaml").stdout
    assert call(folder, "job.yaml", "--overwrite").returncode == 0
