"""The command line as a user calls it."""

import os
import subprocess
import sys
from pathlib import Path

from support.forked import run_fast

ROOT = str(Path(__file__).resolve().parents[2])


def call(folder, *arguments, environment=None, timeout=60):
    """Run a command in `folder`."""
    variables = os.environ | {"PYTHONPATH": _paths()} | (environment or {})
    return run_fast(["-m", "hybrid_nbody", *arguments], folder, variables, timeout)


def _paths():
    return os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))


def python(script, *arguments, **environment):
    """Return what a script prints in a process of its own, which finds the package and the tests'
    support.
    """
    paths = {"PYTHONPATH": os.pathsep.join([ROOT, os.path.join(ROOT, "tests")])}
    command = [sys.executable, "-c", script, *arguments]
    result = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | paths | environment
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def refused(folder, *arguments, code=2, environment=None):
    """Return the one message of a command that must be refused, and check that it wrote nothing."""
    before = sorted(folder.rglob("*"))
    result = call(folder, *arguments, environment=environment)
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(folder.rglob("*")) == before
    assert result.stderr.startswith("hybrid_nbody: error:")
    return result.stderr.removeprefix("hybrid_nbody: error:").removeprefix(" ").rstrip("\n")
