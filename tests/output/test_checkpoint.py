"""Checkpoints are whole or refused, on any number of ranks, and never cost an earlier one."""

import errno
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ranks import RowsModel, answer_of, rows_at, same_bits, this_rank

from hybrid_nbody.errors import FileError
from hybrid_nbody.files import names as formats
from hybrid_nbody.files.checkpoint import (
    FILE_NAME,
    checkpoint_path,
    checkpoints,
    load_newest,
    verify,
)
from hybrid_nbody.files.hdf5 import attributes
from hybrid_nbody.output import checkpoint, hdf5, sealing, sharing
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.parallel import rows as rows_of_ranks
from hybrid_nbody.parallel.partition import Partition

HEADER = {"model": "nbody", "title": "a title: ü", "config": "model: nbody\n"}
SAVED = ("bodies/position", "bodies/velocity", "bodies/mass", "bodies/id", "gravity/order")


def save(folder, model, keep=2):
    """Write a checkpoint of a model's present step."""
    return CheckpointWriter(folder, HEADER, keep, model.communicator).save(model)


def steps_in(folder):
    """Return the steps of a folder's checkpoints, the newest first."""
    return [int(path.stem.split("-")[1]) for path in checkpoints(folder)]


def names_in(folder):
    """Return the names of all files of a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def three(tmp_path, alone):
    """A folder with the checkpoints of steps 10, 20 and 30."""
    model = RowsModel(5, alone)
    for step in (10, 20, 30):
        save(tmp_path, model.at(step), keep=3)
    return tmp_path


# ---- There and back ------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 3, 13])
@pytest.mark.parametrize("slab_bytes", [1, 100, 4 << 20])
@pytest.mark.parametrize("shared_bytes", [0, 1 << 20])
def test_any_number_of_ranks_reads_what_any_number_wrote(
    communicator, shared_tmp_path, monkeypatch, number, slab_bytes, shared_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    monkeypatch.setattr(sharing, "SHARED_BYTES", shared_bytes)
    model = RowsModel(number, communicator).at(42)
    assert save(shared_tmp_path, model) == shared_tmp_path / "checkpoint-0000000042.h5"
    communicator.barrier()
    saved, warnings = load_newest(shared_tmp_path)
    assert (saved.number, saved.config, warnings) == (number, HEADER["config"], [])
    assert saved.scalars == model.scalars()
    whole = rows_at(42, number)
    all_readers = (1, 2, 3, 5, number + 1)
    for ranks in all_readers[communicator.rank :: communicator.size]:
        shares = [Partition.equal(number, ranks).share(rank) for rank in range(ranks)]
        for name in SAVED:
            rows = np.concatenate([saved.rows(name, share) for share in shares])
            assert same_bits(rows, whole[name]), name
    mixed = np.random.default_rng(number).permutation(number)
    assert same_bits(saved.rows("bodies/position", mixed), whole["bodies/position"][mixed])
    with h5py.File(saved.path, "r", locking=False) as file:
        assert same_bits(file["bodies/velocity"][:], whole["bodies/velocity"])


@pytest.mark.mpi
def test_a_model_with_other_shares_takes_its_own_rows_back(communicator, shared_tmp_path):
    save(shared_tmp_path, RowsModel(20, communicator).at(7))
    communicator.barrier()
    saved, _ = load_newest(shared_tmp_path)
    other = RowsModel(20, communicator, weights=[rank + 0.5 for rank in range(communicator.size)])
    other.restore(lambda name: saved.rows(name, other.own), saved.scalars)
    assert other.step == 7
    for name in SAVED:
        assert same_bits(other.restored[name], rows_at(7, 20)[name][other.own]), name


def test_what_follows_from_the_rest_is_not_saved_and_everything_else_says_what_it_is(
    tmp_path, alone
):
    path = save(tmp_path, RowsModel(4, alone).at(3))
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                found.update({name: attributes(item)}) if hasattr(item, "shape") else None
            )
        )
        own = attributes(file)
        assert own["format"] == "hybrid_nbody checkpoint"
        assert own["format_version"] == formats.FORMAT_VERSION
        assert {name: own[name] for name in HEADER} == HEADER
        assert (own["step"], own["time"]) == (3, 1.5)
    assert found == {
        name: {"units": f"units of {name}", "description": f"what {name} is"} for name in SAVED
    }


def test_no_room_set_aside_is_left_in_the_file(tmp_path, alone):
    path = save(tmp_path, RowsModel(5000, alone).at(3))
    assert path.stat().st_size < sum(rows_at(3, 5000)[name].nbytes for name in SAVED) + (32 << 10)


# ---- Damage --------------------------------------------------------------------------------------

FLIP_EVERY_BYTE = """
import json, os, signal, sys
from pathlib import Path
from hybrid_nbody.errors import FileError
from hybrid_nbody.files.checkpoint import load_newest, verify

def put(position, byte):
    os.pwrite(file, bytes([byte]), position)

def state(path):
    found = load_newest(path.parent)[0]
    names = ("bodies/position", "bodies/velocity", "bodies/mass", "bodies/id", "gravity/order")
    rows = [found.rows(name, slice(0, found.number)).tobytes() for name in names]
    return found.config, found.scalars, rows

