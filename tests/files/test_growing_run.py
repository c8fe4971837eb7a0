"""Beside a writer, or after it was killed, only complete frames are read; the writer is safe."""

import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

from hybrid_nbody.errors import FileError
from hybrid_nbody.files import hdf5
from hybrid_nbody.files.hdf5 import WatchedFile
from hybrid_nbody.files.run import open_run


def expected(frame, bodies=4):
    return 100.0 * frame + np.arange(bodies)[:, None] + 0.1 * np.arange(3)


def grow(path, *names):
    """Lengthen data sets by a row that repeats the last one."""
    with h5py.File(path, "r+") as file:
        for name in names:
            data = file[name]
            data.resize(len(data) + 1, axis=0)
            data[-1] = data[-2]


FRAMES = ("bodies/position", "bodies/velocity", "step", "time")
QUANTITIES = (
    "kinetic_energy",
    "potential_energy",
    "total_energy",
    "relative_energy_error",
    "virial_ratio",
)
ROWS = tuple(
    f"diagnostics/{name}" for name in (*QUANTITIES, "half_mass_radius", "momentum", "step", "time")
)


def all_but_one(names):
    return [[name for name in names if name != other] for other in names]


@pytest.mark.parametrize("longer", [FRAMES[:1], FRAMES[:2], *all_but_one(FRAMES)])
def test_a_frame_counts_once_all_its_data_sets_have_it(write_run, longer):
    path = write_run()
    grow(path / "trajectory.h5", *longer)
    with open_run(path) as run:
        assert (
            run.number_of_frames
            == len(run.time)
            == len(run.step)
            == len(run.positions(slice(None)))
            == 3
        )
        np.testing.assert_array_equal(run.positions(-1), expected(2))


@pytest.mark.parametrize("longer", [ROWS[:1], ROWS[:2], *all_but_one(ROWS)])
def test_a_row_counts_once_all_its_data_sets_have_it(write_run, longer):
    path = write_run(rows=5)
    grow(path / "trajectory.h5", *longer)
    with open_run(path) as run:
        assert {len(values) for values in run.diagnostics.values()} == {5}
        assert run.diagnostics.row(-1)["time"] == 1.0


def test_frames_and_rows_are_counted_apart(write_run):
    tensor = {"inertia": np.zeros((7, 3, 3))}
    with open_run(write_run(frames=9, rows=7, diagnostics=tensor)) as run:
        assert run.diagnostics.inertia.shape == (7, 3, 3)
        assert (run.number_of_frames, run.diagnostics.number_of_rows) == (9, 7)


def test_a_run_that_has_just_begun(in_folder):
    with h5py.File("trajectory.h5", "w") as file:
        file.attrs.update({"format": "hybrid_nbody trajectory", "format_version": 1})
    with open_run(".") as run:
        assert (run.number_of_frames, run.number_of_bodies, len(run.diagnostics)) == (0, 0, 0)
        assert (run.time.shape, run.step.dtype) == ((0,), np.int64)
        assert list(run.frames()) == []
        assert "frames       0" in repr(run)
        with pytest.raises(IndexError, match=r"frame 0: trajectory.h5 has no complete frame yet"):
            run.positions(0)


WRITER = """
import h5py, numpy, sys
file = h5py.File("out/trajectory.h5", "r+")
for line in sys.stdin:
    for name in line.split():
        data = file[name]
        data.resize(len(data) + 1, axis=0)
        data[-1] = len(data) - 1
    file.flush()
    print("flushed", flush=True)
"""


