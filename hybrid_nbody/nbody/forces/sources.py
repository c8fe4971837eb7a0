"""The order in which sources are summed, and the chunks they are summed in.

Sources are sorted along a space-filling curve and cut into chunks, so that a chunk's bodies lie
close to its origin: the float32 offsets from it are then as exact as the bodies are close. A chunk
also ends where the curve leaps from one tight cluster to another; otherwise the offsets of the
second cluster would be rounded like the leap.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybrid_nbody.errors import FileError
from hybrid_nbody.nbody.kernels.precision import CHUNK, chunk_capacity

BITS = 21
"""Cells along an axis are numbered with this many bits; three axes fill an int64."""

LEAP = 64.0
"""A step of the curve that is longer than this many typical steps nearby ends a chunk."""


@dataclass(frozen=True)
class Order:
    """In which order, and in which chunks, sources are summed.

    Attributes
    ----------
    bodies : (N,) array of int32
        The bodies in summing order, on the host or on a device.
    starts : (capacity + 1,) NumPy array of int32
        Where each chunk starts in `bodies`; entries beyond the last chunk are N.
    """

    bodies: Any
    starts: np.ndarray

    @property
    def chunks(self) -> int:
        """How many chunks are in use."""
        return int(np.count_nonzero(np.diff(self.starts)))

    @classmethod
    def from_heads(cls, bodies: np.ndarray, heads: np.ndarray) -> "Order | None":
        """Return the order that `bodies` and `heads` were taken from, or None if its chunks are too many.

        They are if several ranks cut their own bodies into chunks that are now taken together.

        Raises
        ------
        FileError
            If `bodies` does not name every body once.
        """
        if not np.array_equal(np.sort(bodies), np.arange(len(bodies))):
            raise FileError("gravity/order does not name every body once")
        starts = np.union1d(np.flatnonzero(heads), np.arange(min(len(bodies), 1)))
        return (
            cls(bodies, _padded(starts, len(bodies)))
            if len(starts) <= chunk_capacity(len(bodies))
            else None
        )


def heads_of(starts: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return whether a chunk starts at each of the places first … last - 1, an array of uint8.

    These are the `starts` of an `Order` as rows that ranks can share.
    """
    heads = np.zeros(last - first, np.uint8)
    heads[starts[(starts >= first) & (starts < last)] - first] = 1
    return heads


def given_order(number: int) -> Order:
    """Return the order in which the bodies were given, in full chunks."""
    return Order(np.arange(number, dtype=np.int32), _padded(np.arange(0, number, CHUNK), number))


def spatial_order(position, xp=np) -> Order:
    """Return the order along the Morton curve, chunks ending where it leaps.

    Each operation rounds as IEEE 754 says, so that host and device find the same order.

    Parameters
    ----------
    position : (N, 3) array of float64
        All bodies.
    xp : module
        The namespace of `position`, NumPy or CuPy; the sort is done where the positions are.
    """
    if not len(position):
        return given_order(0)
    bodies = xp.argsort(morton_keys(position, xp), kind="stable").astype(np.int32)
    leaps = _leaps(position[bodies], xp).tolist()
    return Order(bodies, _padded(_starts(leaps, len(bodies)), len(bodies)))


def _starts(leaps, number):
    """Return where chunks start if they are full but end at each leap."""
    edges = np.array([0, *(leap + 1 for leap in leaps), number])
    counts = -(-np.diff(edges) // CHUNK)  # of each segment's chunks
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(edges[:-1], counts) + CHUNK * (np.arange(len(before)) - before)


def _padded(starts, number):
    """Fill the starts of unused chunks with the number of bodies."""
    result = np.full(chunk_capacity(number) + 1, number, np.int32)
    result[: len(starts)] = starts
    return result


@np.errstate(over="ignore", invalid="ignore")  # the guard tells what is too large, in its own words
def _leaps(path, xp):
    """Return the steps of a path through (N, 3) points that leap, the farthest N / CHUNK at the most, in order."""
    step = path[1:] - path[:-1]
    squares = step * step
    steps = xp.sqrt(squares[:, 0] + squares[:, 1] + squares[:, 2])
    typical = _typical(steps, xp)
    leaping = xp.flatnonzero(steps > LEAP * typical)
    most = len(path) // CHUNK
    if len(leaping) <= most:
        return leaping
    ratio = steps[leaping] / xp.maximum(typical[leaping], np.finfo(float).tiny)
    return xp.sort(leaping[xp.argsort(-ratio, kind="stable")[:most]])


def _typical(steps, xp):
    """Return the median of each block of about CHUNK steps, once for each of its steps."""
    if not len(steps):
        return steps
    blocks = max(1, len(steps) // CHUNK)
    size, longer = divmod(len(steps), blocks)
    cut = longer * (size + 1)
    rows = steps[:cut].reshape(longer, size + 1), steps[cut:].reshape(blocks - longer, size)
    return xp.concatenate(
        [xp.repeat(_medians(block, xp), block.shape[1]) for block in rows if len(block)]
    )


def _medians(rows, xp):
    """Return the median of each row."""
    rows, size = xp.sort(rows, axis=1), rows.shape[1]
    return (rows[:, (size - 1) // 2] + rows[:, size // 2]) / 2


def morton_keys(position, xp=np):
    """Return the Morton (Z-order) key of each position within their common bounding cube, an (N,) array of int64."""
    offset = position - position.min(axis=0)
    extent = xp.maximum(offset.max(), np.finfo(float).tiny)
    cell = (offset / extent * (2.0**BITS - 1)).astype(np.int64)
    return _spread(cell[:, 0]) | _spread(cell[:, 1]) << 1 | _spread(cell[:, 2]) << 2


def _spread(cell):
    """Move bit k of each 21-bit number to bit 3 k."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        cell = (cell | cell << shift) & mask
    return cell
