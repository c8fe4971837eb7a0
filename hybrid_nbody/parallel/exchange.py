"""How ranks see each other's data: every rank's rows of an array on every rank, and what carries rows between ranks."""

from abc import ABC, abstractmethod
from contextlib import ExitStack

from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.waiting import wait


class Transport(ABC):
    """What carries rows between ranks, beneath an exchange.

    Attributes
    ----------
    name : str
        As in ``compute.transport``.
    """

    name: str

    @abstractmethod
    def allgather(self, array, partition: Partition) -> None:
        """Fill every rank's rows of `array` on every rank, in place; on entry each rank's own rows are valid."""

    @abstractmethod
    def trade(self, sends, receives) -> None:
        """Carry messages between ranks.

        Parameters
        ----------
        sends, receives : list of (int, array)
            The other rank and contiguous rows; what two ranks send each other arrives in the order of the lists.
        """

    @abstractmethod
    def maximum(self, array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""


class HostTransport(Transport):
    """MPI between arrays on the host; a GPU's rows are staged through pinned memory."""

    name = "host"

    def __init__(self, backend, communicator):
        from mpi4py import MPI

        self.backend = backend
        self.communicator = communicator
        self.in_place, self.largest = MPI.IN_PLACE, MPI.MAX

    def allgather(self, array, partition):
        """See `Transport`; shares may be uneven or empty."""
        width = array.size // max(len(array), 1)
        counts = [count * width for count in partition.counts]
        starts = [start * width for start in partition.offsets[:-1]]
        with self.backend.on_host(array, partition.share(self.communicator.rank)) as host:
            wait(self.communicator.comm.Iallgatherv(self.in_place, [host, (counts, starts)]))

    def trade(self, sends, receives):
        """See `Transport`."""
        comm = self.communicator.comm
        requests = []
        with ExitStack() as lent:
            for rank, rows in sends:
                requests.append(comm.Isend(lent.enter_context(self.backend.to_host(rows)), dest=rank))
            for rank, rows in receives:
                requests.append(comm.Irecv(lent.enter_context(self.backend.from_host(rows)), source=rank))
            for request in requests:
                wait(request)

    def maximum(self, array):
        """See `Transport`."""
        with self.backend.on_host(array, slice(0, len(array))) as host:
            wait(self.communicator.comm.Iallreduce(self.in_place, host, op=self.largest))


class NcclTransport(Transport):
    """NCCL between GPUs, queued on the device's stream: the host does not wait."""

    name = "nccl"

    def __init__(self, backend, communicator):
        self.rank = communicator.rank
        identifier = communicator.broadcast(backend.nccl_identifier() if communicator.is_root else None)
        self.nccl = backend.nccl_group(communicator.size, identifier, communicator.rank)

    def allgather(self, array, partition):
        """See `Transport`; uneven shares travel as one broadcast a rank, grouped into one operation."""
        row = array.nbytes // max(len(array), 1)
        pieces = [(start * row, count * row) for start, count in zip(partition.offsets, partition.counts, strict=False)]
        if partition.even:
            self.nccl.all_gather(array, *pieces[self.rank])
        else:
            self.nccl.broadcast_each(array, pieces)

    def trade(self, sends, receives):
        """See `Transport`."""
        self.nccl.send_and_receive(sends, receives)

    def maximum(self, array):
        """See `Transport`."""
        self.nccl.maximum(array)


class AllgatherExchange:
    """Every rank holds all rows: simplest, and the order of sums does not depend on the number of ranks.

    Attributes
    ----------
    name : str
        As in ``compute.exchange``.
    alone : bool
        Whether this rank owns everything, so that there is nothing to exchange.
    """

    name = "allgather"

    def __init__(self, transport: Transport, partition: Partition, rank: int):
        self.transport = transport
        self.partition = partition
        self.own = partition.share(rank)
        self.alone = partition.size == 1

    def collect(self, array) -> None:
        """Fill the rows of the other ranks in `array`, whose rows `own` are valid."""
        if not self.alone:
            self.transport.allgather(array, self.partition)


TRANSPORTS = {transport.name: transport for transport in (HostTransport, NcclTransport)}


def choose_transport(asked: str, backend, communicator, gpus_shared: bool) -> Transport:
    """Return the transport `asked` for, or for ``auto`` the fastest one that this run can use.

    Parameters
    ----------
    asked : {"auto", "host", "nccl"}
        The configuration's choice.
    backend : Backend
        This rank's backend; all ranks' backends must offer a transport for it to be usable.
    communicator : Communicator
        Every rank calls together.
    gpus_shared : bool
        Whether two ranks share a GPU, which NCCL forbids.

    Raises
    ------
    InputError
        If the transport asked for cannot be used, with the reason.
    """
    offered = set.intersection(*(set(names) for names in communicator.gather(backend.transports)))
    usable = offered - {"nccl"} if gpus_shared else offered
    if asked == "auto":
        asked = next(name for name in ("nccl", "host") if name in usable) if communicator.size > 1 else "host"
    elif asked not in usable:
        reason = (
            "two ranks share a GPU"
            if asked in offered
            else f"not every rank's backend offers it ({backend.description})"
        )
        raise InputError(f"compute.transport: {asked} cannot be used: {reason}; use auto or host").on_all_ranks()
    return TRANSPORTS[asked](backend, communicator)
