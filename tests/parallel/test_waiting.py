"""Waiting without taking a core away, and what is said of a wait that lasts long."""

import gc
import os
import time

import pytest

from hybrid_nbody.backends.base import HostWait
from hybrid_nbody.errors import HybridNBodyError
from hybrid_nbody.parallel import waiting
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.waiting import (
    FEW_SPINS,
    NAP_SECONDS,
    SPINS,
    Watchdog,
    in_time,
    lost_rank,
    wait,
)


@pytest.fixture(autouse=True)
def alone_on_their_cores(monkeypatch):
    """As long as nothing is known of other ranks."""
    monkeypatch.setattr(waiting, "_looks", SPINS)


class Request:
    """An MPI request that is done at the n-th look."""

    def __init__(self, looks):
        self.looks = looks

    def Test(self):  # noqa: N802 - MPI's name
        self.looks -= 1
        return self.looks <= 0


@pytest.mark.parametrize(
    ("looks", "yields", "naps"),
    [(1, 0, 0), (5, 4, 0), (SPINS, SPINS - 1, 0), (SPINS + 1, SPINS, 0), (SPINS + 4, SPINS, 3)],
)
def test_waiting_looks_often_and_then_naps(monkeypatch, looks, yields, naps):
    yielded, napped = [], []
    monkeypatch.setattr(waiting.os, "sched_yield", lambda: yielded.append(1))
    monkeypatch.setattr(waiting.time, "sleep", napped.append)
    request = Request(looks)
    wait(request, "a test")
    assert request.looks == 0
    assert (len(yielded), napped) == (yields, [NAP_SECONDS] * naps)


@pytest.mark.parametrize(("ranks", "cores", "looks"), [(2, 2, SPINS), (3, 2, FEW_SPINS)])
def test_ranks_that_outnumber_cores_look_seldom(monkeypatch, ranks, cores, looks):
    yielded = []
    monkeypatch.setattr(waiting.os, "sched_yield", lambda: yielded.append(1))
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: None)
    waiting.share_cores(ranks, cores)
    waiting.share_cores(1, cores)  # a part of the ranks, later
    wait(Request(SPINS + 4), "a test")
    assert len(yielded) == looks


@pytest.mark.mpi
def test_all_ranks_of_a_node_are_counted(communicator):
    Communicator(communicator.comm)
    crowded = communicator.local_size > len(os.sched_getaffinity(0))
    assert waiting._looks == (FEW_SPINS if crowded else SPINS)


class Clock:
    """A clock that goes on by a second a look, in naps that take no time."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(waiting.time, "monotonic", self.look)
        monkeypatch.setattr(waiting.time, "sleep", lambda seconds: None)

    def look(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize(("rank", "whom"), [(2, "rank 2"), (None, "the other ranks")])
def test_a_long_wait_names_the_rank_and_goes_on(monkeypatch, capfd, rank, whom):
    Clock(monkeypatch)
    monkeypatch.setattr(waiting, "WARNING_SECONDS", 60.0)
    request = Request(SPINS + 250)
    wait(request, "the halo exchange", rank)
    assert request.looks == 0
    lines = capfd.readouterr().err.splitlines()
    assert [line.split("; ")[0] for line in lines] == [
        f"hybrid_nbody: warning on rank 0: waiting for {whom} in the halo exchange for {seconds} s"
        for seconds in (61, 121, 241)
    ]
    assert all(line.endswith("resume it from its last checkpoint") for line in lines)


def test_a_short_wait_says_nothing(monkeypatch, capfd):
    Clock(monkeypatch)
    wait(Request(SPINS + 50), "a barrier")
    assert capfd.readouterr().err == ""


SLOW = """
import time
import numpy as np
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.parallel import waiting
from hybrid_nbody.parallel.communicator import start_mpi
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.host import HostTransport

ranks = start_mpi()
transport = HostTransport(CpuBackend(1), ranks)
halo = HaloExchange(transport, Partition.equal(2, 2), ranks, periodic=False)
ranks.barrier()
waiting.WARNING_SECONDS = 0.2
time.sleep(0.7 * ranks.rank)
halo.fill(np.zeros((3, 2, 2)))
"""


def test_a_slow_rank_is_named_on_the_other(mpirun):
    """Two real ranks: the first waits for planes of the second."""
    ended = mpirun(2, "-c", SLOW)
    assert ended.returncode == 0, ended.stderr
    assert "warning on rank 0: waiting for rank 1 in the halo exchange for " in ended.stderr


def test_the_error_of_a_lost_rank_names_it():
    error = lost_rank(3, "the early push of planes", 299.6)
    assert isinstance(error, HybridNBodyError)
    assert not error.shared  # the rank that notices it ends all
    assert str(error) == (
        "rank 3 did not answer in the early push of planes for 300 s: it or its node has failed; "
        "resume the run from its last checkpoint"
    )


def test_a_watchdog_reports_a_wait_each_time_that_it_has_doubled(monkeypatch):
    monkeypatch.setattr(waiting, "WARNING_SECONDS", 0.1)
    reported, host_wait = [], HostWait()
    Watchdog(host_wait, reported.append)
    time.sleep(0.3)
    assert reported == []  # the host does not wait
    with host_wait:
        time.sleep(0.75)
    assert 2 <= len(reported) <= 3
    assert reported[0] >= 0.1
    assert reported[1] >= 0.2
    del reported[:]
    for _ in range(10):  # waits that begin anew are short ones
        with host_wait:
            time.sleep(0.05)
    assert reported == []


def test_a_watchdog_ends_with_what_it_watches(monkeypatch):
    monkeypatch.setattr(waiting, "WARNING_SECONDS", 0.04)
    host_wait = HostWait()
    watchdog = Watchdog(host_wait, lambda seconds: None)
    assert watchdog.thread.is_alive()
    del host_wait
    gc.collect()
    watchdog.thread.join(timeout=10)
    assert not watchdog.thread.is_alive()


def test_what_an_action_returns_and_raises_in_time():
    assert in_time(lambda: 3, 5) == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 / 0, 5)
    with pytest.raises(TimeoutError, match=r"no answer within 0.02 s"):
        in_time(lambda: time.sleep(0.5), 0.02)
