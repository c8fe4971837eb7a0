"""Sums whose bits depend on the terms alone, not on how ranks share or order them.

Every term is cut into two integers on a grid fixed by the largest term; integers add exactly in any
order (the pre-rounding of Demmel & Nguyen, "Fast Reproducible Floating-Point Summation", ARITH
2013).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.parallel.communicator import Communicator

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Pieces = Callable[[int, int], Floats]
"""Makes terms: ``pieces(first, last)`` returns the terms first … last - 1."""

TERM_BITS = 62
"""Bits of an int64 that a sum may use."""

LARGEST_EXPONENT = 1000
"""Scales are powers of two within the range of float64."""

BLOCK = 1 << 10
"""Terms that are cut at a time: they stay in the cache, and take little memory."""

MADE_AT_ONCE = 1 << 13
"""Terms up to which all are made at once."""

THRESHOLDS = 2048
"""Values at which one round of the search for a median counts."""


def reproducible_sum(terms: Floats, number: int, communicator: Communicator) -> Floats:
    """Return the sum over axis 0 of the `terms` of all ranks, the same bits for any shares.

    Parameters
    ----------
    terms : (n, …) array of float64
        This rank's finite terms; n may be 0.
    number : int
        Terms of all ranks.
    communicator : Communicator
        Every rank calls together.

    Returns
    -------
    (…) array of float64
        NaN if any term is not finite. Before its final rounding, each sum is within ``4 * number**3
        * 2**-124`` of the largest term, if that is above 1e-280.
    """
    terms = np.asarray(terms, dtype=np.float64)
    return sum_of_pieces(_rows_of(terms), len(terms), number, communicator)


def sum_of_pieces(pieces: Pieces, own: int, number: int, communicator: Communicator) -> Floats:
    """Return the sum of terms that are made piece by piece, twice if there are many.

    All of them at once may take more memory than the data they are computed from. The result and
    the other parameters are those of `reproducible_sum`.

    Parameters
    ----------
    pieces : callable
        Makes this rank's terms.
    own : int
        How many there are.
    """
    if own <= MADE_AT_ONCE:
        pieces = _rows_of(pieces(0, own))
    blocks = [(first, min(first + BLOCK, own)) for first in range(0, max(own, 1), BLOCK)]
    bits = bits_of(number)
    most = (np.abs(pieces(*block)).max(axis=0, initial=0.0) for block in blocks)
    own_largest = reduce(np.maximum, most)
    # how MPI compares NaN is not defined
    largest = communicator.maximum(np.where(np.isnan(own_largest), np.inf, own_largest))
    if not np.isfinite(largest).all():
        return np.full(largest.shape, np.nan)
    exponent = np.minimum(bits - np.frexp(largest)[1], LARGEST_EXPONENT)
    parts: Integers = np.zeros((2, *largest.shape), np.int64)
    for block in blocks:
        parts += _integer_parts(pieces(*block), exponent, bits)
    high_sum, low_sum = communicator.sum(parts).astype(np.float64)
    result: Floats = np.ldexp(high_sum, -exponent) + np.ldexp(low_sum, -exponent - bits)
    return result


def _rows_of(terms: Floats) -> Pieces:
    """Return the function that slices an array of terms."""
    return lambda first, last: terms[first:last]


def _integer_parts(terms: Floats, exponent: NDArray[Any], bits: int) -> Integers:
    """Return the sums of the high and of the low integers of some terms."""
    scaled = terms * np.ldexp(1.0, exponent)
    high = np.rint(scaled)
    low = np.rint((scaled - high) * 2.0**bits)
    return np.array([np.add.reduce(part.astype(np.int64)) for part in (high, low)])


def bits_of(number: int) -> int:
    """Return how many bits a term may have so that `number` of them cannot overflow."""
    return TERM_BITS - max(number, 1).bit_length()


def reproducible_quantiles(
    values: Floats,
    weights: Floats,
    percents: Sequence[int],
    number: int,
    communicator: Communicator,
) -> list[float]:
    """Return weighted quantiles of the values of all ranks, the same for any shares.

    Each is the smallest value at which the sum of weights reaches a part of their total.

    Nothing is gathered: each round counts the weights up to `THRESHOLDS` bit patterns, whose order
    is that of the non-negative numbers that they stand for, and narrows the search for each
    quantile to one interval between them. Weights are counted on an integer grid, hence exactly.

    Parameters
    ----------
    values : (n,) array of float64
        This rank's non-negative values.
    weights : (n,) array of float64
        Their non-negative weights; not all zero over the ranks.
    percents : sequence of int
        The parts of the total; 50 is the median.
    number : int
        Values of all ranks.
    communicator : Communicator
        Every rank calls together.
    """
    most = [values.max(initial=0.0), weights.max(initial=0.0)]
    largest, heaviest = communicator.maximum(np.array(most))
    order = np.argsort(values)
    exponent = bits_of(number) - np.frexp(heaviest)[1]
    grid = np.rint(np.ldexp(weights[order], exponent)).astype(np.int64)
    reached = np.concatenate([[0], grid.cumsum()])
    if communicator.size == 1 and np.isfinite(largest):
        wanted = parts_of(int(reached[-1]), percents)
        found = values[order[reached[1:].searchsorted(wanted)]]
        return list(map(float, np.abs(found)))
    patterns = np.abs(values[order]).view(np.int64)
    high = np.full(len(percents), largest.view(np.int64))
    return _narrowed(patterns, reached, percents, high, communicator)


def parts_of(total: int, percents: Sequence[int]) -> list[int]:
    """Return parts of a total, rounded up."""
    return [-(-total * percent // 100) for percent in percents]


def _narrowed(
    patterns: Integers,
    reached: Integers,
    percents: Sequence[int],
    high: Integers,
    communicator: Communicator,
) -> list[float]:
    """Return quantiles from the sums of weights that patterns in order reach on each rank.

    Parameters
    ----------
    patterns : (n,) array of int64
        Of the values of this rank, in order.
    reached : (n + 1,) array of int64
        Sums of the weights before each, and of all.
    percents : sequence of int
    high : (q,) array of int64
        A pattern that is not below any, for each quantile.
    communicator : Communicator
        Every rank calls together.
    """
    quantiles = np.arange(len(percents))
    low = np.full(len(percents), -1)
    wanted = None
    while (high - low > 1).any():
        step = -(-(high - low) // THRESHOLDS)
        thresholds = low[:, None] + step[:, None] * np.arange(THRESHOLDS + 1)
        thresholds = np.minimum(thresholds, high[:, None])
        counts = communicator.sum(reached[np.searchsorted(patterns, thresholds, side="right")])
        wanted = wanted or parts_of(int(counts[0, -1]), percents)
        places = [row[1:].searchsorted(part) for row, part in zip(counts, wanted, strict=True)]
        low = thresholds[quantiles, places]
        high = thresholds[quantiles, np.array(places) + 1]
    return list(map(float, high.view(np.float64)))
