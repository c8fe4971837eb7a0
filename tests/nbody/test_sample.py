"""Figures of very many bodies take some of them, in memory that does not grow with their number."""

import tracemalloc
from functools import partial

import h5py
import numpy as np
import pytest
from support.presented import export_run, figure_of, plot_run
from support.written_runs import in_folder, write_run

from hybrid_nbody.analysis.panels import CELLS
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.figures import planes, sample

__all__ = ["in_folder", "write_run"]

NUMBER = 1003

KINDS = ("snapshot", "lagrangian", "profiles")


@pytest.fixture
def folder(write_run):
    """A run of 1003 bodies."""
    return write_run(positions=np.random.default_rng(2).normal(size=(3, NUMBER, 3)))


@pytest.mark.parametrize(("most", "stride"), [(NUMBER, 1), (NUMBER - 1, 2), (100, 11), (1, NUMBER)])
@pytest.mark.parametrize("rows", [1, 50, 5000])
def test_every_nth_body_is_taken_in_pieces_of_any_length(folder, monkeypatch, most, stride, rows):
    monkeypatch.setattr(sample, "MOST", most)
    monkeypatch.setattr(sample, "ROWS", rows)
    with open_run(folder) as run:
        assert sample.stride_of(run) == stride
        np.testing.assert_array_equal(sample.positions_of(run, 1), run.positions(1)[::stride])
        np.testing.assert_array_equal(sample.velocities_of(run, -1), run.velocities(-1)[::stride])
        np.testing.assert_array_equal(sample.masses_of(run), run.mass[::stride])


def test_figures_say_how_many_are_drawn(folder, monkeypatch):
    with open_run(folder) as run:
        assert "1003 bodies in" in figure_of("nbody", "profiles")(run).get_suptitle()
        monkeypatch.setattr(sample, "MOST", 600)
        assert "1003 bodies, 1 of 2 drawn" in figure_of("nbody", "profiles")(run).get_suptitle()


def test_figures_say_that_frames_hold_some_bodies(write_run):
    config = "output: {trajectory: {every_body: 9}}\n"
    positions = np.random.default_rng(2).normal(size=(3, NUMBER, 3))
    folder = write_run(positions=positions, config=config)
    with open_run(folder) as run:
        for kind in ("profiles", "snapshot", "overview"):
            assert "1003 bodies (1 of every 9)" in figure_of("nbody", kind)(run).get_suptitle()


