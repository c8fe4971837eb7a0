"""Runs of equal configurations that begin with other states are told apart."""

from shutil import copyfile

import numpy as np
import pytest
from support.command import call
from support.ranks import RowsModel

from hybrid_nbody.running.identity import start_of

RUN = """model: nbody
bodies: {kind: file, path: ic.npz}
gravity: {softening: 0.1}
time: {dt: 1e-3, steps: 4}
compute: {backend: cpu, threads: 1}
output: {directory: run, checkpoint: {every_steps: 2}}
"""


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 5, 1000])
def test_the_start_of_a_state_does_not_depend_on_the_ranks(communicator, alone, number):
    weights = [1.0, *[3.0] * (communicator.size - 1)]
    shared = start_of(RowsModel(number, communicator, weights), communicator)
    whole = start_of(RowsModel(number, alone), alone)
    assert shared == whole
    assert len(whole) == 16


def test_another_state_has_another_start(alone):
    starts = {start_of(RowsModel(5, alone).at(step), alone) for step in (0, 1, 2)}
    assert len(starts) == 3


def put_bodies(folder, seed):
    """Write a file of bodies that differ in their positions alone."""
    position = np.random.default_rng(seed).normal(size=(20, 3))
    np.savez(folder / "ic.npz", position=position, velocity=0 * position, mass=np.full(20, 0.05))


def test_a_checkpoint_of_other_bodies_is_refused(tmp_path):
    (tmp_path / "run.yaml").write_text(RUN)
    for seed, name in ((1, "one"), (2, "other")):
        put_bodies(tmp_path, seed)
        result = call(tmp_path, "run.yaml", "--set", f"output.directory={name}")
        assert result.returncode == 0, result.stderr
    newest = "checkpoint-0000000004.h5"
    again = ("resume", "one", "--set", "time.steps=6")
    copyfile(tmp_path / "one" / newest, tmp_path / "kept.h5")
    copyfile(tmp_path / "other" / newest, tmp_path / "one" / newest)
    result = call(tmp_path, *again)
    assert result.returncode == 2
    assert "another run than trajectory.h5, as the state that it began with shows" in result.stderr
    copyfile(tmp_path / "kept.h5", tmp_path / "one" / newest)
    assert call(tmp_path, *again).returncode == 0
