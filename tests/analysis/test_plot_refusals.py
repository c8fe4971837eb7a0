"""Pictures that cannot be drawn or written are refused with the reason."""

import errno
from pathlib import Path

import numpy as np
import pytest
from support.presented import plot_run

from hybrid_nbody.errors import FileError, InputError

DPI = 50

pytestmark = pytest.mark.usefixtures("no_warnings")


def test_an_unknown_kind(write_run, refused):
    write_run()
    assert refused(InputError, plot_run, "out", "energy") == (
        "out/trajectory.h5: no picture of kind 'energy' of a run of model 'nbody'; there are "
        "energies, snapshot, "
        "tracks, tracks-3d, lagrangian, profiles, activity, components, overview; did you mean "
        "'energies'?"
    )


def test_too_many_tracks(write_run, refused):
    write_run(bodies=33)
    assert refused(InputError, plot_run, "out", "tracks") == (
        "out/trajectory.h5: 33 bodies are too many for tracks, which show 32"
    )


def test_a_frame_that_is_not_there(write_run, refused):
    write_run()
    for kind in ("snapshot", "tracks", "overview"):
        assert refused(InputError, plot_run, "out", kind, frame=3) == (
            "frame 3: out/trajectory.h5 has 3 frames, 0 to 2 or -3 to -1"
        )


def test_nothing_to_draw(write_run, refused):
    write_run(frames=0, rows=0)
    assert refused(InputError, plot_run, "out") == (
        "out/trajectory.h5: nothing to plot yet, neither diagnostics nor frames"
    )
    assert refused(InputError, plot_run, "out", "energies") == (
        "out/trajectory.h5: no energies in the diagnostics of this run of model 'nbody'"
    )
    write_run(positions=np.zeros((2, 0, 3)))
    assert refused(InputError, plot_run, "out", "snapshot") == (
        "out/trajectory.h5: a run of model 'nbody' has no bodies to draw"
    )


def test_where_pictures_cannot_go(write_run, refused):
    write_run()
    assert refused(InputError, plot_run, "out", "tracks", "picture.gif") == (
        "picture.gif: neither an existing directory nor a file ending in .png, .pdf or .svg"
    )
    assert refused(InputError, plot_run, "out", None, "picture.png") == (
        "picture.png: one file for 4 pictures (energies, snapshot, tracks, tracks-3d); name "
        "one kind, or a directory"
    )
    assert refused(FileError, plot_run, "out", "tracks", "nowhere/picture.png", dpi=DPI) == (
        "nowhere/picture.png: cannot write the picture (no such directory: nowhere)"
    )
    assert refused(InputError, plot_run, "nowhere") == "nowhere: no such file or directory"


def test_a_full_disk_costs_no_earlier_picture(write_run, refused, monkeypatch):
    write_run()
    (path,) = plot_run("out", "energies", dpi=DPI)
    before = path.read_bytes()

    def full(path, content):
        with open(path, "wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert refused(FileError, plot_run, "out", "energies") == (
        "out/energies.png: cannot write the picture (No space left on device)"
    )
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in Path("out").iterdir()) == [
        "energies.png",
        "trajectory.h5",
    ]
