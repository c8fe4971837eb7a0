"""Every flushed row of a trajectory can be read, no step is there twice, nothing breaks a file."""

import json
import os

import h5py
import numpy as np
import pytest
from support.ranks import RowsModel, answer_of, rows_at, run_python, same_bits

from hybrid_nbody import __version__
from hybrid_nbody.errors import DamagedFileError, FileError
from hybrid_nbody.files import names as formats
from hybrid_nbody.files.hdf5 import attributes
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.parallel import rows as rows_of_ranks
from hybrid_nbody.simulation.model import Quantity

HEADER = {"model": "nbody", "title": "a title: ü", "config": "model: nbody\n"}
FRAMES = ("bodies/position", "bodies/velocity")
STATIC = ("bodies/mass", "bodies/id")


def write(trajectory, model, steps):
    """Write a frame and a row of diagnostics at each step."""
    for step in steps:
        model.at(step)
        trajectory.write_frame(model)
        trajectory.write_diagnostics(model, model.diagnostics())


def texts_of(item):
    """Return the attributes of a file or data set as texts."""
    return {name: str(value) for name, value in attributes(item).items()}


def start(folder, model, steps=()):
    """Create a trajectory and write `steps` into it."""
    trajectory = Trajectory(folder / NAME, model.communicator)
    trajectory.create(model, HEADER)
    write(trajectory, model, steps)
    return trajectory


def check(path, number, steps, diagnostics=None):
    """Check every row of a file that was written at `steps`."""
    with h5py.File(path, "r", locking=False) as file:
        assert file["step"][:].tolist() == list(steps)
        assert file["time"][:].tolist() == [0.5 * step for step in steps]
        for name in FRAMES:
            assert len(file[name]) >= len(steps)
            for row, step in enumerate(steps):
                assert same_bits(file[name][row], rows_at(step, number)[name])
        for name in STATIC:
            assert same_bits(file[name][:], rows_at(0, number)[name])
        steps = np.array(steps if diagnostics is None else diagnostics, dtype=float)
        table = file["diagnostics"]
        assert table["step"][:].tolist() == steps.tolist()
        assert table["time"][:].tolist() == (0.5 * steps).tolist()
        assert table["total_energy"][: len(steps)].tolist() == (-0.25 - steps).tolist()
        assert table["momentum"][: len(steps)].tolist() == [[step, 0.5, -1e-300] for step in steps]


