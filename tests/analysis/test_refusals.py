"""Every command refuses what is not a run, in one line with exit code 2 or 4."""

import h5py
import pytest

from hybrid_nbody.cli.main import main

COMMANDS = {
    "plot": ["plot", "{}"],
    "movie": ["movie", "{}", "--output", "movie.gif"],
    "report": ["report", "{}"],
    "compare": ["compare", "{}", "good"],
    "compared with": ["compare", "good", "{}"],
}


@pytest.fixture
def bad(write_run, in_folder, cut):
    """Write a good run and all kinds of bad ones; return what each is refused with."""
    write_run("good")
    (in_folder / "void").mkdir()
    (in_folder / "letters").mkdir()
    (in_folder / "letters" / "to_mother.txt").write_text("Dear mother")
    write_run("cut")
    cut(in_folder / "cut" / "trajectory.h5", 3000)
    write_run("empty")
    cut(in_folder / "empty" / "trajectory.h5", 0)
    (in_folder / "text.h5").write_text("no HDF5 at all\n" * 100)
    with h5py.File(in_folder / "foreign.h5", "w") as file:
        file["data"] = [1, 2, 3]
    return {
        "void": (2, "void: no trajectory.h5 here; the directory is empty"),
        "letters": (2, "letters: no trajectory.h5 here; it holds only to_mother.txt"),
        "nowhere": (2, "nowhere: no such file or directory"),
        "cut": (4, "cut/trajectory.h5: truncated, 3000 of "),
        "empty/trajectory.h5": (
            4,
            "empty/trajectory.h5: an empty file; its writer was stopped before the first flush",
        ),
        "text.h5": (4, "text.h5: not an HDF5 file"),
        "foreign.h5": (4, "foreign.h5: an HDF5 file, but not one that hybrid_nbody wrote"),
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_run_is_refused(bad, in_folder, capsys, command):
    before = sorted(in_folder.rglob("*"))
    for path, (code, message) in bad.items():
        assert main([word.format(path) for word in COMMANDS[command]]) == code
        found = capsys.readouterr()
        assert found.out == ""
        assert found.err.startswith(f"hybrid_nbody: error: {message}")
        assert found.err.count("\n") == 1
    assert sorted(in_folder.rglob("*")) == before


def test_a_checkpoint_is_no_run(write_checkpoint, capsys):
    path = write_checkpoint()
    for command in ("plot", "movie", "report"):
        assert main([command, path.name]) == 2
        assert (
            capsys.readouterr().err
            == f"hybrid_nbody: error: {path.name}: a checkpoint, not a run; give the directory of "
            "a run\n"
        )


def test_what_is_told_of_a_good_run(write_run, capsys):
    write_run("good")
    assert main(["movie", "good", "--output", "movie.gif", "--fps", "10"]) == 0
    found = capsys.readouterr()
    assert found.out == "movie.gif\n"
    shown = [line.partition(" (")[0] for line in found.err.splitlines()]
    assert shown == ["frame 1/3", "frame 2/3", "frame 3/3"]
    assert main(["compare", "good", "good", "--output", "same.png"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  no difference, to the last bit",
        "same.png",
    ]
    assert main(["report", "good"]) == 0
    found = capsys.readouterr()
    assert found.out == "good/report.html\n"
    assert "no activity: the frames hold no activity map\n" in found.err
