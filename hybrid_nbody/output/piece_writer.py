"""Writing what a rank shares of large frames and checkpoints, behind the steps."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from hybrid_nbody.output.waits import DiskWaits

MOST_FILES = 2
"""Files that a rank holds for writing, at most; beyond them the run waits for the disk."""


class PieceWriter:
    """Writes the files that this rank owes, in a thread of its own.

    Parameters
    ----------
    waits : DiskWaits
        How long the run has waited for the disk.
    """

    def __init__(self, waits: DiskWaits) -> None:
        self._waits = waits
        self._thread = ThreadPoolExecutor(1, "piece writer")
        self._waiting: deque[Future[object]] = deque()

    def add(self, write: Callable[[], object]) -> "Future[object]":
        """Take what writes a file, once there are few enough before it.

        Returns
        -------
        Future
            To `wait_for`.

        Raises
        ------
        FileError
            An earlier one could not be written.
        """
        while len(self._waiting) >= MOST_FILES:
            self.wait_for(self._waiting.popleft())
        written = self._thread.submit(write)
        self._waiting.append(written)
        return written

    def wait_for(self, written: "Future[object]") -> None:
        """Return once a file is written.

        Raises
        ------
        FileError
            It could not be written.
        """
        with self._waits.measure():
            written.result()

    def flush(self) -> None:
        """Return once all is written; raises `FileError` as `add`."""
        while self._waiting:
            self._waiting.popleft().result()

    def close(self) -> None:
        """Write what is left, and end the thread; raises `FileError` as `add`."""
        try:
            self.flush()
        finally:
            self._thread.shutdown()
