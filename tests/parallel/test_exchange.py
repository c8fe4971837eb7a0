"""Every rank's rows on every rank, and what carries them."""

from contextlib import contextmanager

import numpy as np
import pytest
from support.ranks import on_threads, same_bits
from support.transports import GpuStandIn

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.parallel.exchange import (
    AllgatherExchange,
    CudaMpiTransport,
    HostTransport,
    NcclTransport,
    RingExchange,
)
from hybrid_nbody.parallel.partition import Partition

SHARES = {
    "equal": lambda size: [1.0] * size,
    "uneven": lambda size: [rank + 0.5 for rank in range(size)],
    "all on the last": lambda size: [0.0] * (size - 1) + [1.0],
    "all on the first": lambda size: [1.0] + [0.0] * (size - 1),
    "every other": lambda size: [float(rank % 2 == 0) for rank in range(size)],
}


def rows_of(number, shape, dtype):
    """Return rows that are all different."""
    return (
        (np.arange(number * int(np.prod(shape, dtype=int))) + 1)
        .reshape(number, *shape)
        .astype(dtype)
    )


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
    """A backend whose arrays the host does not see: rows are copied down to be sent, and up when they have come."""

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
    kept, room = array.copy(), np.full((partition.counts[communicator.rank], 6), -7.0)
    found = exchange.add_up(array, room)
    expected = sum(10.0**rank for rank in range(communicator.size)) * rows_of(number, (3, 2), "f8")
    assert same_bits(found.reshape(-1, 3, 2), expected[exchange.own])
    assert same_bits(array, kept)
    assert found is (array if exchange.alone else room)


LONG = 1 << 18
"""Numbers in a message that no MPI library sends before the other rank asks for it."""


def neighbours(communicator):
    """Return the ranks after and before this one in a ring."""
    return (communicator.rank + 1) % communicator.size, (communicator.rank - 1) % communicator.size


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
    transport.trade([(after, out) for out in sent], [(before, into) for into in received])
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


# ---- MPI on the arrays of GPUs, with arrays that show no more than their address -----------------


class Device:
    """Rows that only say where they are, as those of a GPU do; the address is the host's."""

    def __init__(self, rows):
        self.rows, self.size = rows, rows.size
        interface = rows.__array_interface__
        self.__cuda_array_interface__ = {
            key: interface[key] for key in ("shape", "typestr", "data")
        } | {"version": 3}

    def __len__(self):
        return len(self.rows)


class Waiting:
    """A backend that counts how often somebody waits for its device."""

    def __init__(self):
        self.waits = 0

    def synchronize(self):
        self.waits += 1


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
def test_cuda_aware_mpi_gathers_what_the_device_has_done(communicator, weights):
    backend, partition = Waiting(), Partition.weighted(100, SHARES[weights](communicator.size))
    whole, own = rows_of(100, (3,), "f8"), partition.share(communicator.rank)
    array = np.zeros_like(whole)
    array[own] = whole[own]
    CudaMpiTransport(backend, communicator).allgather(Device(array), partition)
    assert same_bits(array, whole)
    assert backend.waits == 1


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
def test_cuda_aware_mpi_adds_up_what_the_device_has_done(communicator, weights):
    backend, partition = Waiting(), Partition.weighted(100, SHARES[weights](communicator.size))
    array, own = rows_of(100, (3,), "f8"), partition.share(communicator.rank)
    room = np.zeros((own.stop - own.start, 3))
    CudaMpiTransport(backend, communicator).add_up(Device(array), Device(room), partition)
    assert same_bits(room, communicator.size * array[own])
    assert backend.waits == 1


@pytest.mark.mpi
def test_cuda_aware_mpi_carries_messages_and_finds_the_largest(communicator):
    backend = Waiting()
    transport = CudaMpiTransport(backend, communicator)
    after, before = neighbours(communicator)
    into, largest = (
        np.zeros((LONG, 3), "f4"),
        np.array([communicator.rank, -communicator.rank], "i4"),
    )
    messages = transport.begin(
        [(after, Device(np.full_like(into, communicator.rank)))], [(before, Device(into))]
    )
    assert backend.waits == 1
    messages.finish()
    assert (into == before).all()
    transport.maximum(Device(largest))
    assert largest.tolist() == [communicator.size - 1, 0]
    assert not transport.recordable


# ---- Over NCCL, as far as it goes without GPUs ---------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1, 1], [("all_gather", 0, 72), ("all_gather", 72, 72)]),
        ([2, 1], [("broadcast_each", [(0, 96), (96, 48)])] * 2),
        ([0, 1], [("broadcast_each", [(0, 0), (0, 144)])] * 2),
    ],
)
def test_nccl_is_given_the_bytes_of_each_rank(weights, expected):
    def one(rank):
        backend = GpuStandIn()
        NcclTransport(backend, rank).allgather(np.zeros((6, 3)), Partition.weighted(6, weights))
        return backend.calls

    joined = [("join", 2, "the root's identifier", rank) for rank in range(2)]
    assert on_threads(2, one) == [[join, call] for join, call in zip(joined, expected, strict=True)]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([1, 1], ("reduce_scatter", (6, 3), (3, 3))), ([2, 1], ("reduce_each", [12, 6], [0, 12]))],
)
def test_nccl_is_told_whose_sums_are_whose(weights, expected):
    def one(rank):
        partition, backend = Partition.weighted(6, weights), GpuStandIn()
        room = np.zeros((partition.counts[rank.rank], 3))
        NcclTransport(backend, rank).add_up(np.zeros((6, 3)), room, partition)
        return backend.calls[1]

    assert on_threads(2, one) == [expected] * 2


def test_messages_over_nccl_go_beside_what_is_computed_and_others_among_it():
    def one(rank):
        transport = NcclTransport(GpuStandIn(), rank)
        transport.begin([(1, "rows")], [(0, "room")]).finish()
        transport.trade([], [(0, "room")])
        return transport.nccl.calls[1:]

    beside, among = ("begin", [(1, "rows")], [(0, "room")]), ("trade", [], [(0, "room")])
    assert on_threads(2, one) == [[beside, "finish", among]] * 2
    assert NcclTransport.recordable
    assert not HostTransport.recordable
