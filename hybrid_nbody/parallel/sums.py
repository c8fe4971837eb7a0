"""Sums whose bits depend on the terms alone, not on how ranks share or order them.

Every term is cut into two integers on a grid fixed by the largest term; integers add exactly in any
order (the pre-rounding of Demmel & Nguyen, "Fast Reproducible Floating-Point Summation", ARITH
2013).
"""

from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any, Protocol

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

INTERVAL_BITS = 11
"""Bits of a pattern that one round of the search for quantiles finds."""

INTERVALS = 1 << INTERVAL_BITS
"""Intervals in which one round of the search for quantiles counts."""


class Terms(Protocol):
    """This rank's terms of one or more sums, wherever they are made."""

    def largest(self) -> Floats:
        """Return the largest magnitude of the terms of each sum; not finite if a term is not."""

    def parts(self, exponent: NDArray[Any], bits: int) -> Integers:
        """Return the sums of the high and of the low integers of the terms, (2, …).

        A term times ``2**exponent`` is rounded to the high one, and what is left times ``2**bits``
        to the low one.
        """


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
    return sum_of(MadeInPieces(_rows_of(terms), len(terms)), number, communicator)


def sum_of(terms: Terms, number: int, communicator: Communicator) -> Floats:
    """Return the sums of terms, which are made twice; the rest is as in `reproducible_sum`."""
    bits = bits_of(number)
    own_largest = terms.largest()
    # how MPI compares NaN is not defined
    largest = communicator.maximum(np.where(np.isnan(own_largest), np.inf, own_largest))
    if not np.isfinite(largest).all():
        return np.full(largest.shape, np.nan)
    exponent = np.minimum(bits - np.frexp(largest)[1], LARGEST_EXPONENT)
    high_sum, low_sum = communicator.sum(terms.parts(exponent, bits)).astype(np.float64)
    result: Floats = np.ldexp(high_sum, -exponent) + np.ldexp(low_sum, -exponent - bits)
    return result


class MadeInPieces:
    """Terms that are made piece by piece: all at once may take more memory than the data.

    Parameters
    ----------
    pieces : callable
        Makes this rank's terms.
    own : int
        How many there are.
    """

    def __init__(self, pieces: Pieces, own: int) -> None:
        self._pieces = pieces if own > MADE_AT_ONCE else _rows_of(pieces(0, own))
        self._blocks = [(first, min(first + BLOCK, own)) for first in range(0, max(own, 1), BLOCK)]

    def largest(self) -> Floats:
        """See `Terms`."""
        blocks = (np.abs(self._pieces(*block)) for block in self._blocks)
        found: Floats = reduce(np.maximum, (block.max(axis=0, initial=0.0) for block in blocks))
        return found

    def parts(self, exponent: NDArray[Any], bits: int) -> Integers:
        """See `Terms`."""
        total: Integers = np.zeros((2, *exponent.shape), np.int64)
        for block in self._blocks:
            total += _integer_parts(self._pieces(*block), exponent, bits)
        return total


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


class Weights(Protocol):
    """Values of this rank that are not negative, and the weight of each, wherever they are."""

    def most(self) -> Floats:
        """Return the largest value and the largest weight; zeros where there are none."""

    def between(self, low: Integers, high: Integers, shift: Integers, exponent: int) -> Integers:
        """Return the weights of the values in intervals of bit patterns.

        Parameters
        ----------
        low, high, shift : (q,) array of int64
            Value k counts for quantile i in interval ``(pattern - low[i] - 1) >> shift[i]``, where
            its pattern is above ``low[i]`` and not above ``high[i]``.
        exponent : int
            Weights are counted times two to its power, rounded.

        Returns
        -------
        (q, INTERVALS) array of int64
        """


