"""Checkpoints written behind the steps: of the state that was copied, after what came before."""

import threading
from functools import partial

import numpy as np
import pytest
from support.ranks import RowsModel, rows_at

from hybrid_nbody.downloads import Download
from hybrid_nbody.errors import FileError
from hybrid_nbody.files.checkpoint import checkpoints, load_checkpoint
from hybrid_nbody.files.listing import load_listing
from hybrid_nbody.files.parts import parts_folder
from hybrid_nbody.files.run import open_run
from hybrid_nbody.output import checkpoint, sharing, waits
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.output.sharing import OtherRanks
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.simulation.model import Field, fields_of

NUMBER = 5


@pytest.fixture(params=[0, 1 << 40], ids=["shares", "by the root"])
def model(request, communicator, monkeypatch):
    """A model of which each rank writes a share, or whose rows the root writes."""
    monkeypatch.setattr(sharing, "SHARED_BYTES", request.param)
    return RowsModel(NUMBER, communicator)


@pytest.fixture
def trajectory(model, communicator, shared_tmp_path):
    """The open trajectory of that model."""
    trajectory = Trajectory(shared_tmp_path / NAME, communicator)
    trajectory.create(model, {})
    return trajectory


def writer(trajectory):
    """Return the writer of its checkpoints."""
    return CheckpointWriter(
        trajectory.path.parent, {"config": "c"}, 2, trajectory.communicator, trajectory.others
    )


@pytest.mark.mpi
def test_the_state_is_that_of_the_copy(communicator, model, trajectory):
    trajectory.then(writer(trajectory).copy(model.at(10)))
    model.at(20)
    trajectory.flush()
    (path,) = checkpoints(trajectory.path.parent)
    found = load_checkpoint(path)
    assert found.step == 10
    for name in (field.name for field in fields_of(model, *checkpoint.SAVED_ROLES)):
        rows = found.rows(name, slice(0, NUMBER))
        assert rows.tolist() == rows_at(10, NUMBER)[name].tolist()
    trajectory.close()


@pytest.mark.mpi
def test_what_came_before_is_listed_first(communicator, model, trajectory, monkeypatch):
    """A run that is resumed from the checkpoint does not write it again."""
    listed = []
    write = checkpoint.write_sealed

    def look(path, kind, *rest):
        if kind == "checkpoint":
            listed.extend(load_listing(trajectory.path).frames["step"])
        return write(path, kind, *rest)

    monkeypatch.setattr(checkpoint, "write_sealed", look)
    trajectory.write_frame(model.at(10))
    trajectory.then(writer(trajectory).copy(model))
    trajectory.close()
    assert listed == ([10] if communicator.is_root else [])


@pytest.mark.mpi
def test_a_share_that_a_killed_run_has_left_is_not_taken(communicator, model, trajectory):
    folder = trajectory.path.parent
    if communicator.is_root:
        for rank in range(communicator.size):
            (folder / f"state-0000000010.{rank + 1}of{communicator.size}.h5").write_bytes(b"old")
    communicator.barrier()
    trajectory.then(writer(trajectory).copy(model.at(10)))
    trajectory.close()
    communicator.barrier()
    assert load_checkpoint(checkpoints(folder)[0]).step == 10


@pytest.mark.mpi
def test_a_checkpoint_that_fails_ends_all_ranks(communicator, model, trajectory, monkeypatch):
    last = communicator.size - 1
    write = checkpoint.write_sealed

    def fail(path, kind, *rest):
        if communicator.rank == last:
            raise FileError(f"{path}: the disk is full")
        return write(path, kind, *rest)

    monkeypatch.setattr(checkpoint, "write_sealed", fail)
    trajectory.then(writer(trajectory).copy(model.at(10)))
    by_one = communicator.size > 1 and sharing.SHARED_BYTES
    if by_one:  # the last rank writes nothing then
        trajectory.close()
        return
    with pytest.raises(FileError, match="the disk is full"):
        trajectory.wait_for_actions() if communicator.size == 1 else trajectory.flush()
    with pytest.raises(FileError):
        trajectory.close()
    communicator.barrier()
    assert checkpoints(trajectory.path.parent) == []


