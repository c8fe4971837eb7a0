"""Writing a rank's rows of large frames behind the steps."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from hybrid_nbody.files.listing import Variables
from hybrid_nbody.output.part import Contents, write_piece

MOST_FRAMES = 2
"""Frames that a rank holds for writing, at most; beyond them the run waits for the disk."""


class PieceWriter:
    """Writes the files of shared frames that this rank owes, in a thread of its own.

    Parameters
    ----------
    on_wait : callable
        Called the first time that the run has to wait for the disk.
    """

    def __init__(self, on_wait: Callable[[], None]) -> None:
        self._on_wait = on_wait
        self._waited = False
        self._thread = ThreadPoolExecutor(1, "piece writer")
        self._waiting: deque[Future[str]] = deque()

    def add(self, path: Path, first: int, contents: Contents, variables: Variables) -> None:
        """Take what is to be written to a file, once there are few enough before it.

        Raises
        ------
        FileError
            An earlier one could not be written.
        """
        while len(self._waiting) >= MOST_FRAMES:
            self._wait_for(self._waiting.popleft())
        self._waiting.append(self._thread.submit(write_piece, path, first, contents, variables))

    def _wait_for(self, written: "Future[str]") -> None:
        """Wait until a file is written, and say the first time that this takes long."""
        if not written.done() and not self._waited:
            self._waited = True
            self._on_wait()
        written.result()

    def flush(self) -> None:
        """Return once all is written; raises `FileError` as `add`."""
        while self._waiting:
            self._waiting.popleft().result()

    def close(self) -> None:
        """Write what is left, and end the thread; raises `FileError` as `add`."""
        self.flush()
        self._thread.shutdown()
