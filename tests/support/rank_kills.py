"""Kills of one rank of three, at moments by chance: while parts are written, shared and merged."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from support.campaigns import SETTINGS, Undisturbed, check_resumed, check_state
from support.jobs import pid_of_rank, processes_of

from hybrid_nbody.files.parts import entries_of

RANKS = 3

DRIVER = """
import sys
from hybrid_nbody.output import part_writer, sharing
part_writer.PAUSE = part_writer.EVENT_SECONDS = 0.0
sharing.SHARED_BYTES = int(sys.argv.pop(1))
from hybrid_nbody.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

SHARED_BYTES = (0, 32 << 20)
"""Frames and checkpoints that all ranks write, and those that the root writes and merges."""

DELAY = 0.01
"""Seconds within which a rank is killed once there are enough entries."""

PATIENCE = 120.0


def rank_kill_campaign(run: Undisturbed, folder: Path, kills: int, seed: int) -> Counter:
    """Kill a rank of real runs on three, check what they leave, and resume it on one.

    Returns
    -------
    Counter
        How many states there were of each kind.
    """
    chance = random.Random(seed)
    found: Counter = Counter()
    for number in range(kills):
        killed = folder / f"rank-killed-{number}"
        victim = chance.randrange(RANKS)
        shared = chance.choice(SHARED_BYTES)
        entries = chance.randrange(len(run.contents["step"]))
        _kill_one(run, killed, victim, shared, entries, chance.random() * DELAY)
        kind = f"rank {victim} killed"
        found[kind, check_state(killed, run, None)] += 1
        found["resumed", check_resumed(killed, run)] += 1
        shutil.rmtree(killed)
    return found


def _kill_one(
    run: Undisturbed, killed: Path, victim: int, shared: int, entries: int, delay: float
) -> None:
    """Start a run and kill a rank of it once there are some entries."""
    words = [f"--set={word}" for word in (*SETTINGS, f"output.directory={killed}")]
    program = [sys.executable, "-c", DRIVER, str(shared), "run", str(run.job), *words]
    command = ["mpirun", "-n", str(RANKS), *program]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:
        try:
            _wait_for_entries(killed, entries, process)
            time.sleep(delay)
            with suppress(AssertionError, ProcessLookupError):  # the run may be over
                os.kill(pid_of_rank(victim, killed), signal.SIGKILL)
            process.wait(PATIENCE)
        finally:
            for pid in processes_of(killed):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _wait_for_entries(folder: Path, wanted: int, process: subprocess.Popen) -> None:
    """Return once the parts of a run hold enough entries, or the run has ended."""
    while process.poll() is None and _entries_in(folder) < wanted:
        time.sleep(0.001)


def _entries_in(folder: Path) -> int:
    """Return how many entries there are in the parts of a run; -1 before there is a trajectory."""
    if not (folder / "trajectory.h5").exists():
        return -1
    found = (entries_of(path.name) for path in folder.rglob("*.h5"))
    return max((entries.stop for entries in found if entries), default=0)
