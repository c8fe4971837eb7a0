"""NCCL, as far as it goes without GPUs: what it is asked, on which stream, and how it fails."""

import pytest
from support.ranks import on_threads
from support.transports import DeviceArray, GpuStandIn

from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport import nccl
from hybrid_nbody.parallel.transport.nccl import NcclGroup, NcclTransport

BASE = 1000
"""Address of the arrays."""


def calls_of(action, ranks=2):
    """Return what NCCL is asked by ``action(transport, rank)`` on each rank, after the start."""

    def one(rank):
        backend = GpuStandIn()
        transport = NcclTransport(backend, rank)
        assert backend.calls[0] == ("join", ranks, "the root's identifier", rank.rank)
        assert backend.calls[1] == ("allReduce", 0, 0, 1, "int", "max", "stream")
        del backend.calls[:]
        action(transport, rank.rank)
        return backend.calls

    return on_threads(ranks, one)


def grouped(*calls):
    return [("groupStart",), *calls, ("groupEnd",)]


def broadcast(root, start, size):
    return ("broadcast", BASE + start, BASE + start, size, "char", root, "stream")


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (
            [1, 1],
            [
                [("allGather", BASE, BASE, 72, "char", "stream")],
                [("allGather", BASE + 72, BASE, 72, "char", "stream")],
            ],
        ),
        ([2, 1], [grouped(broadcast(0, 0, 96), broadcast(1, 96, 48))] * 2),
        ([0, 1], [grouped(broadcast(1, 0, 144))] * 2),
    ],
)
def test_nccl_is_given_the_bytes_of_each_rank(weights, expected):
    array = DeviceArray((6, 3), address=BASE)
    partition = Partition.weighted(6, weights)
    assert calls_of(lambda transport, rank: transport.allgather(array, partition)) == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1, 1], [("reduceScatter", BASE, 7, 9, "double", "sum", "stream")]),
        (
            [2, 1],
            grouped(
                ("reduce", BASE, 7, 12, "double", "sum", 0, "stream"),
                ("reduce", BASE + 96, 7, 6, "double", "sum", 1, "stream"),
            ),
        ),
        ([0, 1], grouped(("reduce", BASE, 7, 18, "double", "sum", 1, "stream"))),
    ],
)
def test_nccl_is_told_whose_sums_are_whose(weights, expected):
    array, partition = DeviceArray((6, 3), address=BASE), Partition.weighted(6, weights)

    def add_up(transport, rank):
        out = DeviceArray((partition.counts[rank], 3), address=7)
        transport.reduce_scatter(array, out, partition)

    assert calls_of(add_up) == [expected] * 2


SENDS = [(1, DeviceArray((2,), address=3))]
RECEIVES = [(0, DeviceArray((4,), address=5))]


def messages_on(stream):
    """Return the calls that carry `SENDS` and `RECEIVES` on a stream."""
    return grouped(("send", 3, 16, "char", 1, stream), ("recv", 5, 32, "char", 0, stream))


def test_messages_go_beside_computation_until_they_are_finished():
    def twice(transport, rank):
        for _ in range(2):
            transport.begin(SENDS, RECEIVES).finish()

    event = "event of stream"
    once = [
        ("record", "stream"),
        ("wait", "side", event),
        *messages_on("side"),
        ("record", "side"),
        ("wait", "stream", event),
    ]
    assert calls_of(twice) == [once * 2] * 2


def test_messages_sent_and_received_at_once_are_queued_among_computation():
    carried = calls_of(lambda transport, rank: transport.send_receive(SENDS, RECEIVES))
    assert carried == [messages_on("stream")] * 2
    assert NcclTransport.recordable


# ---- Waiting -------------------------------------------------------------------------------------


@pytest.fixture
def group():
    backend = GpuStandIn()
    return NcclGroup(backend.nccl, backend.nccl, backend.stream, backend.message_stream())


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda group: group.send_receive(SENDS, RECEIVES, "the halo exchange"),
            ("the halo exchange over NCCL", 0, 75.0),
        ),
        (
            lambda group: group.maximum(DeviceArray((1,), "i4")),
            ("a maximum over ranks over NCCL", None, 75.0),
        ),
    ],
)
def test_a_long_wait_names_the_ranks_of_the_latest_operation(group, monkeypatch, action, expected):
    warned = []
    monkeypatch.setattr(nccl, "warn_of_wait", lambda *wait: warned.append(wait))
    action(group)
    group.report_wait(75.0)
    assert warned == [expected]


def test_a_failure_that_nccl_knows_of_ends_all_ranks(group, monkeypatch):
    ended = []
    monkeypatch.setattr(nccl, "abort", lambda error, code: ended.append((str(error), code)))
    monkeypatch.setattr(nccl, "warn_of_wait", lambda *wait: None)
    group.nccl.failure = RuntimeError("NCCL_ERROR_REMOTE_ERROR")
    group.send_receive(SENDS, RECEIVES, "the halo exchange")
    group.report_wait(75.0)
    text = "another rank, or the way to it, failed in the halo exchange over NCCL: "
    assert ended == [(f"{text}NCCL_ERROR_REMOTE_ERROR", 1)]


def test_a_transport_watches_over_the_waits_of_its_host(monkeypatch):
    watched = []
    monkeypatch.setattr(nccl, "Watchdog", lambda wait, report: watched.append((wait, report)))

    def one(rank):
        backend = GpuStandIn()
        return backend.host_wait, NcclTransport(backend, rank).group.report_wait

    assert sorted(map(str, on_threads(2, one))) == sorted(map(str, watched))
