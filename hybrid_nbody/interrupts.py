"""A Ctrl-C where Python must not be interrupted: it acts afterwards."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Let a Ctrl-C in the block act once it is done: what is called there would lose it.

    NumPy makes an error of its own of one that comes while it is imported, LLVM none at all of one
    that comes in what it calls of Python.

    Raises
    ------
    KeyboardInterrupt
        After the block, if there was a Ctrl-C and it interrupts here.
    """
    import threading  # here, since `--help` must answer at once

    handler = signal.getsignal(signal.SIGINT)
    hears = threading.current_thread() is threading.main_thread()
    if not hears or not callable(handler):  # a shell lets what runs behind it ignore a Ctrl-C
        yield
        return
    noted: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *given: noted.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if noted:
        handler(*noted[0])
