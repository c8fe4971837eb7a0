"""Every rank's rows on every rank, and what carries them."""

import numpy as np
import pytest
from support.ranks import on_threads, same_bits

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.exchange import AllgatherExchange, HostTransport, NcclTransport, choose_transport
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
    return (np.arange(number * int(np.prod(shape, dtype=int))) + 1).reshape(number, *shape).astype(dtype)


# ---- Over the host ---------------------------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("weights", SHARES)
@pytest.mark.parametrize("number", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize(("shape", "dtype"), [((3,), "f8"), ((), "i4"), ((2, 2), "f4")])
def test_every_rank_gets_all_rows_and_keeps_its_own(communicator, weights, number, shape, dtype):
    partition = Partition.weighted(number, SHARES[weights](communicator.size))
    exchange = AllgatherExchange(HostTransport(CpuBackend(1), communicator), partition, communicator.rank)
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
    exchange = AllgatherExchange(HostTransport(Lender(1), communicator), partition, communicator.rank)
    array = np.zeros((9, 3))
    exchange.collect(array)
    assert [(lent is array, own) for lent, own in asked] == [(True, partition.share(communicator.rank))]


# ---- Over NCCL, as far as it goes without GPUs -----------------------------------------------------------------------


class GpuStandIn:
    """A backend that says what it offers and notes what is asked of its NCCL."""

    description = "GPU 0, stand-in"

    def __init__(self, transports=("nccl", "host")):
        self.transports = transports
        self.calls = []

    def nccl_identifier(self):
        return "the root's identifier"

    def nccl_group(self, size, identifier, rank):
        self.calls.append(("join", size, identifier, rank))
        return self

    def all_gather(self, array, start, size):
        self.calls.append(("all_gather", start, size))

    def broadcast_each(self, array, pieces):
        self.calls.append(("broadcast_each", pieces))


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


# ---- Choosing --------------------------------------------------------------------------------------------------------


def choose(asked, offers, gpus_shared=False):
    """Return the transport's name on ranks whose backends make `offers`."""
    transports = on_threads(
        len(offers), lambda rank: choose_transport(asked, GpuStandIn(offers[rank.rank]), rank, gpus_shared)
    )
    assert len({transport.name for transport in transports}) == 1
    return transports[0].name


BOTH, HOST = ("nccl", "host"), ("host",)


@pytest.mark.parametrize(
    ("asked", "offers", "gpus_shared", "chosen"),
    [
        ("auto", [BOTH, BOTH], False, "nccl"),
        ("auto", [BOTH, BOTH], True, "host"),
        ("auto", [BOTH, HOST], False, "host"),
        ("auto", [BOTH], False, "host"),  # alone: nothing to carry
        ("host", [BOTH, BOTH], False, "host"),
        ("nccl", [BOTH, BOTH], False, "nccl"),
    ],
)
def test_auto_takes_the_fastest_that_every_rank_can_use(asked, offers, gpus_shared, chosen):
    assert choose(asked, offers, gpus_shared) == chosen


@pytest.mark.parametrize(
    ("offers", "gpus_shared", "reason"),
    [
        ([BOTH, BOTH], True, "two ranks share a GPU"),
        ([BOTH, HOST], False, "not every rank's backend offers it (GPU 0, stand-in)"),
        ([HOST], False, "not every rank's backend offers it (GPU 0, stand-in)"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(offers, gpus_shared, reason):
    with pytest.raises(InputError) as caught:
        choose("nccl", offers, gpus_shared)
    assert str(caught.value) == f"compute.transport: nccl cannot be used: {reason}; use auto or host"


@pytest.mark.mpi
def test_one_rank_without_it_refuses_it_on_all(communicator):
    last = communicator.rank == communicator.size - 1
    with pytest.raises(InputError, match="not every rank's backend offers it") as caught:
        choose_transport("nccl", GpuStandIn(HOST if last else BOTH), communicator, gpus_shared=False)
    assert caught.value.shared
