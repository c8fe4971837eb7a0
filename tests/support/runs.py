"""Whole runs, and what they wrote."""

import json
import os
from pathlib import Path

import h5py
import numpy as np
from support.command import call


def run(*arguments, check=0):
    """Run a command on one rank and return what it printed."""
    result = call(os.getcwd(), *arguments, timeout=120)
    assert result.returncode == check, result.stdout + result.stderr
    return result


RUNS = """
import json, sys, time
from hybrid_nbody.cli.main import main
from hybrid_nbody.parallel import communicator

world = communicator.start_mpi().comm
for size, *arguments in json.loads(sys.argv[1]):
    busy = world.rank < size
    some = communicator.Communicator(world.Split(busy))
    communicator.start_mpi = lambda *_: some
    assert not busy or main(arguments) == 0, arguments
    all_done = world.Ibarrier()
    while not all_done.Test():
        time.sleep(0.01)  # the cores are for those that run
"""


def run_in_ways(mpirun, job, ways):
    """Run a configuration in several ways under one mpirun; each goes to a folder of its name.

    Parameters
    ----------
    mpirun : callable
        The fixture of that name.
    job : Path
        The configuration; the folders are made beside it.
    ways : dict
        For each name the number of ranks, the first ones, and settings.
    """
    jobs = []
    for name, (ranks, *settings) in ways.items():
        settings = [f"output.directory={job.parent / name}", *settings]
        jobs.append((ranks, str(job), *(f"--set={setting}" for setting in settings)))
    result = mpirun(max(ranks for ranks, *_ in jobs), "-c", RUNS, json.dumps(jobs), timeout=150)
    assert result.returncode == 0, result.stdout + result.stderr


def contents(folder):
    """Return every data set of a run's trajectory."""
    found = {}
    with h5py.File(Path(folder) / "trajectory.h5", "r") as file:
        file.visititems(
            lambda name, item: (
                found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
        )
    return found


def assert_same_run(first, second):
    """Compare two trajectories bit by bit: every frame, every diagnostic."""
    first, second = contents(first), contents(second)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
