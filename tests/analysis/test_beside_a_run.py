"""`info` and `export` beside a run that writes frames and replaces checkpoints all the time."""

import os
import subprocess
import sys

import numpy as np
import pytest
from support.command import ROOT
from support.jobs import newest_checkpoint, wait_for_checkpoint

from hybrid_nbody.cli.main import main

JOB = """\
model: nbody
bodies: {kind: figure-eight}
time: {dt: 1e-4, steps: 100000000}
compute: {backend: cpu, threads: 1}
output: {trajectory: {every_steps: 100}, checkpoint: {every_steps: 20, keep: 2}, directory: out}
"""
RUN = (sys.executable, "-m", "hybrid_nbody", "run", "job.yaml")


@pytest.fixture
def busy(tmp_path, monkeypatch):
    """A folder in which a run goes on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(RUN, env=os.environ | {"PYTHONPATH": ROOT}, **quiet) as process:
        wait_for_checkpoint(tmp_path / "out", after_step=10)
        yield tmp_path
        assert process.poll() is None, "the run ended before the test"
        process.kill()


def test_no_reading_fails(busy, capsys):
    export = ("export", "out", "--format", "npz", "--frame", "all", "--output", "all.npz")
    before = newest_checkpoint(busy / "out")
    for look in range(200):  # a machine that is busy writes few checkpoints meanwhile
        assert main(["info", "out"]) == 0, capsys.readouterr().err
        assert main([*export, "--overwrite"]) == 0, capsys.readouterr().err
        if look >= 7 and newest_checkpoint(busy / "out") > before + 100:
            break
    assert newest_checkpoint(busy / "out") > before + 100
    with np.load("all.npz") as arrays:
        steps = arrays["step"]
        assert len(arrays["position"]) == len(arrays["time"]) == len(steps) > 2
    np.testing.assert_array_equal(steps, 100 * np.arange(len(steps)))
