"""Exported frames are those of the run to the bit; what a format cannot hold is refused."""

import errno
import tracemalloc

import h5py
import numpy as np
import pytest
from support.presented import export_run

from hybrid_nbody.analysis.export import source, tables, target
from hybrid_nbody.analysis.export.exporting import FORMATS
from hybrid_nbody.cli.arguments import EXPORTS
from hybrid_nbody.cli.main import main
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.bodies import read_bodies
from hybrid_nbody.files.run import open_run

SUFFIXES = {"gadget": "hdf5", "vtkhdf": "vtkhdf", "csv": "csv", "npz": "npz"}


@pytest.fixture
def cluster(write_run):
    """A run of 50 bodies at positions with no short decimal representation."""
    return write_run(
        positions=np.random.default_rng(3).normal(size=(3, 50, 3))
        * 10.0 ** np.arange(-12, 13, 8)[:3]
    )


# --- the bits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "npz"])
@pytest.mark.parametrize("frame", [0, -1])
def test_bodies_come_back_to_the_bit(cluster, format, frame):
    bodies = read_bodies(export_run(cluster, format, f"bodies.{format}", frame))
    with open_run(cluster) as run:
        np.testing.assert_array_equal(bodies.position, run.positions(frame))
        np.testing.assert_array_equal(bodies.velocity, run.velocities(frame))
        np.testing.assert_array_equal(bodies.mass, run.mass)
        np.testing.assert_array_equal(bodies.id, run.id)


def test_a_table_says_when_it_is(cluster):
    lines = export_run(cluster, "csv", "bodies.csv", 1).read_text().splitlines()
    assert lines[:3] == ["# Test", "# time 0.5, step 10", "x,y,z,vx,vy,vz,m,id"]
    assert len(lines) == 53


def test_all_frames_as_arrays(cluster):
    with open_run(cluster) as run, np.load(export_run(cluster, "npz", "all.npz", "all")) as found:
        np.testing.assert_array_equal(found["position"], run.positions(slice(None)))
        np.testing.assert_array_equal(found["velocity"], run.velocities(slice(None)))
        np.testing.assert_array_equal(found["time"], run.time)
        np.testing.assert_array_equal(found["step"], run.step)
        assert set(found) == {"position", "velocity", "mass", "id", "time", "step"}


@pytest.mark.parametrize("frame", [1, "all"])
def test_the_activity_map_as_an_array(write_run, frame):
    """Bodies are read from beside it, from one frame."""
    maps = np.random.default_rng(5).integers(0, 9, size=(3, 6, 6)) * 1.5
    folder = write_run(more={"activity/map": maps})
    path = export_run(folder, "npz", "flat.npz", frame)
    with np.load(path) as found:
        np.testing.assert_array_equal(found["activity_map"], maps if frame == "all" else maps[1])
        assert found["activity_map"].dtype == np.float64
    if frame == 1:
        assert len(read_bodies(path)) == 4


@pytest.mark.parametrize("format", ["csv", "gadget", "vtkhdf"])
def test_formats_without_a_place_for_it_leave_the_map_out(write_run, capsys, format):
    plain = export_run(write_run(), format, f"plain.{SUFFIXES[format]}").read_bytes()
    write_run(more={"activity/map": np.ones((3, 6, 6))})
    assert export_run("out", format, f"flat.{SUFFIXES[format]}").read_bytes() == plain
    assert capsys.readouterr() == ("", "")


def test_a_fluid_as_arrays(write_fluid):
    folder = write_fluid(cells=(12, 16, 8), stride=2)
    with open_run(folder) as run, np.load(export_run(folder, "npz", "smoke.npz", 1)) as found:
        np.testing.assert_array_equal(found["density"], run.field("fluid/density", 1))
        np.testing.assert_array_equal(found["velocity"], run.field("fluid/velocity", 1))
        assert found["density"].dtype == np.float32
        assert (found["time"], found["step"]) == (1.0, 10)
        np.testing.assert_allclose(found["x"], (2 * np.arange(6) + 0.5) / 16, rtol=1e-15)
        assert [found[axis].shape for axis in "xyz"] == [(6,), (8,), (4,)]


def test_the_same_frames_give_the_same_file(cluster):
    first = export_run(cluster, "npz", "first.npz")
    assert first.read_bytes() == export_run(cluster, "npz", "second.npz").read_bytes()


