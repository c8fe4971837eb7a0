"""A run is read lazily and exactly, and what is no run is refused in one line."""

import os
import subprocess
import sys
import tracemalloc

import h5py
import numpy as np
import pytest

import hybrid_nbody
from hybrid_nbody.errors import FileError, HybridNBodyError, InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.files.single_file import SingleFile


def expected(frame, bodies=4):
    return 100.0 * frame + np.arange(bodies)[:, None] + 0.1 * np.arange(3)


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["out", "out/trajectory.h5"])
def test_a_run_is_opened_by_its_directory_or_its_file(write_run, path):
    write_run()
    with hybrid_nbody.open_run(path) as run:
        assert (run.number_of_frames, run.number_of_bodies, run.model, run.title) == (
            3,
            4,
            "nbody",
            "Test",
        )
        np.testing.assert_array_equal(run.time, [0, 0.5, 1])
        np.testing.assert_array_equal(run.step, [0, 10, 20])
        np.testing.assert_array_equal(run.mass, np.linspace(1, 2, 4))
        np.testing.assert_array_equal(run.id, [10, 11, 12, 13])


@pytest.mark.parametrize("frame", [0, 1, 2, -1, -3, np.int64(1)])
def test_one_frame(write_run, frame):
    with open_run(write_run()) as run:
        np.testing.assert_array_equal(run.positions(frame), expected(frame % 3))
        np.testing.assert_array_equal(run.velocities(frame), -expected(frame % 3))


@pytest.mark.parametrize(
    "frames",
    [
        slice(None),
        slice(1, 3),
        slice(0, 5, 2),
        slice(None, None, -1),
        slice(4, 0, -2),
        slice(-2, None),
        slice(3, 1),
    ],
)
def test_a_slice_of_frames(write_run, frames):
    whole = np.array([expected(frame) for frame in range(5)])
    with open_run(write_run(frames=5)) as run:
        np.testing.assert_array_equal(run.positions(frames), whole[frames])
        assert run.positions(frames).shape == whole[frames].shape


def test_frames_one_at_a_time(write_run):
    with open_run(write_run(frames=5)) as run:
        frames = list(run.frames(slice(1, None, 2)))
        assert [(frame.index, frame.time, frame.step) for frame in frames] == [
            (1, 0.5, 10),
            (3, 1.5, 30),
        ]
        np.testing.assert_array_equal(frames[1].positions, expected(3))
        np.testing.assert_array_equal(frames[1].velocities, -expected(3))
        np.testing.assert_array_equal(frames[1].field("bodies/position"), expected(3))
        assert repr(frames[1]) == "Frame 3: time 1.5, step 30"
        assert len(list(run.frames())) == 5


def test_a_frame_that_is_not_there_says_how_many_there_are(write_run):
    with open_run(write_run()) as run:
        for frame in (3, -4):
            with pytest.raises(IndexError) as caught:
                run.positions(frame)
            assert (
                str(caught.value) == f"frame {frame}: {run.path} has 3 frames, 0 to 2 or -3 to -1"
            )
        with pytest.raises(TypeError):
            run.positions(1.5)


def test_diagnostics_are_a_mapping_with_attributes(write_run):
    with open_run(write_run(rows=5)) as run:
        found = run.diagnostics
        assert {"time", "step", "total_energy", "momentum"} <= set(found)
        assert len(found) == 9
        np.testing.assert_array_equal(found.time, 0.25 * np.arange(5))
        np.testing.assert_array_equal(found["step"], 5 * np.arange(5))
        assert found.momentum.shape == (5, 3)
        np.testing.assert_array_equal(found.momentum, found["momentum"])
        assert found.row(-1)["step"] == found.row(4)["step"] == 20
        assert "momentum" in dir(found)
        assert repr(found).startswith("Diagnostics of 5 rows: half_mass_radius, kinetic_energy")


def test_diagnostics_that_are_not_there(write_run):
    with open_run(write_run(rows=2)) as run:
        text = "no diagnostics 'entropy'; there are half_mass_radius, "
        with pytest.raises(KeyError, match=text):
            run.diagnostics["entropy"]
        with pytest.raises(AttributeError, match=text):
            _ = run.diagnostics.entropy
        with pytest.raises(IndexError, match="row 2: there are 2 rows of diagnostics"):
            run.diagnostics.row(2)


