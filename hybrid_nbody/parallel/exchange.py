"""How ranks see each other's data: every rank's rows of an array on every rank, and what carries rows between ranks."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from functools import partial
from typing import Protocol

from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import cuda_aware
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.waiting import in_time, wait

NCCL_SECONDS = 120.0
"""Time that ranks are given to find each other through NCCL: one that another rank leaves alone
would wait for ever."""


class Messages(Protocol):
    """Messages on their way."""

    def finish(self) -> None:
        """Make what follows see the rows received; what was sent may be changed from here on."""


class Transport(ABC):
    """What carries rows between ranks, beneath an exchange.

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
    recordable: bool
    peers = None
    warning: str = ""

    @abstractmethod
    def allgather(self, array, partition: Partition) -> None:
        """Fill every rank's rows of `array` on every rank, in place; on entry each rank's own rows are valid."""

    @abstractmethod
    def add_up(self, array, own, partition: Partition) -> None:
        """Fill `own` with this rank's rows of the sum over all ranks of `array`, both of float64."""

    @abstractmethod
    def begin(self, sends, receives) -> Messages:
        """Start messages between ranks, which travel while the device goes on.

        Parameters
        ----------
        sends, receives : list of (int, array)
            The other rank and contiguous rows; what two ranks send each other arrives in the order
            of the lists. Until the messages are finished, the rows sent must not change and those
            received not be read.
        """

    def trade(self, sends, receives) -> None:
        """Carry messages between ranks: `begin` and, at once, finish."""
        self.begin(sends, receives).finish()

    @abstractmethod
    def maximum(self, array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""

    def release(self) -> None:
        """Let go of other ranks' arrays, which are no longer used; all ranks call together."""
        if self.peers:
            self.peers.close()


class MpiTransport(Transport):
    """What carries rows by MPI."""

    recordable = False

    def __init__(self, backend, communicator):
        from mpi4py import MPI

        self.backend = backend
        self.communicator = communicator
        self.in_place = MPI.IN_PLACE
        self.largest = MPI.MAX
        self.total = MPI.SUM


class HostTransport(MpiTransport):
    """MPI between arrays on the host; a GPU's rows are staged through pinned memory."""

    name = "host"

    def allgather(self, array, partition):
        """See `Transport`; shares may be uneven or empty."""
        with self.backend.on_host(array, partition.share(self.communicator.rank)) as host:
            wait(
                self.communicator.comm.Iallgatherv(
                    self.in_place, [host, rows_of_ranks(array, partition)]
                )
            )

    def add_up(self, array, own, partition):
        """See `Transport`; shares may be uneven or empty."""
        counts, _ = rows_of_ranks(array, partition)
        with self.backend.to_host(array) as sent, self.backend.from_host(own) as received:
            wait(self.communicator.comm.Ireduce_scatter(sent, received, counts, op=self.total))

    def begin(self, sends, receives):
        """See `Transport`; the host waits until the rows sent are computed, and the messages go on without it."""
        comm = self.communicator.comm
        backend = self.backend
        lent = ExitStack()
        requests = [
            comm.Isend(lent.enter_context(backend.to_host(rows)), dest=rank) for rank, rows in sends
        ]
        requests += [
            comm.Irecv(lent.enter_context(backend.from_host(rows)), source=rank)
            for rank, rows in receives
        ]
        return MpiMessages(requests, lent)

    def maximum(self, array):
        """See `Transport`."""
        with self.backend.on_host(array, slice(0, len(array))) as host:
            wait(self.communicator.comm.Iallreduce(self.in_place, host, op=self.largest))


class MpiMessages:
    """Messages of MPI on their way, and the memory on the host that is lent to them."""

    def __init__(self, requests, lent: ExitStack):
        self.requests = requests
        self.lent = lent

    def finish(self):
        """See `Messages`."""
        with self.lent:
            for request in self.requests:
                wait(request)


class CudaMpiTransport(MpiTransport):
    """MPI on the arrays of GPUs themselves, for a library that takes them.

    MPI knows nothing of streams: before it reads or writes, the host waits for the device.
    Collective operations are the blocking ones, which more libraries offer for GPUs.
    """

    name = "cuda-mpi"

    def allgather(self, array, partition):
        """See `Transport`; shares may be uneven or empty."""
        self.backend.synchronize()
        self.communicator.comm.Allgatherv(self.in_place, [array, rows_of_ranks(array, partition)])

    def add_up(self, array, own, partition):
        """See `Transport`; shares may be uneven or empty."""
        self.backend.synchronize()
        counts, _ = rows_of_ranks(array, partition)
        self.communicator.comm.Reduce_scatter(array, own, counts, op=self.total)

    def begin(self, sends, receives):
        """See `Transport`."""
        self.backend.synchronize()
        comm = self.communicator.comm
        requests = [comm.Isend(rows, dest=rank) for rank, rows in sends]
        requests += [comm.Irecv(rows, source=rank) for rank, rows in receives]
        return MpiMessages(requests, ExitStack())

    def maximum(self, array):
        """See `Transport`."""
        self.backend.synchronize()
        self.communicator.comm.Allreduce(self.in_place, array, op=self.largest)


class NcclTransport(Transport):
    """NCCL between GPUs, queued on the device's streams: the host does not wait.

    Raises
    ------
    InputError
        On every rank, if NCCL cannot be started on one of them, saying why.
    """

    name = "nccl"
    recordable = True

    def __init__(self, backend, communicator):
        self.rank = communicator.rank
        make = backend.nccl_identifier if communicator.is_root else lambda: None
        identifier = communicator.broadcast(communicator.together(partial(_told, make)))
        join = partial(backend.nccl_group, communicator.size, identifier, communicator.rank)
        self.nccl = communicator.together(partial(_told, partial(in_time, join, NCCL_SECONDS)))
        self.peers = backend.peer_memory(communicator)

    def allgather(self, array, partition):
        """See `Transport`; uneven shares travel as one broadcast a rank, grouped into one operation."""
        row = array.nbytes // max(len(array), 1)
        pieces = [
            (start * row, count * row)
            for start, count in zip(partition.offsets, partition.counts, strict=False)
        ]
        if partition.even:
            self.nccl.all_gather(array, *pieces[self.rank])
        else:
            self.nccl.broadcast_each(array, pieces)

    def add_up(self, array, own, partition):
        """See `Transport`; uneven shares are summed one a rank, grouped into one operation."""
        if partition.even:
            self.nccl.reduce_scatter(array, own)
        else:
            self.nccl.reduce_each(array, own, *rows_of_ranks(array, partition))

    def begin(self, sends, receives):
        """See `Transport`; the messages have a stream of their own, beside what is computed meanwhile."""
        return self.nccl.begin(sends, receives)

    def trade(self, sends, receives):
        """See `Transport`; they are queued among what is computed."""
        self.nccl.trade(sends, receives)

    def maximum(self, array):
        """See `Transport`."""
        self.nccl.maximum(array)


def rows_of_ranks(array, partition: Partition) -> tuple[list[int], list[int]]:
    """Return how many elements of `array` each rank owns, and where they start, as MPI takes them."""
    width = array.size // max(len(array), 1)
    return [count * width for count in partition.counts], [
        start * width for start in partition.offsets[:-1]
    ]


def _told(action):
    """Return what `action` returns; whatever a vendor's library raises becomes an error that all ranks can be told."""
    try:
        return action()
    except Exception as error:
        raise InputError(f"{type(error).__name__}: {error}") from error


class Exchange:
    """How ranks see each other's rows.

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


class AllgatherExchange(Exchange):
    """Every rank holds all rows: simplest, and the order of sums does not depend on the number of ranks."""

    name = "allgather"

    def collect(self, array) -> None:
        """Fill the rows of the other ranks in `array`, whose rows `own` are valid."""
        if not self.alone:
            self.transport.allgather(array, self.partition)

    def add_up(self, array, room):
        """Return this rank's rows of the sum over all ranks of `array`.

        Parameters
        ----------
        array : (N, ...) array of float64
            It is the result itself on a rank that is alone.
        room : (n, ...) array of float64
            It is filled and returned by all others.
        """
        if self.alone:
            return array
        self.transport.add_up(array, room, self.partition)
        return room


class RingExchange(Exchange):
    """Ranks stand in a ring and hand blocks of rows on: no rank holds more than two blocks at a time.

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

    def begin(self, outgoing, incoming) -> Messages:
        """Start to hand `outgoing` to the next rank and to take `incoming`, of one size, from the one before."""
        return self.transport.begin([(self.next, outgoing)], [(self.previous, incoming)])


TRANSPORTS = {
    transport.name: transport for transport in (NcclTransport, CudaMpiTransport, HostTransport)
}
"""The fastest first."""


def choose_transport(asked: str, backend, communicator, gpus_shared: bool) -> Transport:
    """Return the transport `asked` for, or for ``auto`` the fastest one that this run can use.

    Parameters
    ----------
    asked : {"auto", "host", "nccl", "cuda-mpi"}
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
        On every rank, if the transport asked for cannot be used, with the reason.
    """
    obstacles = _obstacles(backend, communicator, gpus_shared)
    if asked == "auto":
        usable = [name for name in TRANSPORTS if name not in obstacles]
        return _first_that_starts(
            usable if communicator.size > 1 else ["host"], backend, communicator
        )
    try:
        if asked in obstacles:
            raise InputError(obstacles[asked])
        return TRANSPORTS[asked](backend, communicator)
    except InputError as error:
        text = f"compute.transport: {asked} cannot be used: {error}; use auto or host"
        raise InputError(text).on_all_ranks() from error


def _obstacles(backend, communicator, gpus_shared) -> dict[str, str]:
    """Return why transports cannot be used, by name; all ranks find the same names."""
    offered = set.intersection(*(set(names) for names in communicator.gather(backend.transports)))
    aware = all(communicator.gather("cuda-mpi" in offered and cuda_aware()))
    missing = f"not every rank's backend offers it ({backend.description})"
    found = {name: missing for name in TRANSPORTS if name not in offered}
    if gpus_shared:
        found.setdefault("nccl", "two ranks share a GPU")
    if not aware:
        found.setdefault(
            "cuda-mpi",
            "the MPI library does not say that it takes GPU arrays (see hybrid-nbody doctor)",
        )
    return found


def _first_that_starts(names, backend, communicator) -> Transport:
    """Return the first of the transports that all ranks can start; it warns of those that they could not."""
    warning = ""
    for name in names:
        try:
            transport = TRANSPORTS[name](backend, communicator)
        except InputError as error:
            warning += f"transport {name} could not be started ({error}); "
            continue
        transport.warning = warning and f"{warning}{name} is used instead"
        return transport
    raise AssertionError("host is always among the names")
