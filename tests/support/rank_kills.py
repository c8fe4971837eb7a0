"""Kills of one rank of three, at moments by chance: while parts are written, shared and merged."""

import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from support.campaigns import Undisturbed, check_killed, started, wait_until
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

    def kill(place: Path) -> str:
        victim = chance.randrange(RANKS)
        shared = chance.choice(SHARED_BYTES)
        entries = chance.randrange(len(run.contents["step"]))
        program = [sys.executable, "-c", DRIVER, str(shared), "run"]
        with started(["mpirun", "-n", str(RANKS), *program], run, place) as process:
            try:
                wait_until(lambda: _entries_in(place) >= entries, process)
                time.sleep(chance.random() * DELAY)
                _kill_rank(victim, place)
                process.wait(PATIENCE)
            finally:
                _end_all(place)
        return f"rank {victim} killed"

    return check_killed(run, folder, kills, kill)


def _kill_rank(victim: int, place: Path) -> None:
    """Kill a rank, unless the run is over."""
    with suppress(AssertionError, ProcessLookupError):
        os.kill(pid_of_rank(victim, place), signal.SIGKILL)


def _end_all(place: Path) -> None:
    """End what is left of a run."""
    for pid in processes_of(place):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _entries_in(folder: Path) -> int:
    """Return how many entries there are in the parts of a run; -1 before there is a trajectory."""
    if not (folder / "trajectory.h5").exists():
        return -1
    found = (entries_of(path.name) for path in folder.rglob("*.h5"))
    return max((entries.stop for entries in found if entries), default=0)
