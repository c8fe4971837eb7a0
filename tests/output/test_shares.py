"""Large checkpoints, of which each rank writes a share: kept, passed over and removed whole."""

import contextlib
import itertools

import numpy as np
import pytest
from support.ranks import RowsModel
from support.trajectories import start

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.checkpoint import (
    check_shares,
    checkpoints,
    load_newest,
    open_checkpoint,
)
from hybrid_nbody.output import checkpoint as output_checkpoint
from hybrid_nbody.output import sharing
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.parallel import rows as rows_of_ranks


def save(folder, model, keep=2):
    """Write a checkpoint of a model's present step."""
    return CheckpointWriter(folder, {"config": "c"}, keep, model.communicator).save(model)


@pytest.mark.mpi
def test_shares_of_old_checkpoints_go_with_them(communicator, shared_tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    model = RowsModel(5, communicator)
    if communicator.is_root:
        (shared_tmp_path / "state-0000000005.1of3.h5").write_bytes(b"of a killed run")
    communicator.barrier()
    for step in (10, 20, 30):
        save(shared_tmp_path, model.at(step), keep=2)
    communicator.barrier()
    assert [path.stem[-2:] for path in checkpoints(shared_tmp_path)] == ["30", "20"]
    shares = len(list(shared_tmp_path.glob("state-*")))
    assert shares == (2 * communicator.size if communicator.size > 1 else 0)


@pytest.mark.mpi
@pytest.mark.parametrize("deed", ["gone", "flipped", "of another step"])
def test_a_checkpoint_with_a_bad_share_is_passed_over(
    communicator, shared_tmp_path, monkeypatch, deed
):
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    for step in (10, 20):
        save(shared_tmp_path, RowsModel(5, communicator).at(step))
    communicator.barrier()
    if communicator.is_root and communicator.size > 1:
        earlier, share = sorted(shared_tmp_path.glob(f"state-*.2of{communicator.size}.h5"))
        content = bytearray(share.read_bytes())
        content[-1] ^= 4
        share.unlink()
        if deed == "flipped":
            share.write_bytes(content)
        elif deed == "of another step":
            share.write_bytes(earlier.read_bytes())
        saved, warnings = load_newest(shared_tmp_path)
        assert saved.step == 10
        assert len(warnings) == 1
        assert share.name in warnings[0]
    communicator.barrier()


# ---- Ranks that cannot write ---------------------------------------------------------------------


def full(*arguments):
    """Fail as on a full disk."""
    raise FileError("no space left on device")


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("behind_the_steps", [False, True])
def test_a_share_that_cannot_be_written_ends_all_ranks(
    communicator, shared_tmp_path, monkeypatch, failing, behind_the_steps
):
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    model = RowsModel(5, communicator)
    trajectory = start(shared_tmp_path, model, [0])
    writer = CheckpointWriter(
        shared_tmp_path, {"config": "c"}, 2, communicator, others=trajectory.others
    )
    if communicator.rank == failing:
        monkeypatch.setattr(output_checkpoint, "_write_share", full)
    with pytest.raises(FileError, match="no space left") as caught:
        if behind_the_steps:
            trajectory.then(writer.copy(model))
            trajectory.wait_for_actions()
        else:
            writer.save(model)
    assert caught.value.shared
    with contextlib.suppress(FileError):
        trajectory.close()
    assert not checkpoints(shared_tmp_path)


@pytest.mark.mpi
@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_a_root_that_cannot_write_ends_all_ranks(
    communicator, shared_tmp_path, monkeypatch, pieces
):
    """After some pieces of a field, of which other ranks send the rest all the same."""
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", 48)

    def filled_up(path, kind, data, describe, check):
        for one in data.values():
            list(itertools.islice(one.pieces, pieces))
            full()

    monkeypatch.setattr(output_checkpoint, "write_sealed", filled_up)
    with pytest.raises(FileError, match="no space left") as caught:
        save(shared_tmp_path, RowsModel(50, communicator))
    assert caught.value.shared
    assert communicator.broadcast("in step") == "in step"
    assert not checkpoints(shared_tmp_path)


@pytest.mark.mpi(min_size=2)
def test_what_is_read_from_a_checkpoint_that_goes_meanwhile_is_refused(
    communicator, shared_tmp_path, monkeypatch
):
    """HDF5 would give zeros, or NaN, for the rows of a file that is gone."""
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    path = save(shared_tmp_path, RowsModel(5, communicator))
    communicator.barrier()
    if communicator.is_root:
        saved, _ = load_newest(shared_tmp_path)
        with open_checkpoint(path) as file:
            check_shares(path, file)
            sorted(shared_tmp_path.glob("state-*"))[-1].unlink()
            assert np.isnan(file["bodies/position"][-1]).all()
            with pytest.raises(FileError, match="no such file"):
                check_shares(path, file)
        with pytest.raises(FileError, match="no such file"):
            saved.rows("bodies/position", slice(0, 5))
    communicator.barrier()
