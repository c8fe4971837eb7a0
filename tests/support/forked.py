"""Commands in processes of their own that need not load the libraries first.

Loading NumPy, Numba and HDF5 takes a process about a second, and most commands of the tests do
much less. One process for each that runs tests loads them once; it forks for each command, before
it has started MPI or any thread.

Run as a program, this file is that process: it takes commands on its input, line by line.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path

LOADED = (
    "h5py",
    "numba",
    "matplotlib.figure",
    "hybrid_nbody.cli.main",
    "hybrid_nbody.run.start",
    "hybrid_nbody.run.job",
    "hybrid_nbody.nbody.build",
    "hybrid_nbody.fluid.build",
)
"""What commands import: each is loaded with all that it imports itself."""

READ_AT_IMPORT = ("NUMBA_", "OMP_", "GOMP_", "OPENBLAS_", "PYTHON", "MPL")
"""Beginnings of environment variables that libraries read when they are loaded."""


def serves(environment: dict[str, str]) -> bool:
    """Return whether a command with these variables behaves in a fork as in a new process."""
    return all(
        os.environ.get(name) == value
        for name, value in environment.items()
        if name.startswith(READ_AT_IMPORT)
    )


def run_forked(
    arguments: list[str], folder: str, environment: dict[str, str], timeout: float
) -> subprocess.CompletedProcess:
    """Run ``python -m hybrid_nbody`` in a folder; return its exit status and what it printed.

    Raises
    ------
    subprocess.TimeoutExpired
        If it takes longer than `timeout` seconds. It is killed.
    """
    with tempfile.TemporaryDirectory() as own:
        paths = [f"{own}/stdout", f"{own}/stderr"]
        request = {"arguments": arguments, "folder": folder, "outputs": paths}
        request |= {"environment": environment, "timeout": timeout}
        status = _server().ask(request)
        texts = [Path(path).read_text() for path in paths]
    if status is None:
        raise subprocess.TimeoutExpired(arguments, timeout, *texts)
    return subprocess.CompletedProcess(arguments, status, *texts)


class Server:
    """The process that forks."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self.close)

    def ask(self, request: dict) -> int | None:
        """Return the exit status of a command, as `subprocess` has it; None if it took too long."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """Let the process end."""
        self.process.stdin.close()
        self.process.wait()


@cache
def _server() -> Server:
    return Server()


# ---- In the process that forks -------------------------------------------------------------------


def serve() -> None:
    """Fork for each request; a child returns, to carry its request out and end as Python does."""
    from hybrid_nbody.backends.cpu import prepare_numba

    prepare_numba(threads=1)
    for name in LOADED:
        import_module(name)
    assert "mpi4py.MPI" not in sys.modules  # it starts MPI
    gc.freeze()  # a collection would copy pages that forks share
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
            return
        print(json.dumps(_status(child, request["timeout"])), flush=True)
    os._exit(0)


def _status(child: int, timeout: float) -> int | None:
    """Wait for a child and return its status; kill it, and return None, if it takes too long."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, timeout)
    _, status = os.waitpid(child, 0)
    late = signal.setitimer(signal.ITIMER_REAL, 0)[0] == 0
    return None if late else os.waitstatus_to_exitcode(status)


def _become(request: dict) -> None:
    """Take over folder, environment, arguments and outputs of a request."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for descriptor, path in enumerate(request["outputs"], start=1):
        with open(path, "w") as file:
            os.dup2(file.fileno(), descriptor)
    sys.argv[1:] = request["arguments"]
    sys.path[0] = request["folder"]


def _carry_out() -> None:
    """Run the package as ``python -m`` does."""
    try:
        runpy.run_module("hybrid_nbody", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int) and "mpi4py.MPI" not in sys.modules:
            _end(end.code)
        raise


def _end(status: int) -> None:
    """End this process at once: freeing all that was loaded takes longer than most commands."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve()
    _carry_out()
