"""The process that has loaded the libraries and forks for each command; see `forked`.

``fork_server.py DESCRIPTOR``: the socket on which it listens. It ends with its standard input.
"""

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import types
from importlib import import_module
from importlib.util import find_spec

LOADED = (
    "h5py",
    "numba",
    "matplotlib.figure",
    "hybrid_nbody.cli.main",
    "hybrid_nbody.running.start",
    "hybrid_nbody.running.job",
    "hybrid_nbody.nbody.build",
    "hybrid_nbody.fluid.build",
    "pytest",
    "hypothesis.strategies",
)
"""What commands import: each is loaded with all that it imports itself."""

LONGEST = 1 << 20
"""Bytes of a request."""


class Forks:
    """Answers requests; in a child, `serve` returns the request.

    Parameters
    ----------
    listening : socket.socket
        On which commands are asked for.
    """

    def __init__(self, listening):
        self.listening = listening
        self.selector = selectors.DefaultSelector()
        self.children = {}  # the connection that waits for each process
        self.ended, self.wakes = os.pipe()
        os.set_blocking(self.wakes, False)
        signal.set_wakeup_fd(self.wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(0, selectors.EVENT_READ, lambda: os._exit(0))
        self.selector.register(listening, selectors.EVENT_READ, self._accept)
        self.selector.register(self.ended, selectors.EVENT_READ, self._tell)

    def serve(self):
        """Fork for each request; return in the child, with its request and its descriptors."""
        while True:
            for key, _ in self.selector.select():
                mine = key.data()
                if mine:
                    return mine

    def _accept(self):
        connection, _ = self.listening.accept()
        text, descriptors, _, _ = socket.recv_fds(connection, LONGEST, 16)
        if not text:
            return None
        child = os.fork()
        if child == 0:
            self._leave()
            return json.loads(text), descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(OSError):  # who asked has gone, as its connection tells below
            connection.send(str(child).encode())
        self.children[child] = connection
        self.selector.register(connection, selectors.EVENT_READ, lambda: self._forget(child))
        return None

    def _forget(self, child):
        """Kill a process that nobody waits for any more."""
        self.selector.unregister(self.children[child])
        os.kill(child, signal.SIGKILL)

    def _tell(self):
        """Tell those that wait how their processes ended."""
        os.read(self.ended, 1024)
        while self.children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                return
            connection = self.children.pop(child)
            if connection in self.selector.get_map():
                self.selector.unregister(connection)
            with contextlib.suppress(OSError):  # who asked has gone
                connection.send(str(os.waitstatus_to_exitcode(status)).encode())
            connection.close()

    def _leave(self):
        """Close, in a child, what is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for connection in self.children.values():
            connection.close()
        self.selector.close()
        self.listening.close()
        os.close(self.ended)
        os.close(self.wakes)


def load():
    """Load what commands import."""
    from hybrid_nbody.backends.cpu import import_numba, prepare_numba

    prepare_numba(threads=1)
    import_numba()
    for name in LOADED:
        import_module(name)
    load_numba()
    load_mpi()
    assert "mpi4py.MPI" not in sys.modules  # it starts MPI
    gc.collect()
    gc.freeze()  # a collection would copy pages that forks share


def load_numba():
    """Load what Numba loads with the first kernel; it starts no thread."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def load_mpi():
    """Load the library of MPI, which mpi4py looks for before its module is loaded."""
    with contextlib.suppress(ImportError, RuntimeError):  # there is none
        find_spec("mpi4py.MPI")


def become(request, descriptors):
    """Take over folder, environment and streams of a request."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    numbers = request["descriptors"]
    above = max(*numbers, *descriptors) + 1
    held = [os.dup2(descriptor, above + i) for i, descriptor in enumerate(descriptors)]
    for number in {0, 1, 2, *descriptors} - set(numbers):
        os.close(number)
    for descriptor, number in zip(held, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout = sys.__stdout__ = stream(1, sys.__stdout__)
    sys.stderr = sys.__stderr__ = stream(2, sys.__stderr__)


def stream(number, old):
    """Return a text stream to a descriptor, as Python opens it at its start; None if it is closed.

    The server's own would not do: it knows the position in another file.
    """
    lines = old.line_buffering or os.isatty(number)
    with contextlib.suppress(OSError):
        file = open(number, "wb", closefd=False)  # noqa: SIM115 -- as long as the process
        return io.TextIOWrapper(file, old.encoding, old.errors, line_buffering=lines)
    return None


def carry_out(words, places):
    """Run Python with these words; `places` are where it looks for modules after PYTHONPATH."""
    kind, *rest = words
    asked = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if kind == "-m":
        sys.path[:] = [os.getcwd(), *asked, *places]
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.path[:] = ["", *asked, *places]
        sys.argv[:] = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.path[:] = [os.path.dirname(os.path.abspath(kind)), *asked, *places]
        sys.argv[:] = words
        runpy.run_path(kind, run_name="__main__")


def end(status):
    """End as Python does but for freeing all that was loaded, which takes a quarter of a second."""
    threading._shutdown()  # waits for those that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if mpi := sys.modules.get("mpi4py.MPI"):
        finalize(mpi)
    ctypes.PyDLL(None).exit(status)  # in which MPICH says goodbye to mpirun


def finalize(mpi):
    """End MPI, where it has started and not ended yet."""
    if mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()


def main():
    load()
    listening = socket.socket(fileno=int(sys.argv[1]))
    request, descriptors = Forks(listening).serve()
    become(request, descriptors)
    try:
        carry_out(request["words"], sys.path[1:])
    except SystemExit as stop:
        if isinstance(stop.code, str):
            raise
        end(stop.code or 0)
    end(0)


if __name__ == "__main__":
    main()