def test_what_the_run_noted_about_itself(write_run):
    with open_run(
        write_run(ranks=np.int32(4), title="Größe", backend=np.bytes_("größer".encode()))
    ) as run:
        # 5e-2 is a number to people
        assert run.config == {"title": "Test", "time": {"dt": 0.05, "steps": 20}}
        assert run.attributes["ranks"] == 4
        assert run.attributes["backend"] == "größer"
        assert run.title == "Größe"
        assert run.units("bodies/position") == run.units("position") == "length"
        assert run.units("total_energy") == "mass length^2 / time^2"
        assert run.description("time") == "what time is"


def test_units_of_what_is_not_there(write_run, refused):
    write_run()
    with open_run("out") as run:
        assert refused(InputError, run.units, "bodies/positions") == (
            "out/trajectory.h5: no data set 'bodies/positions' in this run of model 'nbody'; "
            "did you mean 'bodies/position'?"
        )


def test_a_stored_configuration_that_is_not_yaml(write_run, refused):
    write_run(config="{a: [}")
    with open_run("out") as run:
        message = refused(FileError, lambda: run.config)
    assert message == "out/trajectory.h5: the configuration stored in it is not YAML"


def test_it_presents_itself(write_run):
    write_run(rows=2)
    with open_run("out") as run:
        assert repr(run).splitlines() == [
            "Run 'Test' of model nbody in out/trajectory.h5",
            "  bodies       4",
            "  frames       3, time 0 to 1, step 0 to 20",
            "  diagnostics  2 rows of half_mass_radius, kinetic_energy, momentum, "
            "potential_energy, "
            "relative_energy_error, step, time, total_energy, virial_ratio",
        ]
    assert repr(run) == "Run out/trajectory.h5 (closed)"


def test_a_closed_run_says_so(write_run):
    run = open_run(write_run())
    run.close()
    run.close()
    with pytest.raises(ValueError, match="is closed; open it again with open_run"):
        run.positions(0)
    assert run.refresh().positions(0).shape == (4, 3)
    run.close()


def test_another_model(in_folder, refused):
    with h5py.File("fluid.h5", "w") as file:
        file.attrs.update(
            {"format": "hybrid_nbody trajectory", "format_version": 1, "model": "fluid"}
        )
        file["fluid/density"] = np.arange(48.0).reshape(2, 2, 3, 4)
        file["time"], file["step"] = [0.0, 1.0], [0, 1]
    with open_run("fluid.h5") as run:
        assert run.fields == ["fluid/density"]
        assert run.field("fluid/density", -1).shape == (2, 3, 4)
        assert (run.number_of_frames, run.number_of_bodies) == (2, 0)
        assert refused(InputError, run.positions, 0) == (
            "fluid.h5: no data set 'bodies/position' in this run of model 'fluid'"
        )
        assert "bodies" not in repr(run)


# --- laziness -------------------------------------------------------------------------------------


def test_no_more_is_read_than_was_asked_for(write_run, monkeypatch):
    read, asked = SingleFile.read, []
    monkeypatch.setattr(
        SingleFile, "read", lambda self, *what: asked.append(what) or read(self, *what)
    )
    with open_run(write_run(frames=5)) as run:
        assert asked == []
        run.positions(-1), run.velocities(slice(1, 4, 2)), run.diagnostics.total_energy
    assert asked == [
        ("bodies/position", 4),
        ("bodies/velocity", slice(1, 4, 2)),
        ("diagnostics/total_energy", slice(0, 5)),
    ]


def test_a_huge_run_takes_the_memory_of_a_frame(in_folder):
    # 2.4 GB, of which the file holds nothing: HDF5 reads what was never written as zeros
    frames = 2000
    bodies = 50_000
    with h5py.File("huge.h5", "w") as file:
        file.attrs.update(
            {"format": "hybrid_nbody trajectory", "format_version": 1, "model": "nbody"}
        )
        file.create_dataset("bodies/position", (frames, bodies, 3), "f8")
        file["bodies/mass"] = np.zeros(bodies)
        file["time"], file["step"] = np.arange(2.0 * frames).reshape(2, frames)
    tracemalloc.start()
    with open_run("huge.h5") as run:
        assert run.number_of_frames == frames
        opened = tracemalloc.get_traced_memory()[1]
        for frame in run.frames(slice(None, None, 200)):
            assert frame.positions.shape == (bodies, 3)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert opened < 500_000
    assert peak < 3 * bodies * 24


def test_reading_needs_neither_mpi_nor_a_gpu_nor_a_plotting_library():
    code = (
        "import sys, hybrid_nbody; hybrid_nbody.open_run; "
        "import hybrid_nbody.analysis.info, hybrid_nbody.files.bodies; "
        "print(sorted({'mpi4py', 'numba', 'cupy', 'matplotlib', 'scipy'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "[]\n"
    )


