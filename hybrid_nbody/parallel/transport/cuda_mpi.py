"""MPI on the arrays of GPUs themselves, for a library that takes them."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from hybrid_nbody.backends.base import Array, Backend, HostWait
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.base import (
    MESSAGES,
    Message,
    Messages,
    Transport,
    elements_of_ranks,
)
from hybrid_nbody.parallel.transport.host import MpiMessages
from hybrid_nbody.parallel.waiting import Watchdog, warn_of_wait

COLLECTIVE = "a collective operation of CUDA-aware MPI"
"""Name of the exchange in warnings."""


class CudaMpiTransport(Transport):
    """MPI on the arrays of GPUs themselves, for a library that takes them.

    MPI knows nothing of streams: before it reads or writes, the host waits for the device.
    Collective operations are the blocking ones, which more libraries offer for GPUs.
    """

    name = "cuda-mpi"

    def __init__(self, backend: Backend, communicator: Communicator):
        from mpi4py import MPI

        self.backend = backend
        self.communicator = communicator
        self._mpi = MPI
        self._blocked = HostWait()
        self._watchdog = Watchdog(self._blocked, partial(warn_of_wait, COLLECTIVE, None))

    def allgather(self, array: Array, partition: Partition) -> None:
        """See `Transport`; shares may be uneven or empty."""
        self.backend.synchronize()
        received = [array, elements_of_ranks(array, partition)]
        with self._blocked:
            self.communicator.comm.Allgatherv(self._mpi.IN_PLACE, received)

    def reduce_scatter(self, array: Array, out: Array, partition: Partition) -> None:
        """See `Transport`; shares may be uneven or empty."""
        self.backend.synchronize()
        counts, _ = elements_of_ranks(array, partition)
        with self._blocked:
            self.communicator.comm.Reduce_scatter(array, out, counts, op=self._mpi.SUM)

    def begin(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> Messages:
        """See `Transport`."""
        self.backend.synchronize()
        comm = self.communicator.comm
        requests = [(rank, comm.Isend(rows, dest=rank)) for rank, rows in sends]
        requests += [(rank, comm.Irecv(rows, source=rank)) for rank, rows in receives]
        return MpiMessages(requests, ExitStack(), what)

    def maximum(self, array: Array) -> None:
        """See `Transport`."""
        self.backend.synchronize()
        with self._blocked:
            self.communicator.comm.Allreduce(self._mpi.IN_PLACE, array, op=self._mpi.MAX)
