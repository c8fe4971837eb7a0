"""Runs on several ranks that tests interrupt: small jobs of both models, their processes, and what
they wrote last.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

from support.runs import assert_same_run, run

BODIES = """\
model: nbody
seed: 3
bodies: {kind: plummer, n: 300}
gravity: {softening: 0.02}
time: {dt: 1e-3, steps: 100000}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 50}
  diagnostics: {every_steps: 25}
  checkpoint: {every_steps: 100, keep: 2}
"""

FLUID = """\
model: fluid
grid: {cells: [12, 10, 14]}
solver: {max_iterations: 5}
sources: {events: [{steps: [0, 19], density: 1}, {step: 2, velocity: [0, 1, 0]}]}
time: {dt: 0.1, steps: 100000}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 5}
  checkpoint: {every_steps: 10, keep: 2}
"""

CONFIGS = {"nbody": BODIES, "fluid": FLUID}

RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK")
"""In which launchers tell a process its rank."""


def write_job(folder: Path, model: str) -> Path:
    """Write a configuration whose run goes to ``folder / "out"``; return the file."""
    path = folder / "job.yaml"
    path.write_text(CONFIGS[model].replace("OUT", str(folder / "out")))
    return path


def wait_for_checkpoint(folder: Path, after_step: int, patience: float = 150.0) -> None:
    """Return once a checkpoint later than `after_step` is there."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if newest_checkpoint(folder) > after_step:
            return
        time.sleep(0.01)
    raise AssertionError(f"no checkpoint after step {after_step} in {folder}")


def newest_checkpoint(folder: Path) -> int:
    """Return the step of a run's newest checkpoint; -1 without one."""
    return max(
        (int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.h5")), default=-1
    )


def processes_of(path: Path) -> list[int]:
    """Return the processes that have `path`, or what is in it, among their arguments: launchers and
    ranks.
    """
    others = [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid != os.getpid()
    ]
    return [pid for pid in others if any(str(path) in word for word in _read(pid, "cmdline"))]


def finished(process, folder: Path, timeout: float = 120.0) -> tuple[int, str]:
    """Return the exit code and the output of a process; if it takes too long all that use `folder`
    end.
    """
    try:
        text, _ = process.communicate(timeout=timeout)
    except BaseException:
        for pid in processes_of(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise
    return process.returncode, text


def pid_of_rank(rank: int, path: Path) -> int:
    """Return the process of a rank that has `path` among its arguments."""
    for pid in processes_of(path):
        words = _read(pid, "cmdline")
        variables = dict(pair.partition("=")[::2] for pair in _read(pid, "environ"))
        if "python" in words[0] and str(rank) in (variables.get(name) for name in RANK_VARIABLES):
            return pid
    raise AssertionError(f"no process of rank {rank} with {path}")


def _read(pid, name):
    """Return what the kernel says of a process, as words."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace").split("\0")
    except OSError:
        return []


def assert_ends_as_if_never_stopped(folder: Path, job: Path, end: int) -> None:
    """Compare a run's trajectory with that of one rank that did the same `end` steps at once, bit
    by bit.
    """
    reference = folder.with_name("reference")
    run(job, "--set", f"time.steps={end}", "--set", f"output.directory={reference}")
    assert_same_run(folder, reference)