# --- what is no run -------------------------------------------------------------------------------


def test_nothing_there(refused):
    assert refused(InputError, open_run, "nowhere") == "nowhere: no such file or directory"


@pytest.mark.parametrize(
    ("names", "holdings"),
    [
        ([], "the directory is empty"),
        (["b.txt", "a.txt", ".hidden"], "it holds only a.txt, b.txt"),
        (list("abcdef"), "it holds only a, b, c, d and 2 more"),
    ],
)
def test_a_directory_without_a_run(in_folder, refused, names, holdings):
    (in_folder / "x").mkdir()
    for name in names:
        (in_folder / "x" / name).touch()
    assert refused(InputError, open_run, "x") == f"x: no trajectory.h5 here; {holdings}"


def test_a_foreign_hdf5_file(in_folder, refused):
    h5py.File("x.h5", "w").close()
    assert (
        refused(FileError, open_run, "x.h5")
        == "x.h5: an HDF5 file, but not one that hybrid_nbody wrote"
    )


def test_a_checkpoint_is_no_trajectory(write_checkpoint, refused):
    write_checkpoint("c.h5")
    assert refused(FileError, open_run, "c.h5") == "c.h5: a checkpoint, not a trajectory"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file; its writer was stopped before the first flush"),
        (b"time,energy\n0,1\n" * 9, "not an HDF5 file"),
    ],
)
def test_no_hdf5_file(in_folder, refused, content, message):
    (in_folder / "x.h5").write_bytes(content)
    assert refused(FileError, open_run, "x.h5") == f"x.h5: {message}"


def test_a_truncated_file(write_run, cut, refused):
    path = write_run() / "trajectory.h5"
    size = path.stat().st_size
    cut(path, 3000)
    assert refused(FileError, open_run, "out") == (
        f"out/trajectory.h5: truncated, 3000 of {size} bytes are there; copy it again, or "
        "use an older one"
    )


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (3, "written in format version 3; this hybrid_nbody reads up to version 2, update it"),
        (0, "damaged; its format_version is 0, not a whole number from 1"),
        ("one", "damaged; its format_version is 'one', not a whole number from 1"),
    ],
)
def test_another_format_version(write_run, refused, version, message):
    write_run(format_version=version)
    assert refused(FileError, open_run, "out") == f"out/trajectory.h5: {message}"


def test_a_pipe_is_not_waited_for(in_folder, refused):
    os.mkfifo("pipe")
    assert refused(FileError, open_run, "pipe") == "pipe: a pipe or a device, not a file"


def test_no_permission(write_run, refused, monkeypatch):
    write_run()

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(h5py, "File", forbidden)
    assert refused(FileError, open_run, "out") == "out/trajectory.h5: no permission to read it"


def test_any_damage_is_told_in_one_line(write_run):
    """Flipped bytes give the right numbers, wrong numbers or one line; never another exception."""
    path = write_run() / "trajectory.h5"
    content, random, outcomes = path.read_bytes(), np.random.default_rng(7), []
    for _ in range(60):
        damaged = bytearray(content)
        for place in random.integers(8, 2500, size=3):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged)
        os.utime(path, (1, 1))  # nobody is writing it
        try:
            with open_run(path) as run:
                repr(run), run.config, dict(run.diagnostics)
                list(map(run.positions, range(run.number_of_frames)))
            outcomes.append("read")
        except HybridNBodyError as error:
            assert "\n" not in str(error)
            outcomes.append("refused")
    assert set(outcomes) == {"read", "refused"}


# --- a fluid --------------------------------------------------------------------------------------


def test_a_fluid_is_read_by_frame_and_by_part(write_fluid):
    with open_run(write_fluid(cells=(4, 5, 3), frames=3)) as run:
        assert run.fields == ["fluid/density", "fluid/velocity"]
        assert run.shape("fluid/velocity") == (3, 3, 5, 4, 3)
        assert run.number_of_bodies == 0
        whole = run.field("fluid/velocity", 1)
        np.testing.assert_array_equal(
            run.part("fluid/velocity", -2, (slice(1, 3), 2)), whole[1:3, 2]
        )
        np.testing.assert_array_equal(run.field("fluid/velocity", slice(None))[1], whole)
        assert run.units("velocity") == "length / time"
        assert "  density      (3, 5, 4) a frame" in repr(run).splitlines()
        with pytest.raises(IndexError, match="frame 3"):
            run.part("fluid/density", 3, (0,))
        with pytest.raises(InputError, match="did you mean 'fluid/density'"):
            run.shape("fluid/densty")