def reproducible_quantiles(
    values: Floats,
    weights: Floats,
    percents: Sequence[int],
    number: int,
    communicator: Communicator,
) -> list[float]:
    """Return weighted quantiles of the values of all ranks, the same for any shares.

    Each is the smallest value at which the sum of weights reaches a part of their total.

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
    own = SortedWeights(values, weights)
    largest, heaviest = own.most()
    if communicator.size == 1 and np.isfinite(largest):
        return own.quantiles(percents, exponent_of(heaviest, number))
    return quantiles_of(own, percents, number, communicator)


def quantiles_of(
    own: Weights, percents: Sequence[int], number: int, communicator: Communicator
) -> list[float]:
    """Return quantiles of weights on any device; parameters as in `reproducible_quantiles`.

    Nothing is sorted or gathered: each round counts the weights in `INTERVALS` intervals of bit
    patterns, whose order is that of the non-negative numbers that they stand for, and narrows the
    search for each quantile to one of them. Weights are counted on an integer grid, hence exactly.
    """
    largest, heaviest = communicator.maximum(own.most())
    exponent = exponent_of(heaviest, number)
    low = np.full(len(percents), -1)
    high = np.full(len(percents), largest.view(np.int64))
    below = np.zeros(len(percents), np.int64)
    quantiles = np.arange(len(percents))
    wanted = None
    while (high - low > 1).any():
        shift = interval_bits(high - low)
        counts = communicator.sum(own.between(low, high, shift, exponent))
        reached = below[:, None] + counts.cumsum(axis=1)
        wanted = wanted or parts_of(int(reached[0, -1]), percents)
        pairs = zip(reached, wanted, strict=True)
        places = np.array([row.searchsorted(part) for row, part in pairs])
        below = np.where(places, reached[quantiles, np.maximum(places, 1) - 1], below)
        low = low + (places << shift)
        high = np.minimum(low + (1 << shift), high)
    return list(map(float, high.view(np.float64)))


def exponent_of(heaviest: float, number: int) -> int:
    """Return the exponent of the grid on which `number` weights are counted."""
    return int(bits_of(number) - np.frexp(heaviest)[1])


def interval_bits(lengths: Integers) -> Integers:
    """Return the shift, for each range of patterns, that cuts it into `INTERVALS` or fewer."""
    return np.array([(int(length) - 1 >> INTERVAL_BITS).bit_length() for length in lengths])


class SortedWeights:
    """Values and weights in NumPy's arrays; see `Weights` and `reproducible_quantiles`."""

    def __init__(self, values: Floats, weights: Floats) -> None:
        order = np.argsort(values)
        self._values = np.abs(values[order])  # no -0.0
        self._weights = weights[order]
        self._reached = cache(self._sums_of_weights)  # every round asks for them

    def most(self) -> Floats:
        """See `Weights`."""
        return np.array([self._values.max(initial=0.0), self._weights.max(initial=0.0)])

    def quantiles(self, percents: Sequence[int], exponent: int) -> list[float]:
        """Return the quantiles of these values alone."""
        reached = self._reached(exponent)
        wanted = parts_of(int(reached[-1]), percents)
        return list(map(float, self._values[reached[1:].searchsorted(wanted)]))

    def between(self, low: Integers, high: Integers, shift: Integers, exponent: int) -> Integers:
        """See `Weights`."""
        starts = low[:, None] + (np.arange(INTERVALS) << shift[:, None])
        edges = np.column_stack([np.minimum(starts, high[:, None]), high])
        places = np.searchsorted(self._values.view(np.int64), edges, side="right")
        counts: Integers = np.diff(self._reached(exponent)[places], axis=1)
        return counts

    def _sums_of_weights(self, exponent: int) -> Integers:
        """Return the sum of the weights before each value, and of all."""
        grid = np.rint(np.ldexp(self._weights, exponent)).astype(np.int64)
        return np.concatenate([[0], grid.cumsum()])


def parts_of(total: int, percents: Sequence[int]) -> list[int]:
    """Return parts of a total, rounded up."""
    return [-(-total * percent // 100) for percent in percents]
