"""Permuted rows give files with the same data sets, bit by bit, as consecutive rows."""

import h5py
import numpy as np
import pytest
from support.ranks import RowsModel, rows_at, same_bits, scattered_shares

from hybrid_nbody.files import checkpoint as files_of_checkpoints
from hybrid_nbody.files.checkpoint import load_newest
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.parallel import rows as rows_of_ranks

pytestmark = pytest.mark.mpi

HEADER = {"model": "nbody", "title": "permuted", "config": "model: nbody\n"}


def write(folder, model):
    """Write two frames and a checkpoint; return the paths."""
    trajectory = Trajectory(folder / NAME, model.communicator)
    trajectory.create(model, HEADER)
    for step in (0, 3):
        trajectory.write_frame(model.at(step))
        trajectory.write_diagnostics(model, model.diagnostics())
    trajectory.close()
    path = CheckpointWriter(folder, HEADER, 1, model.communicator).save(model)
    model.communicator.barrier()
    return folder / NAME, path


def data_sets(path):
    """Return the data sets of a file by name: dtype, shape and bytes."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item.dtype, item.shape, item[()].tobytes()

    with h5py.File(path, locking=False) as file:
        file.visititems(visit)
    return found


def assert_same_data(one, other):
    """Compare the data sets of two files."""
    expected = data_sets(one)
    assert len(expected) >= 5
    assert data_sets(other) == expected


@pytest.mark.parametrize("number", [1, 2, 50])
@pytest.mark.parametrize("slab_bytes", [1, 100, 4 << 20])
def test_files_are_those_of_consecutive_rows(
    communicator, shared_tmp_path, monkeypatch, number, slab_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    monkeypatch.setattr(files_of_checkpoints, "READ_BYTES", slab_bytes)
    folders = [shared_tmp_path / name for name in ("consecutive", "permuted")]
    communicator.only_on_root(lambda: [folder.mkdir() for folder in folders])
    index = scattered_shares(number, communicator.size)[communicator.rank]
    models = RowsModel(number, communicator), RowsModel(number, communicator, index=index)
    for both in zip(*map(write, folders, models), strict=True):
        communicator.only_on_root(lambda both=both: assert_same_data(*both))


@pytest.mark.parametrize("slab_bytes", [1, 100, 4 << 20])
@pytest.mark.parametrize("number", [1, 2, 50])
def test_a_model_takes_back_permuted_rows(
    communicator, shared_tmp_path, monkeypatch, number, slab_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    monkeypatch.setattr(files_of_checkpoints, "READ_BYTES", slab_bytes)
    before, after = (
        scattered_shares(number, communicator.size, seed)[communicator.rank] for seed in (0, 1)
    )
    model = RowsModel(number, communicator, index=before).at(7)
    CheckpointWriter(shared_tmp_path, HEADER, 1, communicator).save(model)
    communicator.barrier()
    saved, _ = load_newest(shared_tmp_path)
    other = RowsModel(number, communicator, index=after)
    other.restore(lambda name: saved.rows(name, other.own), saved.scalars)
    for name, rows in other.restored.items():
        assert same_bits(rows, rows_at(7, number)[name][after]), name
    everybody = communicator.concatenate(other.restored["gravity/order"] - 7)
    np.testing.assert_array_equal(np.sort(everybody), np.arange(number))
