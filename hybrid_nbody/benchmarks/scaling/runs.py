"""A step on some of the ranks, timed and taken apart; the others wait without taking a core."""

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.benchmarks.harness.measure import Stop, Stopped, Times, seconds_of
from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.placement import assign_device
from hybrid_nbody.parallel.shares import Devices
from hybrid_nbody.parallel.transport.base import MESSAGES, Transport
from hybrid_nbody.parallel.transport.choice import choose_transport
from hybrid_nbody.running.start import build

SOURCE = "bench scaling"
"""The name that messages about a configuration give instead of a file."""

LONG_ENOUGH = 0.25
MOST_STEPS = 20
"""Seconds, or steps, of a timing, which belong to one order of the sources."""

RECORDED = 4
"""Steps in a row after which a device has recorded what it replays from then on."""

WATCHED = 3
"""Timings, at most, that tell how a step is made up."""


class Team:
    """The first ranks of all, which do what is asked for while the others wait.

    All ranks call every method; `group` is the communicator of the team, or of the others. Devices
    and transports are made once for each choice: NCCL keeps its memory until the process ends.
    """

    def __init__(self, world: Communicator, ranks: int):
        self.world = world
        self.ranks = ranks
        self.belongs = world.rank < ranks
        self.group = world
        if ranks < world.size:
            self.group = Communicator(world.comm.Split(int(not self.belongs), world.rank))
        self.connect = cache(choose_transport)
        self._placed = cache(assign_device)

    def place(self, asked, threads, communicator, cpu_share="auto"):
        """Return the placement, the same as before for the same choice, its device in use again."""
        placement = self._placed(asked, threads, communicator, cpu_share)
        placement.backend.use()
        return placement

    def do(self, action: Callable) -> Any:
        """Return the result of `action`, None outside the team; raise its error on every rank."""
        result = error = None
        try:
            result = action() if self.belongs else None
        except HybridNBodyError as caught:
            if not caught.shared:
                raise
            error = caught
        error = self.world.broadcast(error)
        if error is not None:
            raise error.on_all_ranks()
        return result


class Run:
    """A model as a run of a configuration has it, ready to be stepped by all ranks of a team."""

    def __init__(self, values: dict, team: Team):
        self.team = team
        self.group = team.group
        self.built: Any = build(values, SOURCE, team.group, Devices(team.place, self.connect))
        self.model: Any = self.built.model
        self.backend = self.built.placement.backend
        self.model.advance(1)  # compiles, and sorts the sources

    def connect(self, *asked):
        """Return the transport that a run would have; see `choose_transport`."""
        return self.team.connect(*asked)

    def seconds(self, steps: int) -> float:
        """Return the mean time of `steps` steps in a row on this rank."""
        self.backend.synchronize()
        self.group.barrier()
        return seconds_of(self.backend, lambda: self.model.advance(steps)) / steps

    def slowest(self, steps: int) -> float:
        """Return the same of the slowest rank."""
        return max(self.group.gather(self.seconds(steps)))

    def steps(self) -> int:
        """Return how many steps a timing should cover."""
        return min(MOST_STEPS, math.ceil(LONG_ENOUGH / max(self.slowest(1), 1e-9)))

    @property
    def transport(self) -> str:
        return self.built.exchange.transport.name

    def warm(self, steps: int) -> None:
        """Do what the first of several timings would take longer for."""
        if steps > 1:
            self.model.advance(max(steps, RECORDED))

    def close(self) -> None:
        """Give the memory back, on all ranks before any of them goes on."""
        transport = self.built.exchange.transport
        self.built = self.model = None
        gc.collect()
        transport.release()
        self.group.barrier()


@contextmanager
def opened(team: Team, make: Callable[[dict, Team], Run], values: dict) -> Iterator[Any]:
    """Lend a run of a team, and close it on all ranks at once, also where all are stopped."""
    run = team.do(lambda: make(values, team))
    stopped = None
    try:
        yield run
    except Stopped as caught:
        stopped = caught
    team.do(lambda: run.close())
    if stopped:
        raise stopped


def timed_steps(
    team: Team, values: dict, steps: int | None, repeats: int, stop: Stop
) -> tuple[str, Times]:
    """Return the transport and the times of a step, by `steps` in a row or as many as fit."""
    seconds = []
    with opened(team, Run, values) as run:
        steps = steps or team.do(lambda: run.steps())
        name = team.do(lambda: run.transport)
        team.do(lambda: run.warm(steps))
        for _ in range(repeats):
            stop()
            seconds.append(team.do(lambda: run.slowest(steps)))
    return name, Times(tuple(seconds), steps)


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


class Parts(NamedTuple):
    """The parts of a step: seconds of each rank, and the traffic of the rank that has most."""

    total: NDArray
    exchange: NDArray
    traffic: Traffic = Traffic()

    @property
    def compute(self) -> NDArray:
        return self.total - self.exchange

    @property
    def transfer(self) -> float:
        """The seconds of the exchange on the rank that came last and did not wait."""
        return float(self.exchange.min())

    @property
    def wait(self) -> NDArray:
        return self.exchange - self.transfer


