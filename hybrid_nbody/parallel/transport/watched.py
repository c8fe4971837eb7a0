"""Transport and agreement that are timed and counted: what a rank receives, and waits for.

A watched transport or communicator stands in the place of another one and hands all calls on. It
has no `peers`: every exchange passes through it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.backends.timing import Spans
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.base import MESSAGES, Message, Messages, Transport


@dataclass
class Traffic:
    """The messages that a rank received.

    Exchanges are calls that bring rows, each of which waits for its messages; reductions are calls
    after which all ranks know a number; messages and bytes are of rows of other ranks.
    """

    exchanges: float = 0.0
    reductions: float = 0.0
    messages: float = 0.0
    bytes: float = 0.0


class Watch(Spans):
    """Marks before and after a device waits for other ranks, and `Traffic`."""

    def __init__(self, backend: Backend):
        super().__init__(backend)
        self.traffic = Traffic()

    def restart(self) -> None:
        """Forget what was marked and counted."""
        self.marks.clear()
        self.traffic = Traffic()

    def exchange(self, sizes: Iterable[int]) -> AbstractContextManager[None]:
        """Count an exchange of messages of these bytes, and mark it as `span` does."""
        sizes = list(sizes)
        self.traffic.exchanges += 1
        self.traffic.messages += len(sizes)
        self.traffic.bytes += sum(sizes)
        return self.span()

    def reduction(self) -> AbstractContextManager[None]:
        """Count a reduction, and mark it as `span` does."""
        self.traffic.reductions += 1
        return self.span()


class WatchedTransport(Transport):
    """A transport that times and counts what another one carries for this rank."""

    recordable = False  # marks are the host's

    def __init__(self, carrier: Transport, watch: Watch, rank: int):
        self.carrier = carrier
        self.watch = watch
        self.rank = rank
        self.name = carrier.name
        self.warning = carrier.warning

    def allgather(self, array: Array, partition: Partition) -> None:
        row = array.nbytes // max(len(array), 1)
        others = [count * row for k, count in enumerate(partition.counts) if k != self.rank]
        with self.watch.exchange(filter(None, others)):
            self.carrier.allgather(array, partition)

    def reduce_scatter(self, array: Array, out: Array, partition: Partition) -> None:
        """See `Transport`; each of the others sends its part of the sum."""
        with self.watch.exchange((partition.size - 1) * [out.nbytes]):
            self.carrier.reduce_scatter(array, out, partition)

    def begin(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> "WatchedMessages":
        """See `Transport`; what messages take beside computation is not counted."""
        with self.watch.exchange(rows.nbytes for _, rows in receives):
            return WatchedMessages(self.carrier.begin(sends, receives, what), self.watch)

    def send_receive(
        self, sends: Sequence[Message], receives: Sequence[Message], what: str = MESSAGES
    ) -> None:
        with self.watch.exchange(rows.nbytes for _, rows in receives):
            self.carrier.send_receive(sends, receives, what)

    def maximum(self, array: Array) -> None:
        with self.watch.reduction():
            self.carrier.maximum(array)

    def release(self) -> None:
        self.carrier.release()


class WatchedMessages:
    """Messages on their way, watched."""

    def __init__(self, messages: Messages, watch: Watch):
        self.messages = messages
        self.watch = watch

    def finish(self) -> None:
        with self.watch.span():
            self.messages.finish()


class WatchedNumbers:
    """A communicator of which some calls are watched, by their names."""

    def __init__(self, communicator: Any, watch: Watch, calls: Collection[str]):
        self.communicator = communicator
        self.watch = watch
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.communicator, name)
        return partial(self._watched, found) if name in self.calls else found

    def _watched(self, call: Callable[..., Any], *values: Any) -> Any:
        with self.watch.reduction():
            return call(*values)
