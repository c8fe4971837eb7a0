"""A helper compiles what the process loads then; without one the process compiles all itself."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from support.bodies import make_backend
from support.command import python

from hybrid_nbody.backends import precompile

SCRIPT = """
import subprocess
import sys

import numpy as np
from hybrid_nbody.backends.cpu import CpuBackend

backend = CpuBackend(1)
from hybrid_nbody.backends import precompile
from support import precompiled

started = []
start = precompile.Helper.start
precompile.Helper.start = lambda helper: (started.append(helper), start(helper))
if HELPED:
    with precompile.helped(precompiled.compile_theirs):
        precompiled.compile_ours(backend)
precompiled.compile_theirs(backend)
print(len(started), precompiled.loaded(), np.float64(precompiled.theirs(0.1)).hex())
"""


def compile_both(cache, helped=True):
    script = SCRIPT.replace("HELPED", str(helped))
    started, loaded, value = python(script, NUMBA_CACHE_DIR=str(cache)).split()
    return int(started), int(loaded), value


def test_the_process_loads_what_a_helper_compiled(tmp_path):
    """And starts none for a warm cache; the code gives the same bits."""
    helped = compile_both(tmp_path / "helped")
    assert helped[:2] == (1, 1)
    assert compile_both(tmp_path / "helped") == (0, 1, helped[2])
    assert compile_both(tmp_path / "alone", helped=False) == (0, 0, helped[2])


def test_a_helper_is_no_rank(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    environment = precompile.environment_without_ranks()
    assert not {"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & set(environment)
    assert environment["PATH"] == os.environ["PATH"]


def test_one_core_the_switch_or_a_gpu_keep_helpers_away(monkeypatch):
    backend = make_backend("cpu")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.delenv(precompile.SWITCH, raising=False)
    assert precompile.can_help(backend)
    assert not precompile.can_help(SimpleNamespace(name="gpu"))
    monkeypatch.setenv(precompile.SWITCH, "0")
    assert not precompile.can_help(backend)
    monkeypatch.delenv(precompile.SWITCH)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not precompile.can_help(backend)


OWNER = """
import time
from hybrid_nbody.backends.precompile import Helper
from support.precompiled import sleep

helper = Helper(sleep)
helper.start()
print(helper.process.pid, flush=True)
time.sleep(60)
"""


def test_a_helper_ends_with_its_process():
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, env=os.environ | paths
    )
    helper = int(owner.stdout.readline())
    assert is_running(helper)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 30
    while is_running(helper) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(helper)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("task", ["fail", "sleep"])
def test_a_helper_that_fails_or_hangs_is_ended_in_silence(capfd, monkeypatch, task):
    from support import precompiled

    monkeypatch.setattr(precompile, "PATIENCE", 3.0)
    helper = precompile.Helper(getattr(precompiled, task))
    helper.start()
    helper.wait()
    helper.end()
    assert helper.process.returncode
    assert capfd.readouterr() == ("", "")