# ---- Rows ----------------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("slab_bytes", [1, 100, 4 << 20])
@pytest.mark.parametrize("number", [1, 2, 50])
def test_rows_of_any_number_of_ranks_are_written(
    communicator, shared_tmp_path, monkeypatch, number, slab_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    trajectory = start(shared_tmp_path, RowsModel(number, communicator), [0, 2, 3])
    trajectory.close()
    communicator.barrier()
    check(shared_tmp_path / NAME, number, [0, 2, 3])


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
    assert found == {
        name: {"units": units, "description": text} for name, (units, text) in expected.items()
    }


def test_the_file_grows_no_more_than_the_data_need(tmp_path, alone):
    model = RowsModel(5000, alone)
    trajectory = start(tmp_path, model)
    sizes = []
    for step in range(5):
        write(trajectory, model, [step])
        sizes.append((tmp_path / NAME).stat().st_size)
    trajectory.close()
    frame = 2 * 5000 * 3 * 8
    assert all(
        frame <= later - earlier < frame + 8192
        for earlier, later in zip(sizes[1:], sizes[2:], strict=False)
    )
    chunks = 7 * 1024 * 8 + 3 * 1024 * 8  # numbers and diagnostics come in chunks of 1024 rows
    assert (tmp_path / NAME).stat().st_size < 5 * frame + 2 * 5000 * 8 + chunks + (32 << 10)


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
if sys.argv[2] == "in a frame":
    trajectory._finish_row = lambda *arguments: (trajectory._flush(), os._exit(9))
    trajectory.write_frame(model.at(3))
elif sys.argv[2] == "in diagnostics":
    trajectory._finish_row = lambda *arguments: (trajectory._flush(), os._exit(9))
    trajectory.write_diagnostics(model.at(3), model.diagnostics())
os._exit(9)
"""


@pytest.mark.parametrize("when", ["after a flush", "in a frame", "in diagnostics"])
def test_every_flushed_row_outlives_a_killed_writer(tmp_path, alone, when):
    path = tmp_path / NAME
    run_python(KILLED, path, when, check=9)
    check(path, 500, [0, 1, 2])
    with h5py.File(path) as file:
        assert len(file["bodies/position"]) == (4 if when == "in a frame" else 3)
        assert len(file["diagnostics/total_energy"]) == (4 if when == "in diagnostics" else 3)
    trajectory = Trajectory(path, alone)
    trajectory.reopen(RowsModel(500, alone).at(2), {})  # a row without a number is used again
    write(trajectory, RowsModel(500, alone), [7, 8])
    trajectory.close()
    check(path, 500, [0, 1, 2, 7, 8])
    with h5py.File(path) as file:
        assert len(file["bodies/position"]) == len(file["diagnostics/total_energy"]) == 5


def test_a_row_without_a_number_is_used_again_by_the_same_writer(tmp_path, alone, monkeypatch):
    model = RowsModel(5, alone)
    trajectory = start(tmp_path, model, [0])
    monkeypatch.setattr(trajectory, "_finish_row", lambda *arguments: None)
    write(trajectory, model, [3])
    monkeypatch.undo()
    write(trajectory, model, [4])
    trajectory.close()
    check(tmp_path / NAME, 5, [0, 4])
    with h5py.File(tmp_path / NAME) as file:
        assert len(file["bodies/position"]) == len(file["diagnostics/momentum"]) == 2


# ---- A full disk ---------------------------------------------------------------------------------

LITTLE_ROOM = """
import json, os, resource, sys
from pathlib import Path
from support.ranks import RowsModel, this_rank
from hybrid_nbody.errors import FileError
from hybrid_nbody.output import hdf5
from hybrid_nbody.output.trajectory import Trajectory

path, frames, extra, notice = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if notice == "late":  # another program took the room in the meantime
    hdf5.reserve = lambda *arguments: None
model = RowsModel(2000, this_rank())
trajectory = Trajectory(path, model.communicator)
try:
    trajectory.create(model, {})
    for step in range(10):
        if step == frames:
            limit = path.stat().st_size + extra
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        trajectory.write_frame(model.at(step))
        trajectory.write_diagnostics(model, model.diagnostics())
    answer = "written"
except FileError as error:
    answer = str(error)
print(json.dumps([answer, step]), flush=True)
os._exit(0)  # after a write that failed, HDF5 can crash when Python ends
"""


@pytest.mark.parametrize("frames", [0, 3])
@pytest.mark.parametrize("extra", [0, 300_000])
def test_a_full_disk_is_an_error_before_the_file_is_touched(tmp_path, frames, extra):
    path = tmp_path / NAME
    message, step = answer_of(LITTLE_ROOM, path, frames, extra, "early")
    assert message.startswith(f"{path}: reserving ")
    assert message.endswith(" bytes failed: the file size limit is reached")
    assert frames <= step < frames + 3
    with h5py.File(path) as file:
        diagnostics = file["diagnostics/step"][:].tolist()
    check(path, 2000, list(range(step)), diagnostics)
    assert diagnostics == list(range(step))


def test_a_disk_that_another_program_fills_in_the_meantime_is_an_error(tmp_path):
    path = tmp_path / NAME
    message, step = answer_of(LITTLE_ROOM, path, 3, 0, "late")
    assert message.startswith(f"{path}: ")
    assert message.endswith(" failed: the file size limit is reached")
    assert step == 3


# ---- Damage --------------------------------------------------------------------------------------


def spoil(path, deed):
    """Damage a trajectory."""
    if deed == "text":
        path.write_text("no HDF5 at all")
    elif deed == "cut off":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif deed == "empty":
        path.write_bytes(b"")
    elif deed == "folder":
        path.unlink()
        path.mkdir()
    else:
        with h5py.File(path, "r+") as file:
            SPOILERS[deed](file)


def replace_with_group(file):
    """Put a group where a data set was."""
    del file["bodies/position"]
    file.create_group("bodies/position")


def other_bodies(file):
    """Put the positions of other bodies in their place."""
    del file["bodies/position"]
    file.create_dataset("bodies/position", (3, 7, 3), "f8", maxshape=(None, 7, 3))


def lose_rows(file):
    """Leave fewer rows than there are numbers of rows."""
    file["bodies/velocity"].resize(1, axis=0)


SPOILERS = {
    "no positions": lambda file: file.__delitem__("bodies/position"),
    "no steps": lambda file: file.__delitem__("step"),
    "a group": replace_with_group,
    "other bodies": other_bodies,
    "lost rows": lose_rows,
}


@pytest.mark.mpi
@pytest.mark.parametrize("deed", ["text", "cut off", "empty", "folder", *SPOILERS])
def test_a_damaged_file_is_refused_on_every_rank_and_let_go(communicator, shared_tmp_path, deed):
    model = RowsModel(5, communicator)
    path = shared_tmp_path / NAME
    start(shared_tmp_path, model, [0, 1, 2]).close()
    communicator.only_on_root(lambda: spoil(path, deed))
    trajectory = Trajectory(path, communicator)
    with pytest.raises(FileError) as caught:
        trajectory.reopen(model, {})
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.shared
    assert trajectory.file is None
    communicator.barrier()
    communicator.only_on_root(lambda: path.rename(path.with_suffix(".aside")))
    trajectory.create(model, HEADER)  # the same object begins anew
    trajectory.close()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("text", "not an HDF5 file any more"),
        ("empty", "an empty file"),
        ("cut off", "truncated: its end is missing"),
    ],
)
def test_damage_is_told_in_plain_words(tmp_path, alone, deed, words):
    start(tmp_path, RowsModel(5, alone), [0, 1]).close()
    spoil(tmp_path / NAME, deed)
    with pytest.raises(DamagedFileError) as caught:
        Trajectory(tmp_path / NAME, alone).reopen(RowsModel(5, alone), {})
    assert str(caught.value) == f"{tmp_path / NAME}: {words}"


@pytest.mark.mpi
def test_a_file_of_another_kind_of_model_is_refused(communicator, shared_tmp_path):
    start(shared_tmp_path, RowsModel(5, communicator), [0]).close()
    communicator.barrier()
    model = RowsModel(5, communicator)
    model.quantities = model.quantities | {"total_energy": Quantity("energy", "each", 2)}
    for other in (RowsModel(6, communicator), model):
        with pytest.raises(FileError, match="not a complete trajectory of ours"):
            Trajectory(shared_tmp_path / NAME, communicator).reopen(other, {})


@pytest.mark.mpi
def test_a_folder_that_is_not_there_is_an_error_on_every_rank(communicator, shared_tmp_path):
    path = shared_tmp_path / "no" / NAME
    for deed in ("create", "reopen"):
        with pytest.raises(FileError) as caught:
            getattr(Trajectory(path, communicator), deed)(RowsModel(5, communicator), HEADER)
        doing = {"create": "creating", "reopen": "opening"}[deed]
        assert str(caught.value) == f"{path}: {doing} the file failed: {os.strerror(2)}"


def test_the_configuration_comes_back_as_it_was_stored(tmp_path, alone):
    config = "title: ü ☉\n" + "# long\n" * 5000
    trajectory = Trajectory(tmp_path / NAME, alone)
    trajectory.create(RowsModel(1, alone), {"config": config, "counts": json.dumps([1])})
    trajectory.close()
    with h5py.File(tmp_path / NAME) as file:
        assert texts_of(file)["config"] == config
