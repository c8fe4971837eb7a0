"""Every command refuses a foreign, truncated or empty file in one line that names it."""

import h5py
import numpy as np
import pytest
from support.command import call

from hybrid_nbody.cli import main as cli

READERS = {
    "info": ["info", "bad.h5"],
    "plot": ["plot", "bad.h5"],
    "export": ["export", "bad.h5", "--format", "npz", "--output", "a.npz"],
    "movie": ["movie", "bad.h5", "--output", "a.gif"],
    "report": ["report", "bad.h5", "--output", "a.html"],
    "compare": ["compare", "bad.h5", "bad.h5", "--output", "a.png"],
    "watch": ["watch", "bad.h5"],
}
"""The commands that read output, one process for all."""

STARTERS = {
    "run": ["run", "bad.h5"],
    "check": ["check", "bad.h5"],
    "resume": ["resume", "bad.h5"],
    "sweep": ["sweep", "bad.h5", "--set", "seed=1,2"],
    "square": ["square", "9", "4", "cpu", "-i", "1", "-f", "bad.h5"],
}
"""Those that start MPI, each in a process of its own."""

WITHOUT_FILES = {"bench", "completion", "doctor", "examples"}


def foreign(path):
    with h5py.File(path, "w") as file:
        file["density"] = np.zeros(5000)


def truncated(path):
    foreign(path)
    path.write_bytes(path.read_bytes()[:3000])


def damaged_checkpoint(path):
    path.write_bytes(
        b"hybrid_nbody checkpoint, sha256 0".ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n" + bytes(900)
    )


KINDS = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("neither one thing: nor another, 7\n"),
    "picture": lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
    "foreign": foreign,
    "truncated": truncated,
    "checkpoint": damaged_checkpoint,
}


def check_refusal(code, output, errors, folder):
    assert code in (2, 4), output + errors
    assert output == ""
    assert errors.startswith("hybrid_nbody: error: ") and "bad.h5" in errors
    assert errors.count("\n") == 1 and "Traceback" not in errors
    assert [path.name for path in folder.iterdir()] == ["bad.h5"]


def test_no_command_is_forgotten():
    assert {*READERS, *STARTERS, *WITHOUT_FILES} == {*cli.ARGUMENTS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", READERS)
def test_what_reads_output(tmp_path, monkeypatch, capsys, command, kind):
    monkeypatch.chdir(tmp_path)
    KINDS[kind](tmp_path / "bad.h5")
    code = cli.main(READERS[command])
    check_refusal(code, *capsys.readouterr(), tmp_path)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("run", "truncated"),
        ("run", "empty"),
        ("check", "picture"),
        ("resume", "foreign"),
        ("square", "truncated"),
    ],
)
def test_what_starts_a_run(tmp_path, command, kind):
    KINDS[kind](tmp_path / "bad.h5")
    result = call(tmp_path, *STARTERS[command])
    check_refusal(result.returncode, result.stdout, result.stderr, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_directory_whose_trajectory_is_bad(tmp_path, monkeypatch, capsys, kind):
    """All that is known of the run is told, and then that its trajectory cannot be read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    KINDS[kind](tmp_path / "out" / "trajectory.h5")
    assert cli.main(["info", "out"]) == 4
    output, errors = capsys.readouterr()
    assert output.startswith("out: the output of a run\n")
    assert errors.startswith("hybrid_nbody: error: out/trajectory.h5: ") and errors.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["plot", ""],
        ["info", ""],
        ["report", "out", "--output", ""],
        ["bench", "limits", "--output", ""],
    ],
)
def test_names_that_are_empty(words, capsys):
    """They would stand for the current directory, where a variable of a script is not set."""
    assert cli.main(words) == 2
    assert "must not be empty" in capsys.readouterr().err