class Watch:
    """Marks in the queue of a device, before and after it waits for other ranks; and `Traffic`."""

    def __init__(self, backend):
        self.backend = backend
        self.restart()

    def restart(self) -> None:
        self.spans: list[tuple] = []
        self.traffic = Traffic()

    @contextmanager
    def span(self) -> Iterator[None]:
        """Mark the beginning and the end of what is done within."""
        start = self.backend.mark()
        yield
        self.spans.append((start, self.backend.mark()))

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

    def seconds(self) -> float:
        """Wait for the device; return the time between all marks."""
        return sum(self.backend.elapsed(start, end) for start, end in self.spans)


class WatchedTransport(Transport):
    """A transport that times and counts what another one carries for this rank."""

    recordable = False  # marks are the host's

    def __init__(self, carrier: Transport, watch: Watch, rank: int):
        self.carrier = carrier
        self.watch = watch
        self.rank = rank
        self.name = carrier.name
        self.warning = carrier.warning

    def allgather(self, array, partition):
        row = array.nbytes // max(len(array), 1)
        others = [count * row for k, count in enumerate(partition.counts) if k != self.rank]
        with self.watch.exchange(filter(None, others)):
            self.carrier.allgather(array, partition)

    def reduce_scatter(self, array, out, partition):
        """See `Transport`; each of the others sends its part of the sum."""
        with self.watch.exchange((partition.size - 1) * [out.nbytes]):
            self.carrier.reduce_scatter(array, out, partition)

    def begin(self, sends, receives, what=MESSAGES):
        """See `Transport`; what messages take beside computation is not counted."""
        with self.watch.exchange(rows.nbytes for _, rows in receives):
            return WatchedMessages(self.carrier.begin(sends, receives, what), self.watch)

    def send_receive(self, sends, receives, what=MESSAGES):
        with self.watch.exchange(rows.nbytes for _, rows in receives):
            self.carrier.send_receive(sends, receives, what)

    def maximum(self, array):
        with self.watch.reduction():
            self.carrier.maximum(array)


class WatchedMessages:
    """Messages on their way, watched."""

    def __init__(self, messages, watch: Watch):
        self.messages = messages
        self.watch = watch

    def finish(self):
        with self.watch.span():
            self.messages.finish()


HALO_CALLS = ("maximum",)
TREE_CALLS = ("any", "concatenate", "gather", "gather_integers", "maximum", "minimum", "sum")
"""What a communicator is asked for between the kernels of a step."""


class WatchedNumbers:
    """A communicator of which some calls are watched, by their names."""

    def __init__(self, communicator, watch: Watch, calls: Sequence[str] = HALO_CALLS):
        self.communicator = communicator
        self.watch = watch
        self.calls = calls

    def __getattr__(self, name):
        found = getattr(self.communicator, name)
        return partial(self._watched, found) if name in self.calls else found

    def _watched(self, call: Callable, *values):
        with self.watch.reduction():
            return call(*values)


class WatchedRun(Run):
    """The same with a watched transport: slower, if kernels wrote into the memory of other GPUs."""

    def __init__(self, values: dict, team: Team):
        super().__init__(values, team)
        exchange: Any = self.built.exchange
        if isinstance(exchange, HaloExchange):
            self._watch(HALO_CALLS, exchange)
        tree = getattr(getattr(self.model, "force", None), "tree", None)
        if tree:
            self._watch(TREE_CALLS, tree, tree.travels)

    def _watch(self, calls: Sequence[str], *holders: Any) -> None:
        """Watch these calls of the communicator that some objects have."""
        for holder in holders:
            holder.communicator = WatchedNumbers(holder.communicator, self.watch, calls)

    def connect(self, asked, backend, communicator, gpus_shared):
        self.watch = Watch(backend)
        carrier = super().connect(asked, backend, communicator, gpus_shared)
        return WatchedTransport(carrier, self.watch, communicator.rank)

    def parts(self, steps: int) -> list[tuple]:
        """Return for each rank the seconds of a step, those within exchanges, and its traffic."""
        self.watch.restart()
        total = self.seconds(steps)
        counts = self.watch.seconds(), *astuple(self.watch.traffic)
        return self.group.gather((total, *(number / steps for number in counts)))


def parts_of_a_step(team: Team, values: dict, steps: int, repeats: int, stop: Stop) -> Parts | None:
    """Return what a step of a team is made of, the median over timings; None on other ranks."""
    found = []
    with opened(team, WatchedRun, values) as run:
        team.do(lambda: run.warm(steps))
        for _ in range(min(repeats, WATCHED)):
            stop()
            found.append(team.do(lambda: run.parts(steps)))
    if not team.belongs:
        return None
    total, exchange, *counts = np.median(np.array(found), axis=0).T
    return Parts(total, exchange, Traffic(*(float(count.max()) for count in counts)))