@pytest.fixture
def writer(write_run):
    """Start a process that keeps the file of a run open and locked and lengthens its data sets."""
    write_run()
    locking = os.environ | {"HDF5_USE_FILE_LOCKING": "TRUE"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": locking}
    with subprocess.Popen([sys.executable, "-c", WRITER], **pipes) as process:

        def tell(*names):
            print(*names, file=process.stdin, flush=True)
            assert process.stdout.readline() == "flushed\n"

        tell.process = process
        yield tell
        process.kill()


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_beside_another_open_file_in_one_process(write_run, mode):
    """HDF5 refuses two that open a file with other locks or rights; both orders must work."""
    path = write_run() / "trajectory.h5"
    with h5py.File(path, mode), open_run(path) as run:
        np.testing.assert_array_equal(run.positions(1), expected(1))
    with open_run(path) as run, h5py.File(path, mode) as file:
        np.testing.assert_array_equal(file["bodies/position"][1], expected(1))
        np.testing.assert_array_equal(run.positions(1), expected(1))


def test_a_closed_run_leaves_no_file_open(write_run):
    path = write_run()
    before = len(os.listdir("/proc/self/fd"))
    with open_run(path) as run:
        run.positions(0)
        assert len(os.listdir("/proc/self/fd")) == before + 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_reading_beside_the_writer(writer):
    writer()
    with open_run("out") as run:
        assert run.number_of_frames == 3
        # a reader does not stop it
        writer(*FRAMES, *[f"diagnostics/{name}" for name in run.diagnostics])
        assert run.number_of_frames == 3
        np.testing.assert_array_equal(run.positions(2), expected(2))
        assert run.refresh() is run
        assert (run.number_of_frames, run.diagnostics.number_of_rows) == (4, 6)
        assert (run.positions(-1) == 3).all()
        assert run.time[-1] == 3


def test_a_writer_killed_between_two_data_sets(writer):
    writer(*FRAMES)
    writer("bodies/position")
    writer.process.kill()
    with open_run("out") as run:
        assert run.number_of_frames == 4
        assert (run.positions(-1) == 3).all()


def test_beside_a_writer_in_the_same_process(write_run):
    path = write_run() / "trajectory.h5"
    with h5py.File(path, "r+") as file, open_run(path) as run:
        file["bodies/position"][2] = 7
        file.flush()
        assert (run.positions(2) == 7).all()


def test_rows_that_the_file_does_not_hold_yet_are_not_read_as_zeros(in_folder, refused):
    """The index of a data set may lag behind its length; HDF5 itself then gives zeros."""
    with h5py.File("trajectory.h5", "w") as file:
        file.attrs.update({"format": "hybrid_nbody trajectory", "format_version": 1})
        data = file.create_dataset(
            "bodies/position", (3, 4, 3), "f8", maxshape=(None, 4, 3), chunks=(1, 4, 3)
        )
        data[:2] = 1
        file["time"], file["step"] = np.arange(3.0), np.arange(3)
    with open_run("trajectory.h5") as run:
        assert (run.positions(1) == 1).all()
        assert refused(FileError, run.positions, 2) == (
            "trajectory.h5: damaged or unreadable (bodies/position is not yet written up to row 2)"
        )


def test_frames_that_a_resumed_run_has_cut_off(write_run, refused):
    write_run(frames=5)
    with open_run("out") as run:
        os.replace(write_run("cut", frames=2) / "trajectory.h5", "out/trajectory.h5")
        assert refused(FileError, run.positions, 4) == (
            "out/trajectory.h5: damaged or unreadable (bodies/position has 2 rows by now, "
            "row 4 is gone)"
        )
        assert refused(FileError, run.positions, slice(None)).endswith(
            "has 2 rows by now, row 4 is gone)"
        )
        assert run.refresh().positions(slice(None)).shape == (2, 4, 3)


def test_a_file_in_the_middle_of_a_flush_is_tried_again(write_run, monkeypatch):
    write_run()
    attempts, unlocked = [], hdf5._open_unlocked

    def sometimes(path):
        attempts.append(path)
        if len(attempts) < 3:
            raise OSError("truncated file: eof = 96, stored_eof = 2048")
        return unlocked(path)

    monkeypatch.setattr(hdf5, "_open_unlocked", sometimes)
    with open_run("out") as run:
        assert run.number_of_frames == 3
    assert len(attempts) == 3


def test_what_cannot_be_read_is_tried_again_with_the_file_opened_anew(write_run, monkeypatch):
    """What HDF5 has in memory of a file that is being written may be the very reason."""
    opened, is_bad, check = [], iter([True, True, False]), hdf5._check_rows
    anew = WatchedFile.open

    def stale(*arguments):
        if next(is_bad):
            raise OSError("addr overflow")
        check(*arguments)

    monkeypatch.setattr(WatchedFile, "open", lambda self: opened.append(self) or anew(self))
    with open_run(write_run()) as run:
        monkeypatch.setattr(hdf5, "_check_rows", stale)
        np.testing.assert_array_equal(run.positions(1), expected(1))
    assert len(opened) == 3
