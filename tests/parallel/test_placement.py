"""Which device each rank gets, and why."""

import os
import sys
import threading
from types import SimpleNamespace

import pytest
from support.ranks import ThreadRank, on_threads, run_python

from hybrid_nbody.backends.cpu import SPINS, usable_cores
from hybrid_nbody.backends.gpu import REMEDY
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel import placement
from hybrid_nbody.parallel.placement import (
    _taking_turns,
    _threads,
    assign_device,
    distribute_gpus,
    free_cores,
    working_threads,
)


@pytest.fixture
def no_cupy(monkeypatch):
    """A machine without CuPy."""
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.fixture
def gpus(monkeypatch):
    """A machine with GPUs: their number, or a function that says what a rank sees."""

    class GpuStandIn:
        name, xp, transports = "gpu", None, ("host",)
        shares_host_memory = False
        message_cells = 1 << 22

        def __init__(self, device):
            self.description = f"GPU {device}, stand-in"
            self.identity = f"bus {device}"

    def make(seen):
        see = seen if callable(seen) else lambda: [f"bus {device}" for device in range(seen)]
        monkeypatch.setattr(placement, "gpu_identities", see)

    monkeypatch.setattr(placement, "GpuBackend", GpuStandIn)
    return make


# ---- Devices -------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_auto_without_a_gpu_takes_the_cpu_and_says_why(no_cupy, communicator):
    placed = assign_device("auto", 1, communicator)
    assert placed.reason.startswith(
        "backend auto chose cpu: no GPU can be used: CuPy is not installed ("
    )
    assert (placed.backend.name, placed.backend.threads, placed.shared_gpus) == ("cpu", 1, False)
    assert [rank for rank, _, _ in placed.table] == list(range(communicator.size))
    assert {(host, device) for _, host, device in placed.table} == {
        (os.uname().nodename, "CPU, 1 thread")
    }


@pytest.mark.mpi
def test_auto_takes_the_cpu_on_a_rank_that_lacks_a_gpu(communicator, gpus):
    last = communicator.size - 1

    def seen():
        if communicator.rank == last:
            raise InputError(f"no GPU beside rank {last}; buy one")
        return [f"bus {device}" for device in range(last)]

    gpus(seen)
    placed = assign_device("auto", 1, communicator)
    assert placed.backends == ("gpu",) * last + ("cpu",)
    assert placed.backend.name == placed.backends[communicator.rank]
    where = f"gpu on {last} and cpu on 1 of {last + 1} ranks" if last else "cpu"
    assert placed.reason == f"backend auto chose {where}: no GPU beside rank {last}"
    assert not placed.shared_gpus


@pytest.mark.mpi
def test_a_gpu_asked_for_without_cupy_is_refused_on_all_ranks_with_the_remedy(
    no_cupy, communicator
):
    with pytest.raises(InputError) as caught:
        assign_device("gpu", "auto", communicator)
    where = "rank 0: " if communicator.size > 1 else ""
    assert str(caught.value).startswith(f"{where}no GPU can be used: CuPy is not installed (")
    assert str(caught.value).endswith(f"); {REMEDY}")
    assert caught.value.shared


def test_the_cpu_is_taken_as_asked_for(alone):
    placed = assign_device("cpu", 2, alone)
    assert (placed.backend.description, placed.reason) == (
        "CPU, 2 threads",
        "backend cpu, as asked for",
    )


@pytest.mark.parametrize(
    ("ranks", "number", "devices", "shared"),
    [
        (2, 2, [0, 1], False),
        (2, 4, [0, 1], False),
        (4, 2, [0, 1, 0, 1], True),
        (2, 1, [0, 0], True),
    ],
)
def test_gpus_asked_for_go_round_by_local_rank_and_sharing_is_noticed(
    gpus, ranks, number, devices, shared
):
    gpus(number)
    for placed in on_threads(ranks, lambda rank: assign_device("gpu", "auto", Obliging(rank))):
        assert [device for _, _, device in placed.table] == [
            f"GPU {device}, stand-in" for device in devices
        ]
        assert (placed.shared_gpus, placed.reason) == (shared, "backend gpu, as asked for")


@pytest.mark.skipif(usable_cores() < 2, reason="one core has one thread")
@pytest.mark.parametrize(("threads", "expected"), [("auto", True), (2, False), (1, False)])
def test_only_threads_that_nobody_asked_for_give_way(alone, threads, expected):
    assert assign_device("cpu", threads, alone).backend.makes_way == expected


