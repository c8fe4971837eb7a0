"""Ranks stand in a ring and pass blocks of rows on."""

from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.exchange.base import Exchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.base import Messages, Transport


class RingExchange(Exchange):
    """Ranks stand in a ring and pass blocks of rows on: a rank holds two beside its own rows.

    Attributes
    ----------
    next, previous : int
        The neighbours in the ring; others as in `Exchange`.
    """

    name = "ring"

    def __init__(self, transport: Transport, partition: Partition, rank: int):
        super().__init__(transport, partition, rank)
        self.next = (rank + 1) % partition.size
        self.previous = (rank - 1) % partition.size

    def begin(self, outgoing: Array, incoming: Array) -> Messages:
        """Start to send `outgoing` to the next rank and to receive `incoming` from the previous.

        Both are of one size.
        """
        sends = [(self.next, outgoing)]
        receives = [(self.previous, incoming)]
        return self.transport.begin(sends, receives, "the ring exchange")
