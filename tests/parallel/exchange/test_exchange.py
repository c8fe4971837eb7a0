"""Every rank's rows on every rank, and what carries them."""

from contextlib import contextmanager

import numpy as np
import pytest
from support.ranks import same_bits
from support.transports import LONG, SHARES, GpuStandIn, neighbours, rows_of

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.parallel.exchange.ring import RingExchange
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.host import HostTransport

# ---- Over the host -------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
@pytest.mark.parametrize("number", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize(("shape", "dtype"), [((3,), "f8"), ((), "i4"), ((2, 2), "f4")])
def test_every_rank_gets_all_rows_and_keeps_its_own(communicator, weights, number, shape, dtype):
    partition = Partition.weighted(number, SHARES[weights](communicator.size))
    exchange = AllgatherExchange(
        HostTransport(CpuBackend(1), communicator), partition, communicator.rank
    )
    whole = rows_of(number, shape, dtype)
    for turn in (1, 2):  # the second time over what the first left
        array = np.full_like(whole, -7)
        array[exchange.own] = turn * whole[exchange.own]
        exchange.collect(array)
        assert same_bits(array, (turn * whole).astype(dtype))


def test_one_rank_alone_has_nothing_to_exchange():
    exchange = AllgatherExchange(None, Partition.equal(5, 1), 0)  # no transport to ask
    array = rows_of(5, (3,), "f8")
    exchange.collect(array)
    assert exchange.alone
    assert exchange.own == slice(0, 5)
    assert same_bits(array, rows_of(5, (3,), "f8"))


@pytest.mark.mpi(min_size=2)
def test_the_backend_is_told_which_rows_are_valid_and_lends_the_array_once(communicator):
    asked = []

    class Lender(CpuBackend):
        def on_host(self, array, own):
            asked.append((array, own))
            return super().on_host(array, own)

    partition = Partition.equal(9, communicator.size)
    exchange = AllgatherExchange(
        HostTransport(Lender(1), communicator), partition, communicator.rank
    )
    array = np.zeros((9, 3))
    exchange.collect(array)
    assert [(lent is array, own) for lent, own in asked] == [
        (True, partition.share(communicator.rank))
    ]


# ---- Messages ------------------------------------------------------------------------------------


class Staging(CpuBackend):
    """A backend whose arrays the host does not see: rows are copied down and up."""

    @contextmanager
    def to_host(self, rows):
        yield rows.copy()

    @contextmanager
    def from_host(self, rows):
        staged = np.full_like(rows, -1)
        yield staged
        rows[:] = staged


@pytest.mark.mpi
@pytest.mark.parametrize("make_backend", [CpuBackend, Staging])
@pytest.mark.parametrize("weights", SHARES)
@pytest.mark.parametrize("number", [0, 1, 2, 7, 1000])
def test_every_rank_gets_its_rows_of_the_sum_of_all(communicator, make_backend, weights, number):
    partition = Partition.weighted(number, SHARES[weights](communicator.size))
    exchange = AllgatherExchange(
        HostTransport(make_backend(1), communicator), partition, communicator.rank
    )
    array = 10.0**communicator.rank * rows_of(number, (3, 2), "f8")
    kept, out = array.copy(), np.full((partition.counts[communicator.rank], 6), -7.0)
    found = exchange.reduce_scatter(array, out)
    expected = sum(10.0**rank for rank in range(communicator.size)) * rows_of(number, (3, 2), "f8")
    assert same_bits(found.reshape(-1, 3, 2), expected[exchange.own])
    assert same_bits(array, kept)
    assert found is (array if exchange.alone else out)


@pytest.mark.mpi(min_size=3)
def test_rows_for_several_ranks_are_brought_to_the_host_once(communicator):
    brought = []

    class Noted(Staging):
        def to_host(self, rows):
            brought.append(rows)
            return super().to_host(rows)

    own = communicator.rank
    rows = np.full((5, 3), float(own))
    others = [rank for rank in range(communicator.size) if rank != own]
    received = [np.zeros((5, 3)) for _ in others]
    transport = HostTransport(Noted(1), communicator)
    sends = [(rank, rows) for rank in others]
    transport.send_receive(sends, list(zip(others, received, strict=True)))
    np.testing.assert_array_equal(np.array(received)[:, 0, 0], others)
    assert len(brought) == 1


@pytest.mark.mpi
@pytest.mark.parametrize("make_backend", [CpuBackend, Staging])
@pytest.mark.parametrize("in_turn", [True, False], ids=["in turn", "the last first"])
def test_messages_that_are_on_their_way_together_arrive_when_each_is_finished(
    communicator, make_backend, in_turn
):
    transport = HostTransport(make_backend(1), communicator)
    after, before = neighbours(communicator)
    sent = [np.full((LONG, 3), 10.0 * communicator.rank + k) for k in range(3)]
    received = [np.zeros((LONG, 3)) for _ in range(3)]
    begun = [
        transport.begin([(after, out)], [(before, into)])
        for out, into in zip(sent, received, strict=True)
    ]
    work = sum(float(np.sqrt(k)) for k in range(1000))  # the device goes on meanwhile
    if make_backend is Staging:
        assert not any(into.any() for into in received)
    for k in range(3) if in_turn else reversed(range(3)):
        begun[k].finish()
        assert (received[k] == 10.0 * before + k).all()
    assert work > 0


@pytest.mark.mpi
def test_messages_between_two_ranks_arrive_in_the_order_of_the_lists(communicator):
    transport = HostTransport(CpuBackend(1), communicator)
    after, before = neighbours(communicator)
    sent = [np.array([communicator.rank, k], "i4") for k in range(4)]
    received = [np.zeros(2, "i4") for _ in range(4)]
    transport.send_receive([(after, out) for out in sent], [(before, into) for into in received])
    assert [into.tolist() for into in received] == [[before, k] for k in range(4)]


@pytest.mark.mpi
def test_a_ring_hands_each_block_to_every_rank(communicator):
    exchange = RingExchange(
        HostTransport(CpuBackend(1), communicator), Partition.equal(9, communicator.size), 0
    )
    exchange.next, exchange.previous = neighbours(communicator)
    here, there, seen = np.full(5, communicator.rank), np.zeros(5, int), [communicator.rank]
    for _ in range(communicator.size - 1):
        exchange.begin(here, there).finish()
        here, there = there, here
        seen.append(int(here[0]))
    assert seen == [(communicator.rank - k) % communicator.size for k in range(communicator.size)]


@pytest.mark.parametrize(("rank", "after", "before"), [(0, 1, 3), (1, 2, 0), (3, 0, 2)])
def test_neighbours_in_a_ring(rank, after, before):
    transport = GpuStandIn()
    transport.recordable = True
    exchange = RingExchange(transport, Partition((0, 3, 3, 8, 9)), rank)
    assert (exchange.next, exchange.previous, exchange.alone, exchange.recordable) == (
        after,
        before,
        False,
        True,
    )
    assert RingExchange(None, Partition.equal(9, 1), 0).alone