def test_threads_of_several_ranks_do_not_give_way():
    for placed in on_threads(2, lambda rank: assign_device("cpu", "auto", Obliging(rank))):
        assert not placed.backend.makes_way


@pytest.mark.parametrize(("ranks", "number"), [(1, 1), (2, 2), (2, 4), (4, 2), (3, 1)])
def test_auto_gives_each_gpu_to_one_rank_and_threads_to_the_others(gpus, ranks, number):
    gpus(number)
    alone = min(ranks, number)
    for placed in on_threads(ranks, lambda rank: assign_device("auto", 1, Obliging(rank))):
        devices = [f"GPU {device}, stand-in" for device in range(alone)] + ["CPU, 1 thread"] * (
            ranks - alone
        )
        assert [device for _, _, device in placed.table] == devices
        assert placed.backends == ("gpu",) * alone + ("cpu",) * (ranks - alone)
        assert not placed.shared_gpus
        some = (
            f"gpu on {alone} and cpu on {ranks - alone} of {ranks} ranks: "
            "no GPU is left for the other ranks of its node"
        )
        chosen = "gpu: every rank sees one" if alone == ranks else some
        assert placed.reason == f"backend auto chose {chosen}"


@pytest.mark.parametrize(("nodes", "shared"), [((0, 1), False), ((0, 0), True)])
def test_hosts_of_one_name_share_no_gpu(gpus, nodes, shared):
    """Containers often have one name; GPUs of all of them may have one identity."""
    gpus(1)

    def placing(rank):
        here = Obliging(rank)
        here.node_number = nodes[rank.rank]
        return assign_device("gpu", "auto", here)

    for placed in on_threads(2, placing):
        assert len({host for _, host, _ in placed.table}) == 1
        assert placed.shared_gpus is shared


def test_a_list_says_what_each_rank_computes_on(gpus):
    """The one rank that asks for a GPU has the first, whatever its number."""
    gpus(1)
    for placed in on_threads(
        3, lambda rank: assign_device(("cpu", "gpu", "cpu"), 1, Obliging(rank))
    ):
        assert [device for _, _, device in placed.table] == [
            "CPU, 1 thread",
            "GPU 0, stand-in",
            "CPU, 1 thread",
        ]
        assert (placed.backends, placed.shared_gpus) == (("cpu", "gpu", "cpu"), False)
        assert placed.reason == "backend cpu, gpu, cpu, as asked for"


def test_ranks_that_see_one_gpu_each_take_it(gpus):
    """A launcher that binds ranks to GPUs shows each rank its own, all under the number 0."""
    names = {}

    def placing(rank):
        names[threading.get_ident()] = f"bus {rank.rank}"
        return assign_device("auto", 1, Obliging(rank))

    gpus(lambda: [names[threading.get_ident()]])
    for placed in on_threads(3, placing):
        assert placed.backends == ("gpu", "gpu", "gpu")


def test_a_hybrid_rank_has_a_gpu_and_the_threads_that_do_not_feed_it(gpus, alone):
    gpus(2)
    placed = assign_device("hybrid", "auto", alone, 0.25)
    backend, threads = placed.backend, max(1, len(os.sched_getaffinity(0)) - 1)
    assert (backend.name, backend.cpu_share, backend.helper.threads) == ("hybrid", 0.25, threads)
    assert backend.description == f"GPU 0, stand-in + {backend.helper.description}"
    assert assign_device("hybrid", 2, alone).backend.helper.threads == 2


def test_a_hybrid_rank_without_a_gpu_is_refused_like_one_of_gpu(no_cupy, alone):
    with pytest.raises(InputError) as caught:
        assign_device("hybrid", 1, alone)
    assert str(caught.value).startswith("no GPU can be used: CuPy is not installed (")
    assert str(caught.value).endswith(REMEDY)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([], []),
        ([["a", "b"], ["a", "b"], ["a", "b"]], [(0, True), (1, True), (0, False)]),
        ([["a"], ["a", "b"], [], ["b"]], [(0, True), (1, True), (None, False), (0, False)]),
    ],
)
def test_turns(seen, expected):
    assert distribute_gpus(seen) == expected


class Obliging(ThreadRank):
    """A thread's rank whose actions do not fail; all are ranks of one node."""

    def __init__(self, rank):
        self.__dict__ |= vars(rank)

    @property
    def node(self):
        return SimpleNamespace(allgather=self.gather)

    def together(self, action):
        return action()


# ---- Cores ---------------------------------------------------------------------------------------


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
        def allgather(self, mine):
            return [mine, *(("cpu", cores) for cores in others)]

    class Here:
        node = Node()

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: mine)
    assert free_cores(Here()) == free


