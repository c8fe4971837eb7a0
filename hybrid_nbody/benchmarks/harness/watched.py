"""A transport that tells how long its rank spends in it, and counts what it carries."""

from contextlib import contextmanager
from dataclasses import dataclass

from hybrid_nbody.parallel.transport.base import MESSAGES, Transport


@dataclass
class Traffic:
    """What a rank received.

    Attributes
    ----------
    exchanges : int
        Calls that bring rows, each of which waits for its messages.
    reductions : int
        Calls after which all ranks know a number.
    messages, bytes : int
        Of rows of other ranks.
    """

    exchanges: int = 0
    reductions: int = 0
    messages: int = 0
    bytes: int = 0

    def note(self, sizes) -> None:
        """Count an exchange of messages of so many bytes each."""
        self.exchanges += 1
        self.messages += len(sizes)
        self.bytes += sum(sizes)


class Watch:
    """Marks in the queue of a device, before and after whatever waits for other ranks.

    Parameters
    ----------
    backend : Backend
        Whose marks they are.

    Attributes
    ----------
    traffic : Traffic
        What was carried since `restart`.
    """

    def __init__(self, backend):
        self.backend = backend
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.spans = []
        self.traffic = Traffic()

    @contextmanager
    def span(self):
        """Mark the beginning and the end of what is done within."""
        start = self.backend.mark()
        yield
        self.spans.append((start, self.backend.mark()))

    def seconds(self) -> float:
        """Return the time between all marks, in seconds; waits for the device."""
        return sum(self.backend.elapsed(start, end) for start, end in self.spans)


class WatchedTransport(Transport):
    """Any transport, watched.

    Parameters
    ----------
    carrier : Transport
        Does the work.
    watch : Watch
        Takes times and counts.
    rank : int
        This rank.
    """

    recordable = False  # marks are the host's

    def __init__(self, carrier: Transport, watch: Watch, rank: int):
        self.carrier = carrier
        self.watch = watch
        self.rank = rank
        self.name = carrier.name
        self.warning = carrier.warning

    def allgather(self, array, partition):
        """See `Transport`."""
        row = array.nbytes // max(len(array), 1)
        others = [
            count * row
            for rank, count in enumerate(partition.counts)
            if rank != self.rank and count
        ]
        self.watch.traffic.note(others)
        with self.watch.span():
            self.carrier.allgather(array, partition)

    def reduce_scatter(self, array, out, partition):
        """See `Transport`; each of the others sends its part of the sum."""
        self.watch.traffic.note((partition.size - 1) * [out.nbytes])
        with self.watch.span():
            self.carrier.reduce_scatter(array, out, partition)

    def begin(self, sends, receives, what=MESSAGES):
        """See `Transport`; what messages take beside computation is not counted."""
        self.watch.traffic.note([rows.nbytes for _, rows in receives])
        with self.watch.span():
            return WatchedMessages(self.carrier.begin(sends, receives, what), self.watch)

    def send_receive(self, sends, receives, what=MESSAGES):
        """See `Transport`."""
        self.watch.traffic.note([rows.nbytes for _, rows in receives])
        with self.watch.span():
            self.carrier.send_receive(sends, receives, what)

    def maximum(self, array):
        """See `Transport`."""
        self.watch.traffic.reductions += 1
        with self.watch.span():
            self.carrier.maximum(array)


class WatchedMessages:
    """Messages on their way, watched."""

    def __init__(self, messages, watch: Watch):
        self.messages = messages
        self.watch = watch

    def finish(self):
        """See `hybrid_nbody.parallel.transport.base.Messages`."""
        with self.watch.span():
            self.messages.finish()


class WatchedNumbers:
    """What a `HaloExchange` asks of its communicator between two kernels, watched."""

    def __init__(self, communicator, watch: Watch):
        self.communicator = communicator
        self.watch = watch

    def __getattr__(self, name):
        return getattr(self.communicator, name)

    def maximum(self, values):
        """See `Communicator`."""
        self.watch.traffic.reductions += 1
        with self.watch.span():
            return self.communicator.maximum(values)
