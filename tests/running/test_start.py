"""What a person is told when a run is asked to stop."""

import os
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest
from support.forked import ready_python
from support.jobs import wait_for_checkpoint, write_job

from hybrid_nbody.errors import InputError
from hybrid_nbody.output import directory
from hybrid_nbody.parallel.communicator import alone
from hybrid_nbody.running import start as run_start
from hybrid_nbody.running.start import acknowledgement


def test_ctrl_c_says_what_happens_now_and_how_to_stop_at_once():
    assert acknowledgement("Ctrl-C", interrupts=True) == (
        "Ctrl-C: finishing the current step and writing a checkpoint; "
        "press Ctrl-C again to stop immediately"
    )


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGHUP"])
def test_other_signals_are_named(name):
    line = f"{name}: finishing the current step and writing a checkpoint"
    assert acknowledgement(name, interrupts=False) == line
    again = "; send it again to stop immediately"
    assert acknowledgement(name, interrupts=True) == line + again


def test_it_is_said_at_once_and_once(tmp_path):
    """And the run then stops early, with a checkpoint."""
    command = [*ready_python(), "-m", "hybrid_nbody", str(write_job(tmp_path, "fluid"))]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        wait_for_checkpoint(tmp_path / "out", 0)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 75
    assert errors == f"hybrid_nbody: {acknowledgement('SIGTERM', interrupts=False)}\n"
    assert "stopped early (SIGTERM)" in output


@pytest.mark.parametrize(("patience", "said"), [(0.01, ["one", "two"]), (60.0, [])])
def test_what_takes_long_is_announced_once(monkeypatch, patience, said):
    lines = []
    builder = SimpleNamespace(doing="one")
    monkeypatch.setattr(run_start, "PATIENCE", patience)
    with run_start.preparing(SimpleNamespace(say=lines.append), builder):
        time.sleep(0.1)
        builder.doing = "two"
        time.sleep(0.1)
    assert lines == said


def test_a_process_can_resume_a_run_twice_and_leave_it_to_another(tmp_path):
    """As workers of a sweep do, whose runs stop early by their wall-clock limit."""
    job = write_job(tmp_path, "fluid")
    out = tmp_path / "out"
    log = run_start.open_log(alone())
    assert run_start.run(job, ["time.steps=20"], False, alone(), time.monotonic(), log).code == 0
    descriptors = len(os.listdir("/proc/self/fd"))
    for steps in (21, 22):
        settings = [f"time.steps={steps}"]
        assert run_start.resume(out, settings, alone(), time.monotonic(), log).code == 0
    assert len(os.listdir("/proc/self/fd")) == descriptors
    with pytest.raises(InputError, match="already, past the end"):
        run_start.resume(out, ["time.steps=20"], alone(), time.monotonic(), log)
    another = directory.lock(out)
    with pytest.raises(InputError, match="another process is running"):
        run_start.resume(out, ["time.steps=23"], alone(), time.monotonic(), log)
    assert len(os.listdir("/proc/self/fd")) == descriptors + 1
    directory.unlock(another)
