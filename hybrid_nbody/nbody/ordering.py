"""The order in which sources are summed, and the chunks they are summed in.

Sources are sorted along a space-filling curve and cut into chunks, so that a chunk's bodies lie close to its origin:
the float32 offsets from it are then as exact as the bodies are close. A chunk also ends where the curve leaps from one
tight cluster to another; otherwise the offsets of the second cluster would be rounded like the leap.
"""

from dataclasses import dataclass

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
        The bodies in summing order.
    starts : (capacity + 1,) array of int32
        Where each chunk starts in `bodies`; entries beyond the last chunk are N.
    """

    bodies: np.ndarray
    starts: np.ndarray

    @property
    def chunks(self) -> int:
        """How many chunks are in use."""
        return int(np.count_nonzero(np.diff(self.starts)))

    @property
    def places(self) -> np.ndarray:
        """Where each body stands in `bodies`, an (N,) array of int32."""
        places = np.empty_like(self.bodies)
        places[self.bodies] = np.arange(len(places), dtype=np.int32)
        return places

    @property
    def heads(self) -> np.ndarray:
        """Whether a chunk starts at each place, an (N,) array of uint8: `starts` as rows that ranks can share."""
        heads = np.zeros(len(self.bodies), np.uint8)
        heads[self.starts[self.starts < len(heads)]] = 1
        return heads

    @classmethod
    def from_heads(cls, bodies: np.ndarray, heads: np.ndarray) -> "Order":
        """Return the order that `bodies` and `heads` were taken from.

        Raises
        ------
        FileError
            If `bodies` does not name every body once.
        """
        if not np.array_equal(np.sort(bodies), np.arange(len(bodies))):
            raise FileError("gravity/order does not name every body once")
        return cls(bodies, _padded(np.flatnonzero(heads), len(bodies)))


def given_order(number: int) -> Order:
    """Return the order in which the bodies were given, in full chunks."""
    return Order(np.arange(number, dtype=np.int32), _padded(np.arange(0, number, CHUNK), number))


def spatial_order(position: np.ndarray) -> Order:
    """Return the order along the Morton curve, chunks ending where it leaps.

    Parameters
    ----------
    position : (N, 3) array of float64
        All bodies.
    """
    bodies = np.argsort(morton_keys(position), kind="stable").astype(np.int32)
    segments = np.concatenate([[0], _leaps(position[bodies]) + 1, [len(bodies)]])
    starts = [np.arange(start, end, CHUNK) for start, end in zip(segments, segments[1:], strict=False)]
    return Order(bodies, _padded(np.concatenate(starts), len(bodies)))


def _padded(starts, number):
    """Fill the starts of unused chunks with the number of bodies."""
    result = np.full(chunk_capacity(number) + 1, number, np.int32)
    result[: len(starts)] = starts
    return result


def _leaps(path) -> np.ndarray:
    """Return the steps of a path through (N, 3) points that leap, the farthest N / CHUNK at the most, in order."""
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    blocks = np.array_split(steps, max(1, len(steps) // CHUNK))
    typical = np.concatenate([np.full(len(block), np.median(block)) for block in blocks if len(block)] or [steps])
    leaping = np.flatnonzero(steps > LEAP * typical)
    ratio = steps[leaping] / np.maximum(typical[leaping], np.finfo(float).tiny)
    return np.sort(leaping[np.argsort(-ratio, kind="stable")[: len(path) // CHUNK]])


def morton_keys(position: np.ndarray) -> np.ndarray:
    """Return the Morton (Z-order) key of each position within their common bounding cube, an (N,) array of int64."""
    corner = position.min(axis=0)
    extent = max((position - corner).max(), np.finfo(float).tiny)
    cell = ((position - corner) / extent * (2.0**BITS - 1)).astype(np.int64)
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
