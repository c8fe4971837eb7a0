"""A watched transport counts exactly what it carries; time is that between its marks."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.bodies import make_backend
from support.ranks import transport_of

from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.watched import Watch, WatchedNumbers, WatchedTransport

SHARES = ([1.0, 1.0, 1.0, 1.0], [3.0, 1.0, 2.0, 5.0], [0.0, 1.0, 2.0, 0.0])


@pytest.fixture
def backend(backend_name, communicator):
    """A backend of each kind; ranks take the GPUs in turn."""
    return make_backend(backend_name, local_rank=communicator.local_rank)


@pytest.fixture
def watched(backend, communicator):
    """The fastest transport, watched."""
    return WatchedTransport(transport_of(backend, communicator), Watch(backend), communicator.rank)


class Steps:
    """A clock that goes on by one with every mark."""

    now = 0

    def mark(self):
        self.now += 1
        return self.now

    def elapsed(self, start, end):
        return float(end - start)


class Nothing:
    """A transport that carries nothing; each of its calls takes ten seconds of a clock."""

    name, warning = "nothing", "take care"

    def __init__(self, clock):
        self.clock = clock

    def work(self, *arguments):
        self.clock.now += 10
        return self

    allgather = reduce_scatter = send_receive = begin = maximum = finish = work


def test_time_is_that_between_the_marks():
    clock = Steps()
    watch = Watch(clock)
    transport = WatchedTransport(Nothing(clock), watch, 0)
    assert (transport.name, transport.warning, transport.recordable) == (
        "nothing",
        "take care",
        False,
    )
    rows = np.zeros((4, 3))
    transport.allgather(rows, Partition.equal(4, 2))
    assert watch.seconds() == 11
    assert (watch.traffic.messages, watch.traffic.bytes) == (1, 2 * 24)  # not its own rows
    messages = transport.begin([(1, rows[:2])], [(1, rows[2:])])
    clock.now += 1000  # computation beside the messages
    messages.finish()
    assert watch.seconds() == 33
    transport.send_receive([], [])
    transport.maximum(rows)
    assert watch.seconds() == 55
    transport.reduce_scatter(rows, rows[:2], Partition.equal(4, 2))
    assert watch.seconds() == 66
    # its own rows, of the other rank
    assert (watch.traffic.messages, watch.traffic.bytes) == (3, 2 * 24 + 48 + 48)
    watch.restart()
    assert (watch.seconds(), watch.traffic.exchanges, watch.traffic.bytes) == (0, 0, 0)


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
def test_a_gathered_array_counts_the_rows_of_the_others(communicator, backend, watched, weights):
    size, rank = communicator.size, communicator.rank
    partition = Partition.weighted(11, weights[:size] if any(weights[:size]) else [1.0])
    own = partition.share(rank)
    host = np.full((11, 3), -1.0)
    host[own] = np.arange(33.0).reshape(11, 3)[own]
    array = backend.upload(host)
    AllgatherExchange(watched, partition, rank).collect(array)
    assert np.array_equal(backend.download(array), np.arange(33.0).reshape(11, 3))
    traffic = watched.watch.traffic
    alone = partition.size == 1
    assert traffic.bytes == (0 if alone else (11 - (own.stop - own.start)) * 24)
    others = sum(bool(count) for other, count in enumerate(partition.counts) if other != rank)
    assert traffic.messages == (0 if alone else others)
    assert traffic.exchanges == (0 if alone else 1)


@pytest.mark.mpi(min_size=2)
def test_a_ring_counts_the_block_that_comes_in(communicator, backend, watched):
    ring = RingExchange(
        watched, Partition.equal(communicator.size * 4, communicator.size), communicator.rank
    )
    outgoing, incoming = backend.upload(np.full(5, communicator.rank, "f8")), backend.zeros(5, "f8")
    ring.begin(outgoing, incoming).finish()
    assert (backend.download(incoming) == (communicator.rank - 1) % communicator.size).all()
    traffic = watched.watch.traffic
    assert (traffic.exchanges, traffic.messages, traffic.bytes) == (1, 1, 40)
    assert len(watched.watch.marks) == 2  # beginning and end, not what is computed between them
    assert watched.watch.seconds() > 0


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("periodic", [False, True])
def test_halos_count_a_plane_from_each_neighbour(communicator, backend, watched, periodic):
    size, rank = communicator.size, communicator.rank
    partition = Partition.equal(4 * size, size)
    halo = HaloExchange(watched, partition, communicator, periodic)
    planes = np.zeros((6, 5, 7), "f4")
    planes[1:-1] = np.arange(4 * rank, 4 * rank + 4)[:, None, None]
    array = backend.upload(planes)
    halo.fill(array)
    array = backend.download(array)
    below, above = periodic or rank > 0, periodic or rank < size - 1
    if below:
        assert (array[0] == (4 * rank - 1) % (4 * size)).all()
    if above:
        assert (array[-1] == (4 * rank + 4) % (4 * size)).all()
    traffic = watched.watch.traffic
    assert (traffic.exchanges, traffic.messages, traffic.bytes) == (
        1,
        below + above,
        (below + above) * 5 * 7 * 4,
    )


@pytest.mark.mpi
def test_numbers_that_all_agree_on_are_counted(communicator, backend, watched):
    halo = HaloExchange(
        watched, Partition.equal(communicator.size, communicator.size), communicator, periodic=False
    )
    halo.communicator = WatchedNumbers(halo.communicator, watched.watch, ("maximum",))
    assert halo.largest(float(communicator.rank)) == communicator.size - 1
    flag = backend.upload(np.array([communicator.rank], "i4"))
    halo.maximum(flag)
    assert backend.download(flag)[0] == communicator.size - 1
    assert watched.watch.traffic.reductions == (0 if communicator.size == 1 else 2)
    assert watched.watch.traffic.exchanges == 0


def test_calls_of_a_tree_are_counted_by_their_names(backend):
    ranks = SimpleNamespace(size=2, gather=lambda value: [value, value], barrier=lambda: "waited")
    watch = Watch(backend)
    numbers = WatchedNumbers(ranks, watch, ("gather",))
    assert numbers.gather(3) == [3, 3]
    assert numbers.barrier() == "waited"
    assert numbers.size == 2
    assert (watch.traffic.reductions, len(watch.marks)) == (1, 1)


def test_the_transport_that_carries_lets_go_of_memory(backend):
    released = []
    carrier = SimpleNamespace(name="a", warning="", release=lambda: released.append("carrier"))
    WatchedTransport(carrier, Watch(backend), 0).release()
    assert released == ["carrier"]
