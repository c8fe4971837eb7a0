"""Forks that stand for new processes in the tests behave as those do."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.forked import ready_python, run_fast, serves

FACTS = """
import json, os, sys
print(json.dumps([__name__, sys.argv[1:], os.getcwd(), os.environ["FACT"], "numba" in sys.modules]))
print("said", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("status", [0, 75])
def test_a_fork_has_the_words_the_folder_the_variables_and_the_streams_of_its_command(
    tmp_path, status
):
    script = tmp_path / "script.py"
    script.write_text(FACTS)
    for words in (["-c", FACTS], [script]):
        done = run_fast([*words, status, "ü\udcff"], tmp_path, os.environ | {"FACT": "so"})
        assert (done.returncode, done.stderr) == (status, "said\n")
        expected = ["__main__", [str(status), "ü\udcff"], str(tmp_path), "so", True]
        assert json.loads(done.stdout) == expected


def test_a_fork_finds_what_PYTHONPATH_names(tmp_path):
    (tmp_path / "here_alone.py").write_text("answer = 42")
    code = "import here_alone; print(here_alone.answer)"
    assert run_fast(["-c", code]).returncode == 1
    done = run_fast(["-c", code], environment=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.stdout == "42\n"


def test_an_error_is_a_traceback_and_a_text_the_last_message():
    done = run_fast(["-c", "1 / 0"])
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    done = run_fast(["-c", "import sys; sys.exit('no')"])
    assert (done.returncode, done.stderr) == (1, "no\n")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGUSR1])
def test_a_fork_that_a_signal_ends_ends_its_command_so(number):
    assert run_fast(["-c", f"import os; os.kill(os.getpid(), {number})"]).returncode == -number


WAITING = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(os.getpid(), flush=True)
for _ in range(120):  # a signal that comes just before a sleep does not end it
    time.sleep(0.5)
"""


@pytest.fixture
def waiting():
    """A command that waits, and the process of its fork."""
    with subprocess.Popen([*ready_python(), "-c", WAITING], stdout=subprocess.PIPE) as command:
        yield command, int(command.stdout.readline())
        command.kill()


def test_signals_are_passed_on(waiting):
    command, _ = waiting
    command.send_signal(signal.SIGTERM)
    assert command.wait(timeout=30) == 7


def test_a_fork_ends_with_its_command(waiting):
    command, fork = waiting
    command.kill()
    until = time.monotonic() + 30
    while Path(f"/proc/{fork}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{fork}").exists()


@pytest.mark.parametrize("name", ["NUMBA_NUM_THREADS", "PYTHONUTF8", "LC_ALL"])
def test_what_is_read_at_the_start_needs_a_start(name):
    changed = os.environ | {name: "1"}
    assert serves(os.environ)
    assert not serves(changed)
    assert ready_python(changed) == [sys.executable]
