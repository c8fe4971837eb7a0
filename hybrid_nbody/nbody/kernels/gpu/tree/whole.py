"""A tree over bodies that are all on one GPU: a force is queued at once, and replayed.

Launches are for as many cells as there may be, and kernels know how many there are. What there was
no memory for is left out; the host hears of it while the device sums, provides it, and has the
force done again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.nbody.kernels.gpu.tree.cells import CellMaker, PartLevels, Starts
from hybrid_nbody.nbody.kernels.gpu.tree.curve import (
    MOST_BODIES,
    CurveFinder,
    CurveMemory,
    curve_memory,
)
from hybrid_nbody.nbody.kernels.gpu.tree.memory import COUNTS, LEVELS, REPORT, USED
from hybrid_nbody.nbody.kernels.gpu.tree.passes import Counts, Passes, number_of
from hybrid_nbody.nbody.kernels.share import NONE, Share, whole_share
from hybrid_nbody.nbody.step_timer import NullTimer, Timer

HEADROOM = 8
HEADROOM_CELLS = 32
"""A share of the cells of a level, 1 / HEADROOM, and a number of them, that there may be more."""

MOST_RECORDED = 4
"""Forces that are kept to be replayed: accelerations and potentials at the bodies of a run."""


class Halves(NamedTuple):
    """What queues the kernels of a force.

    Attributes
    ----------
    find_sources : callable
        Of all that the host hears of: the cells and the lists of their sources.
    add_fields : callable
        Of the sums over these sources.
    """

    find_sources: Callable[[], None]
    add_fields: Callable[[], None]


class BodyMemory(NamedTuple):
    """What a force needs beside the tree.

    Attributes
    ----------
    curve : CurveMemory
    starts : Starts
    parts : PartLevels
        There are none.
    accelerations, potentials : (n, 3) and (n, 1) arrays of float64
        The results, at the bodies for which they are wanted.
    """

    curve: CurveMemory
    starts: Starts
    parts: PartLevels
    accelerations: Array
    potentials: Array

    def result(self, potentials: bool) -> Array:
        """Return the potentials, or the accelerations."""
        return self.potentials if potentials else self.accelerations


class TreeOfAllBodies(ABC):
    """A tree over all bodies on a GPU, of some of whose cells it finds the sources and sums.

    Parameters
    ----------
    backend : GpuBackend
    curves : CurveFinder
    maker : CellMaker
    passes : Passes

    Attributes
    ----------
    most : (L,) array of int64
        Cells of each level that there is memory for.
    phases : Timer or None
        Records ``sort``, ``tree``, ``lists``, ``far`` and ``near``, and as ``rest`` what comes
        before them. Forces are replayed only where there is none.
    """

    def __init__(
        self, backend: GpuBackend, curves: CurveFinder, maker: CellMaker, passes: Passes
    ) -> None:
        self.backend = backend
        self.curves = curves
        self.maker = maker
        self.passes = passes
        self.memory = passes.memory
        self.most: Counts = np.zeros(LEVELS + 1, np.int64)
        self.phases: Timer | None = None
        self._arrays: BodyMemory | None = None
        self._recorded: dict[tuple[int, int, bool], Halves] = {}
        self._report: NDArray[np.int64] = backend.pinned(REPORT, "i8")

    def _sum(self, bodies: Array, arrays: BodyMemory, potentials: bool) -> None:
        """Queue the kernels of a force, until there is memory for all that they find."""
        while True:
            work = self._work(bodies, arrays, potentials)
            work.find_sources()
            reported = self.backend.fetch(self.memory.arrays["report"], self._report)
            work.add_fields()
            self.backend.wait(reported)
            if self._fits():
                return

    def _provide(self, bodies: Array, known: bool) -> BodyMemory:
        """Return memory for bodies, and let the device know their number and limits."""
        number = len(bodies)
        if self._arrays is None or len(self._arrays.curve.curve.keys) != number:
            share = whole_share(number, LEVELS + 1)
            self._arrays = self._make_arrays(share, self._number_of_results(number))
            self.memory.fit_bodies(share)
            self.memory.set(keys=self._arrays.curve.curve.keys)
        self.maker.set_limits(number, known)
        self._send()
        return self._arrays

    def _make_arrays(self, share: Share, results: int) -> BodyMemory:
        """Return memory for all bodies, and for a number of results."""
        xp = self.backend.xp
        number = share.number
        return BodyMemory(
            curve=curve_memory(self.backend, number),
            starts=self.maker.starts_memory(number),
            parts=self.maker.parts_of(share),
            accelerations=xp.empty((results, 3), "f8"),
            potentials=xp.empty((results, 1), "f8"),
        )

    def _send(self) -> None:
        """Let the device know numbers and addresses; what was recorded with others is dropped."""
        if self.memory.send():
            self._recorded.clear()

    @property
    def cells(self) -> int:
        """Return the number of cells of the last force."""
        return int(self._report[COUNTS:USED].sum())

    # ---- A force ---------------------------------------------------------------------------------

    def _work(self, bodies: Array, arrays: BodyMemory, potentials: bool) -> Halves:
        """Return what queues all kernels."""
        timer = self.phases or NullTimer()
        halves = Halves(
            partial(self._find_sources, bodies, arrays, timer),
            partial(self._add_fields, arrays, potentials, timer),
        )
        if self.phases or len(bodies) > MOST_BODIES:
            return halves
        key = (bodies.data.ptr, bodies.shape[1], potentials)
        if key not in self._recorded:
            while len(self._recorded) >= MOST_RECORDED:
                del self._recorded[next(iter(self._recorded))]
            self._recorded[key] = Halves(*map(self.backend.recorded, halves))
        return self._recorded[key]

    def _find_sources(self, bodies: Array, arrays: BodyMemory, timer: Timer) -> None:
        """Queue the kernels from bodies to lists of sources, phase by phase."""
        timer.record("rest")
        self._sort(bodies, arrays)
        timer.record("sort")
        self._grow(bodies, arrays)
        self._take_share()
        timer.record("tree")
        self.passes.find_sources(self.taken)
        timer.record("lists")

    def _add_fields(self, arrays: BodyMemory, potentials: bool, timer: Timer) -> None:
        """Queue the kernels of the sums, phase by phase."""
        self.passes.add_far_field(self.taken, potentials)
        timer.record("far")
        self.passes.add_near_field(self.taken, potentials)
        self._bring_back(arrays, potentials)
        timer.record("near")

    def _sort(self, bodies: Array, arrays: BodyMemory) -> None:
        """Sort bodies along the curve in a root that holds them all."""
        boxes = arrays.curve.boxes
        self.curves.find_boxes(bodies, boxes)
        self.curves.find_root(boxes)
        self.curves.sort(bodies, arrays.curve)

    def _grow(self, bodies: Array, arrays: BodyMemory) -> None:
        """Make the cells, and find their multipoles."""
        curve, starts = arrays.curve.curve, arrays.starts
        self.maker.find_starts(bodies, curve, arrays.parts, NONE, starts)
        self.maker.number_cells()
        self.maker.make(len(bodies), starts)
        self.maker.sort_bodies(bodies, curve)
        self.passes.link("link_cells", number_of(self.most))
        self.passes.find_multipoles(self.most)

    # ---- What differs ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def taken(self) -> Counts:
        """Return of how many cells of each level sources are found, or more."""

    @abstractmethod
    def _number_of_results(self, number: int) -> int:
        """Return at how many of a number of bodies sums are wanted."""

    @abstractmethod
    def _take_share(self) -> None:
        """Let the device know of which cells sources are found."""

    @abstractmethod
    def _bring_back(self, arrays: BodyMemory, potentials: bool) -> None:
        """Bring the sums into the order that bodies came in, if they are there."""

    # ---- Memory ----------------------------------------------------------------------------------

    def _fits(self) -> bool:
        """Return whether there was memory for all cells and lists; provide it if not."""
        counts = self._report[COUNTS:USED]
        if (counts > self.most).any():
            self._provide_cells(counts)
            return False
        fits = self.memory.fit_lists(int(self._report[USED]))
        self._send()
        return fits

    def _provide_cells(self, counts: Counts) -> None:
        """Provide for some more cells than these."""
        self.most = np.maximum(self.most, with_headroom(counts))
        self.memory.numbers["most"] = self.most
        self._fit_cells()

    def _fit_cells(self) -> None:
        """Provide for as many cells as kernels are launched for."""
        self.memory.fit_cells(number_of(self.most), number_of(self.taken))
        self.memory.foresee_lists()
        self._send()


class WholeTree(TreeOfAllBodies):
    """Sums over all bodies by a tree on one GPU; parameters as in `TreeOfAllBodies`."""

    def sums(self, bodies: Array, potentials: bool) -> Array:
        """Return the sums in the order of the bodies, until the next call; see `DeviceTree`."""
        arrays = self._provide(bodies, known=bodies.shape[1] > 4)
        self._sum(bodies, arrays, potentials)
        return arrays.result(potentials)

    @property
    def taken(self) -> Counts:
        """Return how many cells of each level there may be."""
        return self.most

    def _number_of_results(self, number: int) -> int:
        return number

    def _take_share(self) -> None:
        """Leave it at all cells."""

    def _bring_back(self, arrays: BodyMemory, potentials: bool) -> None:
        places = arrays.curve.places
        self.passes.find_places(arrays.curve.curve.order, places)
        self.passes.unsort(self.memory.arrays["sums"], places, arrays.result(potentials))


def with_headroom(counts: Counts) -> Counts:
    """Return some more cells of each level that has any."""
    headroom = np.where(counts > 0, counts // HEADROOM + HEADROOM_CELLS, 0)
    result: Counts = counts + headroom
    return result
