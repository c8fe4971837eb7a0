"""Which device each rank gets, and why; and waiting without taking a core away."""

import os
import sys

import pytest
from support.ranks import ThreadRank, on_threads

from hybrid_nbody.backends.gpu import REMEDY
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel import placement, waiting
from hybrid_nbody.parallel.placement import free_cores, place
from hybrid_nbody.parallel.waiting import NAP_SECONDS, SPINS, wait


@pytest.fixture
def no_cupy(monkeypatch):
    """A machine without CuPy."""
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.fixture
def gpus(monkeypatch):
    """A machine with GPUs, as far as placing goes."""

    class GpuStandIn:
        kind = "gpu"

        def __init__(self, device):
            self.description = f"GPU {device}, stand-in"
            self.identity = device

    monkeypatch.setattr(placement, "GpuBackend", GpuStandIn)
    return lambda number: monkeypatch.setattr(placement, "visible_gpus", lambda: ["stand-in"] * number)


# ---- Devices ---------------------------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_auto_without_a_gpu_takes_the_cpu_and_says_why(no_cupy, communicator):
    placed = place("auto", 1, communicator)
    assert placed.reason.startswith("backend auto chose cpu: no GPU can be used: CuPy is not installed (")
    assert (placed.backend.kind, placed.backend.threads, placed.shared_gpus) == ("cpu", 1, False)
    assert [rank for rank, _, _ in placed.table] == list(range(communicator.size))
    assert {(host, device) for _, host, device in placed.table} == {(os.uname().nodename, "CPU, 1 thread")}


@pytest.mark.mpi
def test_auto_takes_the_cpu_everywhere_if_one_rank_lacks_a_gpu(communicator, monkeypatch):
    last = communicator.size - 1

    def visible():
        if communicator.rank == last:
            raise InputError(f"no GPU beside rank {last}; buy one")
        return ["stand-in"]

    monkeypatch.setattr(placement, "visible_gpus", visible)
    placed = place("auto", 1, communicator)
    assert placed.backend.kind == "cpu"
    assert placed.reason == f"backend auto chose cpu: no GPU beside rank {last}"


@pytest.mark.mpi
def test_a_gpu_asked_for_without_cupy_is_refused_on_all_ranks_with_the_remedy(no_cupy, communicator):
    with pytest.raises(InputError) as caught:
        place("gpu", "auto", communicator)
    where = "rank 0: " if communicator.size > 1 else ""
    assert str(caught.value).startswith(f"{where}no GPU can be used: CuPy is not installed (")
    assert str(caught.value).endswith(f"); {REMEDY}")
    assert caught.value.shared


def test_the_cpu_is_taken_as_asked_for(alone):
    placed = place("cpu", 2, alone)
    assert (placed.backend.description, placed.reason) == ("CPU, 2 threads", "backend cpu, as asked for")


@pytest.mark.parametrize(
    ("ranks", "number", "devices", "shared"),
    [(2, 2, [0, 1], False), (2, 4, [0, 1], False), (4, 2, [0, 1, 0, 1], True), (2, 1, [0, 0], True)],
)
@pytest.mark.parametrize("asked", ["auto", "gpu"])
def test_gpus_go_round_by_local_rank_and_sharing_is_noticed(gpus, asked, ranks, number, devices, shared):
    gpus(number)
    for placed in on_threads(ranks, lambda rank: place(asked, "auto", Obliging(rank))):
        assert [device for _, _, device in placed.table] == [f"GPU {device}, stand-in" for device in devices]
        assert placed.shared_gpus == shared
    assert (
        placed.reason
        == {"auto": "backend auto chose gpu: every rank sees one", "gpu": "backend gpu, as asked for"}[asked]
    )


REASONS = {"auto": "backend auto chose gpu: every rank sees one", "gpu": "backend gpu, as asked for"}


class Obliging(ThreadRank):
    """A thread's rank whose actions do not fail."""

    def __init__(self, rank):
        self.__dict__ |= vars(rank)

    def together(self, action):
        return action()


# ---- Cores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "others", "free"),
    [
        ({0, 1, 2, 3}, [], 4),
        ({0, 1, 2, 3}, [{0, 1, 2, 3}], 2),  # the same cores: half of them each
        ({0, 1, 2, 3}, [{0, 1, 2, 3}] * 2, 1),
        ({0, 1}, [{2, 3}], 2),  # pinned apart
        ({0}, [{0}, {0}], 1),  # more ranks than cores
        ({0, 1, 2, 3}, [{3, 4}, {5, 6}], 2),
    ],
)
def test_ranks_of_a_node_share_the_cores_that_they_may_both_run_on(monkeypatch, mine, others, free):
    class Node:
        def allgather(self, cores):
            return [cores, *others]

    class Here:
        node = Node()

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: mine)
    assert free_cores(Here()) == free


@pytest.mark.mpi
def test_threads_are_a_share_of_the_cores_by_default(communicator):
    cores = len(os.sched_getaffinity(0))
    assert place("cpu", "auto", communicator).backend.threads == max(1, cores // communicator.size)


# ---- Waiting ---------------------------------------------------------------------------------------------------------


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
    wait(request)
    assert request.looks == 0
    assert (len(yielded), napped) == (yields, [NAP_SECONDS] * naps)