path = Path(sys.argv[1])
whole, right = path.read_bytes(), state(path)
refused, wrong, file = 0, [], os.open(path, os.O_WRONLY)
for position in range(len(whole)):
    signal.alarm(5)  # damaged tables can make HDF5 look for ever: that ends this process
    put(position, whole[position] ^ int(sys.argv[2]))
    try:
        verify(path)
        if state(path) != right:
            wrong.append([position, "another state"])
    except FileError:
        refused += 1
    except Exception as error:
        wrong.append([position, repr(error)])
    put(position, whole[position])
print(json.dumps([len(whole), refused, wrong]))
"""


@pytest.mark.parametrize("bits", [0x20, 0xFF])
def test_a_flipped_byte_anywhere_is_found_or_changes_nothing(tmp_path, alone, bits):
    path = save(tmp_path, RowsModel(4, alone).at(3))
    size, refused, wrong = answer_of(FLIP_EVERY_BYTE, path, bits)
    assert wrong == []
    assert size == path.stat().st_size
    assert refused > size / 10  # numbers, texts and tables; the rest are the gaps between them


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_off_anywhere_is_refused(share):
    with tempfile.TemporaryDirectory() as name:
        path = save(Path(name), RowsModel(4, this_rank()).at(3))
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(FileError, match="checkpoint-0000000003.h5"):
            verify(path)


@pytest.mark.parametrize(
    "content", [b"", b"no HDF5 at all", bytes(100_000)], ids=["empty", "text", "zeros"]
)
def test_what_is_no_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "checkpoint-0000000001.h5"
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"{path}: "):
        verify(path)


def test_another_program_s_hdf5_is_refused(tmp_path):
    path = tmp_path / "checkpoint-0000000001.h5"
    with h5py.File(path, "w") as file:
        file["bodies/position"] = np.zeros((3, 3))
    with pytest.raises(FileError, match="not a checkpoint of hybrid_nbody"):
        verify(path)


def test_a_newer_format_is_refused_and_named(tmp_path, alone, monkeypatch):
    monkeypatch.setattr(hdf5, "FORMAT_VERSION", 3)
    monkeypatch.setattr(checkpoint, "check_readable", lambda path: None)
    path = save(tmp_path, RowsModel(2, alone).at(1))
    monkeypatch.undo()
    with pytest.raises(FileError, match=r"written in format version 3; .*update it"):
        verify(path)


def test_a_missing_part_of_the_state_is_named(tmp_path, alone):
    save(tmp_path, RowsModel(2, alone).at(1))
    saved, _ = load_newest(tmp_path)
    with pytest.raises(FileError, match="0001.h5: a part of the state is missing: bodies/spin"):
        saved.rows("bodies/spin", slice(0, 2))


# ---- The newest that is whole --------------------------------------------------------------------


def test_the_newest_is_loaded(three):
    saved, warnings = load_newest(three)
    assert (saved.path.name, saved.scalars["step"], warnings) == (
        "checkpoint-0000000030.h5",
        30,
        [],
    )


@pytest.mark.parametrize("damaged", [[30], [30, 20]])
def test_one_before_the_damaged_ones_is_loaded_and_each_of_them_is_named(three, damaged):
    for step in damaged:
        path = checkpoint_path(three, step)
        content = bytearray(path.read_bytes())
        content[content.index(rows_at(step, 5)["bodies/position"].tobytes())] ^= 1
        path.write_bytes(content)
    saved, warnings = load_newest(three)
    assert saved.scalars["step"] == damaged[-1] - 10
    expected = [f"{checkpoint_path(three, step)}: damaged: " for step in damaged]
    assert [
        warning[: len(start)] for warning, start in zip(warnings, expected, strict=True)
    ] == expected


@pytest.mark.parametrize(
    ("renamed", "newest", "named"),
    [(10, 30, ["holds step 10,"]), (30, 30, ["holds step 30,"])],
)
def test_the_step_inside_counts_and_a_name_of_another_is_told(three, renamed, newest, named):
    other = checkpoint_path(three, 9000)
    checkpoint_path(three, renamed).rename(other)
    saved, warnings = load_newest(three)
    assert saved.step == newest
    expected = [f"{other}: it {text} which is not the step of its name" for text in named]
    assert warnings == expected


def test_none_whole_is_an_error_that_names_every_one_tried(three):
    for step in (10, 20, 30):
        checkpoint_path(three, step).write_bytes(b"")
    with pytest.raises(FileError) as caught:
        load_newest(three)
    first, *tried = str(caught.value).splitlines()
    assert first == f"{three}: no checkpoint to resume from"
    for line, step in zip(tried, (30, 20, 10), strict=True):
        assert line.startswith(f"  {checkpoint_path(three, step)}: ")


def test_a_folder_without_any_is_an_error(tmp_path):
    with pytest.raises(FileError) as caught:
        load_newest(tmp_path)
    assert (
        str(caught.value)
        == f"{tmp_path}: no checkpoint to resume from: there is no checkpoint-*.h5 in it"
    )


def test_a_half_written_one_is_not_looked_at_and_is_replaced(three, alone):
    half = three / "checkpoint-0000000040.h5.part"
    half.write_bytes(b"half")
    assert load_newest(three)[0].scalars["step"] == 30
    save(three, RowsModel(5, alone).at(40), keep=4)
    assert steps_in(three) == [40, 30, 20, 10]
    assert not half.exists()
    assert load_newest(three)[0].scalars["step"] == 40


# ---- Keeping -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "left"), [(1, [40]), (2, [40, 30]), (3, [40, 30, 20]), (9, [40, 30, 20, 10])]
)
def test_only_the_newest_are_kept_and_other_files_are_left_alone(three, alone, keep, left):
    for name in (
        "trajectory.h5",
        "checkpoint-0000000005.h5.bak",
        "checkpoint-5.h5",
        "my-checkpoint-0000000001.h5",
    ):
        (three / name).write_text("mine")
    others = [name for name in names_in(three) if not FILE_NAME.fullmatch(name)]
    save(three, RowsModel(5, alone).at(40), keep)
    assert steps_in(three) == left
    assert [name for name in names_in(three) if not FILE_NAME.fullmatch(name)] == others


def test_what_a_killed_run_has_not_completed_is_removed(three, alone):
    earlier = three / "checkpoint-0000000003.h5.part", three / "state-0000000004.1of2.h5.part"
    later = three / "checkpoint-0000000900.h5.part", three / "notes.h5.part"
    for path in (*earlier, *later):
        path.write_bytes(b"half")
    save(three, RowsModel(5, alone).at(800), keep=3)
    assert [path.exists() for path in (*earlier, *later)] == [False, False, True, True]


@pytest.mark.parametrize("keep", [1, 2])
def test_a_damaged_later_one_never_pushes_out_the_one_just_written(three, alone, keep):
    """A run that went on from step 20, because 30 is damaged, writes 22 and 24."""
    checkpoint_path(three, 30).write_bytes(b"damaged")
    model = RowsModel(5, alone)
    for step in (22, 24):
        assert save(three, model.at(step), keep).exists()
    assert [step for step in steps_in(three) if step < 30] == [24, 22, 20][:keep]
    saved, warnings = load_newest(three)
    assert (saved.scalars["step"], len(warnings)) == (24, 1)


def test_a_step_saved_again_replaces_its_file(three, alone):
    save(three, RowsModel(3, alone).at(30), keep=3)
    assert steps_in(three) == [30, 20, 10]
    assert load_newest(three)[0].number == 3


# ---- A full disk ---------------------------------------------------------------------------------

SAVE_WITH_LITTLE_ROOM = """
import json, os, resource, signal, sys
from pathlib import Path
from support.ranks import RowsModel, this_rank
from hybrid_nbody.errors import FileError
from hybrid_nbody.output.checkpoint import CheckpointWriter

