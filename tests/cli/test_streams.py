"""Streams that are closed or know few letters, and names that are no text, end in no traceback."""

import os
import shlex
import subprocess
import sys

import pytest
from support.command import ROOT
from support.forked import ready_python

CONFIG = """\
model: nbody
title: Kugelhäufchen
bodies: {kind: figure-eight}
time: {dt: 1e-3, steps: 4}
compute: {backend: cpu, threads: 1}
output: {directory: out}
"""


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs words of a shell, ``$H`` being the program."""
    (tmp_path / "job.yaml").write_text(CONFIG, encoding="utf-8")

    def run(line, **environment):
        variables = os.environ | {"PYTHONPATH": ROOT} | environment
        python = [sys.executable] if ">&-" in line else ready_python(variables)
        result = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=variables | {"H": shlex.join([*python, "-m", "hybrid_nbody"])},
            capture_output=True,
            timeout=100,
        )
        assert b"Traceback" not in result.stderr, result.stderr
        return result.returncode, result.stdout, result.stderr.decode(errors="replace")

    return run


def test_letters_that_a_terminal_does_not_know(shell):
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, said, errors = shell("$H run job.yaml && $H info out", **ascii_only)
    assert (code, errors) == (0, "")
    assert b"Kugelh\\xe4ufchen" in said


def test_a_closed_stdout(shell):
    assert shell("$H run job.yaml >&- && $H info out >&- && $H --help >&-") == (0, b"", "")
    code, said, _ = shell("$H info out && cat out/log.txt")
    assert code == 0
    assert b"finished at step 4" in said
    code, _, errors = shell("$H info nothing >&-")
    assert (code, errors) == (2, "hybrid_nbody: error: nothing: no such file or directory\n")


def test_what_is_printed_to_a_full_disk_is_an_error(shell):
    said = "hybrid_nbody: error: standard output cannot be written: No space left on device\n"
    assert shell("$H check job.yaml > /dev/full") == (4, b"", said)
    assert shell("$H run job.yaml > /dev/null && $H info out > /dev/full") == (4, b"", said)


def test_a_name_that_is_not_utf_8(shell):
    code, _, errors = shell(r"$H run job.yaml && mv out $'out\xff' && $H resume $'out\xff'")
    assert code == 2
    assert errors.startswith("hybrid_nbody: error: out\\udcff: the name of the directory is not")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("key", [r"a\xff", r"time.a\xff", r"a\xff.b"])
def test_a_key_that_is_not_utf_8(shell, key):
    code, _, errors = shell(f"$H check job.yaml --set $'{key}=1'")
    assert code == 2
    assert errors.startswith("hybrid_nbody: error: --set ")
    assert errors.endswith("the key is not UTF-8 text; write it in plain letters\n")
    assert errors.count("\n") == 1
