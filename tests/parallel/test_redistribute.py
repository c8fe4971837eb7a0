"""Rows that change hands: every rank gets what it asks for, whoever had it."""

import pytest
from support.ranks import RowsModel, rows_at, same_bits

from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.redistribute import moved_rows

pytestmark = pytest.mark.mpi


def weights_of(size, case):
    """Return weights of ranks before or after, some of them zero."""
    return {
        "equal": [1.0] * size,
        "rising": [float(rank + 1) for rank in range(size)],
        "all to the last": [float(rank == size - 1) for rank in range(size)],
        "none for the second": [float(rank != 1) for rank in range(size)],
    }[case]


CASES = ["equal", "rising", "all to the last", "none for the second"]


@pytest.mark.parametrize("before", CASES)
@pytest.mark.parametrize("after", CASES)
@pytest.mark.parametrize("number", [1, 2, 50])
def test_rows_move_from_any_shares_to_any_others(communicator, before, after, number):
    model = RowsModel(number, communicator, weights_of(communicator.size, before)).at(3)
    wanted = Partition.weighted(number, weights_of(communicator.size, after)).share(
        communicator.rank
    )
    for name, field in model.fields().items():
        assert same_bits(moved_rows(field, wanted, communicator), rows_at(3, number)[name][wanted])


def test_ranks_may_ask_for_the_same_rows(communicator):
    field = RowsModel(20, communicator).at(1).fields()["bodies/position"]
    wanted = slice(communicator.rank, 20)
    assert same_bits(
        moved_rows(field, wanted, communicator), rows_at(1, 20)["bodies/position"][wanted]
    )


def test_only_rows_that_a_rank_owns_are_asked_of_it(communicator):
    """A field whose rows are huge is not copied as a whole."""
    model, asked = RowsModel(20, communicator), []
    field = model.fields()["bodies/mass"]
    host = field.host
    object.__setattr__(
        field, "host", lambda start, stop: (asked.append((start, stop)), host(start, stop))[1]
    )
    moved_rows(field, model.own, communicator)
    assert asked == [(0, field.rows)]
