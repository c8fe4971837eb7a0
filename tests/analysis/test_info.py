"""The description of a run, to the letter, and what is told of damaged and foreign files."""

import re

import h5py
import pytest
from support.presented import describe

from hybrid_nbody.analysis import info
from hybrid_nbody.analysis.info import readable_size
from hybrid_nbody.errors import FileError, InputError


def without_sizes(text):
    return re.sub(r"\d+(\.\d+)? (bytes|kB)", "SIZE", text).splitlines()


def test_a_run_with_its_checkpoints(write_run, write_checkpoint, cut):
    write_run(rows=5)
    write_checkpoint("out/checkpoint-0000000020.h5", step=20, time=1.0)
    write_checkpoint("out/checkpoint-0000000010.h5", step=10, time=0.5)
    cut(write_checkpoint("out/checkpoint-0000000030.h5"), 900)
    assert without_sizes(describe("out")) == [
        "out: the output of a run",
        "  title         Test",
        "  model         nbody",
        "  format        hybrid_nbody trajectory, version 1, written by hybrid_nbody 0.1.0",
        "  ran with      backend cpu, ranks 4",
        "  bodies        4",
        "  frames        3, time 0 to 1, step 0 to 20",
        "  diagnostics   5, time 0 to 1, step 0 to 20",
        "  last values   kinetic energy          0.240411",
        "                potential energy       -0.490411",
        "                total energy           -0.25",
        "                relative energy error   1e-06",
        "                virial ratio            1",
        "                half mass radius        0.77",
        "                momentum                12   13   14",
        "  checkpoints   checkpoint-0000000010.h5  time 0.5, step 10",
        "                checkpoint-0000000020.h5  time 1, step 20",
        "                checkpoint-0000000030.h5  cannot be used: damaged: its contents do "
        "not match its digest",
        "  size          SIZE in 4 files",
    ]


def test_checkpoints_that_go_while_they_are_listed(write_run, write_checkpoint, monkeypatch):
    """As a run that goes on removes them; the older one has gone when its turn comes."""
    write_run(rows=5)
    write_checkpoint("out/checkpoint-0000000020.h5", step=20, time=1.0)
    old = write_checkpoint("out/checkpoint-0000000010.h5", step=10, time=0.5)
    read = info._read_checkpoint

    def removing(path, models):
        old.unlink(missing_ok=True)
        return read(path, models)

    monkeypatch.setattr(info, "_read_checkpoint", removing)
    lines = without_sizes(describe("out"))
    assert lines[-2:] == [
        "  checkpoints   checkpoint-0000000020.h5  time 1, step 20",
        "  size          SIZE in 2 files",
    ]


def test_the_time_at_which_a_branch_starts_is_brief(write_run):
    origin = "bodies, step 20, t = 0.20000000000000001, checkpoint-0000000020.h5, sha256 ab"
    with h5py.File(write_run() / "trajectory.h5", "r+") as file:
        file.attrs["branched_from"] = origin
    assert f"  started from  {origin.replace('0.20000000000000001', '0.2')}" in describe("out")


def test_a_checkpoint_under_another_name(write_run, write_checkpoint):
    write_run(rows=5)
    write_checkpoint("out/checkpoint-0000009000.h5", step=20, time=1.0)
    assert "checkpoint-0000009000.h5  time 1, step 20, under another name" in describe("out")


def test_a_trajectory(write_run):
    write_run(frames=1, rows=0)
    lines = without_sizes(describe("out/trajectory.h5"))
    assert lines[0] == "out/trajectory.h5: the trajectory of a run"
    assert lines[-3:] == [
        "  frames        1, at time 0, step 0",
        "  diagnostics   none",
        "  size          SIZE",
    ]


def test_a_checkpoint(write_checkpoint):
    write_checkpoint("c.h5")
    assert without_sizes(describe("c.h5")) == [
        "c.h5: a checkpoint",
        "  title         Test",
        "  model         nbody",
        "  format        hybrid_nbody checkpoint, version 1, written by hybrid_nbody 0.1.0",
        "  ran with      backend cpu, ranks 4",
        "  bodies        4",
        "  state at      time 1, step 20",
        "  size          SIZE",
    ]


def test_a_run_of_a_fluid(write_fluid, write_fluid_checkpoint):
    write_fluid(rows=1)
    write_fluid_checkpoint("smoke/checkpoint-0000000020.h5")
    assert without_sizes(describe("smoke")) == [
        "smoke: the output of a run",
        "  title         Smoke",
        "  model         fluid",
        "  format        hybrid_nbody trajectory, version 1, written by hybrid_nbody 0.1.0",
        "  ran with      backend cpu, ranks 4",
        "  grid          12 x 16 x 8 cells",
        "  fields        density and velocity",
        "  frames        2, time 0 to 1, step 0 to 10",
        "  diagnostics   1, at time 0, step 0",
        "  last values   total density               40",
        "                total density with ghosts   42",
        "                kinetic energy              0",
        "                max speed                   0",
        "                cfl                         0",
        "                divergence after            0",
        "                divergence before           0",
        "                early share                 0",
        "                iterations per solve        20",
        "                poisson residual            0",
        "  checkpoints   checkpoint-0000000020.h5  time 2, step 20",
        "  size          SIZE in 2 files",
    ]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"stride": 5, "fields": ["density"]}, "density of 3 x 4 x 2 of them"),
        ({"planes": [3, 5, 6]}, "density and velocity of 12 x 16 x 3 of them"),
        ({"fields": ["velocity"]}, "velocity"),
    ],
)
def test_which_cells_the_frames_of_a_fluid_hold(write_fluid, options, line):
    assert f"  fields        {line}" in describe(write_fluid(**options)).splitlines()


