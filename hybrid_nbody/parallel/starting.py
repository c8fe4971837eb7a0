"""Watching over the start of MPI, which waits for all ranks: one may have ended before its own.

Python hears no signal in it. A thread does.
"""

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid_nbody.errors import STOPPED_EARLY

GRACE = 5.0
"""Seconds that the start may take after a signal that asks to stop: then all ranks end together."""

LONGEST = 600.0
"""Seconds that it may take at all."""

TAKEN = (signal.SIGHUP, signal.SIGUSR1)
"""Signals for which MPI libraries put handlers of their own in the place of Python's."""

STOPPING = (signal.SIGINT, signal.SIGTERM)
STARTED = b"\0"
"""Signals that ask to stop, and what says that MPI has started; no signal has the number 0."""


@contextmanager
def watched_start(noted: str = "") -> Iterator[None]:
    """End this process if MPI does not start in the block: after a signal, or for too long.

    Parameters
    ----------
    noted : str
        The name of a signal that came before; empty if there was none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are for the main thread
        return
    _take_back_signals()  # from the library, which is loaded
    hearing, telling = socket.socketpair()
    telling.setblocking(False)
    before = signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(hearing, noted), name="start of MPI", daemon=True)
    watch.start()
    try:
        yield
    finally:
        _take_back_signals()
        signal.set_wakeup_fd(before)
        telling.send(STARTED)
        watch.join()
        hearing.close()
        telling.close()


def _take_back_signals() -> None:
    """Let Python handle signals again as it did: a run would not hear of them until its steps."""
    for number in TAKEN:
        handler = signal.getsignal(number)
        if handler is not None:  # else it was set before Python started
            signal.signal(number, handler)


def _watch(hearing: socket.socket, noted: str) -> None:
    """Wait for the start; end the process where it takes too long."""
    deadline = time.monotonic() + (GRACE if noted else LONGEST)
    why = f"{GRACE:g} s after {noted}" if noted else f"{LONGEST:g} s"
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            _end(why)
        ready, _, _ = select.select([hearing], [], [], left)
        found = hearing.recv(1) if ready else b""
        if found == STARTED:
            return
        if found and found[0] in STOPPING:
            deadline = min(deadline, time.monotonic() + GRACE)
            why = f"{GRACE:g} s after {signal.Signals(found[0]).name}"


def _end(why: str) -> None:
    """End the process, whose main thread is within MPI."""
    text = f"hybrid_nbody: MPI has not started within {why}: another rank ended before it did\n"
    sys.stderr.write(text)
    sys.stderr.flush()
    os._exit(STOPPED_EARLY)
