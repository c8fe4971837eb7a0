"""The alarm of a kernel that waits in vain for another rank: it ends the run."""

from collections.abc import Callable
from typing import Any


class PeerAlarm:
    """A word in the host's memory where a kernel writes which rank did not answer in time.

    It is checked after every wait for the device: see `HostWait`.

    Parameters
    ----------
    word : (1,) array of int32
        Pinned memory of the host; it becomes 1 + the rank that did not answer, or stays 0.
    seconds : float
        Time that the kernel waits for a rank.
    error : callable
        ``error(rank)`` returns the error that is raised if this rank did not answer.
    """

    def __init__(self, word: Any, seconds: float, error: Callable[[int], Exception]):
        self.seconds = seconds
        self.error = error
        self.word = word
        self.word[0] = 0

    @property
    def address(self) -> int:
        """Return the address of the word, which is the same for the host and for kernels."""
        address: int = self.word.ctypes.data
        return address

    @property
    def nanoseconds(self) -> int:
        """Return the time that the kernel waits, as it takes it."""
        return round(self.seconds * 1e9)

    def check(self) -> None:
        """Raise the error of a rank that did not answer, if there is one.

        It is not raised on all ranks at once: the first rank that raises it ends the others.
        """
        rank = int(self.word[0]) - 1
        if rank >= 0:
            raise self.error(rank)
