"""Compilation in two processes: Numba compiles in one thread of a process at a time.

Where the cache of kernels is cold, a helper compiles a part of them into that cache, while this
process compiles the others. What a helper did not do is compiled here.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from hybrid_nbody.backends.base import Backend

SWITCH = "HYBRID_NBODY_PRECOMPILE"
"""The variable of the environment that is 0 where kernels are to be compiled in one process."""

LAUNCHERS = ("PMI", "PMIX", "OMPI", "MPI", "HYDRA", "SLURM", "PALS", "PRTE")
"""How the names of variables begin by which a process finds its place among the ranks."""

COMMAND = "from hybrid_nbody.backends.precompile import help_out; help_out()"

PATIENCE = 60.0
"""Seconds that a helper may take longer than this process."""

Task = Callable[[Backend], object]
"""Runs some kernels of a device."""


def can_help(backend: Backend) -> bool:
    """Return whether a helper can compile for a device: a CPU with a core for it.

    The user may have switched helpers off.
    """
    several_cores = len(os.sched_getaffinity(0)) > 1
    return backend.name == "cpu" and several_cores and os.environ.get(SWITCH) != "0"


@contextmanager
def helped(task: Task) -> Iterator[None]:
    """Let a helper do `task` from the first compilation in this block on; wait for it at the end.

    Where nothing is compiled in the block, as with a warm cache, there is no helper.

    Parameters
    ----------
    task : callable
        ``task(device)``, which can be pickled. It is to be done after the block, too: this process
        then loads what the helper compiled.
    """
    compilation = import_module("hybrid_nbody.backends.compilation")  # imports Numba
    helper = Helper(task)
    try:
        with compilation.at_first_compilation(helper.start):
            yield
        helper.wait()
    finally:
        helper.end()


class Helper:
    """A process that does a task, says nothing, and ends when this process does.

    Parameters
    ----------
    task : callable
        As in `helped`.
    """

    def __init__(self, task: Task):
        self.task = task
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; without one, if the system refuses."""
        with suppress(OSError):
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment_without_ranks(),
            )
            self._send(pickle.dumps(self.task))

    def _send(self, data: bytes) -> None:
        """Send the task, and leave the pipe open: it tells the process that this one lives."""
        assert self.process and self.process.stdin  # it was started with a pipe
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def wait(self) -> None:
        """Wait until the process is done or takes too long."""
        if self.process:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)

    def end(self) -> None:
        """End the process if it is not done."""
        if self.process and self.process.stdin:
            self.process.kill()
            self.process.wait()
            with suppress(OSError):
                self.process.stdin.close()


def help_out() -> None:
    """Do the task that comes by standard input, as the process of a `Helper`."""
    from hybrid_nbody.backends.cpu import CpuBackend

    pipe = sys.stdin.buffer
    task = pickle.load(pipe)
    threading.Thread(target=_end_with, args=[pipe], daemon=True).start()
    task(CpuBackend(1))
    os._exit(0)


def _end_with(pipe: Any) -> None:
    """End this process when the other end of a pipe is closed, if only because its owner died."""
    pipe.read()
    os._exit(1)


def environment_without_ranks() -> dict[str, str]:
    """Return the environment of a process that is no rank, and finds the same packages."""
    prefixes = tuple(f"{launcher}_" for launcher in LAUNCHERS)
    paths = [path or os.getcwd() for path in sys.path]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}
