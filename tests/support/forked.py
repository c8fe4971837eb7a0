"""Commands in processes of their own that need not load the libraries first.

Loading NumPy, Numba and HDF5 takes a process about a second, and most commands of the tests do
much less. One process for each that runs tests, `fork_server`, loads them once; it forks for each
command, before it has started MPI or any thread. `fork_client` is what is started in place of
Python, by tests and by mpirun: it asks for a fork and ends as that does.
"""

import atexit
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).with_name("fork_server.py")
CLIENT = str(Path(__file__).with_name("fork_client.py"))

READ_AT_START = ("NUMBA_", "OMP_", "GOMP_", "OPENBLAS_", "PYTHON", "MPL", "LC_", "LANG", "LD_")
"""Beginnings of environment variables that are read when Python or a library starts."""

EVERY_TIME = "PYTHONPATH"
"""The one of them that a fork follows."""


def serves(environment: Mapping[str, str]) -> bool:
    """Return whether a command with these variables behaves in a fork as in a new process."""
    return _read_at_start(environment) == _server().settings


def ready_python(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the words that start Python for mpirun and in pipes, in a fork where that serves.

    Parameters
    ----------
    environment : mapping, optional
        All variables that it will find; by default those of this process.
    """
    if not serves(os.environ if environment is None else environment):
        return [sys.executable]
    return [sys.executable, "-I", "-S", CLIENT, _server().name]


def run_fast(
    words: Sequence[object],
    folder: str | Path = ".",
    environment: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess:
    """Run Python with these words; return its exit status and what it printed.

    It is a fork where that serves, else a process that loads everything itself.

    Parameters
    ----------
    words : sequence
        What would follow ``python`` on a command line: ``-m``, a module, its arguments.
    folder : path, optional
        Where it runs; by default here.
    environment : mapping, optional
        All variables that it finds; by default those of this process.
    timeout : float, optional
        Seconds.

    Raises
    ------
    subprocess.TimeoutExpired
        If it takes longer than `timeout`. It is killed.
    """
    command = [*ready_python(environment), *map(str, words)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        timeout=timeout,
    )


def make_environment(folder: Path) -> Path:
    """Make an environment for scripts, with mpirun, whose Python is `ready_python`'s; return it."""
    from conftest import _mpirun, _python

    programs = {"python": _python(), "mpirun": _mpirun()[:1]}
    (folder / "bin").mkdir(parents=True)
    for name, words in programs.items():
        path = folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        path.chmod(0o755)
    return folder


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_START) and name != EVERY_TIME
    }


class Server:
    """The process that forks, and where it is reached."""

    def __init__(self) -> None:
        self.settings = _read_at_start(os.environ)
        self.name = f"hybrid_nbody-tests-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(f"\0{self.name}")
            listening.listen(64)
            self.process = subprocess.Popen(
                [sys.executable, SERVER, str(listening.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listening.fileno()],
                env=os.environ | {"PYTHONPATH": _paths()},
            )
        atexit.register(self.close)

    def close(self) -> None:
        """Let the process end."""
        self.process.stdin.close()
        self.process.wait()


def _paths() -> str:
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


@cache
def _server() -> Server:
    return Server()
