"""Of a single file whose writer was killed, only complete frames are read."""

import os

import h5py
import numpy as np
import pytest

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
