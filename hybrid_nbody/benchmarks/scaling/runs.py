"""A step on some of the ranks, timed and taken apart; the others wait without taking a core."""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.timing import seconds_of
from hybrid_nbody.benchmarks.harness.measure import Stop, Stopped, Times
from hybrid_nbody.parallel import team as parallel
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.placement import assign_device
from hybrid_nbody.parallel.shares import Devices
from hybrid_nbody.parallel.transport import watched
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


class Team(parallel.Team):
    """A team whose devices and transports are made once: NCCL keeps its memory to the end."""

    def __init__(self, world: Communicator, ranks: int):
        super().__init__(world, ranks)
        self.connect = cache(choose_transport)
        self._placed = cache(assign_device)

    def place(self, asked, threads, communicator, cpu_share="auto"):
        """Return the placement, the same as before for the same choice, its device in use again."""
        placement = self._placed(asked, threads, communicator, cpu_share)
        placement.backend.use()
        return placement


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


class Parts(NamedTuple):
    """The parts of a step: seconds of each rank, and the traffic of the rank that has most."""

    total: NDArray
    exchange: NDArray
    traffic: watched.Traffic = watched.Traffic()

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


HALO_CALLS = ("gather_alike", "maximum")
TREE_CALLS = ("any", "concatenate", "gather", "gather_integers", "maximum", "minimum", "sum")
"""What a communicator is asked for between the kernels of a step."""


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
            holder.communicator = watched.WatchedNumbers(holder.communicator, self.watch, calls)

    def connect(self, asked, backend, communicator, gpus_shared):
        self.watch = watched.Watch(backend)
        carrier = super().connect(asked, backend, communicator, gpus_shared)
        return watched.WatchedTransport(carrier, self.watch, communicator.rank)

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
    return Parts(total, exchange, watched.Traffic(*(float(count.max()) for count in counts)))
