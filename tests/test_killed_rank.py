"""A killed rank ends all in seconds, with a message; nothing stays behind, and the run goes on to
the same bits.
"""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import _mpirun
from support.jobs import (
    assert_ends_as_if_never_stopped,
    finished,
    newest_checkpoint,
    pid_of_rank,
    processes_of,
    wait_for_checkpoint,
    write_job,
)
from support.runs import contents

SECONDS = 10
"""In which all ranks end when one was killed."""


@pytest.fixture
def interrupted(tmp_path):
    """Start a job, kill one of its three ranks, and return the run's folder and what was said."""

    def kill(job, rank, after_step):
        command = [*_mpirun(), "-n", "3", sys.executable, "-m", "hybrid_nbody", str(job)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        wait_for_checkpoint(tmp_path / "out", after_step)
        os.kill(pid_of_rank(rank, job), signal.SIGKILL)
        code, text = finished(process, tmp_path, timeout=SECONDS)
        assert code not in (0, 75)
        return tmp_path / "out", text

    return kill


@pytest.mark.parametrize(("model", "rank", "every"), [("nbody", 2, 100), ("fluid", 0, 10)])
def test_a_killed_rank_ends_all_with_a_message_and_the_run_goes_on(
    interrupted, mpirun, tmp_path, model, rank, every
):
    job = write_job(tmp_path, model)
    out, text = interrupted(job, rank, after_step=every)
    assert "signal 9" in text, text  # the launcher's words
    assert nobody_left(job)
    saved = newest_checkpoint(out)
    steps = contents(out)["diagnostics/step"]  # the file opens
    assert saved - every <= steps[-1]
    end = saved + every + 5
    result = mpirun(2, "-m", "hybrid_nbody", "resume", out, "--set", f"time.steps={end}")
    assert result.returncode == 0, result.stderr
    assert_ends_as_if_never_stopped(out, job, end)


def nobody_left(job):
    """Return whether all processes of a job are gone: the launcher may end a moment before them."""
    until = time.monotonic() + SECONDS
    while processes_of(job) and time.monotonic() < until:
        time.sleep(0.01)
    return not processes_of(job)
