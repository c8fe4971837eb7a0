"""The launcher's output, not that of this process, tells whether there is a terminal."""

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios

import pytest
from support.ranks import ROOT

ASK = """
import json, sys
from hybrid_nbody.output.terminal import launcher_output, open_console
console = open_console()
with open(sys.argv[1], "w") as file:
    own = console.file is sys.stdout
    json.dump([launcher_output(), console.is_terminal, console.width, own], file)
"""


@pytest.fixture
def ask(tmp_path):
    """Return a function that starts a process by a launcher and returns facts on its console."""

    def ask(output, launcher="mpirun", collected=False):
        answer, script = tmp_path / "answer.json", tmp_path / "ask.py"
        script.write_text(ASK)
        shell = tmp_path / launcher
        if not shell.exists():
            # a process is named after the file that it was started from
            shell.symlink_to("/bin/sh")
        pipe = "| cat" if collected else ""
        command = [shell, "-c", f"{sys.executable} {script} {answer} {pipe}; true"]
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        environment["PYTHONPATH"] = str(ROOT)
        subprocess.run(
            command,
            stdout=output,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=True,
            timeout=30,
        )
        return json.loads(answer.read_text())

    return ask


@pytest.fixture
def terminal():
    """A terminal of 97 columns, as a file descriptor."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 97, 0, 0))
    yield slave
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize(
    "launcher", ["mpirun", "mpiexec.hydra", "hydra_pmi_proxy", "prterun", "orterun"]
)
def test_the_launcher_s_terminal_is_seen_through_a_pipe(ask, terminal, launcher):
    output, is_terminal, width, own = ask(terminal, launcher, collected=True)
    assert (output, is_terminal, width, own) == (os.ttyname(terminal), True, 97, True)


def test_a_batch_log_is_no_terminal(ask, tmp_path):
    with open(tmp_path / "batch.log", "w") as log:
        assert ask(log) == [str(tmp_path / "batch.log"), False, 120, True]
    output, is_terminal, _, _ = ask(subprocess.PIPE)
    assert output.startswith("pipe:")
    assert not is_terminal


@pytest.mark.skipif("PMI_SIZE" in os.environ, reason="mpirun started these tests")
def test_without_a_launcher_the_own_output_counts(ask, terminal, tmp_path):
    assert ask(terminal, "bash-like")[:3] == [None, True, 97]
    with open(tmp_path / "file", "w") as file:
        assert ask(file, "bash-like") == [None, False, 120, True]