folder, limit, notice = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if notice == "late":  # another program took the room in the meantime
    os.posix_fallocate = lambda *arguments: None
model = RowsModel(5000, this_rank()).at(99)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    CheckpointWriter(folder, {"config": "c"}, 1, model.communicator).save(model)
    message = "saved"
except FileError as error:
    message = str(error)
print(json.dumps(message), flush=True)
"""


@pytest.mark.parametrize("notice", ["early", "late"])
@pytest.mark.parametrize("limit", [0, 1000, 100_000, 250_000])
def test_a_full_disk_is_an_error_and_leaves_all_as_it_was(three, limit, notice):
    before = {path.name: path.read_bytes() for path in three.iterdir()}
    message = answer_of(SAVE_WITH_LITTLE_ROOM, three, limit, notice)
    assert message.startswith(str(three / "checkpoint-0000000099.h5"))
    assert message.endswith(" failed: the file size limit is reached")
    assert {path.name: path.read_bytes() for path in three.iterdir()} == before


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_a_failure_at_the_last_moment_leaves_all_as_it_was(three, alone, monkeypatch, broken):
    before = {path.name: path.read_bytes() for path in three.iterdir()}

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sealing.os, broken, fail)
    with pytest.raises(
        FileError, match="checkpoint-0000000099.h5: writing the checkpoint failed: the disk is full"
    ):
        save(three, RowsModel(5, alone).at(99), keep=1)
    assert {path.name: path.read_bytes() for path in three.iterdir()} == before


def test_a_file_that_cannot_be_read_back_is_not_put_in_place(three, alone, monkeypatch):
    """The disk returns other bits: the earlier checkpoints stay, and the bad file goes."""
    before = names_in(three)
    sync = sealing.os.fsync

    def rot(descriptor):
        sync(descriptor)
        part = three / "checkpoint-0000000099.h5.part"
        if part.exists():
            content = bytearray(part.read_bytes())
            content[512] ^= 4  # where HDF5 begins
            part.write_bytes(content)

    monkeypatch.setattr(sealing.os, "fsync", rot)
    with pytest.raises(FileError, match="0099.h5.part"):
        save(three, RowsModel(5, alone).at(99), keep=1)
    assert names_in(three) == before