def test_the_run_waits_for_the_checkpoint_before(tmp_path, alone, monkeypatch):
    """There is one copy of the state at a time, and long waiting is told once."""
    monkeypatch.setattr(waits, "TOLD_SECONDS", 0.02)
    said = []
    trajectory = Trajectory(tmp_path / NAME, alone, said.append)
    trajectory.create(RowsModel(NUMBER, alone), {})
    begun, free = threading.Event(), threading.Event()

    def write():
        begun.set()
        assert free.wait(20)

    trajectory.then(write)
    assert begun.wait(20)
    waiting = threading.Thread(target=trajectory.wait_for_actions)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    free.set()
    waiting.join(20)
    assert not waiting.is_alive()
    assert len(said) == 1
    assert "the disk does not keep up" in said[0]
    trajectory.close()


def test_of_small_states_that_wait_the_next_and_the_newest_are_written(tmp_path, alone):
    """While one is written the run goes on; what newer ones would remove is not written, but for
    the one whose turn is next: else a run that is faster than its disk would write none. Rows on
    both sides of one that is not written share a part: else there would be more of them all the
    time than are written, and the newest checkpoint would never have its turn.
    """
    trajectory = Trajectory(tmp_path / NAME, alone)
    model = RowsModel(NUMBER, alone)
    trajectory.create(model, {})
    begun, free = threading.Event(), threading.Event()
    done = []

    def write(step):
        begun.set()
        assert free.wait(20)
        done.append(step)

    for step in range(5):
        trajectory.then(partial(write, step), keep=2)
        assert begun.wait(20)
        trajectory.write_diagnostics(model.at(step), {"sum": 0.0})
    trajectory.then(lambda: done.append("another"))
    free.set()
    trajectory.wait_for_actions()
    assert done == [0, 1, 3, 4, "another"]
    parts = sorted(path.name for path in parts_folder(trajectory.path).glob("part-*"))
    assert len(parts) == 4, parts  # of step 0, of 1 and 2, of 3, of 4
    trajectory.close()
    assert writer(trajectory).is_small(model)


def test_waiting_for_a_rank_that_has_failed_ends(tmp_path):
    others = OtherRanks()
    others.wait_for([tmp_path])
    others.give_up()
    with pytest.raises(FileError, match="a rank has failed before it wrote its share"):
        others.wait_for([tmp_path / "none.h5"])


def test_a_state_too_large_to_copy_is_written_at_once(tmp_path, alone, monkeypatch):
    model = RowsModel(NUMBER, alone)
    checkpoints_of = CheckpointWriter(tmp_path, {"config": "c"}, 1, alone)
    assert checkpoints_of.has_space_for_copy(model)
    monkeypatch.setattr(checkpoint, "available_memory", lambda: 100)
    assert not checkpoints_of.has_space_for_copy(model)


def test_a_copy_that_a_device_has_begun_is_awaited_by_the_thread(tmp_path, alone):
    """Steps go on while a frame is on its way."""
    arrived = threading.Event()

    class OnTheWay(Download):
        nbytes = 8

        def rows(self):
            assert arrived.wait(20)
            return np.array([4.0])

    class DeviceModel(RowsModel):
        def fields(self):
            shown = Field("x", (1,), np.dtype("f8"), "1", "", slice(0, 1), None, start=OnTheWay)
            return {"x": shown}

    trajectory = Trajectory(tmp_path / NAME, alone)
    model = DeviceModel(1, alone)
    trajectory.create(model, {})
    trajectory.write_frame(model.at(5))
    trajectory.then(writer(trajectory).copy(model))
    model.at(6)
    arrived.set()
    trajectory.close()
    with open_run(tmp_path / NAME) as run:
        assert run.field("x", 0).tolist() == [4.0]
    assert load_checkpoint(checkpoints(tmp_path)[0]).rows("x", slice(0, 1)).tolist() == [4.0]
