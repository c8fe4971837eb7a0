"""Rows to the root slab by slab, and from the root to their owners."""

import tracemalloc

import numpy as np
import pytest
from support.ranks import RowsModel, rows_at, same_bits

from hybrid_nbody.parallel import gather
from hybrid_nbody.parallel.gather import slabs, write_slabs
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.scatter import broadcast_array, scatter_rows
from hybrid_nbody.simulation.model import Field

ROW = 24  # bytes of a position


def big_field(communicator, weights, rows_each, columns=3, asked=None):
    """Return a field of some rows on every rank of weight 1, made when they are asked for; `asked` notes which."""
    partition = Partition.weighted(rows_each * int(sum(weights)), weights)
    own, shape = partition.share(communicator.rank), (partition.total, columns)

    def host(start, stop):
        if asked is not None:
            asked.append((start, stop))
        first, last = own.start + start, own.start + stop
        return np.arange(first * columns, last * columns, dtype=float).reshape(-1, columns)

    return Field(
        "bodies/position",
        shape,
        np.dtype("f8"),
        "length",
        "position",
        own.start,
        own.stop - own.start,
        host,
    )


@pytest.mark.mpi
@pytest.mark.parametrize("name", ["bodies/position", "bodies/mass", "gravity/order"])
@pytest.mark.parametrize("number", [1, 2, 50])
@pytest.mark.parametrize("slab_bytes", [1, ROW, 5 * ROW - 1, 4 << 20])
def test_the_root_gets_all_rows_in_global_order(
    communicator, monkeypatch, name, number, slab_bytes
):
    monkeypatch.setattr(gather, "SLAB_BYTES", slab_bytes)
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
    monkeypatch.setattr(gather, "SLAB_BYTES", 10 * ROW)
    asked = []
    field = big_field(communicator, [1.0] * communicator.size, 35, asked=asked)
    write_slabs(field, communicator, lambda start, rows: None)
    assert asked == [(0, 10), (10, 20), (20, 30), (30, 35)]


@pytest.mark.mpi(min_size=2)
def test_the_root_holds_one_slab_of_the_others(communicator):
    """What Python and NumPy allocate on a root without rows of its own: one slab, not two, and not all of them."""
    weights = [float(rank > 0) for rank in range(communicator.size)]
    field = big_field(communicator, weights, 5 * gather.SLAB_BYTES // ROW)
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
        assert 0.9 * gather.SLAB_BYTES < peak < 1.25 * gather.SLAB_BYTES


@pytest.mark.mpi
def test_a_row_larger_than_a_slab_travels_whole(communicator, monkeypatch):
    monkeypatch.setattr(gather, "SLAB_BYTES", 1000)
    field = big_field(communicator, [1.0] * communicator.size, 2, columns=200)
    shapes = [rows.shape for _, rows in slabs(field, communicator)]
    assert shapes == ([(1, 200)] * 2 * communicator.size if communicator.is_root else [])


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 20])
@pytest.mark.parametrize(("shape", "dtype"), [((3,), "f8"), ((), "i8"), ((2, 2), "f4")])
def test_each_rank_is_handed_its_own_rows(communicator, number, shape, dtype):
    partition = Partition.weighted(number, [rank + 0.5 for rank in range(communicator.size)])
    whole = np.random.default_rng(number).integers(0, 1000, (number, *shape)).astype(dtype)
    given = np.asfortranarray(whole).astype("f8") if communicator.is_root else None
    own = scatter_rows(given, whole.shape, dtype, partition, communicator)
    assert same_bits(own, whole[partition.share(communicator.rank)])
    assert same_bits(broadcast_array(given, whole.shape, dtype, communicator), whole)
