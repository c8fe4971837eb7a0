"""Shares: contiguous, complete, and as fair as whole items can be."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid_nbody.parallel.partition import Partition

WEIGHTS = st.lists(
    st.floats(0, 1e308) | st.sampled_from([0.0, 5e-324, 1.0, 3.0]), min_size=1, max_size=9
).filter(any)


def exact_shares(total, weights):
    """Return the shares in proportion to the weights, as fractions of items."""
    whole = sum(map(Fraction, weights))
    return [total * Fraction(weight) / whole for weight in weights]


@given(total=st.integers(0, 10**6), weights=WEIGHTS)
@example(total=10, weights=[1e308] * 9)
@example(total=7, weights=[0.0, 5e-324, 0.0])
@example(total=10**6, weights=[1.0, 5e-324])
def test_shares_are_contiguous_complete_and_within_one_item_of_exact(total, weights):
    partition = Partition.weighted(total, weights)
    shares = [partition.share(rank) for rank in range(len(weights))]
    assert (partition.size, partition.total) == (len(weights), total)
    assert [share.start for share in shares] == [0, *(share.stop for share in shares[:-1])]
    assert sum(partition.counts) == total
    for count, share, exact, weight in zip(
        partition.counts, shares, exact_shares(total, weights), weights, strict=True
    ):
        assert count == share.stop - share.start >= 0
        assert abs(count - exact) < 1 + Fraction(total, 2**50)  # the bits of a float
        if weight == 0:
            assert count == 0


@given(total=st.integers(0, 10**6), size=st.integers(1, 40))
def test_equal_shares_differ_by_one_at_the_most_and_the_first_are_the_larger(total, size):
    partition = Partition.equal(total, size)
    counts = list(partition.counts)
    assert sum(counts) == total
    assert counts == sorted(counts, reverse=True)
    assert counts[0] - counts[-1] <= 1
    assert partition.even == (total % size == 0)


def test_more_ranks_than_items_leave_some_without():
    assert Partition.equal(2, 4).counts == (1, 1, 0, 0)
    assert Partition.equal(2, 4).share(3) == slice(2, 2)
    assert Partition.equal(0, 3).counts == (0, 0, 0)


@pytest.mark.parametrize(
    ("weights", "counts"),
    [
        ([1, 2, 1], (25, 50, 25)),
        ([0, 1, 0], (0, 100, 0)),
        ([1, 1, 1], (34, 33, 33)),
        ([2.5, 0, 97.6], (2, 0, 98)),
    ],
)
def test_weights_share_a_hundred_items_by_the_largest_remainder(weights, counts):
    assert Partition.weighted(100, weights).counts == counts


@pytest.mark.parametrize(
    ("total", "weights", "counts"),
    [
        (10, [1000, 1, 1], (8, 1, 1)),
        (10, [1, 1, 0], (4, 5, 1)),
        (3, [9, 0, 1], (1, 1, 1)),
        (4, [1, 1], (2, 2)),
    ],
)
def test_an_item_for_a_rank_that_would_have_none_comes_from_the_largest_share(
    total, weights, counts
):
    assert Partition.weighted(total, weights, least=1).counts == counts


def test_fewer_items_than_ranks_are_left_as_they_are():
    assert Partition.weighted(2, [1, 1, 1], least=1).counts == (1, 1, 0)


@given(
    total=st.integers(0, 10**6),
    weights=st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=9),
    exponent=st.integers(-900, 900),
)
def test_only_proportions_count(total, weights, exponent):
    scaled = [weight * 2.0**exponent for weight in weights]
    assert Partition.weighted(total, scaled) == Partition.weighted(total, weights)
