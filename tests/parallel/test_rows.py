"""Rows to the root slab by slab, from the root to their owners, and between owners."""

import tracemalloc
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ranks import RowsModel, rows_at, same_bits, scattered_shares

from hybrid_nbody.parallel import rows as rows_of_ranks
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.rows import (
    broadcast_array,
    redistribute,
    row_numbers,
    slabs,
)
from hybrid_nbody.simulation.model import Field

ROW = 24  # bytes of a position


def big_field(communicator, weights, rows_each, columns=3, asked=None):
    """Return a field whose rows are made when they are read; `asked` notes which were read."""
    partition = Partition.weighted(rows_each * int(sum(weights)), weights)
    own, shape = partition.share(communicator.rank), (partition.total, columns)

    def host(start, stop):
        if asked is not None:
            asked.append((start, stop))
        first, last = own.start + start, own.start + stop
        return np.arange(first * columns, last * columns, dtype=float).reshape(-1, columns)

    return Field("bodies/position", shape, np.dtype("f8"), "length", "position", own, host)


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["bodies/position", "bodies/mass", "gravity/order"])
@pytest.mark.parametrize("number", [1, 2, 50])
@pytest.mark.parametrize("slab_bytes", [1, ROW, 5 * ROW - 1, 4 << 20])
def test_the_root_gets_all_rows_in_global_order(
    communicator, monkeypatch, name, number, slab_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    weights = [float(rank != 1) for rank in range(communicator.size)]  # the second has none
    field = RowsModel(number, communicator, weights).at(4).fields()[name]
    found = [(start, rows.copy()) for start, rows in slabs(field, communicator)]
    if not communicator.is_root:
        assert found == []
        return
    assert [start for start, _ in found] == [0, *np.cumsum([len(rows) for _, rows in found])[:-1]]
    assert same_bits(np.concatenate([rows for _, rows in found]), rows_at(4, number)[name])
    assert all(rows.nbytes <= max(slab_bytes, field.row_bytes) for _, rows in found)
    whole_slabs = max(1, slab_bytes // field.row_bytes)
    shares = Partition.weighted(number, weights).counts
    assert len(found) == sum(-(-count // whole_slabs) for count in shares)


@pytest.mark.mpi
def test_no_rank_is_asked_for_more_than_a_slab_at_a_time(communicator, monkeypatch):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", 10 * ROW)
    asked = []
    field = big_field(communicator, [1.0] * communicator.size, 35, asked=asked)
    deque(slabs(field, communicator), maxlen=0)
    assert asked == [(0, 10), (10, 20), (20, 30), (30, 35)]


@pytest.mark.mpi(min_size=2)
def test_the_root_holds_one_slab_of_the_others(communicator):
    """A root without rows of its own allocates one slab: neither two, nor all rows."""
    weights = [float(rank > 0) for rank in range(communicator.size)]
    field = big_field(communicator, weights, 5 * rows_of_ranks.SLAB_BYTES // ROW)
    right = []
    communicator.barrier()
    tracemalloc.start()
    try:
        for start, rows in slabs(field, communicator):
            right.append(rows[0, 0] == 3 * start and rows[-1, -1] == 3 * (start + len(rows)) - 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if communicator.is_root:
        assert len(right) >= 5 * (communicator.size - 1) and all(right)
        assert 0.9 * rows_of_ranks.SLAB_BYTES < peak < 1.25 * rows_of_ranks.SLAB_BYTES


@pytest.mark.mpi
def test_a_row_larger_than_a_slab_travels_whole(communicator, monkeypatch):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", 1000)
    field = big_field(communicator, [1.0] * communicator.size, 2, columns=200)
    shapes = [rows.shape for _, rows in slabs(field, communicator)]
    assert shapes == ([(1, 200)] * 2 * communicator.size if communicator.is_root else [])


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 20])
@pytest.mark.parametrize(("shape", "dtype"), [((3,), "f8"), ((), "i8"), ((2, 2), "f4")])
def test_every_rank_is_handed_all_rows(communicator, number, shape, dtype):
    whole = np.random.default_rng(number).integers(0, 1000, (number, *shape)).astype(dtype)
    given = np.asfortranarray(whole).astype("f8") if communicator.is_root else None
    assert same_bits(broadcast_array(given, whole.shape, dtype, communicator), whole)


# ---- Between owners ------------------------------------------------------------------------------


def weights_of(size, case):
    """Return weights of ranks before or after, some of them zero."""
    return {
        "equal": [1.0] * size,
        "rising": [float(rank + 1) for rank in range(size)],
        "all to the last": [float(rank == size - 1) for rank in range(size)],
        "none for the second": [float(rank != 1) for rank in range(size)],
    }[case]


CASES = ["equal", "rising", "all to the last", "none for the second"]


@pytest.mark.mpi
@pytest.mark.parametrize("before", CASES)
@pytest.mark.parametrize("after", CASES)
@pytest.mark.parametrize("number", [1, 2, 50])
def test_rows_move_from_any_shares_to_any_others(communicator, before, after, number):
    model = RowsModel(number, communicator, weights_of(communicator.size, before)).at(3)
    wanted = Partition.weighted(number, weights_of(communicator.size, after)).share(
        communicator.rank
    )
    for name, field in model.fields().items():
        assert same_bits(
            redistribute(field, wanted, communicator), rows_at(3, number)[name][wanted]
        )


@pytest.mark.mpi
def test_ranks_may_ask_for_the_same_rows(communicator):
    field = RowsModel(20, communicator).at(1).fields()["bodies/position"]
    wanted = slice(communicator.rank, 20)
    assert same_bits(
        redistribute(field, wanted, communicator), rows_at(1, 20)["bodies/position"][wanted]
    )


@pytest.mark.mpi
def test_only_rows_that_a_rank_owns_are_asked_of_it(communicator):
    """A field whose rows are huge is not copied as a whole."""
    model, asked = RowsModel(20, communicator), []
    field = model.fields()["bodies/mass"]
    host = field.host
    object.__setattr__(
        field, "host", lambda start, stop: (asked.append((start, stop)), host(start, stop))[1]
    )
    redistribute(field, model.own, communicator)
    assert asked == [(0, field.rows)]


# ---- Permuted rows -------------------------------------------------------------------------------


def permuted(number, communicator, seed=0):
    """Return a model whose rows are shared out at random, in random order."""
    index = scattered_shares(number, communicator.size, seed)[communicator.rank]
    return RowsModel(number, communicator, index=index).at(4)


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 50, 301])
@pytest.mark.parametrize("slab_bytes", [1, 5 * ROW - 1, 4 << 20])
def test_permuted_rows_reach_the_root_in_global_order(
    communicator, monkeypatch, number, slab_bytes
):
    monkeypatch.setattr(rows_of_ranks, "SLAB_BYTES", slab_bytes)
    for name, field in permuted(number, communicator).fields().items():
        found = [(start, rows.copy()) for start, rows in slabs(field, communicator)]
        if not communicator.is_root:
            assert found == []
            continue
        step = max(1, slab_bytes // field.row_bytes)
        assert [start for start, _ in found] == list(range(0, number, step))
        assert same_bits(np.concatenate([rows for _, rows in found]), rows_at(4, number)[name])


@pytest.mark.mpi
def test_consecutive_and_permuted_shares_may_stand_side_by_side(communicator):
    """The last rank holds the last 7 rows as a slice, and the others the rest in any order."""
    last = communicator.size - 1
    index = slice(20, 27)
    if last == 0:
        index = np.random.default_rng(0).permutation(27)
    elif communicator.rank < last:
        index = scattered_shares(20, last)[communicator.rank]
    field = RowsModel(27, communicator, index=index).at(1).fields()["bodies/velocity"]
    found = [rows.copy() for _, rows in slabs(field, communicator)]
    if communicator.is_root:
        assert same_bits(np.concatenate(found), rows_at(1, 27)["bodies/velocity"])


@pytest.mark.mpi
@pytest.mark.parametrize("index", [[0, 1, 1, 2], [0, 2], []])
def test_too_few_or_too_many_rows_are_refused(communicator, index):
    mine = np.array(index if communicator.is_root else [], np.int64)
    field = RowsModel(3, communicator, index=mine).fields()["bodies/mass"]
    with pytest.raises(ValueError, match="bodies/mass: the ranks hold too few or too many rows"):
        list(slabs(field, communicator))


@pytest.mark.mpi(min_size=2)
def test_the_root_holds_two_slabs_of_permuted_rows(communicator):
    size, slab = communicator.size, rows_of_ranks.SLAB_BYTES
    rows_each = 5 * slab // ROW
    weights = [float(rank > 0) for rank in range(size)]
    field = big_field(communicator, weights, rows_each)
    numbers = row_numbers(field.index)[::-1].copy()
    field = Field(**vars(field) | {"index": numbers})
    communicator.barrier()
    tracemalloc.start()
    try:
        for _ in slabs(field, communicator):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if communicator.is_root:
        offsets = slab // ROW * 8
        assert 2 * slab < peak < 2.25 * slab + offsets


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 50])
@pytest.mark.parametrize("after", ["permuted", "consecutive", "overlapping"])
@pytest.mark.parametrize("before", ["permuted", "consecutive"])
def test_rows_move_between_any_indices(communicator, before, after, number):
    consecutive = Partition.equal(number, communicator.size).share(communicator.rank)
    wanted = {
        "permuted": scattered_shares(number, communicator.size, 1)[communicator.rank],
        "consecutive": consecutive,
        "overlapping": np.random.default_rng(communicator.rank).permutation(number)[::2],
    }[after]
    index = scattered_shares(number, communicator.size)[communicator.rank]
    model = RowsModel(number, communicator, index=index if before == "permuted" else None).at(3)
    for name, field in model.fields().items():
        assert same_bits(
            redistribute(field, wanted, communicator), rows_at(3, number)[name][wanted]
        )


@pytest.mark.mpi
@settings(deadline=None, max_examples=30, derandomize=True)
@given(data=st.data())
def test_any_permutation_and_any_cuts(communicator, data):
    """Every rank draws the same, as the draws are derandomized."""
    number = data.draw(st.integers(1, 40))
    order = np.array(data.draw(st.permutations(range(number))), np.int64)
    least = st.integers(0, number)
    cuts = sorted(
        data.draw(st.lists(least, min_size=communicator.size - 1, max_size=communicator.size - 1))
    )
    index = np.split(order, cuts)[communicator.rank]
    field = RowsModel(number, communicator, index=index).at(2).fields()["bodies/position"]
    right = rows_at(2, number)["bodies/position"]
    found = [rows.copy() for _, rows in slabs(field, communicator)]
    if communicator.is_root:
        assert same_bits(np.concatenate(found), right)
    share = Partition.equal(number, communicator.size).share(communicator.rank)
    assert same_bits(redistribute(field, share, communicator), right[share])