@pytest.mark.parametrize(
    ("kinds", "free"),
    [
        (["gpu", "cpu"], [1, 7]),
        (["gpu", "cpu", "cpu"], [1, 3, 3]),
        (["gpu"] * 3, [1, 1, 1]),
        (["hybrid", "hybrid"], [4, 4]),
        (["gpu"] * 8 + ["cpu"], [1] * 9),
    ],
)
def test_a_rank_that_computes_on_a_gpu_takes_one_core(monkeypatch, kinds, free):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    node = SimpleNamespace(allgather=lambda mine: [(kind, set(range(8))) for kind in kinds])
    assert [free_cores(SimpleNamespace(node=node), kind) for kind in kinds] == free


@pytest.mark.mpi
def test_threads_are_a_share_of_the_cores_by_default(communicator):
    cores = len(os.sched_getaffinity(0))
    assert assign_device("cpu", "auto", communicator).backend.threads == max(
        1, cores // communicator.size
    )


@pytest.mark.parametrize(
    ("limit", "threads", "beside_a_gpu"),
    [("1", 1, 1), ("3", 3, 3), ("64", 4, 3), ("none", 4, 3)],
)
def test_threads_are_no_more_than_numba_is_allowed(monkeypatch, limit, threads, beside_a_gpu):
    """By default: more that are asked for are refused."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    monkeypatch.setenv("NUMBA_NUM_THREADS", limit)
    here = SimpleNamespace(node=SimpleNamespace(allgather=lambda mine: [mine]))
    assert _threads("auto", "cpu", here) == threads
    assert _threads("auto", "hybrid", here) == beside_a_gpu
    assert _threads(4, "cpu", here) == 4


@pytest.mark.parametrize(
    ("threads", "cores", "working"),
    [
        ([1, 1, 1], [{0, 1}, {0, 1}, {0, 1}], 2.0),
        ([1, 1], [{0, 1, 2}, {0, 1, 2}], 2.0),
        ([4, 4], [{0, 1, 2, 3}, {4, 5, 6, 7}], 8.0),
        ([100], [{0, 1}], 2.0),
    ],
)
def test_threads_that_share_cores_take_turns(monkeypatch, threads, cores, working):
    node = SimpleNamespace(allgather=lambda own: list(zip(threads, cores, strict=True)))
    ranks = SimpleNamespace(node=node, gather=lambda own: [own / threads[0] * n for n in threads])
    assert working_threads(threads[0], ranks) == pytest.approx(working, rel=1e-12)


@pytest.mark.parametrize(
    ("threads", "cores", "told"),
    [
        ([4, 2], [{0, 1, 2, 3}, {0, 1, 2, 3}], "6 threads take turns on the 4 cores of a node"),
        ([100], [{0, 1}], "100 threads take turns on the 2 cores of a node"),
        ([2, 2], [{0, 1, 2, 3}, {0, 1, 2, 3}], ""),
        ([4, 4], [{0, 1, 2, 3}, {4, 5, 6, 7}], ""),
        ([1, 1, 1], [{0, 1}, {0, 1}, {0, 1}], ""),  # no thread waits within a loop
    ],
)
def test_more_threads_than_cores_are_noticed(threads, cores, told):
    node = SimpleNamespace(allgather=lambda own: list(zip(threads, cores, strict=True)))
    text = _taking_turns(threads[0], SimpleNamespace(node=node))
    assert text.startswith(told)
    assert bool(text) == bool(told)


SPINS_OF_A_RANK = """
import os
from hybrid_nbody.parallel.communicator import start_mpi
from hybrid_nbody.parallel.placement import assign_device

placed = assign_device("cpu", THREADS, start_mpi())
print(os.environ["GOMP_SPINCOUNT"], placed.oversubscribed)
"""


@pytest.mark.parametrize(
    ("more", "chosen", "spins"), [(0, None, str(SPINS)), (1, None, "0"), (1, "77", "77")]
)
def test_threads_look_for_work_where_they_keep_no_other_one_from_a_core(
    monkeypatch, more, chosen, spins
):
    cores = len(os.sched_getaffinity(0))
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.setenv("NUMBA_NUM_THREADS", str(cores + 1))
    if chosen:
        monkeypatch.setenv("GOMP_SPINCOUNT", chosen)
    code = SPINS_OF_A_RANK.replace("THREADS", str(cores + more))
    found, _, told = run_python(code).stdout.strip().partition(" ")
    assert found == spins
    assert told.startswith(f"{cores + 1} threads take turns") == bool(more)
