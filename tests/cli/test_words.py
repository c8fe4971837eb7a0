"""The words of the command line: in any order, and explained where they are wrong."""

import pytest
from support.command import refused

from hybrid_nbody.cli.main import main
from hybrid_nbody.cli.words import in_order

JOB = "model: nbody\nbodies: {kind: two-body}\ntime: {dt: 1e-3, steps: 5}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with a configuration and a table of bodies."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "b.csv").write_text("x,y,z,vx,vy,vz,m\n1,0,0,0,0,0,1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("job.yaml", "run job.yaml"),
        ("--overwrite job.yaml", "run --overwrite job.yaml"),
        ("--set a.b=1 --overwrite job.yaml", "run --set a.b=1 --overwrite job.yaml"),
        ("--set a.b=1 check job.yaml", "check --set a.b=1 job.yaml"),
        ("--frame 3 plot out", "plot --frame 3 out"),
        ("run run", "run run"),
        ("--help", "--help"),
        ("help", "--help"),
        ("help plot", "plot --help"),
        ("", ""),
        ("nowhere/x", "run nowhere/x"),
        ("--from out --set a.b=1", "run --from out --set a.b=1"),
    ],
)
def test_a_command_comes_first(folder, typed, words):
    assert in_order(typed.split()) == words.split()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("chekc job.yaml", "chekc: no such command; did you mean 'check'?"),
        ("help rnu", "rnu: no such command; did you mean 'run'?"),
        (
            "frobnicate",
            "frobnicate: neither a command nor a file; hybrid-nbody --help lists the commands",
        ),
        ("run job.yaml --ovewrite", "--ovewrite: no such option; did you mean --overwrite?"),
        ("run job.yaml --zzz 5", "--zzz: no such option; see hybrid-nbody run --help"),
        ("check job.yaml time.dt=5", "time.dt=5: write --set time.dt=5; see hybrid-nbody check"),
        ("check job.yaml job.yaml", "job.yaml: one word too many; see hybrid-nbody check --help"),
        ("check job.yaml --set time.dt 5", "--set time.dt 5: must be one word, --set time.dt=5"),
        ("check --set time.dt = 5 job.yaml", "--set time.dt 5: must be one word, --set time.dt=5"),
        ("--set time.dt 1e-3 run job.yaml", "--set time.dt 1e-3: must be one word, --set time.dt="),
        ("--set time.dt 5 job.yaml", "--set time.dt 5: must be one word, --set time.dt=5"),
        ("--set a.b=1 chekc job.yaml", "chekc: no such command; did you mean 'check'?"),
        (
            "check",
            "check: the following arguments are required: file; see hybrid-nbody check --help",
        ),
        ("bench laddr", "bench: argument NAME: invalid choice: 'laddr'"),
        ("plot job.yaml", "job.yaml: a configuration, not a run; run it first: hybrid-nbody run"),
        ("plot b.csv", "b.csv: a table of bodies, not a run; give the directory of a run"),
    ],
)
def test_wrong_words_are_explained(folder, capsys, typed, message):
    assert main(typed.split()) == 2
    assert capsys.readouterr().err.startswith(f"hybrid_nbody: error: {message}")


def test_a_wrong_choice_names_the_nearest(folder, capsys):
    assert main(["bench", "laddr"]) == 2
    assert capsys.readouterr().err.endswith("did you mean 'ladder'?\n")


def test_a_table_of_bodies_is_no_configuration(folder):
    assert refused(folder, "b.csv") == (
        "b.csv: a table of bodies, not a configuration; name it in one: "
        "bodies: {kind: file, path: b.csv}"
    )


def test_files_of_a_run_are_named_in_place_of_a_configuration(folder):
    out = folder / "out"
    (out / "trajectory").mkdir(parents=True)
    (out / "trajectory.h5").write_bytes(b"hybrid_nbody trajectory, sha256 ")
    (out / "checkpoint-0000000005.h5").write_bytes(b"hybrid_nbody checkpoint, sha256 ")
    (out / "log.txt").write_text("said\n")
    for name, remedy in {
        "out": "a directory of a run, not a configuration; continue it with: hybrid-nbody resume",
        "out/log.txt": "a log, not a configuration; look at its run with: hybrid-nbody info out",
    }.items():
        assert refused(folder, "check", name).startswith(f"{name}: {remedy}")
    assert refused(folder, "plot", "out/log.txt") == (
        "out/log.txt: a log, not a run; give its directory: out"
    )


def test_of_several_ranks_the_first_explains(folder, capsys, monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    for rank, lines in (("0", 1), ("1", 0)):
        monkeypatch.setenv("PMI_RANK", rank)
        assert main(["chekc", "job.yaml"]) == 2
        assert capsys.readouterr().err.count("\n") == lines
