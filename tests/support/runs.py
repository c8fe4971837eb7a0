"""Whole runs, and what they wrote."""

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
