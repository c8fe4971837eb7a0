"""Memory of peers' GPUs and the barrier between these, as far as hosts see them."""

from types import SimpleNamespace

import numpy as np
import pytest

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
