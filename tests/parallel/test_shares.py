"""Lists with an entry a rank, shares of the rows, and the words for them."""

from types import SimpleNamespace

import pytest

from hybrid_nbody.errors import InputError
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.shares import (
    RunSetup,
    check_lists,
    is_measured,
    placement_lines,
    plural,
    shares,
)


def compute_of(backend="auto", balance="auto"):
    return SimpleNamespace(backend=backend, balance=balance)


@pytest.mark.parametrize(
    ("compute", "size", "message"),
    [
        (
            compute_of(backend=("gpu", "cpu")),
            3,
            "compute.backend: 2 backends for 3 ranks; give one backend per rank",
        ),
        (
            compute_of(backend=("cpu",)),
            2,
            "compute.backend: 1 backend for 2 ranks; give one backend per rank",
        ),
        (
            compute_of(balance=(1.0, 2.0)),
            1,
            "compute.balance: 2 weights for 1 rank; give one weight per rank",
        ),
    ],
)
def test_a_list_of_another_length_is_refused(compute, size, message):
    with pytest.raises(InputError) as caught:
        check_lists(compute, size)
    assert str(caught.value) == message
    assert caught.value.shared


def test_words_and_lists_of_the_right_length_are_taken():
    check_lists(compute_of(), 3)
    check_lists(compute_of("hybrid", "measured"), 3)
    check_lists(compute_of(("gpu", "cpu", "cpu"), (1.0, 0.0, 2.0)), 3)


@pytest.mark.parametrize(
    ("balance", "kinds", "counts"),
    [
        ("auto", ("cpu", "cpu"), (5, 5)),
        ("auto", ("gpu", "gpu", "gpu"), (4, 3, 3)),
        ("auto", ("gpu", "cpu"), (9, 1)),
        ("auto", ("hybrid", "gpu"), (9, 1)),
        ("measured", ("cpu", "cpu"), (9, 1)),
        ("equal", ("gpu", "cpu"), (5, 5)),
        ((4.0, 1.0), ("gpu", "cpu"), (8, 2)),
    ],
)
def test_shares_follow_the_speed_as_asked_for_or_where_devices_differ(balance, kinds, counts):
    """The second rank is a thousand times slower; it keeps one of what every rank needs one of."""
    asked = []

    def measure():
        asked.append(1)
        return [1000.0, 1.0]

    compute, placement = compute_of(balance=balance), SimpleNamespace(backends=kinds)
    assert shares(compute, 10, placement, measure, least=1).counts == counts
    assert len(asked) == is_measured(compute, placement) == (counts == (9, 1))


def test_bodies_need_no_least_share():
    placement = SimpleNamespace(backends=("gpu", "cpu"))
    assert shares(compute_of(), 10, placement, lambda: [1000.0, 1.0]).counts == (10, 0)


def test_the_log_says_who_computes_what():
    placement = SimpleNamespace(
        reason="backend gpu, cpu, as asked for",
        table=[(0, "node1", "GPU 0, H200"), (1, "node1", "CPU, 3 threads")],
        backends=("gpu", "cpu"),
        shared_gpus=True,
        oversubscribed="8 threads take turns",
    )
    transport = SimpleNamespace(name="host", warning="NCCL is gone")
    exchange = SimpleNamespace(
        name="allgather", alone=False, transport=transport, partition=Partition((0, 9, 10))
    )
    lines = placement_lines(
        compute_of(),
        RunSetup(None, placement, exchange),
        lambda number: plural(number, "row", "rows"),
    )
    assert lines == [
        "backend gpu, cpu, as asked for; exchange allgather over host; shares by speed",
        "  rank 0    node1                GPU 0, H200                  9 rows",
        "  rank 1    node1                CPU, 3 threads               1 row",
        "warning: ranks share a GPU; start one rank per GPU for full speed",
        "warning: 8 threads take turns",
        "warning: NCCL is gone",
    ]
