"""The contract of a transport: how the bytes of an exchange travel between ranks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.partition import Partition

if TYPE_CHECKING:
    from hybrid_nbody.parallel.transport.peer import PeerMemory

Message = tuple[int, Array]
"""The other rank, and the contiguous rows that are sent to it or received from it."""

MESSAGES = "an exchange of messages"
"""Default name of messages in warnings."""


class Messages(Protocol):
    """Messages on their way."""

    def finish(self) -> None:
        """Make what follows see the rows received; rows that were sent may change from here on."""


class Transport(ABC):
    """Carries rows between ranks, beneath an exchange; every method is collective.

    Attributes
    ----------
    name : str
        As in ``compute.transport``.
    recordable : bool
        Whether a device can replay the messages without the host (see `Backend.recorded`).
    peers : PeerMemory or None
        The memory of all ranks' devices, where kernels of one can write into that of others.
    warning : str
        What a person should know of the choice of this transport, or nothing.
    """

    name: str
    recordable: bool = False
    peers: "PeerMemory | None" = None
    warning: str = ""

    @abstractmethod
    def allgather(self, array: Array, partition: Partition) -> None:
        """Fill the rows of all ranks in `array`, of which each rank's own are valid on entry."""

    @abstractmethod
    def reduce_scatter(self, array: Array, out: Array, partition: Partition) -> None:
        """Fill `out` with this rank's rows of the sum of all ranks' `array`, both of float64."""

    @abstractmethod
    def begin(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> Messages:
        """Start messages between ranks, which travel while the device computes.

        Parameters
        ----------
        sends, receives : sequences of (int, array)
            What two ranks send each other arrives in the order of the sequences. Until the messages
            are finished, the rows sent must not change and the rows received must not be read.
        what : str
            What the messages are for, in warnings.
        """

    def send_receive(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> None:
        """Carry messages between ranks: `begin` and, at once, finish."""
        self.begin(sends, receives, what).finish()

    @abstractmethod
    def maximum(self, array: Array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""

    def release(self) -> None:
        """Let go of other ranks' arrays, which are no longer used."""
        if self.peers:
            self.peers.close()


def elements_of_ranks(array: Any, partition: Partition) -> tuple[list[int], list[int]]:
    """Return how many elements of `array` each rank owns, and where they start."""
    width = array.size // max(len(array), 1)
    counts = [count * width for count in partition.counts]
    starts = [start * width for start in partition.offsets[:-1]]
    return counts, starts
