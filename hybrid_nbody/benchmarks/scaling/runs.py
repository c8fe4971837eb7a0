"""A step on some of the ranks, timed and taken apart; the other ranks wait without taking a core."""

import gc
import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from hybrid_nbody.benchmarks.harness.measure import Stopped, Times, seconds_of
from hybrid_nbody.benchmarks.harness.watched import Watch, WatchedNumbers, WatchedTransport
from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.placement import assign_device
from hybrid_nbody.parallel.shares import Devices
from hybrid_nbody.parallel.transport.choice import choose_transport
from hybrid_nbody.run.start import build

SOURCE = "bench scaling"
"""What messages about a configuration name in the place of a file."""

LONG_ENOUGH = 0.25
MOST_STEPS = 20
"""A timing covers steps for so many seconds, but no more than these: they belong to one order of
the sources."""

RECORDED = 4
"""Steps in a row after which a device has recorded what it replays from then on."""

WATCHED = 3
"""Timings, at most, that tell how a step is made up."""


class Team:
    """The first ranks of all, which do what is asked for while the others wait.

    Their devices and what carries their messages are made once, for all runs: NCCL keeps its memory
    until the process ends.

    Parameters
    ----------
    world : Communicator
        All ranks; every method is collective.
    ranks : int
        How many of them belong to the team.

    Attributes
    ----------
    group : Communicator
        Those of the team, or the others, whichever this rank belongs to.
    connect : callable
        `choose_transport`, which returns the same transport for the same device, ranks and choice.
    """

    def __init__(self, world, ranks: int):
        self.world = world
        self.ranks = ranks
        self.belongs = world.rank < ranks
        self.group = (
            Communicator(world.comm.Split(int(not self.belongs), world.rank))
            if ranks < world.size
            else world
        )
        self.connect = cache(choose_transport)
        self._placed = cache(assign_device)

    def place(self, asked, threads, communicator, cpu_share="auto"):
        """Return the same placement as before for the same choice, on a device that is in use again; see `assign_device`."""
        placement = self._placed(asked, threads, communicator, cpu_share)
        placement.backend.use()
        return placement

    def do(self, action: Callable):
        """Return what `action` gives on the ranks of the team, None on the others, which wait for the root.

        Raises
        ------
        HybridNBodyError
            The team's error, on every rank.
        """
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
    """A model as a run has it, ready to be stepped by a team.

    Parameters
    ----------
    values : dict
        Its configuration.
    team : Team
        Its ranks call together.
    """

    def __init__(self, values: dict, team: Team):
        self.team = team
        self.group = team.group
        self.built = build(values, SOURCE, team.group, Devices(team.place, self.connect))
        self.model = self.built.model
        self.backend = self.built.placement.backend
        self.model.advance(1)  # compiles, and sorts the sources

    def connect(self, *asked):
        """Return the transport that a run would have; see `choose_transport`."""
        return self.team.connect(*asked)

    def seconds(self, steps: int) -> float:
        """Return the time of a step on this rank, the mean of so many in a row."""
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
        """The name of what carries the messages."""
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


@dataclass(frozen=True)
class Parts:
    """What a step is made of, the mean over steps.

    Attributes
    ----------
    total, exchange : array
        Seconds of each rank.
    exchanges, reductions, messages, bytes : float
        Of the rank that has most; see `Traffic`.
    """

    total: np.ndarray
    exchange: np.ndarray
    exchanges: float = 0.0
    reductions: float = 0.0
    messages: float = 0.0
    bytes: float = 0.0

    @property
    def compute(self) -> np.ndarray:
        """What a rank does by itself."""
        return self.total - self.exchange

    @property
    def transfer(self) -> float:
        """What the exchange takes of the rank that came last and waited for nobody."""
        return float(self.exchange.min())

    @property
    def wait(self) -> np.ndarray:
        """What a rank waits for others."""
        return self.exchange - self.transfer


class WatchedRun(Run):
    """The same with a watched transport.

    Steps are queued one by one, and planes travel as messages where kernels else write into the
    memory of other GPUs; so they may be slower.
    """

    def __init__(self, values: dict, team: Team):
        super().__init__(values, team)
        exchange = self.built.exchange
        if isinstance(exchange, HaloExchange):
            exchange.communicator = WatchedNumbers(exchange.communicator, self.watch)

    def connect(self, asked, backend, communicator, gpus_shared):
        """Return the same transport, watched."""
        self.watch = Watch(backend)
        carrier = super().connect(asked, backend, communicator, gpus_shared)
        return WatchedTransport(carrier, self.watch, communicator.rank)

    def parts(self, steps: int) -> list[tuple]:
        """Return for each rank the seconds of a step and those within exchanges, and the counts of `Traffic`."""
        self.watch.restart()
        total = self.seconds(steps)
        traffic = self.watch.traffic
        counts = traffic.exchanges, traffic.reductions, traffic.messages, traffic.bytes
        return self.group.gather(
            (total, *(number / steps for number in (self.watch.seconds(), *counts)))
        )


@contextmanager
def opened(team: Team, kind, values: dict):
    """Lend a run of a team, of class `kind`, and close it on all ranks at once, also where all were asked to stop."""
    run = team.do(lambda: kind(values, team))
    stopped = None
    try:
        yield run
    except Stopped as caught:
        stopped = caught
    team.do(lambda: run.close())
    if stopped:
        raise stopped


def timed_steps(
    team: Team, values: dict, steps: int | None, repeats: int, stop
) -> tuple[str, Times]:
    """Return the name of the transport and the times of a step; they mean nothing on other ranks than the team's.

    Parameters
    ----------
    team : Team
    values : dict
        The configuration of the run.
    steps : int or None
        Of a timing; None for as many as take long enough.
    repeats : int
        Timings.
    stop : callable
        Raises `Stopped` on all ranks when one was asked to stop.
    """
    seconds = []
    with opened(team, Run, values) as run:
        steps = steps or team.do(lambda: run.steps())
        name = team.do(lambda: run.transport)
        team.do(lambda: run.warm(steps))
        for _ in range(repeats):
            stop()
            seconds.append(team.do(lambda: run.slowest(steps)))
    return name, Times(tuple(seconds), steps)


def parts_of_a_step(team: Team, values: dict, steps: int, repeats: int, stop) -> Parts | None:
    """Return what a step of a team is made of, the median over timings; None on other ranks.

    Parameters are those of `timed_steps`.
    """
    found = []
    with opened(team, WatchedRun, values) as run:
        team.do(lambda: run.warm(steps))
        for _ in range(min(repeats, WATCHED)):
            stop()
            found.append(team.do(lambda: run.parts(steps)))
    if not team.belongs:
        return None
    total, exchange, *counts = np.median(np.array(found), axis=0).T
    return Parts(total, exchange, *(float(count.max()) for count in counts))
