"""Large checkpoints, of which each rank writes a share: kept, passed over and removed whole."""

import pytest
from support.ranks import RowsModel

from hybrid_nbody.files.checkpoint import checkpoints, load_newest
from hybrid_nbody.output import sharing
from hybrid_nbody.output.checkpoint import CheckpointWriter


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
