"""The order of bodies along the curve, on one GPU."""

from typing import NamedTuple

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.nbody.kernels.gpu.tree.launches import LANES, THREADS, Launches

MOST_BODIES = 1 << 20
"""Most bodies that are sorted by kernels of this package, which never wait: CuPy's sort takes more
of them at once."""

BITS = range(0, 64, 8)
"""The bytes of a key, by which bodies are sorted one after another."""

BYTES = 256
"""Values of a byte."""

SORT_THREADS = 512
"""Threads of a block that sorts, and the keys that it takes at a time."""

MOST_TILES = 128
MOST_LARGE_TILES = 256
"""Blocks that sort, at most, and where each takes `LARGE_TILE` keys or more: every block looks at
what all have counted."""

LARGE_TILE = 2048

BOXES = 512
"""Most blocks that find the box of some bodies each."""


class Curve(NamedTuple):
    """N bodies along the curve.

    Attributes
    ----------
    keys : (N,) array of uint64
    order : (N,) array of int32
        Their numbers.
    """

    keys: Array
    order: Array


class CurveMemory(NamedTuple):
    """Memory to find the order of N bodies in.

    Attributes
    ----------
    curve : Curve
    other : Curve
        In between; its keys are those of bodies as they came in at first.
    counts : (T, 256) array of int32
        How many keys of a tile have each byte.
    boxes : (B, 2, 3) array of float64
        Around some bodies each.
    """

    curve: Curve
    other: Curve
    counts: Array
    boxes: Array

    @property
    def places(self) -> Array:
        """Return memory for the place of each body along the curve, once its order is known."""
        number = len(self.other.keys)
        return self.other.keys.view("i4")[:number]


def curve_memory(backend: GpuBackend, number: int) -> CurveMemory:
    """Return memory to find the order of a number of bodies in."""
    xp = backend.xp
    moved = number if number <= MOST_BODIES else 0
    return CurveMemory(
        curve=Curve(xp.empty(number, "u8"), xp.empty(number, "i4")),
        other=Curve(xp.empty(number, "u8"), xp.empty(moved, "i4")),
        counts=xp.empty((MOST_LARGE_TILES, BYTES), "i4"),
        boxes=boxes_memory(backend, number),
    )


def boxes_memory(backend: GpuBackend, number: int) -> Array:
    """Return memory for boxes around some of a number of bodies each, (B, 2, 3)."""
    return backend.xp.empty((min(BOXES, -(-number // THREADS)), 2, 3), "f8")


def bytes_of(largest: int) -> range:
    """Return the bytes in which keys up to the largest one can differ."""
    return range(0, largest.bit_length(), 8)


def tile_of(number: int) -> int:
    """Return how many keys a block takes."""
    tile = -(-number // (MOST_TILES * SORT_THREADS)) * SORT_THREADS
    if tile >= LARGE_TILE:
        tile = -(-number // (MOST_LARGE_TILES * SORT_THREADS)) * SORT_THREADS
    return max(SORT_THREADS, tile)


class CurveFinder:
    """Finds the order of bodies along the curve.

    Parameters
    ----------
    backend : GpuBackend
    launches : Launches
    """

    def __init__(self, backend: GpuBackend, launches: Launches) -> None:
        self.backend = backend
        self.launches = launches

    def find_boxes(self, bodies: Array, boxes: Array) -> None:
        """Find the boxes around some bodies each."""
        number, columns = bodies.shape
        sizes = (np.int32(number), np.int32(columns))
        self.launches.on_bodies("find_box", THREADS * len(boxes), *sizes, bodies, boxes)

    def find_root(self, boxes: Array) -> None:
        """Let the root of the tree hold all boxes."""
        threads = boxes[0].size * LANES
        arguments = (self.launches.memory.argument, np.int32(len(boxes)), boxes)
        self.launches.modules["cells"].launch("find_root", threads, threads, *arguments)

    def find_keys(self, bodies: Array, keys: Array) -> None:
        """Fill the keys of bodies in the root."""
        number, columns = bodies.shape
        sizes = (np.int32(number), np.int32(columns))
        argument = self.launches.memory.argument
        self.launches.on_bodies("find_keys", number, argument, *sizes, bodies, keys)

    def sort(self, bodies: Array, memory: CurveMemory) -> Curve:
        """Return the order of bodies in the root; those with the same key stay in theirs."""
        small = len(bodies) <= MOST_BODIES
        self.find_keys(bodies, memory.curve.keys if small else memory.other.keys)
        if small:
            self._sort_few(memory)
        else:
            self._sort_many(memory)
        return memory.curve

    def _sort_few(self, memory: CurveMemory) -> None:
        """Sort keys by kernels of this package, from `curve` to `other` and back."""
        self.sort_by_bytes(memory.curve, memory.other, memory.counts, BITS)

    def order_by(self, ranks: Array, largest: int) -> Array:
        """Return the order of bodies by their ranks; those of a rank stay in theirs."""
        xp = self.backend.xp
        number = len(ranks)
        given = Curve(ranks, xp.empty(number, "i4"))
        wanted = Curve(xp.empty(number, "u8"), xp.empty(number, "i4"))
        counts = xp.empty((MOST_LARGE_TILES, BYTES), "i4")
        return self.sort_by_bytes(given, wanted, counts, bytes_of(largest)).order

    def sort_by_bytes(self, given: Curve, wanted: Curve, counts: Array, bits: range) -> Curve:
        """Sort keys by one byte after another, from `given` to `wanted` and back.

        The one that is returned has the result; keys that are alike there stay in their order.
        """
        number = len(given.keys)
        tile = tile_of(number)
        threads = -(-number // tile) * SORT_THREADS
        module = self.launches.modules["sort"]
        for bit in bits:
            sizes = (np.int32(number), np.int32(tile), np.int32(bit))
            module.launch("count_bytes", threads, SORT_THREADS, *sizes, given.keys, counts)
            arrays = (counts, *given, *wanted)
            module.launch("move_by_byte", threads, SORT_THREADS, *sizes, *arrays)
            given, wanted = wanted, given
        return given

    def _sort_many(self, memory: CurveMemory) -> None:
        """Sort keys by CuPy."""
        xp = self.backend.xp
        order = xp.argsort(memory.other.keys, kind="stable")
        memory.curve.order[:] = order
        xp.take(memory.other.keys, order, out=memory.curve.keys)
