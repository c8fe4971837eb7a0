"""Partitions of items into contiguous shares, one a rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Partition:
    """Contiguous shares of items 0 … total - 1; rank r owns ``offsets[r]`` to ``offsets[r + 1]``.

    Attributes
    ----------
    offsets : tuple of int
        ``size + 1`` non-decreasing numbers from 0 to `total`; a share may be empty.
    """

    offsets: tuple[int, ...]

    @classmethod
    def equal(cls, total: int, size: int) -> "Partition":
        """Share `total` items over `size` ranks; shares differ by one at the most."""
        return cls.weighted(total, [1.0] * size)

    @classmethod
    def weighted(cls, total: int, weights: Sequence[float], least: int = 0) -> "Partition":
        """Share `total` items in proportion to `weights`, one a rank, by the largest remainder.

        Each share is within one item of its exact value, and the shares add up to `total`. Where
        one is smaller than `least`, the missing items are taken from the largest.
        """
        scaled = np.ldexp(np.asarray(weights, dtype=float), -np.frexp(np.max(weights))[1])
        exact = total * scaled / np.sum(scaled)
        counts = np.floor(exact).astype(int)
        next_up = np.argsort(counts - exact, kind="stable")[: total - counts.sum()]
        counts[next_up] += 1
        while counts.min() < least <= total // len(counts):
            counts[counts.argmin()] += 1
            counts[counts.argmax()] -= 1
        return cls((0, *np.cumsum(counts).tolist()))

    @property
    def total(self) -> int:
        """Return the number of items in all."""
        return self.offsets[-1]

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Return the number of items of each rank."""
        return tuple(end - start for start, end in pairwise(self.offsets))

    @cached_property
    def even(self) -> bool:
        """Return whether all shares are of one size."""
        return len(set(self.counts)) == 1

    def share(self, rank: int) -> slice:
        """Return the slice of the items that `rank` owns."""
        return slice(self.offsets[rank], self.offsets[rank + 1])
