"""Sums and medians over ranks are exact, and have the same bits for any shares and order."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.ranks import on_threads, same_bits, this_rank

from hybrid_nbody.parallel import sums
from hybrid_nbody.parallel.sums import (
    BLOCK,
    MadeInPieces,
    reproducible_quantiles,
    reproducible_sum,
    sum_of,
)

TERMS = st.lists(st.floats(-1e300, 1e300) | st.floats(-10, 10), max_size=60)
CUTS = st.lists(st.integers(0, 60), max_size=4)


def pieces(rows, cuts):
    """Return `rows` cut into contiguous shares, some of them perhaps empty."""
    return np.split(rows, sorted(min(cut, len(rows)) for cut in cuts))


def sum_over(shares, number):
    """Return the sum over ranks that own `shares`, which must be the same on each."""
    first, *others = on_threads(
        len(shares), lambda rank: reproducible_sum(shares[rank.rank], number, rank)
    )
    assert all(same_bits(first, other) for other in others)
    return first


def median_over(shares, number):
    """Return the median over ranks that own `shares`, which must be the same on each."""
    found = on_threads(
        len(shares),
        lambda rank: reproducible_quantiles(*shares[rank.rank].T, (90, 50, 1), number, rank),
    )
    assert len(set(map(tuple, found))) == 1
    ninety, half, first = found[0]
    assert first <= half <= ninety
    return half


def allowed_error(terms):
    """Return the error bound of a sum: two roundings, and what the docstring states."""
    largest, number = max(map(abs, terms), default=0.0), len(terms)
    return 3 * 2.0**-53 * abs(math.fsum(terms)) + 4 * number**3 * 2.0**-124 * max(largest, 1e-280)


# ---- Sums ----------------------------------------------------------------------------------------


@given(terms=TERMS, cuts=CUTS, seed=st.integers(0, 2**32))
@example(terms=[1e300, 1.0, -1e300], cuts=[1, 1], seed=0)
@example(terms=[5e-324, -5e-324, 2e-310], cuts=[2], seed=1)
@example(terms=[-0.0, -0.0], cuts=[0], seed=1)
@example(terms=[], cuts=[0, 0], seed=1)
def test_any_shares_in_any_order_give_the_same_bits_near_the_exact_sum(terms, cuts, seed):
    rows = np.array(terms)
    total = sum_over([rows], len(rows))
    assert total.shape == () and total.dtype == np.float64
    assert abs(float(total) - math.fsum(terms)) <= allowed_error(terms)
    shuffled = np.random.default_rng(seed).permutation(rows)
    assert same_bits(sum_over(pieces(shuffled, cuts), len(rows)), total)


@pytest.mark.parametrize("number", [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
@pytest.mark.parametrize("at_once", [0, 1 << 20])
def test_terms_made_piece_by_piece_have_the_sum_of_all_at_once(monkeypatch, number, at_once):
    monkeypatch.setattr(sums, "MADE_AT_ONCE", at_once)
    terms = np.random.default_rng(7).normal(size=(number, 3)) * [1e-20, 1.0, 1e20]
    sizes = []

    def made(first, last):
        sizes.append(last - first)
        return terms[first:last].copy()

    found = sum_of(MadeInPieces(made, number), number, this_rank())
    assert same_bits(found, reproducible_sum(terms, number, this_rank()))
    assert sum(sizes) == number * (1 if at_once or not number else 2)
    assert max(sizes) <= (number if at_once else BLOCK)


def test_the_order_matters_to_a_plain_sum_of_the_same_terms():
    """What the others would not show: these terms have another sum from the other end."""
    terms = np.random.default_rng(1).standard_normal(1000) * np.logspace(-8, 8, 1000)
    assert np.cumsum(terms)[-1] != np.cumsum(terms[::-1])[-1]
    assert sum_over([terms], 1000) == sum_over([terms[::-1]], 1000)
    assert abs(float(sum_over([terms], 1000)) - math.fsum(terms)) <= allowed_error(terms)


def test_each_column_has_a_scale_of_its_own():
    rows = np.random.default_rng(2).standard_normal((500, 2, 3)) * [1e-200, 1.0, 1e200]
    total = sum_over(pieces(rows, [0, 100, 350]), 500)
    assert total.shape == (2, 3)
    for index in np.ndindex(2, 3):
        terms = rows[(slice(None), *index)].tolist()
        assert abs(total[index] - math.fsum(terms)) <= allowed_error(terms)


def test_what_cancels_leaves_the_small_term():
    terms = np.array([1e8, 1e-8, -1e8])
    assert sum_over([terms], 3) == pytest.approx(1e-8, rel=1e-12, abs=0)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 1023, 1024, 2**20])
def test_as_many_of_the_largest_terms_as_there_may_be_do_not_overflow(number):
    largest = np.nextafter(2.0, 0)
    for sign in (1, -1):
        total = sum_over([np.full(number, sign * largest)], number)
        assert total == pytest.approx(sign * number * largest, rel=3e-16, abs=0)


# ---- Medians -------------------------------------------------------------------------------------


def exact_quantile(values, weights, percent):
    """Return a weighted quantile in exact arithmetic."""
    reached = Fraction(0)
    wanted = sum(map(Fraction, weights)) * percent / 100
    for value, weight in sorted(zip(values, weights, strict=True)):
        reached += Fraction(weight)
        if reached >= wanted:
            return value
    raise AssertionError("no weights")


def exact_median(values, weights):
    """Return the weighted median in exact arithmetic."""
    return exact_quantile(values, weights, 50)


VALUES = (
    st.floats(0, 1e308)
    | st.floats(0, 2)
    | st.sampled_from([0.0, 5e-324, 1.0, 1e308, 1.7976931348623157e308])
)
PAIRS = st.lists(
    st.tuples(VALUES, st.integers(0, 1000).map(float)), min_size=1, max_size=60
).filter(lambda pairs: any(weight for _, weight in pairs))


@given(pairs=PAIRS, cuts=CUTS, seed=st.integers(0, 2**32))
@example(pairs=[(3.0, 1.0), (1.0, 1.0)], cuts=[1], seed=0)
@example(pairs=[(0.0, 0.0), (7.0, 2.0), (8.0, 0.0)], cuts=[1, 1], seed=0)
@example(pairs=[(0.0, 1.0)], cuts=[0, 1], seed=0)
def test_any_shares_in_any_order_give_the_exact_median(pairs, cuts, seed):
    rows = np.array(pairs)
    expected = exact_median(*rows.T.tolist())
    assert median_over([rows], len(rows)) == expected
    assert (
        median_over(pieces(np.random.default_rng(seed).permutation(rows), cuts), len(rows))
        == expected
    )


@pytest.mark.parametrize(
    ("values", "weights", "median"),
    [
        ([1, 2, 3, 4], [1, 1, 1, 1], 2),  # exactly half at 2
        ([1, 2, 3, 4], [1, 1, 1.5, 0.5], 2),
        ([1, 2, 3, 4], [1, 0.75, 1.75, 0.5], 3),  # a little less than half at 2
        ([1, 1, 1, 9], [1, 0, 0, 1], 1),
        ([5, 5, 5], [1, 2, 3], 5),
        ([-0.0, 1], [3, 1], 0),
    ],
)
def test_ties_go_to_the_smaller_value(values, weights, median):
    rows = np.array([values, weights], dtype=float).T
    for cuts in ([], [2], [0, 1, 3]):
        assert median_over(pieces(rows, cuts), len(rows)) == median


def test_a_search_of_several_rounds_tells_neighbouring_numbers_apart(monkeypatch):
    values = [1.0]
    for _ in range(6):
        values.append(math.nextafter(values[-1], 2))
    rows = np.array([values, np.ones(7)]).T
    for bits in (1, 3, 11):
        monkeypatch.setattr(sums, "INTERVAL_BITS", bits)
        monkeypatch.setattr(sums, "INTERVALS", 1 << bits)
        assert median_over(pieces(rows, [3]), 7) == values[3]


# ---- On real ranks -------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("number", [1, 2, 1000])
def test_real_ranks_find_what_one_finds(communicator, alone, number):
    random = np.random.default_rng(number)
    rows = random.standard_normal((number, 3)) * 10.0 ** random.integers(-150, 150, (number, 1))
    values, weights = random.exponential(1.0, number), random.integers(1, 9, number).astype(float)
    total = reproducible_sum(rows, number, alone)
    for _ in range(5):
        shares = pieces(
            random.permutation(number), random.integers(0, number + 1, communicator.size - 1)
        )
        own = shares[communicator.rank]
        assert same_bits(reproducible_sum(rows[own], number, communicator), total)
        parts = (10, 50, 75)
        found = reproducible_quantiles(values[own], weights[own], parts, number, communicator)
        assert found == [exact_quantile(values, weights, part) for part in parts]
    all_on_the_last = np.arange(number if communicator.rank == communicator.size - 1 else 0)
    assert same_bits(reproducible_sum(rows[all_on_the_last], number, communicator), total)
