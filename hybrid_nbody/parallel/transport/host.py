"""MPI between arrays on the host; rows of a GPU are staged through pinned memory."""

from collections.abc import Sequence
from contextlib import ExitStack

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.base import (
    MESSAGES,
    Message,
    Messages,
    Transport,
    elements_of_ranks,
)
from hybrid_nbody.parallel.waiting import Request, wait


class HostTransport(Transport):
    """MPI between arrays on the host; a GPU's rows are staged through pinned memory."""

    name = "host"

    def __init__(self, backend: Backend, communicator: Communicator):
        self.backend = backend
        self.communicator = communicator

    def allgather(self, array: Array, partition: Partition) -> None:
        """See `Transport`; shares may be uneven or empty."""
        comm = self.communicator.comm
        with self.backend.on_host(array, partition.share(self.communicator.rank)) as host:
            received = [host, elements_of_ranks(array, partition)]
            wait(comm.Iallgatherv(self.communicator.mpi.IN_PLACE, received), "a gather of rows")

    def reduce_scatter(self, array: Array, out: Array, partition: Partition) -> None:
        """See `Transport`; shares may be uneven or empty."""
        comm = self.communicator.comm
        counts, _ = elements_of_ranks(array, partition)
        with self.backend.to_host(array) as sent, self.backend.from_host(out) as received:
            request = comm.Ireduce_scatter(sent, received, counts, op=self.communicator.mpi.SUM)
            wait(request, "a sum over ranks")

    def begin(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> Messages:
        """See `Transport`; the host waits until the rows sent are computed, and goes on."""
        comm = self.communicator.comm
        lent = ExitStack()
        requests = []
        on_host: dict[int, Array] = {}
        for rank, rows in sends:
            if id(rows) not in on_host:  # the same rows may be for several ranks
                on_host[id(rows)] = lent.enter_context(self.backend.to_host(rows))
            requests.append((rank, comm.Isend(on_host[id(rows)], dest=rank)))
        for rank, rows in receives:
            host = lent.enter_context(self.backend.from_host(rows))
            requests.append((rank, comm.Irecv(host, source=rank)))
        return MpiMessages(requests, lent, what)

    def maximum(self, array: Array) -> None:
        """See `Transport`."""
        comm = self.communicator.comm
        with self.backend.on_host(array, slice(0, len(array))) as host:
            request = comm.Iallreduce(
                self.communicator.mpi.IN_PLACE, host, op=self.communicator.mpi.MAX
            )
            wait(request, "a maximum over ranks")


class MpiMessages:
    """Messages of MPI on their way.

    Parameters
    ----------
    requests : sequence of (int, Request)
        The other rank of each message, and its request.
    lent : ExitStack
        Holds the memory on the host that is lent to the messages.
    what : str
        What the messages are for.
    """

    def __init__(self, requests: Sequence[tuple[int, Request]], lent: ExitStack, what: str):
        self.requests = requests
        self.lent = lent
        self.what = what

    def finish(self) -> None:
        """See `Messages`."""
        with self.lent:
            for rank, request in self.requests:
                wait(request, self.what, rank)
