"""The order in which sources are summed, and the chunks they are summed in.

Sources are sorted along a space-filling curve and cut into chunks, so that a chunk's bodies lie
close to its origin: the float32 offsets from it are then as exact as the bodies are close. A chunk
also ends where the curve leaps from one tight cluster to another; otherwise the offsets of the
second cluster would be rounded like the leap.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.errors import FileError
from hybrid_nbody.nbody.precision import CHUNK, chunk_capacity

BITS = 21
"""Bits of the index of a cell along an axis; three axes fill an int64."""

LEAP = 64.0
"""A step of the curve that is longer than this number of typical steps nearby ends a chunk."""

SPREADS = (
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)
"""Shifts and masks that move bit k of a number to bit 3 k."""


@dataclass(frozen=True)
class Order:
    """The order, and the chunks, in which sources are summed.

    Attributes
    ----------
    bodies : (N,) array of int32
        The bodies in summing order, on the host or on a device.
    starts : (capacity + 1,) NumPy array of int32
        Index in `bodies` at which each chunk starts; beyond the last chunk, N, or the number of
        sources where the last bodies are none.
    """

    bodies: Array
    starts: NDArray[np.int32]

    @property
    def chunks(self) -> int:
        """Return the number of chunks in use."""
        return int(np.count_nonzero(np.diff(self.starts)))

    @classmethod
    def from_heads(
        cls, bodies: NDArray[np.int32], heads: NDArray[np.uint8], sources: int | None = None
    ) -> "Order | None":
        """Return the order that `bodies` and `heads` were taken from.

        It is None if there are too many chunks, as where several ranks cut their own bodies into
        chunks that are now taken together.

        Parameters
        ----------
        bodies : (N,) array of int32
            The bodies in summing order.
        heads : (N,) array of uint8
            Whether a chunk starts at each index; see `heads_of`.
        sources : int, optional
            The number of bodies that are sources; by default all.

        Raises
        ------
        FileError
            If `bodies` does not name every body once.
        """
        if not np.array_equal(np.sort(bodies), np.arange(len(bodies))):
            raise FileError("gravity/order does not name every body once")
        number = len(bodies)
        sources = number if sources is None else sources
        starts = np.union1d(np.flatnonzero(heads), np.arange(min(sources, 1)))
        if len(starts) > chunk_capacity(number) or np.any(starts >= max(sources, 1)):
            return None
        return cls(bodies, _padded(starts, number, sources))


def heads_of(starts: NDArray[np.int32], first: int, last: int) -> NDArray[np.uint8]:
    """Return whether a chunk starts at each of the indices first … last - 1.

    These are the `starts` of an `Order` as rows that ranks can share.
    """
    heads = np.zeros(last - first, np.uint8)
    heads[starts[(starts >= first) & (starts < last)] - first] = 1
    return heads


def given_order(number: int) -> Order:
    """Return the order in which the bodies were given, in full chunks."""
    return Order(np.arange(number, dtype=np.int32), _padded(np.arange(0, number, CHUNK), number))


def spatial_order(position: Array, xp: Any = np) -> Order:
    """Return the order along the Morton curve, with chunks that end where it leaps.

    Each operation rounds as IEEE 754 says, so that host and device find the same order.

    Parameters
    ----------
    position : (N, 3) array of float64
        The positions of all bodies.
    xp : module
        The namespace of `position`, NumPy or CuPy, in which they are sorted.
    """
    if not len(position):
        return given_order(0)
    bodies = xp.argsort(morton_keys(position, xp), kind="stable").astype(np.int32)
    number = len(bodies)
    if number < CHUNK:  # too few for a chunk to end before it is full
        return Order(bodies, _padded(np.zeros(1), number))
    leaps = _leaps(position[bodies], xp).tolist()
    return Order(bodies, _padded(_starts(leaps, number), number))


def _starts(leaps: Iterable[int], number: int) -> NDArray[np.int64]:
    """Return the starts of chunks that are full but end at each leap."""
    edges = np.array([0, *(leap + 1 for leap in leaps), number])
    counts = -(-np.diff(edges) // CHUNK)  # of the chunks of each segment
    before = np.repeat(np.cumsum(counts) - counts, counts)
    within: NDArray[np.int64] = np.arange(len(before)) - before
    return np.repeat(edges[:-1], counts) + CHUNK * within


def massive_first(
    position: NDArray[np.float64], massive: NDArray[np.bool_], spatial: bool
) -> Order:
    """Return the order in which massive bodies come first, and are the only sources.

    Parameters
    ----------
    position : (N, 3) array of float64
    massive : (N,) array of bool
        At least one is true.
    spatial : bool
        Whether both follow the Morton curve, each of its own; else they are as they were given.
    """
    first = np.flatnonzero(massive).astype(np.int32)
    rest = np.flatnonzero(~massive).astype(np.int32)
    among = spatial_order(position[first]) if spatial else given_order(len(first))
    if spatial and len(rest):
        rest = rest[np.argsort(morton_keys(position[rest]), kind="stable")]
    starts = among.starts[: among.chunks]
    return Order(
        np.concatenate([first[among.bodies], rest]), _padded(starts, len(massive), len(first))
    )


def _padded(starts: NDArray[Any], number: int, sources: int | None = None) -> NDArray[np.int32]:
    """Return the starts of all chunks: those not in use start after the last source."""
    end = number if sources is None else sources
    result = np.full(chunk_capacity(number) + 1, end, np.int32)
    result[: len(starts)] = starts
    return result


@np.errstate(over="ignore", invalid="ignore")  # the guard reports what is too large
def _leaps(path: Array, xp: Any) -> Array:
    """Return the steps of a path that leap, in order: the farthest N / CHUNK at most.

    Parameters
    ----------
    path : (N, 3) array of float64
        The positions along the curve.
    xp : module
        The namespace of `path`.
    """
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


def _typical(steps: Array, xp: Any) -> Array:
    """Return the median of each block of about CHUNK steps, once for each of its steps."""
    if not len(steps):
        return steps
    blocks = max(1, len(steps) // CHUNK)
    size, longer = divmod(len(steps), blocks)
    cut = longer * (size + 1)
    rows = (steps[:cut].reshape(longer, size + 1), steps[cut:].reshape(blocks - longer, size))
    return xp.concatenate(
        [xp.repeat(_medians(block, xp), block.shape[1]) for block in rows if len(block)]
    )


def _medians(rows: Array, xp: Any) -> Array:
    """Return the median of each row."""
    size = rows.shape[1]
    ascending = xp.sort(rows, axis=1)
    return (ascending[:, (size - 1) // 2] + ascending[:, size // 2]) / 2


def morton_keys(position: Array, xp: Any = np) -> Array:
    """Return the Morton (Z-order) key of each position within their common bounding cube.

    Parameters
    ----------
    position : (N, 3) array of float64
    xp : module
        The namespace of `position`.

    Returns
    -------
    (N,) array of int64
    """
    offset = position - position.min(axis=0)
    extent = xp.maximum(offset.max(), np.finfo(float).tiny)
    cell = (offset / extent * (2.0**BITS - 1)).astype(np.int64)
    return spread_bits(cell[:, 0]) | spread_bits(cell[:, 1]) << 1 | spread_bits(cell[:, 2]) << 2


def spread_bits(cell: Array) -> Array:
    """Return 21-bit numbers, or one of them, with bit k moved to bit 3 k."""
    for shift, mask in SPREADS:
        cell = (cell | cell << shift) & mask
    return cell