def test_a_checkpoint_of_a_fluid(write_fluid_checkpoint):
    lines = without_sizes(describe(write_fluid_checkpoint("c.h5")))
    assert lines[-3:] == [
        "  grid          12 x 16 x 8 cells",
        "  state at      time 2, step 20",
        "  size          SIZE",
    ]


def test_a_file_of_bodies(in_folder):
    (in_folder / "b.csv").write_text("x,y,z,vx,vy,vz,m\n1,2,3,4,5,6,7\n1,2,3,4,5,6,8\n")
    assert describe("b.csv").splitlines() == [
        "b.csv: a file of bodies",
        "  bodies        2",
        "  total mass    15",
        "  size          45 bytes",
    ]


@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_checkpoints_are_described_without_a_trajectory(write_run, write_checkpoint, damage):
    trajectory = write_run() / "trajectory.h5"
    write_checkpoint("out/checkpoint-0000000020.h5")
    trajectory.unlink()
    if damage == "damaged":
        trajectory.write_bytes(b"\x00" * 999)
    lines = without_sizes(describe("out"))
    reason = {"gone": "no such file or directory", "damaged": "not an HDF5 file"}[damage]
    assert lines[1] == f"  trajectory    {reason}"
    assert lines[2] == "  checkpoints   checkpoint-0000000020.h5  time 1, step 20"


def test_a_trajectory_cut_short_beside_checkpoints_can_be_resumed(
    write_run, write_checkpoint, cut, refused
):
    path = write_run() / "trajectory.h5"
    way = (
        "; `hybrid-nbody resume out` continues from the newest checkpoint "
        "and keeps this file as trajectory.damaged.h5"
    )
    size = path.stat().st_size
    cut(path, 3000)
    reason = f"truncated, 3000 of {size} bytes are there; copy it again, or use an older one"
    assert refused(FileError, describe, "out/trajectory.h5") == f"out/trajectory.h5: {reason}"
    write_checkpoint("out/checkpoint-0000000020.h5")
    assert f"  trajectory    {reason}{way}" in describe("out").splitlines()
    assert refused(FileError, describe, "out/trajectory.h5") == f"out/trajectory.h5: {reason}{way}"


def test_an_empty_trajectory_is_called_so_by_both_its_names(
    write_run, write_checkpoint, cut, refused
):
    cut(write_run() / "trajectory.h5", 0)
    reason = "an empty file; its writer was stopped before the first flush"
    assert f"  trajectory    {reason}" in describe("out").splitlines()
    assert refused(FileError, describe, "out/trajectory.h5") == f"out/trajectory.h5: {reason}"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (217_950, "218 kB"),
        (999_999, "1 MB"),
        (5.81e9, "5.81 GB"),
    ],
)
def test_sizes_in_words(size, words):
    assert readable_size(size, digits=3) == words


def test_a_run_without_checkpoints(write_run):
    assert "  checkpoints   none" in describe(write_run()).splitlines()


def test_what_cannot_be_described(write_run, write_checkpoint, cut, refused, in_folder):
    assert refused(InputError, describe, "x") == "x: no such file or directory"
    (in_folder / "empty").mkdir()
    assert (
        refused(InputError, describe, "empty")
        == "empty: no trajectory.h5 here; the directory is empty"
    )
    (in_folder / "x.yaml").write_text("model: nbody\n")
    assert refused(InputError, describe, "x.yaml") == (
        "x.yaml: a configuration, not an output; look at it with: hybrid-nbody check x.yaml"
    )
    (in_folder / "notes").write_text("hello\n")
    wanted = "x,y,z,vx,vy,vz,m, or x,y,vx,vy,m of bodies in a plane"
    message = f"notes:1: expected the header row {wanted} (got 'hello')"
    assert refused(InputError, describe, "notes") == message
    assert refused(FileError, describe, "/dev/null") == "/dev/null: a pipe or a device, not a file"
    write_run(format_version=3)
    assert refused(FileError, describe, "out/trajectory.h5").startswith(
        "out/trajectory.h5: written in format version 3;"
    )


def test_a_damaged_checkpoint(write_checkpoint, refused):
    path = write_checkpoint("c.h5")
    contents = bytearray(path.read_bytes())
    contents[3000] ^= 4
    path.write_bytes(contents)
    assert (
        refused(FileError, describe, "c.h5")
        == "c.h5: damaged: its contents do not match its digest"
    )


def test_a_checkpoint_of_a_newer_program(write_checkpoint, refused):
    write_checkpoint("c.h5", format_version=3)
    assert refused(FileError, describe, "c.h5") == (
        "c.h5: written in format version 3; this hybrid_nbody reads up to version 2, update it"
    )


def test_a_checkpoint_without_its_step(write_checkpoint, refused):
    write_checkpoint("c.h5", step="twenty")
    assert refused(FileError, describe, "c.h5") == "c.h5: damaged; no attribute 'step' in it"
