"""NCCL between GPUs: rows travel from device to device, queued on streams."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from hybrid_nbody.backends.base import Array
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.communicator import Communicator, abort
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.base import (
    MESSAGES,
    Message,
    Messages,
    Transport,
    elements_of_ranks,
)
from hybrid_nbody.parallel.transport.peer import peer_memory
from hybrid_nbody.parallel.waiting import LostRankError, Watchdog, in_time, warn_of_wait

T = TypeVar("T")

JOIN_SECONDS = 120.0
"""Time that ranks are given to find each other: one that another rank leaves alone would wait for
ever."""


class NcclTransport(Transport):
    """NCCL between GPUs, queued on the device's streams: the host does not wait.

    Parameters
    ----------
    backend : GpuBackend
        This rank's GPU, which offers NCCL.
    communicator : Communicator
        Every rank calls together.

    Raises
    ------
    InputError
        On every rank, if NCCL cannot be started on one of them, saying why.
    """

    name = "nccl"
    recordable = True

    def __init__(self, backend: Any, communicator: Communicator):
        self.rank = communicator.rank
        make = backend.nccl.get_unique_id if communicator.is_root else lambda: None
        identifier = communicator.broadcast(communicator.together(partial(_as_input_error, make)))
        join = partial(NcclGroup.join, backend, communicator.size, identifier, communicator.rank)
        timed = partial(in_time, join, JOIN_SECONDS)
        self.group = communicator.together(partial(_as_input_error, timed))
        self.peers = peer_memory(backend, communicator)
        self.watchdog = Watchdog(backend.host_wait, self.group.report_wait)

    def allgather(self, array: Array, partition: Partition) -> None:
        """See `Transport`; uneven shares are one broadcast a rank, grouped into one operation."""
        if partition.even:
            row = array.nbytes // max(len(array), 1)
            own = partition.share(self.rank)
            self.group.all_gather(array, own.start * row, (own.stop - own.start) * row)
        else:
            self.group.broadcast_each(array, *elements_of_ranks(array, partition))

    def reduce_scatter(self, array: Array, out: Array, partition: Partition) -> None:
        """See `Transport`; uneven shares are one reduction a rank, grouped into one operation."""
        if partition.even:
            self.group.reduce_scatter(array, out)
        else:
            self.group.reduce_each(array, out, *elements_of_ranks(array, partition))

    def begin(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> Messages:
        """See `Transport`; messages have a stream of their own, beside that of computation."""
        return self.group.begin(sends, receives, what)

    def send_receive(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> None:
        """See `Transport`; messages are queued on the stream of computation."""
        self.group.send_receive(sends, receives, what)

    def maximum(self, array: Array) -> None:
        """See `Transport`."""
        self.group.maximum(array)


def _as_input_error(action: Callable[[], T]) -> T:
    """Return what `action` returns; whatever a vendor's library raises becomes an `InputError`.

    Ranks can tell each other of that one.
    """
    try:
        return action()
    except Exception as error:
        raise InputError(f"{type(error).__name__}: {error}") from error


class NcclGroup:
    """The GPUs of all ranks as NCCL sees them.

    Collective operations are queued on this rank's stream, messages between two ranks on one beside
    it.

    Parameters
    ----------
    nccl : module
        CuPy's bindings of NCCL.
    communicator : cupy.cuda.nccl.NcclCommunicator
        This rank's membership.
    stream, side : cupy.cuda.Stream
        The stream of computation, and the one beside it.
    """

    def __init__(self, nccl: Any, communicator: Any, stream: Any, side: Any):
        self.nccl = nccl
        self.communicator = communicator
        self.stream = stream
        self.side = side
        self.events: list[Any] = []
        self.latest = "the start of NCCL"
        """The last action that the ranks took together, for warnings."""

        self.latest_ranks: list[int] = []
        """The ranks that took it; empty for all."""

    @classmethod
    def join(cls, backend: Any, size: int, identifier: Any, rank: int) -> "NcclGroup":
        """Join a group of `size` GPUs as member `rank`; every member calls together, in any thread.

        Connections are made with the first operation, which is done here: a member that returns can
        reach all others.
        """
        backend.use()  # a new thread knows neither device nor stream
        communicator = backend.nccl.NcclCommunicator(size, identifier, rank)
        _never_end(communicator)
        group = cls(backend.nccl, communicator, backend.stream, backend.message_stream())
        group.maximum(backend.zeros(1, "i4"))
        backend.synchronize()
        return group

    def all_gather(self, array: Array, start: int, size: int) -> None:
        """Gather equal pieces of `array` in place; this rank's is `size` bytes from `start` on."""
        self._note("a gather of rows")
        base = array.data.ptr
        self.communicator.allGather(base + start, base, size, self.nccl.NCCL_CHAR, self.stream.ptr)

    def broadcast_each(self, array: Array, counts: list[int], starts: list[int]) -> None:
        """Let each rank broadcast its piece of `array`: `counts` elements from `starts` on."""
        self._note("a gather of rows")
        self.nccl.groupStart()
        for root, (count, start) in enumerate(zip(counts, starts, strict=True)):
            if count:
                piece = array.data.ptr + start * array.itemsize
                size = count * array.itemsize
                self.communicator.broadcast(
                    piece, piece, size, self.nccl.NCCL_CHAR, root, self.stream.ptr
                )
        self.nccl.groupEnd()

    def reduce_scatter(self, array: Array, out: Array) -> None:
        """Fill `out` with this rank's one of the equal pieces of the sum of all ranks' `array`."""
        self._note("a sum over ranks")
        pointers = (array.data.ptr, out.data.ptr)
        operation = (self.nccl.NCCL_DOUBLE, self.nccl.NCCL_SUM)
        self.communicator.reduceScatter(*pointers, out.size, *operation, self.stream.ptr)

    def reduce_each(self, array: Array, out: Array, counts: list[int], starts: list[int]) -> None:
        """Do the same with pieces of `counts` elements from `starts` on, one a rank."""
        self._note("a sum over ranks")
        operation = (self.nccl.NCCL_DOUBLE, self.nccl.NCCL_SUM)
        self.nccl.groupStart()
        for root, (count, start) in enumerate(zip(counts, starts, strict=True)):
            if count:
                piece = array.data.ptr + start * array.itemsize
                self.communicator.reduce(
                    piece, out.data.ptr, count, *operation, root, self.stream.ptr
                )
        self.nccl.groupEnd()

    def begin(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str
    ) -> "NcclMessages":
        """Start messages between ranks, all at once, after what is queued so far."""
        event = self.stream.record(self.events.pop() if self.events else None)
        self.side.wait_event(event)
        self._send_and_receive(sends, receives, self.side, what)
        return NcclMessages(self, self.side.record(event), (sends, receives))

    def send_receive(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str
    ) -> None:
        """Queue messages between ranks on the stream of computation."""
        self._send_and_receive(sends, receives, self.stream, what)

    def _send_and_receive(
        self, sends: Sequence[Message], receives: Sequence[Message], stream: Any, what: str
    ) -> None:
        self._note(what, [rank for rank, _ in receives])
        nccl = self.nccl
        nccl.groupStart()
        for rank, rows in sends:
            self.communicator.send(rows.data.ptr, rows.nbytes, nccl.NCCL_CHAR, rank, stream.ptr)
        for rank, rows in receives:
            self.communicator.recv(rows.data.ptr, rows.nbytes, nccl.NCCL_CHAR, rank, stream.ptr)
        nccl.groupEnd()

    def maximum(self, array: Array) -> None:
        """Replace every element of `array` by its largest value over the ranks."""
        self._note("a maximum over ranks")
        types = {"f": self.nccl.NCCL_FLOAT, "d": self.nccl.NCCL_DOUBLE, "i": self.nccl.NCCL_INT}
        operation = (types[array.dtype.char], self.nccl.NCCL_MAX)
        pointer = array.data.ptr
        self.communicator.allReduce(pointer, pointer, array.size, *operation, self.stream.ptr)

    def _note(self, what: str, ranks: Sequence[int] = ()) -> None:
        """Remember what the ranks do together."""
        self.latest = what
        self.latest_ranks = list(ranks)

    def report_wait(self, seconds: float) -> None:
        """Warn of a wait of the host for its GPU; end all ranks if NCCL knows that one has failed.

        Work that was recorded is replayed without a word to this object: the warning names the
        ranks of the last messages that it queued itself.
        """
        what = f"{self.latest} over NCCL"
        try:
            self.communicator.check_async_error()
        except Exception as error:
            text = f"another rank, or the way to it, failed in {what}: {error}"
            abort(LostRankError(text), LostRankError.exit_code)
        ranks: list[int | None] = [*self.latest_ranks] or [None]
        for rank in ranks:
            warn_of_wait(what, rank, seconds)


class NcclMessages:
    """Messages that are queued beside the stream of a group, with their rows.

    What is queued on the stream meanwhile must not take the memory of rows that nobody else keeps.
    """

    def __init__(self, group: NcclGroup, sent: Any, rows: tuple[Sequence[Message], ...]):
        self.group = group
        self.sent = sent
        self.rows = rows

    def finish(self) -> None:
        """Let what is queued on the stream from here on wait for the messages."""
        self.group.stream.wait_event(self.sent)
        self.group.events.append(self.sent)  # to be used again
        self.rows = ()


def _never_end(communicator: Any) -> None:
    """Leave a communicator of NCCL to the end of the process.

    Python would end it with its last name, or among the last objects; NCCL then waits, perhaps for
    ever, for the other ranks to do the same, and for captured graphs to be destroyed.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(communicator))
