"""What a file is, told where another is needed."""

import h5py
import pytest
from support.command import refused

from hybrid_nbody.cli.main import main

RUN = "give the directory of a run"
YAML = "a configuration is YAML; hybrid-nbody examples lists some"

FILES = {
    "x.txt": b"hello\nworld\n",
    "c.png": b"\x89PNG\r\n\x1a\n\x00\x00",
    "c.jpg": b"\xff\xd8\xff\xe0\x00",
    "m.mp4": b"\x00\x00\x00\x20ftypisom\x00",
    "m.gif": b"GIF89a\x00",
    "page.html": b"<!doctype html>\n",
    "long.txt": "ä".encode() * 3000 + b"b",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with files of other programs."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    with h5py.File("f.h5", "w") as file:
        file["x"] = 1
    return tmp_path


KINDS = [
    ("x.txt", "a text file"),
    ("long.txt", "a text file"),
    ("c.png", "a picture"),
    ("c.jpg", "a picture"),
    ("m.mp4", "a movie"),
    ("m.gif", "a movie"),
    ("page.html", "a web page"),
]


def said(capsys, *words):
    assert main(list(words)) == 2
    return capsys.readouterr().err.removeprefix("hybrid_nbody: error: ").rstrip()


@pytest.mark.parametrize(("name", "kind"), KINDS)
@pytest.mark.parametrize("command", ["plot", "movie", "report"])
def test_what_is_no_run(folder, capsys, command, name, kind):
    assert said(capsys, command, name) == f"{name}: {kind}, not a run; {RUN}"


@pytest.mark.parametrize(("name", "kind"), KINDS[2:])
def test_what_info_does_not_describe(folder, capsys, name, kind):
    assert said(capsys, "info", name) == f"{name}: {kind}; {RUN}, or a file of bodies"


@pytest.mark.parametrize(("name", "kind"), [*KINDS, ("f.h5", "an HDF5 file")])
def test_what_is_no_configuration(folder, name, kind):
    assert refused(folder, "check", name) == f"{name}: {kind}, not a configuration; {YAML}"


def test_a_configuration_under_another_name_is_read(folder):
    (folder / "job.txt").write_text("model: nbody\nbodies: {kind: x}\n")
    assert "job.txt:2: bodies.kind: must be one of" in refused(folder, "check", "job.txt")


def test_the_table_of_a_sweep_is_no_table_of_bodies(folder, capsys):
    (folder / "sweep.csv").write_text("gravity.softening,state\n0.1,finished\n")
    assert said(capsys, "plot", "sweep.csv") == f"sweep.csv: a table of a sweep, not a run; {RUN}"


def test_a_picture_of_a_run_names_its_directory(folder, capsys):
    (folder / "trajectory.h5").write_bytes(b"")
    assert said(capsys, "plot", "c.png") == "c.png: a picture, not a run; give its directory: ."