# --- where it is taken from -----------------------------------------------------------------------


@pytest.mark.parametrize("format", SUFFIXES)
def test_a_checkpoint(write_checkpoint, format):
    path = export_run(write_checkpoint(), format, f"state.{SUFFIXES[format]}")
    if format in ("csv", "npz"):
        np.testing.assert_array_equal(read_bodies(path).position[:, 0], [0, 1, 2, 3])
    else:
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["VTKHDF/Points"][:, 0], [0, 1, 2, 3])
            assert file["VTKHDF/FieldData/TimeValue"][:] == [1.0]


def test_a_checkpoint_of_a_fluid(write_fluid_checkpoint):
    path = write_fluid_checkpoint(cells=(4, 6, 5))
    with np.load(export_run(path, "npz", "state.npz")) as found:
        assert found["density"].shape == (5, 6, 4)
        # as the fixture has it
        np.testing.assert_array_equal(found["velocity"][..., 2], found["density"])
        assert found["step"] == 20


def test_memory_does_not_grow_with_the_frames(write_run, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 20)

    def most(frames):
        folder = write_run(f"run-{frames}", frames=frames, bodies=500)
        tracemalloc.start()
        for format, suffix in (("vtkhdf", "vtkhdf"), ("npz", "npz")):
            export_run(folder, format, f"all-{frames}.{suffix}", "all")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    most(2)
    few, many = most(5), most(60)
    assert many < few + 200_000  # 55 more frames of 500 bodies take 1.3 MB


# --- what is refused ------------------------------------------------------------------------------


def test_formats_of_bodies_refuse_a_fluid(write_fluid, refused):
    write_fluid()
    for format in ("csv", "gadget"):
        line = refused(InputError, export_run, "smoke", format, f"smoke.{SUFFIXES[format]}")
        assert (
            line == f"smoke/trajectory.h5: fields on a grid, and {format} holds "
            "bodies alone; export them as vtkhdf, npz"
        )


def test_formats_of_one_frame_refuse_all(cluster, refused):
    line = refused(InputError, export_run, "out", "gadget", "all.hdf5", "all")
    assert line == "gadget holds one frame; give its number, or export all as vtkhdf, npz"


def test_planes_that_are_not_evenly_apart(write_fluid, refused):
    write_fluid(planes=[0, 1, 5])
    line = refused(InputError, export_run, "smoke", "vtkhdf", "smoke.vtkhdf")
    assert line == (
        "smoke/trajectory.h5: the planes 0, 1, 5 of z are not evenly apart, as vtkhdf needs; "
        "export them as npz"
    )
    assert np.load(export_run("smoke", "npz", "smoke.npz"))["z"].shape == (3,)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("out", "npz", "a.npz", 3),
            "out/trajectory.h5: no frame 3; there are 3, 0 to 2 or -3 to -1",
        ),
        (
            ("out", "npz", "a.npz", -4),
            "out/trajectory.h5: no frame -4; there are 3, 0 to 2 or -3 to -1",
        ),
        (
            ("out", "npy", "a.npz"),
            "no format 'npy'; there are gadget, vtkhdf, csv, npz; did you mean 'npz'?",
        ),
        (("out", "gadget", "a.h5"), "a.h5: the name of this format must end in .hdf5 or .hdf"),
        (
            ("out", "csv", "old.csv"),
            "old.csv: exists already; choose another --output, or replace it with --overwrite",
        ),
        (("out", "csv", "folder.csv"), "folder.csv: a directory; name a file in it"),
        (("none", "csv", "a.csv"), "none: no such file or directory"),
    ],
)
def test_bad_arguments(cluster, in_folder, refused, arguments, line):
    (in_folder / "old.csv").write_text("mine")
    (in_folder / "folder.csv").mkdir()
    before = sorted(in_folder.rglob("*"))
    assert refused(InputError, export_run, *arguments) == line
    assert sorted(in_folder.rglob("*")) == before


def test_a_run_is_never_replaced_by_its_export(cluster, refused):
    source_file = (cluster / "trajectory.h5").rename("run.hdf5")
    line = refused(InputError, export_run, source_file, "gadget", "run.hdf5", overwrite=True)
    assert line == "run.hdf5: this is the file that is to be exported; choose another --output"


