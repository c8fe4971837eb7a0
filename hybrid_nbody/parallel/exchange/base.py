"""The contract of an exchange: which rows ranks own, and whether they see those of others."""

from hybrid_nbody.backends.base import Array
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.base import Transport


class Exchange:
    """The exchange of rows between ranks.

    Parameters
    ----------
    transport : Transport
        Carries the rows.
    partition : Partition
        Which rank owns which rows.
    rank : int
        This rank.

    Attributes
    ----------
    name : str
        As in ``compute.exchange``.
    own : slice
        This rank's rows.
    alone : bool
        Whether this rank owns everything, so that there is nothing to exchange.
    recordable : bool
        Whether a device can replay what is exchanged, without the host.
    """

    name: str

    def __init__(self, transport: Transport, partition: Partition, rank: int):
        self.transport = transport
        self.partition = partition
        self.rank = rank
        self.own = partition.share(rank)
        self.alone = partition.size == 1
        self.recordable = self.alone or transport.recordable

    def collect(self, array: Array) -> None:
        """Fill the rows of the other ranks in `array`, whose rows `own` are valid."""
        if not self.alone:
            self.transport.allgather(array, self.partition)
