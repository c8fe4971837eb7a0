"""A tree that each GPU of a host has whole, on paper: arguments of kernels, and memory."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.paper import PaperArray, PaperGpu

from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.gpu import peer_rows
from hybrid_nbody.nbody.kernels.gpu.tree.kernels import DeviceTree
from hybrid_nbody.nbody.kernels.gpu.tree.memory import COUNTS, LEVELS, SHARE, USED
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.peer_barrier import BARRIER

NUMBER = 100
RANKS = 3
CELLS = 40


class OnPaper:
    """NumPy with arrays that say where they are."""

    def __getattr__(self, name):
        function = getattr(np, name)
        return lambda *given, **options: function(*given, **options).view(PaperArray)


class TreeOnPaper(PaperGpu):
    """A GPU that reports some cells, a third of them in this rank's share."""

    xp = OnPaper()

    def __init__(self):
        super().__init__(lambda *arguments: 0.0)

    def zeros(self, shape, dtype):
        return super().zeros(shape, dtype).view(PaperArray)

    def upload(self, host):
        return super().upload(host).view(PaperArray)

    def pinned(self, shape, dtype):
        return np.zeros(shape, dtype)

    def fetch(self, array, host):
        host[COUNTS:USED][:2] = 1, CELLS
        host[USED] = 7
        host[SHARE:][:2] = 1, CELLS // RANKS

    def wait(self, mark):
        pass


class Memory:
    """The memory of ranks which are all this one; counts how often all must ask."""

    asked = 0

    def addresses(self, array):
        self.asked += 1
        return [array.data.ptr] * RANKS


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture(params=[[1, 1, 1], [1, 0, 2]], ids=["all", "one without bodies"])
def share(request, monkeypatch, memory):
    """Return rank 1's share."""
    barrier = SimpleNamespace(argument=np.zeros(1, BARRIER))
    monkeypatch.setattr(peer_rows, "PeerBarrier", lambda *arguments: barrier)
    expansion = Expansion(3, 32, 1e-3, double=False, pairs="single")
    tree = DeviceTree(TreeOnPaper(), expansion, 1e-4, 1.0)
    return tree.share(memory, Partition.weighted(NUMBER, request.param), 1)


def force(share, columns=5, potentials=False):
    """Let the ranks find a force; return the sums at this rank's bodies."""
    own = share.peers.own
    share.collect(np.ones((own.stop - own.start, columns)).view(PaperArray))
    share.add_up(potentials)
    return share.gather(potentials)


@pytest.mark.parametrize("potentials", [False, True])
def test_kernels_get_the_arguments_that_they_declare(share, potentials):
    own = share.peers.own
    sums = force(share, potentials=potentials)
    assert sums.shape == (own.stop - own.start, 1 if potentials else 3)
    assert share.work(8).shape == (8,)
    launches = share.backend.launches
    assert launches.index("push_rows") < launches.index("find_keys")
    assert launches.index("make_cells") < launches.index("take_share")
    assert launches.index("take_share") < launches.index("find_sources")
    assert "unsort" not in launches
    after = launches[launches.index("barrier") :]
    assert after[:2] == (["barrier", "gather_sums"] if len(sums) else ["barrier", "count_work"])


def test_a_force_is_found_again_until_there_is_memory_for_it(share):
    force(share)
    launches = share.backend.launches
    assert launches.count("take_share") > 2  # there was none for cells, and for lists
    assert launches.count("push_rows") == launches.count("barrier") == 1  # as on other ranks
    force(share)
    assert launches.count("barrier") == 2


def test_memory_and_launches_are_for_the_cells_of_the_share(share):
    force(share)
    assert share.taken.sum() < share.most.sum()
    assert share.taken[1] >= CELLS // RANKS
    assert share.memory.own == share.taken.sum()
    assert share.memory.numbers["most_taken"][0].tolist() == share.taken.tolist()
    assert len(share.taken) == LEVELS + 1


def test_ranks_ask_once_for_each_array(share, memory):
    for _ in range(3):
        force(share)
    assert memory.asked == 2  # rows and sums


def test_accelerations_that_are_not_known_are_one(share):
    force(share, columns=4)
    assert (share.rows[share.peers.own] == 1).all()
    assert not share._known
