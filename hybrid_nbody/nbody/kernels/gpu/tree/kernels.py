"""Gravity by a tree on GPUs: cells, expansions and sums are found there."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Mark
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.nbody.kernels.cube import Cube, box_around
from hybrid_nbody.nbody.kernels.device_tree import BodyMessages, Counted, WantedBodies
from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.gpu.peer_rows import PeerRows
from hybrid_nbody.nbody.kernels.gpu.tree.cells import CellMaker, Starts
from hybrid_nbody.nbody.kernels.gpu.tree.curve import (
    Curve,
    CurveFinder,
    boxes_memory,
    curve_memory,
)
from hybrid_nbody.nbody.kernels.gpu.tree.launches import Launches
from hybrid_nbody.nbody.kernels.gpu.tree.memory import COUNTS, LEVELS, USED, row_type
from hybrid_nbody.nbody.kernels.gpu.tree.passes import Passes
from hybrid_nbody.nbody.kernels.gpu.tree.shared import SharedTree
from hybrid_nbody.nbody.kernels.gpu.tree.whole import WholeTree
from hybrid_nbody.nbody.kernels.parts import Parts
from hybrid_nbody.nbody.kernels.share import Numbering, Share, numbering_of
from hybrid_nbody.nbody.step_timer import Timer
from hybrid_nbody.parallel.partition import Partition
from hybrid_nbody.parallel.transport.peer_barrier import Addresses

COUNTING_THREADS = 1 << 18
"""Most threads that count keys between bounds."""

PAIRS_OF_A_TERM = 0.06
"""Pairs of bodies that take as long as a multiplication of two terms of expansions."""


class DeviceTree:
    """Sums by a tree on one GPU; see `hybrid_nbody.nbody.kernels.device_tree.DeviceTree`.

    Parameters
    ----------
    backend : GpuBackend
    expansion : Expansion
    eps2 : float
        The softening length squared, in units of the kernels.
    mass : float
        Of all bodies.
    """

    levels = LEVELS + 1

    def __init__(self, backend: GpuBackend, expansion: Expansion, eps2: float, mass: float) -> None:
        self.backend = backend
        self.expansion = expansion
        self.launches = Launches(backend, expansion, unsoftened=eps2 == 0)
        self.memory = self.launches.memory
        self.curves = CurveFinder(backend, self.launches)
        self.maker = CellMaker(backend, self.launches, expansion, eps2, mass)
        self.passes = Passes(self.launches)
        self.whole = WholeTree(backend, self.curves, self.maker, self.passes)
        self._curve = Curve(None, None)
        self._share: Share | None = None
        self._starts = Starts(None, None, None)
        self._numbering: Numbering | None = None

    def sums_alone(self, bodies: Array, potentials: bool) -> Array:
        """Return the sums over bodies that are all of this rank."""
        return self.whole.sums(bodies, potentials)

    def share(self, memory: Addresses, partition: Partition, rank: int) -> SharedTree:
        """Return this rank's share of a tree that each GPU of a host has whole; collective."""
        peers = PeerRows(self.backend, memory, partition, rank)
        return SharedTree(self.whole, peers, partition.total, self._pairs_of_a_source)

    def watch(self, timer: Timer | None) -> None:
        """Let a timer record the phases of `sums_alone` from here on; None ends that."""
        self.whole.phases = timer

    def fill_rows(
        self, position: Array, acceleration: Array, units: tuple[float, float], rows: Array
    ) -> None:
        """Fill the rows of bodies."""
        number = np.int32(len(rows))
        arguments = (position, acceleration, *map(np.float64, units), rows)
        self.launches.on_bodies("fill_rows", len(rows), number, *arguments)

    def set_accelerations(self, sums: Array, unit: float, acceleration: Array) -> None:
        """Fill accelerations from sums and the unit of an acceleration."""
        self.backend.xp.multiply(sums, unit, out=acceleration)

    # ---- Along the curve -------------------------------------------------------------------------

    def box(self, bodies: Array) -> Callable[[], NDArray[np.float64]]:
        """Begin to find the lowest and highest coordinates of one or more bodies."""
        boxes = boxes_memory(self.backend, len(bodies))
        self.curves.find_boxes(bodies, boxes)
        arrived = self._fetched(boxes)
        return lambda: box_around(arrived())

    def curve(self, bodies: Array, cube: Cube, words: int) -> Curve:
        """Return the order of bodies along the curve; their keys have one word."""
        self.memory.set_cube(cube)
        self.memory.send()
        return self.curves.sort(bodies, curve_memory(self.backend, len(bodies)))

    def taken(self, rows: Array, order: Array) -> Array:
        """Return rows in an order."""
        return self.backend.xp.take(rows, order, axis=0)

    def put_back(self, rows: Array, order: Array) -> Array:
        """Return rows that are in an order as they were before."""
        places = self.backend.xp.empty(rows.shape, rows.dtype)
        places[order] = rows
        return places

    def ties(self, curve: Curve) -> Array:
        """Return whether a body and the next one along the curve have the same key."""
        return curve.keys[1:] == curve.keys[:-1]

    def keys(self, bodies: Array, cube: Cube) -> Array:
        """Return the keys of bodies, (n,)."""
        self.memory.set_cube(cube)
        self.memory.send()
        keys = self.backend.xp.empty(len(bodies), "u8")
        self.curves.find_keys(bodies, keys)
        return keys

    def count_between(self, keys: Array, bounds: NDArray[np.uint64]) -> Counted:
        """Begin to count the keys from each bound, of which the first is 0, to the next."""
        counts = self.backend.zeros(len(bounds), "i4")
        arguments = (np.int32(len(bounds)), self.backend.upload(bounds), counts)
        threads = min(len(keys), COUNTING_THREADS)
        size = np.int32(len(keys))
        self.launches.on_bodies("count_between", threads, size, keys, *arguments, module="sharing")
        return partial(_as_integers, self._fetched(counts[:-1]))

    def _fetched(self, array: Array) -> Callable[[], NDArray[Any]]:
        """Begin to bring an array to the host; return what waits for it."""
        host = self.backend.pinned(array.shape, array.dtype)
        return partial(self._arrived, array, host, self.backend.fetch(array, host))

    def _arrived(self, array: Array, host: NDArray[Any], arrived: Mark) -> NDArray[Any]:
        """Return a copy of an array, which the device keeps until it is there."""
        self.backend.wait(arrived)
        return host.copy()

    def split(self, keys: Array, cuts: NDArray[np.uint64]) -> Array:
        """Return the order of keys by the cuts that they lie between; others stay in theirs."""
        ranks = self.backend.xp.empty(len(keys), "u8")
        arguments = (np.int32(len(cuts)), self.backend.upload(cuts), ranks)
        size = np.int32(len(keys))
        self.launches.on_bodies("find_ranks", len(keys), size, keys, *arguments, module="sharing")
        return self.curves.order_by(ranks, len(cuts))

    def deepest_level(self, curve: Curve) -> int:
        """Return the level on which a cell may hold any number of bodies."""
        return LEVELS

    def child_bounds(
        self, curve: Curve, first: NDArray[np.int32], last: NDArray[np.int32], level: int
    ) -> NDArray[np.int32]:
        """Return where the octants of cells of a level begin."""
        return self.maker.child_bounds(curve, first, last, level)

    def is_crowded(self, curve: Curve, parts: Parts) -> bool:
        """Return that one word of the keys will do: cells on the last level hold any number."""
        return False

    # ---- Cells -----------------------------------------------------------------------------------

    def count_cells(
        self, bodies: Array, curve: Curve, cube: Cube, share: Share
    ) -> NDArray[np.int64]:
        """Return how many cells of each level start at the bodies of a share.

        The device sorts these bodies while ranks tell each other of the cells.
        """
        self._curve = curve
        self._share = share
        self._starts = self.maker.starts_memory(share.number)
        self.memory.set_cube(cube)
        self.maker.set_limits(share.total, known=bodies.shape[1] > 4)
        self.memory.fit_bodies(share)
        self.memory.send()
        parts = self.maker.parts_of(share)
        shared = int(share.shared[share.rank])
        self.maker.find_starts(bodies, curve, parts, shared, self._starts)
        counted = self._fetched(self.memory.arrays["report"][COUNTS:USED])
        self.maker.sort_bodies(bodies, curve)
        return counted()

    def make_cells(self, counts: NDArray[np.int64]) -> None:
        """Make the cells of this rank, and find the multipoles of those that are its alone."""
        assert self._share is not None, "`count_cells` comes first"
        numbering = numbering_of(self._share, counts)
        self._numbering = numbering
        self.memory.fit(numbering)
        self.memory.foresee_lists()
        self.memory.set(keys=self._curve.keys)
        self.memory.send()
        started_before = numbering.started_before  # on other ranks, which will tell of them
        if len(started_before):
            self.memory.arrays["first"][self.backend.upload(started_before)] = -1
        self.maker.make(numbering.share.number, self._starts)
        self.passes.link("link_whole_cells", self.memory.own)
        self.passes.find_multipoles(numbering.own_counts)

    @property
    def numbering(self) -> Numbering:
        """Return the numbers of the cells."""
        assert self._numbering is not None, "`make_cells` comes first"
        return self._numbering

    def cell_rows(self, some: slice) -> Array:
        """Return some of the cells that start on this rank, a row of bytes each."""
        number = some.stop - some.start
        rows = self.backend.xp.empty((number, row_type(self.expansion).itemsize), "u1")
        limits = (np.int32(some.start), np.int32(some.stop))
        cells = number + self.levels  # at most one of a level starts on another rank
        self.launches.on_rows("pack_cells", cells, self.memory.argument, *limits, rows)
        return rows

    def add_cells(self, rows: Array) -> None:
        """Take cells of other ranks."""
        argument = self.memory.argument
        self.launches.on_rows("unpack_cells", len(rows), argument, np.int32(len(rows)), rows)

    def link_cells(self) -> None:
        """Link the cells of all ranks, and find the multipoles of those that ranks share."""
        self.passes.link("link_cells", self.numbering.total)
        self._find_shared_multipoles()

    def _find_shared_multipoles(self) -> None:
        """Find the multipoles of the cells that ranks share, the deepest first."""
        levels = reversed(range(int(self.numbering.share.shared.max()) + 1))
        cells = [self.numbering.shared(level).astype(np.int32) for level in levels]
        if not cells:
            return
        on_device = self.backend.upload(np.concatenate(cells))
        first = 0
        for some in cells:
            last = first + len(some)
            self.launches.on_parents("find_shared_multipoles", len(some), on_device[first:last])
            first = last

    # ---- Sums ------------------------------------------------------------------------------------

    def find_sources(self) -> None:
        """Find the sources of every cell, as far as there is memory for their lists."""
        self.memory.arrays["used"].fill(0)
        self.passes.find_sources(self.numbering.own_counts)

    def found_all(self) -> bool:
        """Return whether there was memory for all lists; provide it if not."""
        fits = self.memory.fit_lists(int(self.backend.download(self.memory.arrays["used"])[0]))
        self.memory.send()
        return fits

    def wanted(self, ranks: int) -> Array:
        """Return an array of a row for each rank, of which this rank's is filled."""
        flags = self.backend.zeros((ranks, self.numbering.total), "u1")
        own = flags[self.numbering.share.rank]
        self.launches.on_own_cells("sharing", "mark_nearby", self.memory.own, own)
        return flags

    def find_expansions(self) -> None:
        """Find the expansions of distant sources about the cells that accept these."""
        self.passes.find_expansions(self.numbering.own_counts)

    def count_messages(self, wanted: Array) -> WantedBodies:
        """Begin to count the bodies that ranks send each other, for what each of them wants."""
        share, total = self.numbering.share, self.numbering.total
        ranks = len(wanted)
        sizes = self.backend.xp.empty((2, ranks, total), "i4")
        starts = self.backend.upload(share.starts.astype(np.int32))
        numbers = (np.int32(share.rank), np.int32(ranks))
        arrays = (self.memory.argument, *numbers, starts, wanted, sizes)
        self.launches.on_bodies("size_messages", total, *arrays, module="sharing")
        ends = self.backend.xp.empty(sizes.size, "i4")
        self.backend.xp.cumsum(sizes.reshape(-1), out=ends)
        last = self.backend.xp.ascontiguousarray(ends[total - 1 :: total])
        return WantedBodies(wanted, ends, partial(_differences, self._fetched(last)))

    def hand_down_expansions(self) -> None:
        """Add the expansions of cells to those of their children."""
        self.passes.hand_down_expansions(self.numbering.own_counts)

    def messages(self, wanted: WantedBodies) -> BodyMessages:
        """Return the bodies that others want, and where those have to be put that are wanted."""
        ranks = len(wanted.wanted)
        counts = wanted.counted().reshape(2, ranks)
        number = int(counts[0].sum())
        sent = [self.backend.xp.empty((number, n), self.memory.real) for n in (4, 3)]
        numbers = (np.int32(self.numbering.share.rank), np.int32(ranks))
        arguments = (*numbers, wanted.wanted, wanted.ends)
        own = self.memory.own
        self.launches.on_own_cells("sharing", "fill_messages", own, *arguments, *sent)
        on_all = (self.memory.argument, *arguments)
        self.launches.on_bodies("place_messages", self.numbering.total, *on_all, module="sharing")
        return BodyMessages(sent, self._places_for(int(counts[1].sum())), *counts)

    def _places_for(self, number: int) -> list[Array]:
        """Return where a number of bodies of other ranks have to be put, and their low parts."""
        own = self.numbering.share.number
        self.memory.fit_near(number)
        self.memory.send()
        arrays = self.memory.arrays
        return [arrays["near"][own : own + number], arrays["low"][:number]]

    def evaluate_expansions(self, potentials: bool) -> None:
        """Find the sums over distant sources at the bodies."""
        self.passes.evaluate_expansions(self.numbering.own_counts, potentials)

    def sums(self, potentials: bool) -> Array:
        """Add the sums over nearby bodies; return the sums in the order that bodies came in."""
        self.passes.add_near_field(self.numbering.own_counts, potentials)
        return self._unsorted(self.memory.arrays["sums"], 1 if potentials else 3)

    def work(self) -> Array:
        """Return the work for each body, (n, 1), in the order that bodies came in."""
        work = self.backend.xp.empty(self.numbering.share.number, "f8")
        given = (np.float64(self._pairs_of_a_source), work)
        self.launches.on_own_cells("sharing", "count_work", self.memory.own, *given)
        return self._unsorted(work, 1)

    @property
    def _pairs_of_a_source(self) -> float:
        """Return how many pairs of bodies a source of an expansion takes as long as."""
        return PAIRS_OF_A_TERM * math.comb(self.expansion.order + 6, 6)

    def _unsorted(self, rows: Array, columns: int) -> Array:
        """Return rows along the curve in the order that bodies came in."""
        xp = self.backend.xp
        number = self.numbering.share.number
        result = xp.empty((number, columns), "f8")
        places = xp.empty(number, "i4")
        self.passes.find_places(self._curve.order, places)
        self.passes.unsort(rows, places, result)
        return result


def _as_integers(counts: Callable[[], NDArray[np.int32]]) -> NDArray[np.int64]:
    """Wait for counts, and return them."""
    return counts().astype(np.int64)


def _differences(ends: Callable[[], NDArray[np.int32]]) -> NDArray[np.int64]:
    """Wait for ends, and return how far each is behind the one before it."""
    found: NDArray[np.int64] = np.diff(_as_integers(ends), prepend=np.int64(0))
    return found
