"""Memory of peers' GPUs and the barrier between these, as far as hosts see them."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.ranks import on_threads
from support.transports import CudaError, GpuStandIn

from hybrid_nbody.parallel.transport import peer
from hybrid_nbody.parallel.transport.peer_barrier import PEER_SECONDS, STATE, PeerBarrier
from hybrid_nbody.parallel.waiting import LostRankError

ADDRESS = 7


class BackendStandIn:
    """A GPU whose memory is not there, and whose host memory is."""

    def __init__(self):
        self.host_wait = SimpleNamespace(alarms=[])

    def zeros(self, shape, dtype):
        return SimpleNamespace(data=SimpleNamespace(ptr=ADDRESS))

    def upload(self, host):
        return self.zeros(host.shape, host.dtype)

    def pinned(self, shape, dtype):
        return np.ones(shape, dtype)

    def synchronize(self):
        pass


def make_barrier(backend):
    """Return the barrier of the second of three ranks."""
    memory = SimpleNamespace(addresses=lambda _: [1, 2, 3])
    return PeerBarrier(backend, memory, 1, 3, "the exchange of this test")


def test_a_rank_that_does_not_answer_is_named():
    """The word that a kernel writes is checked where the host has waited for the device."""
    backend = BackendStandIn()
    barrier = make_barrier(backend)
    (alarm,) = backend.host_wait.alarms
    alarm.check()
    argument = barrier.argument[0]
    assert argument["missing_rank"] == alarm.word.ctypes.data
    assert argument["limit"] == PEER_SECONDS * 1e9
    alarm.word[0] = 1 + 2
    with pytest.raises(LostRankError, match="rank 2 did not answer in the exchange of this test"):
        alarm.check()


def test_the_argument_of_kernels_says_which_rank_this_is_and_where_its_state_lies():
    barrier = make_barrier(BackendStandIn())
    (argument,) = barrier.argument
    assert (argument["rank"], argument["ranks"]) == (1, 3)
    assert (argument["signals"], argument["state"]) == (ADDRESS, ADDRESS)
    assert barrier.counter == ADDRESS + 4 * STATE.index("counter")


class MemoryStandIn(peer.PeerMemory):
    """Arrays that other ranks find, but for what `failure` raises on the second rank."""

    def __init__(self, backend, communicator):
        self.communicator = communicator

    failure = None
    fails_in_map = False
    closed = ()

    def fail(self, in_map):
        if self.failure and self.communicator.rank == 1 and in_map == self.fails_in_map:
            raise self.failure

    def location(self, array):
        self.fail(in_map=False)
        return b"handle", 0

    def map(self, array, locations):
        self.fail(in_map=True)
        return [8] * len(locations)

    def close(self):
        self.closed.append(self.communicator.rank)


def peer_memories(monkeypatch, failure, fails_in_map=False):
    """Return what two ranks see of each other's memory."""
    monkeypatch.setattr(peer, "PeerMemory", MemoryStandIn)
    monkeypatch.setattr(MemoryStandIn, "failure", failure)
    monkeypatch.setattr(MemoryStandIn, "fails_in_map", fails_in_map)
    monkeypatch.setattr(MemoryStandIn, "closed", [])
    return on_threads(2, lambda rank: peer.peer_memory(GpuStandIn(), rank))


def test_ranks_that_reach_each_other_have_the_memory_of_all(monkeypatch):
    assert all(peer_memories(monkeypatch, None))


@pytest.mark.parametrize("failure", [OSError("no driver"), CudaError("not supported")], ids=repr)
def test_no_rank_has_it_where_the_system_refuses_it_to_one(monkeypatch, failure):
    assert peer_memories(monkeypatch, failure) == [None, None]


def test_what_one_rank_has_opened_is_closed_where_another_cannot_open_it(monkeypatch):
    assert peer_memories(monkeypatch, OSError("no"), fails_in_map=True) == [None, None]
    assert sorted(MemoryStandIn.closed) == [0, 1]


def test_an_error_of_another_kind_is_not_taken_for_a_refusal():
    def action():
        raise TypeError("a mistake of this program")

    with pytest.raises(TypeError, match="a mistake of this program"):
        peer._attempt(action, (OSError, CudaError))
