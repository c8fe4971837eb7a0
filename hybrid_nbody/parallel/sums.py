"""Sums whose bits depend on the terms alone, not on how ranks share or order them.

Every term is cut into two integers on a grid fixed by the largest term; integers add exactly in any
order (the pre-rounding of Demmel & Nguyen, "Fast Reproducible Floating-Point Summation", ARITH
2013).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.parallel.communicator import Communicator

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TERM_BITS = 62
"""Bits of an int64 that a sum may use."""

LARGEST_EXPONENT = 1000
"""Scales are powers of two within the range of float64."""

BLOCK = 1 << 10
"""Terms that are cut at a time: they stay in the cache, and take little memory."""

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
    bits = bits_of(number)
    largest = communicator.maximum(np.abs(terms).max(axis=0, initial=0.0))
    if not np.isfinite(largest).all():
        return np.full(largest.shape, np.nan)
    exponent = np.minimum(bits - np.frexp(largest)[1], LARGEST_EXPONENT)
    parts: Integers = np.zeros((2, *terms.shape[1:]), np.int64)
    for start in range(0, len(terms), BLOCK):
        parts += _integer_parts(terms[start : start + BLOCK], exponent, bits)
    high_sum, low_sum = communicator.sum(parts).astype(np.float64)
    result: Floats = np.ldexp(high_sum, -exponent) + np.ldexp(low_sum, -exponent - bits)
    return result


def _integer_parts(terms: Floats, exponent: NDArray[Any], bits: int) -> Integers:
    """Return the sums of the high and of the low integers of some terms."""
    scaled = terms * np.ldexp(1.0, exponent)
    high = np.rint(scaled)
    low = np.rint((scaled - high) * 2.0**bits)
    return np.array([np.add.reduce(part.astype(np.int64)) for part in (high, low)])


def bits_of(number: int) -> int:
    """Return how many bits a term may have so that `number` of them cannot overflow."""
    return TERM_BITS - max(number, 1).bit_length()


def reproducible_median(
    values: Floats, weights: Floats, number: int, communicator: Communicator
) -> float:
    """Return the weighted median of the values of all ranks, the same for any shares.

    It is the smallest value at which the sum of weights reaches half their total.

    Nothing is gathered: each round counts the weights up to `THRESHOLDS` bit patterns, whose order
    is that of the non-negative numbers that they stand for, and narrows the search to one interval
    between them. Weights are counted on an integer grid, hence exactly.

    Parameters
    ----------
    values : (n,) array of float64
        This rank's non-negative values.
    weights : (n,) array of float64
        Their non-negative weights; not all zero over the ranks.
    number : int
        Values of all ranks.
    communicator : Communicator
        Every rank calls together.
    """
    most = [values.max(initial=0.0), weights.max(initial=0.0)]
    largest, heaviest = communicator.maximum(np.array(most))
    order = np.argsort(values)
    patterns = np.abs(values[order]).view(np.int64)
    exponent = bits_of(number) - np.frexp(heaviest)[1]
    grid = np.rint(np.ldexp(weights[order], exponent)).astype(np.int64)
    sums = grid.cumsum()
    if communicator.size == 1 and np.isfinite(largest):
        return _median_of_one_rank(values[order], sums)
    reached = np.concatenate([[0], sums])
    low = -1
    high = int(largest.view(np.int64))
    half = None
    while high - low > 1:
        step = -(-(high - low) // THRESHOLDS)
        thresholds = np.minimum(low + step * np.arange(THRESHOLDS + 1), high)
        counts = communicator.sum(reached[np.searchsorted(patterns, thresholds, side="right")])
        half = (int(counts[-1]) + 1) // 2 if half is None else half
        found = int(np.searchsorted(counts[1:], half))
        low = int(thresholds[found])
        high = int(thresholds[found + 1])
    return float(np.int64(high).view(np.float64))


def _median_of_one_rank(values: Floats, reached: Integers) -> float:
    """Return the first of the values in order at which the weights reach half of all."""
    half = (int(reached[-1]) + 1) // 2
    return abs(float(values[reached.searchsorted(half)]))