@pytest.mark.parametrize("rows", [7, 5000])
def test_density_images_count_all_bodies(folder, monkeypatch, rows):
    monkeypatch.setattr(sample, "MOST", 600)
    monkeypatch.setattr(sample, "ROWS", rows)
    monkeypatch.setattr(planes, "DOTS", 600)
    with open_run(folder) as run:
        positions = run.positions(1)
        figure = figure_of("nbody", "snapshot")(run, 1)
    outside = np.zeros(NUMBER, bool)
    for axes, plane in zip(figure.axes, ((0, 1), (0, 2), (1, 2)), strict=False):
        (image,) = axes.images
        left, right, bottom, top = image.get_extent()
        counts = image.get_array().filled(0) * ((right - left) / CELLS) ** 2
        columns, lines = positions[:, list(plane)].T
        outside |= (columns < left) | (columns > right) | (lines < bottom) | (lines > top)
        edges = np.linspace(left, right, 5), np.linspace(bottom, top, 5)
        blocks = counts.reshape(4, CELLS // 4, 4, CELLS // 4).sum(axis=(1, 3))
        seen = np.histogram2d(lines, columns, edges[::-1])[0]
        assert np.abs(blocks - seen).max() <= 8  # those seen in one plane and not in another
        np.testing.assert_allclose(counts, np.rint(counts), rtol=0, atol=1e-9)
        total = counts.sum()
    assert 0 < outside.sum() < 30
    assert total == pytest.approx(NUMBER - outside.sum(), rel=1e-12)
    assert f"1003 bodies, {outside.sum()} outside the picture" in figure.get_suptitle()


def test_profiles_of_some_bodies_are_those_of_all(folder, monkeypatch):
    def densities():
        with open_run(folder) as run:
            (line,) = figure_of("nbody", "profiles")(run).axes[0].lines
            return np.interp([0.8, 1.2, 1.6], *line.get_data())

    everything = densities()
    monkeypatch.setattr(sample, "MOST", 600)
    np.testing.assert_allclose(densities(), everything, rtol=0.5)


def test_memory_of_figures_does_not_grow_with_the_bodies(write_run, monkeypatch):
    monkeypatch.setattr(sample, "MOST", 1000)
    monkeypatch.setattr(sample, "ROWS", 10_000)
    monkeypatch.setattr(planes, "DOTS", 1000)

    def peaks(number):
        """Return the largest memory in bytes of each picture of a run of some bodies."""
        folder = write_run(f"{number}", positions=np.linspace(-1, 1, 6 * number).reshape(2, -1, 3))
        with open_run(folder) as run:
            return [peak_of(partial(figure_of("nbody", kind), run)) for kind in KINDS]

    peaks(2000)  # what is imported and kept stays
    few = np.array(peaks(20_000))
    many = np.array(peaks(150_000))
    assert (many < few + 1e6).all()  # the masses alone are 1.2e6, a frame 3.6e6


def peak_of(step):
    """Return the largest memory in bytes that a call takes."""
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# ---- Frames without some fields ------------------------------------------------------------------


def without(folder, name):
    """Take a field out of a run."""
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        del file[f"bodies/{name}"]


def test_exports_of_positions_alone(folder):
    with open_run(folder) as run:
        positions = run.positions(slice(None))
    without(folder, "velocity")
    with h5py.File(export_run(folder, "vtkhdf", "all.vtkhdf", "all")) as file:
        np.testing.assert_array_equal(file["VTKHDF/Points"][:], positions.reshape(-1, 3))
        assert set(file["VTKHDF/PointData"]) == {"mass", "id"}
    with np.load(export_run(folder, "npz", "all.npz", "all")) as found:
        assert "velocity" not in found
    with pytest.raises(InputError, match="hold no velocity, which csv needs; take npz"):
        export_run(folder, "csv", "bodies.csv", 1)


def test_figures_need_what_they_show(folder):
    without(folder, "velocity")
    with open_run(folder) as run, pytest.raises(InputError, match="frames hold no velocities"):
        figure_of("nbody", "profiles")(run)
    without(folder, "position")
    with open_run(folder) as run, pytest.raises(InputError, match="frames hold no positions"):
        figure_of("nbody", "snapshot")(run)
    assert [path.name for path in plot_run(folder)] == ["energies.png"]


def in_float32(folder):
    """Store positions and velocities of a run in single precision."""
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        for name in ("bodies/position", "bodies/velocity"):
            values = file[name][:].astype(np.float32)
            attributes = dict(file[name].attrs)
            del file[name]
            shape = (None, *values.shape[1:])
            file.create_dataset(name, data=values, maxshape=shape).attrs.update(attributes)


def test_exports_keep_single_precision_and_say_so(folder):
    with h5py.File(export_run(folder, "gadget", "double.hdf5", -1)) as file:
        assert file["Header"].attrs["Flag_DoublePrecision"] == 1
    in_float32(folder)
    with open_run(folder) as run:
        positions = run.positions(-1)
    assert positions.dtype == np.float32
    with h5py.File(export_run(folder, "gadget", "single.hdf5", -1)) as file:
        assert file["Header"].attrs["Flag_DoublePrecision"] == 0
        assert file["PartType1/Coordinates"].dtype == np.float32
        np.testing.assert_array_equal(file["VTKHDF/Points"][:], positions)
    with np.load(export_run(folder, "npz", "single.npz", -1)) as found:
        assert found["position"].dtype == np.float32
    table = np.loadtxt(export_run(folder, "csv", "single.csv", -1), delimiter=",", skiprows=3)
    np.testing.assert_array_equal(table[:, :3], positions)
