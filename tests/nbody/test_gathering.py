"""Rows of all ranks that devices gather for the root."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.nbody.gathering import Gathering
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.host import HostTransport

NUMBER = 23

WEIGHTS = {
    "equal": lambda size: [1.0] * size,
    "uneven": lambda size: [rank + 0.5 for rank in range(size)],
    "all on the last": lambda size: [0.0] * (size - 1) + [1.0],
}


def gathering_of(communicator, weights, exchange=AllgatherExchange):
    """Return a gathering of some bodies."""
    backend = make_backend("cpu")
    partition = Partition.weighted(NUMBER, WEIGHTS[weights](communicator.size))
    transport = HostTransport(backend, communicator)
    return Gathering(backend, exchange(transport, partition, communicator.rank))


@pytest.mark.mpi
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("exchange", [AllgatherExchange, RingExchange])
def test_the_root_gets_the_rows_as_they_were(communicator, weights, exchange):
    gathering = gathering_of(communicator, weights, exchange)
    rows = np.arange(3.0 * NUMBER).reshape(NUMBER, 3)
    own = [rows[gathering.exchange.own].copy(), -rows[gathering.exchange.own]]
    begun = [gathering.begin(array) for array in own]
    for array in own:
        array += 100
    for copy, expected in zip(begun, (rows, -rows), strict=True):
        wanted = expected if communicator.is_root else expected[:0]
        np.testing.assert_array_equal(copy.rows(), wanted)


@pytest.mark.mpi
def test_only_devices_of_one_host_gather(communicator):
    gathering = gathering_of(communicator, "equal")
    assert not gathering.is_fast
    gathering.exchange.transport = SimpleNamespace(peers="all")
    assert gathering.is_fast == (communicator.size > 1)