def test_a_run_without_frames(write_run, refused):
    write_run(frames=0)
    line = refused(InputError, export_run, "out", "csv", "a.csv")
    assert (
        line == "out/trajectory.h5: no complete frame in it; a checkpoint of the run can be "
        "exported instead"
    )


@pytest.mark.parametrize(
    ("contents", "code", "end"),
    [
        (b"", 4, "an empty file; its writer was stopped before the first flush"),
        (b"not ours", 4, "not an HDF5 file"),
        (b"cut", 4, "truncated, 4000 bytes are there; copy it again, or use an older one"),
        (
            b"export",
            4,
            "an export for other programs, not a trajectory; give the run it was made from",
        ),
        (b"foreign", 4, "an HDF5 file, but not one that hybrid_nbody wrote"),
        (b"sealed", 4, "damaged: its contents do not match its digest"),
    ],
)
def test_bad_files(cluster, write_checkpoint, in_folder, capsys, contents, code, end):
    path = in_folder / "input.h5"
    path.write_bytes(_bad_file(contents, cluster, write_checkpoint))
    assert main(["export", "input.h5", "--format", "npz", "--output", "a.npz"]) == code
    message = capsys.readouterr().err
    assert message.startswith("hybrid_nbody: error: input.h5: ") and message.count("\n") == 1
    assert message.rstrip().endswith(end) or (contents == b"cut" and "truncated" in message)
    assert not list(in_folder.glob("*.npz"))


def _bad_file(kind, cluster, write_checkpoint):
    if kind == b"cut":
        return (cluster / "trajectory.h5").read_bytes()[:4000]
    if kind == b"sealed":
        return write_checkpoint().read_bytes()[:-8] + bytes(8 * [1])
    if kind == b"export":
        return export_run(cluster, "vtkhdf", "other.vtkhdf").read_bytes()
    if kind == b"foreign":
        h5py.File("foreign.hdf5", "w").close()
        return open("foreign.hdf5", "rb").read()
    return kind


# --- what happens to the file ---------------------------------------------------------------------


def test_overwrite(cluster, in_folder):
    (in_folder / "old.csv").write_text("mine")
    export_run(cluster, "csv", "old.csv", overwrite=True)
    assert len(read_bodies("old.csv")) == 50


def test_a_broken_export_leaves_what_was_there(cluster, in_folder, refused, monkeypatch):
    (in_folder / "old.npz").write_text("mine")

    def fail(*arguments):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(tables, "_write_array", fail)
    line = refused(FileError, export_run, cluster, "npz", "old.npz", overwrite=True)
    assert line == "old.npz: cannot write the export (Input/output error)"
    assert (in_folder / "old.npz").read_text() == "mine"
    assert sorted(path.name for path in in_folder.iterdir()) == ["old.npz", "out"]


@pytest.mark.parametrize("format", SUFFIXES)
def test_a_full_disk_is_met_before_anything_is_written(
    cluster, in_folder, refused, monkeypatch, format
):
    sizes = []

    def full(descriptor, start, size):
        sizes.append(size)
        raise OSError(errno.ENOSPC, "full")

    name = f"a.{SUFFIXES[format]}"
    size = export_run(cluster, format, name).stat().st_size
    monkeypatch.setattr(target.os, "posix_fallocate", full)
    line = refused(FileError, export_run, cluster, format, name, overwrite=True)
    assert line == f"{name}: cannot write the export (the disk is full)"
    assert size <= sizes[0] <= size + 1.1 * target.SLACK_BYTES


def test_no_folder(cluster, refused):
    line = refused(FileError, export_run, cluster, "csv", "none/a.csv")
    assert line == "none/a.csv: cannot write the export (No such file or directory)"


# --- the command ----------------------------------------------------------------------------------


def test_the_command(cluster, capsys):
    assert main(["export", "out", "--format", "npz", "--frame", "all", "--output", "all.npz"]) == 0
    assert capsys.readouterr().out == "all.npz\n"
    assert np.load("all.npz")["position"].shape == (3, 50, 3)


def test_the_command_refuses_a_frame_that_is_none(cluster, capsys):
    words = ["export", "out", "--format", "npz", "--frame", "last", "--output", "a.npz"]
    assert main(words) == 2
    assert "argument --frame: must be a whole number or all (got 'last')" in capsys.readouterr().err


def test_the_help_of_the_command_names_every_format():
    assert list(EXPORTS) == list(FORMATS)
