"""The example inputs that an installation brings, and completion in shells."""

import subprocess
from pathlib import Path

import pytest
from support.command import ROOT, call, refused
from support.configs import load

from hybrid_nbody.cli.examples import names


def test_every_input_file_is_listed_with_what_it_shows(tmp_path):
    lines = call(tmp_path, "examples").stdout.splitlines()
    for name in names():
        (line,) = [line for line in lines if line.split(" ")[0] == name]
        assert len(line.split()) > 3
    assert {f"{name}.yaml" for name in names()} == yaml_files()


def yaml_files():
    return {path.name for path in Path(ROOT, "input").glob("*.yaml")}


@pytest.mark.parametrize("name", names())
def test_an_example_is_written_with_the_files_it_reads(tmp_path, monkeypatch, name):
    written = call(tmp_path, "examples", name).stdout.split()
    assert written[0] == f"{name}.yaml"
    assert written[1:] == (["six_bodies.csv"] if name == "six_bodies" else [])
    monkeypatch.chdir(tmp_path)
    assert load(f"{name}.yaml").title


def test_a_file_is_not_replaced_without_being_asked(tmp_path):
    (tmp_path / "plummer.yaml").write_text("mine")
    message = refused(tmp_path, "examples", "plummer")
    assert message == "plummer.yaml: exists already; choose another folder, or --overwrite"
    assert call(tmp_path, "examples", "plummer.yaml", "--overwrite").returncode == 0
    assert "Plummer" in (tmp_path / "plummer.yaml").read_text()


def test_an_unknown_example_is_refused_with_the_nearest(tmp_path):
    message = refused(tmp_path, "examples", "plumer")
    assert message.startswith("plumer: no such example. Did you mean plummer? There are: ")


def test_a_folder_that_is_missing_is_an_error_of_files(tmp_path):
    assert "missing" in refused(tmp_path, "examples", "plummer", "--output", "missing", code=4)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(tmp_path, shell):
    script = call(tmp_path, "completion", shell).stdout
    assert all(word in script for word in ("resume", "overwrite", "scaling"))
    if shell == "bash":
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")
