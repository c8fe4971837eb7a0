"""The staggered grid of a rank: its planes, its arrays, and sums over those of all ranks."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.backends.cells import Program, Reduction, Region, Total
from hybrid_nbody.backends.cells.sums import sum_of_planes
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.staggered.faces import Face, Faces

AXES = (0, 1, 2)
"""x, y and z; a component of the velocity has the number of its axis."""

Vector = tuple[Array, Array, Array]
"""One array for each component, or for each axis."""

STEPS = ((0, 0, 1), (0, 1, 0), (1, 0, 0))
"""For each axis how planes, rows and columns change from a cell to the next one."""

LARGEST_POWER = 120
"""Powers of two that float32 holds with some to spare."""


@dataclass(frozen=True)
class Grid:
    """The planes of a rank, what computes on them, and how ranks see each other's.

    Arrays have the shape (planes + 2, ny + 2, nx + 2). A component of the velocity is at the low
    face of its cell.

    Attributes
    ----------
    cells : tuple of int
        Cells nx, ny, nz of the box; the longest edge has length 1.
    faces : Faces
        The conditions at the six faces of the box.
    halo : HaloExchange or FullGrid
    backend : Backend
    program : Program
        The functions of `hybrid_nbody.fluid.kernels.cells`.
    dtype : {"f4", "f8"}
    mixed : bool
        Whether ranks compute on devices of several kinds.
    """

    cells: tuple[int, int, int]
    faces: Faces
    halo: Halo
    backend: Backend
    program: Program
    dtype: str
    mixed: bool = False

    @property
    def spacing(self) -> float:
        """Return the edge of a cell."""
        return 1.0 / max(self.cells)

    @property
    def first(self) -> int:
        """Return the first plane that the rank owns."""
        return int(self.halo.own.start)

    @property
    def planes(self) -> int:
        """Return the number of planes that the rank owns."""
        return int(self.halo.own.stop - self.halo.own.start)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of an array."""
        nx, ny, _ = self.cells
        return self.planes + 2, ny + 2, nx + 2

    @cached_property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return which axes wrap around."""
        return self.faces.periodic

    @property
    def ends(self) -> tuple[bool, bool]:
        """Return whether a face of the box lies below and above the planes of the rank."""
        walled = not self.periodic[2]
        return walled and self.first == 0, walled and self.first + self.planes == self.cells[2]

    @cached_property
    def region(self) -> Region:
        """Return the cells that the rank owns."""
        nx, ny, _ = self.cells
        return 1, self.planes + 1, 1, ny + 1, 1, nx + 1

    @cached_property
    def everywhere(self) -> Region:
        """Return all elements of an array."""
        planes, rows, columns = self.shape
        return 0, planes, 0, rows, 0, columns

    def pair(self, axis: int) -> tuple[Face, Face]:
        """Return the low and the high face of the box along an axis."""
        return self.faces.pair(axis)

    def inner_faces(self, axis: int) -> Region:
        """Return the faces across an axis that lie between two cells; the rank owns those."""
        return self._faces(axis, "inner")

    def open_faces(self, axis: int) -> Region:
        """Return the faces across an axis whose velocity is not given: also those of outlets."""
        return self._faces(axis, "open")

    def _faces(self, axis: int, which: str) -> Region:
        region = list(self.region)
        start = 4 - 2 * axis
        if not self.periodic[axis]:
            low, high = self.pair(axis)
            at_low, at_high = self.ends if axis == 2 else (True, True)
            region[start] += at_low and not (which == "open" and low.kind == "outflow")
            region[start + 1] += at_high and which == "open" and high.kind == "outflow"
        return tuple(region)  # type: ignore[return-value]  # six numbers

    # --- arrays -----------------------------------------------------------------------------------

    def zeros(self) -> Array:
        """Return an array of zeros."""
        return self.backend.zeros(self.shape, self.dtype)

    def vector(self) -> Vector:
        """Return an array of zeros for each component."""
        return self.zeros(), self.zeros(), self.zeros()

    def clear(self, array: Array) -> None:
        """Set an array to zero, by a launch that can be recorded: its zero is an argument."""
        self.program.run("set_to", self.everywhere, array, 0.0)

    def fill(self, *arrays: Array) -> None:
        """Fill what lies beyond the ends of periodic axes, and planes of other ranks."""
        for array in arrays:
            self.wrap(array)
        self.fill_planes(*arrays)

    def fill_planes(self, *arrays: Array) -> None:
        """Fill the planes next to those of the rank, but for those outside the box."""
        if not self.halo.alone:
            self.halo.fill(*arrays)
            return
        planes, rows, columns = self.shape
        for array in arrays if self.periodic[2] else ():
            self.program.run("wrap_z", (0, 1, 0, rows, 0, columns), array, planes - 1)

    def wrap(self, array: Array) -> None:
        """Fill columns and rows beyond the ends of periodic axes."""
        planes, rows, columns = self.shape
        if self.periodic[0]:
            self.program.run("wrap_x", (0, planes, 0, rows, 0, 1), array)
        if self.periodic[1]:
            self.program.run("wrap_y", (0, planes, 0, 1, 0, columns), array)

    # --- numbers of all ranks ---------------------------------------------------------------------

    def total(self, name: str, region: Region, *arguments: object) -> float:
        """Return the sum of a function of a cell over the regions of all ranks.

        It is summed plane by plane, so that its bits do not depend on the ranks.
        """
        return self.totals((name, region, *arguments))[0]

    def totals(self, *calls: Reduction) -> list[float]:
        """Return what `total` returns of each of some calls over the same planes."""
        return [sum_of_planes(column) for column in self._planes_of_all(*calls).T]

    def total_ahead(self, name: str, region: Region, *arguments: object) -> Total:
        """Queue what `total` does, for functions of a cell that take a `Total`.

        No host waits where messages are queued on devices of one kind. The region has all planes
        that ranks own.
        """
        if self.mixed:
            return self.total_by_hosts(name, region, *arguments)
        call = (name, region, *arguments)
        sums = self.program.plane_sums(call, self.halo.own, self.halo.partition.total)
        self.halo.collect(sums)
        return self.program.total_of(sums)

    def total_by_hosts(self, name: str, region: Region, *arguments: object) -> Total:
        """Return what `total_ahead` does; hosts exchange the sums.

        The region may be of faces: ranks do not own as many of them across z as planes.
        """
        return self.program.total_of(self._planes_of_all((name, region, *arguments)))

    def _planes_of_all(self, *calls: Reduction) -> np.ndarray:
        """Return the sums over the planes of all ranks, a column for each of some calls."""
        return self.halo.planes_of_all(np.stack(self.program.reduce_each(*calls), axis=-1))

    def largest(self, name: str, region: Region, *arguments: object) -> float:
        """Return the largest result of a function of a cell on any rank; NaN counts as infinite."""
        return self.largest_each((name, region, *arguments))[0]

    def largest_each(self, *calls: Reduction) -> list[float]:
        """Return what `largest` returns of each of some calls."""
        return self._largest_of(self.program.reduce_each(*calls))

    def largest_ahead(self, *calls: Reduction) -> Callable[[], list[float]]:
        """Queue what `largest_each` does, and return what waits for it: see `Program.reduce_ahead`.

        A GPU does not stand still meanwhile if it has something else to do.
        """
        wait = self.program.reduce_ahead(*calls)
        return lambda: self._largest_of(wait())

    def _largest_of(self, found: Sequence[np.ndarray]) -> list[float]:
        """Return the largest result on the planes of all ranks for each of some calls."""
        return self.halo.largest_each([float(np.max(planes, initial=0.0)) for planes in found])

    def largest_speed(self, velocity: Vector) -> float:
        """Return the largest component of a velocity, ghosts included; NaN counts as infinite."""
        return max(self.largest_each(*self._largest_components(velocity)))

    def largest_speed_ahead(self, velocity: Vector) -> Callable[[], float]:
        """Queue what `largest_speed` does, and return what waits for it: see `largest_ahead`."""
        wait = self.largest_ahead(*self._largest_components(velocity))
        return lambda: max(wait())

    def _largest_components(self, velocity: Vector) -> list[Reduction]:
        return [("largest", self.everywhere, component) for component in velocity]


def unit_of(largest: float) -> float:
    """Return the power of two that brings numbers up to `largest` below 1, if float32 holds it.

    Products of such numbers stay in its range, and lose no bit by the factor.
    """
    if not 0.0 < largest < math.inf:
        return 1.0
    return 2.0 ** -max(min(math.frexp(largest)[1], LARGEST_POWER), -LARGEST_POWER)


def common(one: Region, other: Region | None) -> Region | None:
    """Return the elements that are in two regions; None if there are none."""
    if other is None:
        return None
    starts = [max(a, b) for a, b in zip(one[::2], other[::2], strict=True)]
    ends = [min(a, b) for a, b in zip(one[1::2], other[1::2], strict=True)]
    if any(start >= end for start, end in zip(starts, ends, strict=True)):
        return None
    (k0, j0, i0), (k1, j1, i1) = starts, ends
    return k0, k1, j0, j1, i0, i1


def around(inner: Region, outer: Region) -> Iterator[Region]:
    """Yield regions that together hold what a region has beyond one within it."""
    rest = list(outer)
    for low in (0, 2, 4):
        for end in (0, 1):
            part = list(rest)
            part[low + 1 - end] = inner[low + end]
            if part[low] < part[low + 1]:
                yield tuple(part)  # type: ignore[misc]  # six numbers
        rest[low : low + 2] = inner[low : low + 2]
