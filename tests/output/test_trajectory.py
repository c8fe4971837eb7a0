"""Every frame that was written can be read, no step is there twice, and damage costs a part."""

import json

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ranks import RowsModel, answer_of, rows_at, run_python, same_bits
from support.trajectories import FRAMES, HEADER, STATIC, check, start, write

from hybrid_nbody import __version__
from hybrid_nbody.errors import DamagedFileError, FileError
from hybrid_nbody.files import names as formats
from hybrid_nbody.files.hdf5 import attributes
from hybrid_nbody.files.run import DamageWarning, open_run
from hybrid_nbody.output import merging, part_writer, sharing
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.parallel import rows as rows_of_ranks
from hybrid_nbody.simulation.model import Quantity


def texts_of(item):
    """Return the attributes of a file or data set as texts."""
    return {name: str(value) for name, value in attributes(item).items()}


# ---- Rows ----------------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("slab_bytes", [1, 100, 4 << 20])
@pytest.mark.parametrize("number", [1, 2, 50])
@pytest.mark.parametrize("shared_bytes", [0, 1 << 20])
def test_rows_of_any_number_of_ranks_are_written(
    communicator, shared_tmp_path, monkeypatch, number, slab_bytes, shared_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    monkeypatch.setattr(sharing, "SHARED_BYTES", shared_bytes)
    trajectory = start(shared_tmp_path, RowsModel(number, communicator), [0, 2, 3])
    trajectory.close()
    communicator.barrier()
    communicator.only_on_root(lambda: check(shared_tmp_path / NAME, number, [0, 2, 3]))


@pytest.mark.mpi
def test_frames_that_ranks_share_are_read_in_any_part(communicator, shared_tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    trajectory = start(shared_tmp_path, RowsModel(11, communicator), [0, 1, 4])
    trajectory.flush()
    communicator.barrier()
    ranks = communicator.size
    files = [path.name for path in (shared_tmp_path / "trajectory").glob("part-*")]
    assert sum(f"of{ranks}.h5" in name for name in files) == (3 * ranks if ranks > 1 else 0)
    with open_run(shared_tmp_path) as run:
        expected = rows_at(4, 11)["bodies/position"]
        assert same_bits(run.positions(-1), expected)
        for first in range(12):
            for stop in range(first, 12):
                for step in (1, 2, 3, 7, 12):
                    part = run.part("bodies/position", 2, (slice(first, stop, step), 1))
                    assert same_bits(part, expected[first:stop:step, 1])
        for row in (*range(11), np.int64(7)):
            assert same_bits(run.part("bodies/position", 2, (row,)), expected[row])
    communicator.barrier()
    trajectory.close()


@pytest.mark.mpi
def test_frames_that_ranks_share_are_cut_and_continued(communicator, shared_tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    model = RowsModel(5, communicator)
    start(shared_tmp_path, model, [0, 2, 4, 6, 8]).close()
    communicator.barrier()
    monkeypatch.setattr(sharing, "SHARED_BYTES", 1 << 30)
    trajectory = Trajectory(shared_tmp_path / NAME, communicator)
    trajectory.reopen(model.at(4), {})
    write(trajectory, model, [5, 6])
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    write(trajectory, model, [7])
    trajectory.close()
    communicator.barrier()
    check(shared_tmp_path / NAME, 5, [0, 2, 4, 5, 6, 7])
    assert not list(shared_tmp_path.rglob("*.part"))


@pytest.mark.mpi
def test_a_shared_frame_that_lacks_a_piece_is_not_there_yet(
    communicator, shared_tmp_path, monkeypatch
):
    monkeypatch.setattr(sharing, "SHARED_BYTES", 0)
    start(shared_tmp_path, RowsModel(5, communicator), [0, 1]).close()
    communicator.barrier()
    if communicator.is_root and communicator.size > 1:
        (shared_tmp_path / NAME).unlink()
        pieces = sorted((shared_tmp_path / "trajectory").glob("*of*"))
        pieces[-1].unlink()
        with pytest.warns(DamageWarning, match="listed instead"), open_run(shared_tmp_path) as run:
            assert run.step.tolist() == [0]
            assert same_bits(run.positions(0), rows_at(0, 5)["bodies/position"])
    communicator.barrier()


def test_frames_that_a_resumed_run_has_cut_off_are_gone(tmp_path, alone):
    model = RowsModel(5, alone)
    start(tmp_path, model, [0, 1, 2, 3]).close()
    with open_run(tmp_path) as run:
        trajectory = Trajectory(tmp_path / NAME, alone)
        trajectory.reopen(model.at(1), {})
        trajectory.close()
        with pytest.raises(FileError, match="it has 2 frames by now, frame 3 is gone"):
            run.positions(3)
        assert run.refresh().number_of_frames == 2


@pytest.mark.mpi
def test_a_step_is_never_written_twice(communicator, shared_tmp_path):
    trajectory = start(shared_tmp_path, RowsModel(5, communicator), [0, 0, 4, 4, 4, 6])
    trajectory.close()
    communicator.barrier()
    check(shared_tmp_path / NAME, 5, [0, 4, 6])


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("resumed", "left"), [(6, [0, 2, 4, 6]), (5, [0, 2, 4]), (0, [0]), (99, [0, 2, 4, 6, 8])]
)
def test_a_reopened_file_is_cut_back_to_the_checkpoint(
    communicator, shared_tmp_path, resumed, left
):
    model = RowsModel(5, communicator)
    start(shared_tmp_path, model, [0, 2, 4, 6, 8]).close()
    communicator.barrier()
    trajectory = Trajectory(shared_tmp_path / NAME, communicator)
    trajectory.reopen(model.at(resumed), {})
    communicator.barrier()
    write(trajectory, model, [resumed, 100, 102])
    trajectory.close()
    communicator.barrier()
    check(shared_tmp_path / NAME, 5, sorted({*left, resumed, 100, 102}))


def test_every_data_set_says_what_it_is_and_the_file_what_it_belongs_to(tmp_path, alone):
    start(tmp_path, RowsModel(4, alone)).close()
    found = {}
    with h5py.File(tmp_path / NAME) as file:
        file.visititems(
            lambda name, item: (
                found.update({name: texts_of(item)}) if hasattr(item, "shape") else None
            )
        )
        attributes = texts_of(file)
    assert attributes["format"] == "hybrid_nbody trajectory"
    assert attributes["format_version"] == str(formats.FORMAT_VERSION)
    assert attributes["program_version"] == __version__
    assert {name: attributes[name] for name in HEADER} == HEADER
    expected = {name: (f"units of {name}", f"what {name} is") for name in (*FRAMES, *STATIC)}
    for prefix in ("", "diagnostics/"):
        expected[f"{prefix}step"] = ("1", "steps since the initial state")
        expected[f"{prefix}time"] = ("time", "simulated time")
    expected["diagnostics/total_energy"] = ("energy", "sum")
    expected["diagnostics/momentum"] = ("mass length / time", "vector")
    kinds = dict.fromkeys(FRAMES, "frame") | dict.fromkeys(STATIC, "shared")
    kinds |= {"diagnostics/total_energy": "row", "diagnostics/momentum": "row"}
    for name, (units, text) in expected.items():
        kind = {"one_value_per": kinds[name]} if name in kinds else {}
        assert found.pop(name) == {"units": units, "description": text, **kind}
    assert not found


def test_the_files_are_no_larger_than_the_data_need(tmp_path, alone):
    write(trajectory := start(tmp_path, RowsModel(5000, alone)), RowsModel(5000, alone), range(5))
    trajectory.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*.h5")}
    frame = 2 * 5000 * 3 * 8
    parts = [size for name, size in sizes.items() if name.startswith("part")]
    assert 5 * frame <= sum(parts) < 5 * frame + 16384 * len(parts)
    assert sizes[NAME] < 32768
    assert sizes["head-0000000000.h5"] < 2 * 5000 * 8 + 16384


def test_many_frames_make_few_files(tmp_path, alone, monkeypatch):
    monkeypatch.setattr(part_writer, "PAUSE", 0.0)
    monkeypatch.setattr(part_writer, "EVENT_SECONDS", 0.0)
    model = RowsModel(3, alone)
    trajectory = start(tmp_path, model)
    for step in range(150):
        trajectory.write_frame(model.at(step))
        trajectory.flush()
    trajectory.close()
    check(tmp_path / NAME, 3, range(150), [])
    assert len(list((tmp_path / "trajectory").glob("part-*"))) < 20
    with open_run(tmp_path) as run:
        for step in (0, 77, 149):
            assert same_bits(run.positions(step), rows_at(step, 3)["bodies/position"])


def test_a_disk_without_space_for_merging_stops_nothing(tmp_path, alone, monkeypatch):
    monkeypatch.setattr(part_writer, "PAUSE", 0.0)
    monkeypatch.setattr(part_writer, "EVENT_SECONDS", 0.0)
    tried = []

    def full(trajectory, first, contents, variables):
        tried.append(first)
        raise FileError("the disk is full")

    monkeypatch.setattr(merging, "write_part", full)
    model = RowsModel(3, alone)
    trajectory = start(tmp_path, model)
    for step in range(40):
        trajectory.write_frame(model.at(step))
        trajectory.flush()
    trajectory.close()
    assert tried == [0, 16]  # parts that could not be merged are left alone
    check(tmp_path / NAME, 3, range(40), [])
    assert len(list((tmp_path / "trajectory").glob("part-*"))) == 40


@given(st.lists(st.integers(1, merging.PART_BYTES), min_size=1, max_size=300))
def test_the_number_of_parts_stays_small(sizes):
    """Parts as `parts_to_merge` leaves them: few, and no frame is written often."""
    parts = []
    written = 0
    for size in sizes:
        parts.append(size)
        if count := merging.parts_to_merge(parts):
            merged = sum(parts[-count:])
            parts[-count:] = [merged]
            written += merged
    small = [size for size in parts if size < merging.PART_BYTES]
    assert len(small) <= 8 * (2 + np.log2(1 + sum(small) / min(sizes)))
    assert written <= sum(sizes) * (2 + np.log2(1 + len(sizes)))


# ---- A killed writer -----------------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from support.ranks import RowsModel, this_rank
from hybrid_nbody.output.trajectory import Trajectory

model = RowsModel(500, this_rank())
trajectory = Trajectory(Path(sys.argv[1]), model.communicator)
trajectory.create(model, {})
for step in (0, 1, 2):
    trajectory.write_frame(model.at(step))
    trajectory.write_diagnostics(model, model.diagnostics())
trajectory.flush()
trajectory.write_frame(model.at(3))
os._exit(9)
"""


def test_what_was_flushed_outlives_a_killed_writer(tmp_path, alone):
    path = tmp_path / NAME
    run_python(KILLED, path, check=9)
    with open_run(tmp_path) as run:
        assert run.step[:3].tolist() == run.diagnostics.step.tolist() == [0, 1, 2]
        assert same_bits(run.positions(2), rows_at(2, 500)["bodies/position"])
    trajectory = Trajectory(path, alone)
    trajectory.reopen(RowsModel(500, alone).at(2), {})
    write(trajectory, RowsModel(500, alone), [7, 8])
    trajectory.close()
    check(path, 500, [0, 1, 2, 7, 8])


def test_a_frame_can_be_read_as_soon_as_it_is_flushed(tmp_path, alone):
    model = RowsModel(5, alone)
    trajectory = start(tmp_path, model)
    for step in (0, 3, 4):
        trajectory.write_frame(model.at(step))
        trajectory.flush()
        with open_run(tmp_path) as run:
            assert run.step[-1] == step
            assert same_bits(run.positions(-1), rows_at(step, 5)["bodies/position"])
    trajectory.close()


# ---- A full disk ---------------------------------------------------------------------------------

LITTLE_ROOM = """
import json, os, resource, signal, sys
from pathlib import Path
from support.ranks import RowsModel, this_rank
from hybrid_nbody.errors import FileError
from hybrid_nbody.output.trajectory import Trajectory

path, frames, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
if sys.argv[4] == "late":  # another program took the room in the meantime
    os.posix_fallocate = lambda *arguments: None
model = RowsModel(2000, this_rank())
trajectory = Trajectory(path, model.communicator)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
answer = "written"
try:
    trajectory.create(model, {})
    for step in range(10):
        if step == frames:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        trajectory.write_frame(model.at(step))
        trajectory.write_diagnostics(model, model.diagnostics())
        trajectory.flush()
except FileError as error:
    answer = str(error)
print(json.dumps([answer, step]), flush=True)
"""


@pytest.mark.parametrize("notice", ["early", "late"])
@pytest.mark.parametrize("frames", [0, 3])
@pytest.mark.parametrize("limit", [0, 1000, 60_000])
def test_a_full_disk_costs_no_frame_that_was_written(tmp_path, alone, frames, limit, notice):
    path = tmp_path / NAME
    message, step = answer_of(LITTLE_ROOM, path, frames, limit, notice)
    assert message.startswith(f"{tmp_path}/")
    assert message.endswith(" failed: the file size limit is reached")
    assert step == frames
    with open_run(tmp_path) as run:
        assert run.step.tolist() == run.diagnostics.step.tolist() == list(range(frames))
        assert not run.damage
    assert not list(tmp_path.rglob("*.part"))
    trajectory = Trajectory(path, alone)  # once there is space again
    trajectory.reopen(RowsModel(2000, alone).at(max(frames - 1, 0)), {})
    write(trajectory, RowsModel(2000, alone), [11])
    trajectory.close()
    check(path, 2000, [*range(frames), 11])


@pytest.mark.mpi
def test_a_file_of_another_kind_of_model_is_refused(communicator, shared_tmp_path):
    start(shared_tmp_path, RowsModel(5, communicator), [0]).close()
    communicator.barrier()
    model = RowsModel(5, communicator)
    model.quantities = model.quantities | {"total_energy": Quantity("energy", "each", 2)}
    for other in (RowsModel(6, communicator), model):
        with pytest.raises(DamagedFileError, match=r"has values of shape"):
            Trajectory(shared_tmp_path / NAME, communicator).reopen(other, {})


@pytest.mark.mpi
def test_a_folder_that_is_not_there_is_an_error_on_every_rank(communicator, shared_tmp_path):
    path = shared_tmp_path / "no" / NAME
    for deed in ("create", "reopen"):
        with pytest.raises(FileError) as caught:
            getattr(Trajectory(path, communicator), deed)(RowsModel(5, communicator), HEADER)
        assert str(caught.value).startswith(str(path.parent))
        assert caught.value.shared


def test_the_configuration_comes_back_as_it_was_stored(tmp_path, alone):
    config = "title: ü ☉\n" + "# long\n" * 5000
    trajectory = Trajectory(tmp_path / NAME, alone)
    trajectory.create(RowsModel(1, alone), {"config": config, "counts": json.dumps([1])})
    trajectory.close()
    with h5py.File(tmp_path / NAME) as file:
        assert texts_of(file)["config"] == config


def test_another_run_in_the_same_directory_is_read_anew(tmp_path, alone):
    """Its parts may have the names of those that are open."""
    start(tmp_path, RowsModel(5, alone), [0, 1]).close()
    with open_run(tmp_path) as run:
        assert same_bits(run.positions(0), rows_at(0, 5)["bodies/position"])
        for path in (tmp_path / "trajectory").iterdir():
            path.unlink()
        start(tmp_path, RowsModel(5, alone), [7, 8]).close()
        run.refresh()
        assert same_bits(run.positions(0), rows_at(7, 5)["bodies/position"])


def test_without_damaged_frames_a_run_that_goes_on_is_read_on(tmp_path, alone):
    trajectory = start(tmp_path, RowsModel(5, alone), [])
    for step in (0, 1, 2):
        write(trajectory, RowsModel(5, alone), [step])
        trajectory.flush()
    first, *_ = sorted((tmp_path / "trajectory").glob("part-*"))
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    with open_run(tmp_path) as run:
        with pytest.warns(DamageWarning, match="frame 0"):
            assert run.leave_out_damaged()
        assert run.step.tolist() == [1, 2]
        write(trajectory, RowsModel(5, alone), [3])
        trajectory.close()
        run.refresh()
        assert run.step.tolist() == [1, 2, 3]
        assert same_bits(run.positions(2), rows_at(3, 5)["bodies/position"])
