"""Multigrid for the linear systems of a step, on the planes of all ranks.

Every cycle relaxes the finest grid, solves for what is still missing on a grid of half the cells,
which does the same with the next, adds that, and relaxes once more: V(2,1) with red-black sweeps,
averages on the way down and trilinear interpolation on the way up (Trottenberg, Oosterlee &
Schueller, "Multigrid", 2001; Mohr & Wienands, "Cell-centred multigrid revisited", 2004). The error
falls by 6 or more in a cycle, whatever the size.

Slabs are shared out as long as every rank has a few planes. Smaller grids are whole on every rank,
all of which do the same work: no messages, and the same bits.
"""

from functools import cache

import numpy as np

from hybrid_nbody.fluid.solvers.coarsening import (
    averaging,
    centre_planes,
    couplings,
    grid_sizes,
    interpolation,
)
from hybrid_nbody.fluid.solvers.relaxation import COLOURS, Iterative
from hybrid_nbody.fluid.solvers.stencil import SCALAR
from hybrid_nbody.parallel.exchange.halo import FullGrid, HaloExchange
from hybrid_nbody.parallel.partition import Partition

KERNELS = "hybrid_nbody.fluid.kernels"

BEFORE = 2
AFTER = 1
"""Iterations before and after the correction by a coarser grid."""

FEWEST_PLANES = 4
"""Of a rank; if one has fewer, the grid is whole on every rank."""

SHARED_CELLS = 1 << 15
"""Grids of fewer cells are whole on every rank: relaxing them takes no longer than a message."""

CENTRED_CELLS = 1 << 12
"""The first grid of at most so many cells has the average of a singular problem's right-hand side
taken off."""


class Level:
    """A grid of this rank.

    Parameters
    ----------
    cells : tuple of int
        Cells nx, ny, nz.
    spacings : tuple of float
        Of x, y and z, in those of the finest grid.
    periodic : tuple of bool
        Which axes wrap around.
    halo : HaloExchange or FullGrid
        How ranks see each other's planes.
    backend : Backend
        Holds tables and arrays.
    dtype : dtype
        The working type.
    """

    def __init__(self, cells, spacings, periodic, halo, backend, dtype):
        self.cells = cells
        self.spacings = spacings
        self.periodic = periodic
        self.halo = halo
        self.backend = backend
        self.dtype = np.dtype(dtype)
        self.first = halo.own.start
        self.planes = halo.own.stop - halo.own.start
        self.couplings = cache(self._couplings)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of an array of this rank's cells, with halo planes."""
        return self.planes + 2, self.cells[1], self.cells[0]

    @property
    def shared(self) -> bool:
        """Whether ranks own different planes."""
        return self.planes < self.cells[2]

    def _couplings(self, parity):
        """Return the tables of x, y and z on the device; that of z for this rank's planes."""
        axes = zip(self.cells, self.spacings, self.periodic, parity, strict=True)
        tables = [couplings(*axis) for axis in axes]
        tables[2] = tables[2][:, self.first : self.first + self.planes]
        return tuple(upload(table, self) for table in tables)


class Passage:
    """The way from the planes of a grid that this rank owns to the coarser grid, and back.

    Attributes
    ----------
    averaging : tuple of Averaging
        Tables of x, y and z.
    interpolation : callable
        Returns the tables of x, y and z for a parity.
    shape : (int, int, int)
        That of averages along x and y of this rank's planes.
    """

    def __init__(self, fine: Level, coarse: Level, partition: Partition, halo):
        self.fine = fine
        self.coarse = coarse
        self.partition = partition
        self.transport = halo.transport
        self.own = partition.share(halo.rank) if fine.shared else slice(0, coarse.cells[2])
        self.collects = fine.shared and not coarse.shared
        self.averaging = tuple(upload(table, fine) for table in self._averaging())
        self.interpolation = cache(
            lambda parity: tuple(upload(table, fine) for table in self._interpolation(parity))
        )
        self.shape = fine.planes + 2, coarse.cells[1], coarse.cells[0]

    def _averaging(self):
        x, y, z = (
            averaging(*axis) for axis in zip(self.fine.cells, self.coarse.cells, strict=True)
        )
        z = type(z)(z.index[:, self.own] - self.fine.first + 1, z.weight[:, self.own])
        return x, y, z

    def _interpolation(self, parity):
        sizes = zip(self.fine.cells, self.coarse.cells, self.fine.periodic, parity, strict=True)
        *plane, z = (interpolation(*axis) for axis in sizes)
        number = self.coarse.cells[:2]
        x, y = (
            t._replace(lower=t.lower % m, upper=t.upper % m)
            for t, m in zip(plane, number, strict=True)
        )
        z = type(z)(*(part[self.fine.first : self.fine.first + self.fine.planes] for part in z))
        z = z._replace(lower=z.lower - self.own.start + 1, upper=z.upper - self.own.start + 1)
        return x, y, z

    def view(self, coarse):
        """Return the planes of an array of the coarse grid that are this rank's, and one beyond each end."""
        start = self.own.start - self.coarse.first
        return coarse[start : start + self.own.stop - self.own.start + 2]

    def collect(self, coarse) -> None:
        """Bring all ranks' planes to each, where the coarse grid is whole on every rank."""
        if self.collects:
            self.transport.allgather(coarse[1:-1], self.partition)


def upload(table, level):
    """Return a table, or a named tuple of them, on the device: places as uint32, numbers in the working type."""
    if isinstance(table, tuple):
        return type(table)(*(upload(part, level) for part in table))
    kind = np.uint32 if np.issubdtype(table.dtype, np.integer) else level.dtype
    return level.backend.upload(np.ascontiguousarray(table, kind))


def by_colour(table, number: int):
    """Return the table of a row of the finest grid in the order of its colours.

    The last axis, over cells x, becomes (2, half): even x, then odd x, where a missing last one
    weighs nothing.
    """
    padded = np.zeros((*table.shape[:-1], number + number % 2), table.dtype)
    padded[..., :number] = table
    return np.ascontiguousarray(np.stack([padded[..., 0::2], padded[..., 1::2]], axis=-2))


class FinestPassage(Passage):
    """The way from the finest grid, whose cells are stored by colour."""

    def _averaging(self):
        x, y, z = super()._averaging()
        half = (self.fine.cells[0] + 1) // 2
        return type(x)(x.index % 2 * half + x.index // 2, x.weight), y, z

    def _interpolation(self, parity):
        x, y, z = super()._interpolation(parity)
        return type(x)(*(by_colour(part, self.fine.cells[0]) for part in x)), y, z


class Multigrid(Iterative):
    """V(2,1) cycles; every cycle counts as an iteration.

    Parameters
    ----------
    kernels : Kernels
        The twin of this rank's device, for the finest grid.
    halo : HaloExchange
        How ranks see each other's planes of the finest grid.
    accuracy : Accuracy
        When a solve ends. The change of a cycle is the largest of any sweep or correction in it.
    """

    def __init__(self, kernels, halo, accuracy):
        super().__init__(kernels, halo, accuracy)
        self.transfers = kernels.backend.kernels(KERNELS, "multigrid").Transfers(kernels)
        self.levels, self.passages = build_levels(kernels, halo)
        self.own_memory = cache(lambda size: kernels.backend.zeros(size, kernels.dtype))
        sizes = [int(np.prod(level.cells)) for level in self.levels]
        self.centred = next(i for i, size in enumerate(sizes) if i > 0 and size <= CENTRED_CELLS)

    def solve(self, x, b, stencil, room) -> None:
        """Improve `x` in place; it and `b` are arrays by colour.

        The halo planes of `x` are valid in the end.
        """
        self.arrays, self.rows = self._lay_out(room)
        self.iterate(x, b, stencil)

    def _lay_out(self, room):
        """Return solution and right-hand side of coarse grids, and rows for the ways there: in `room` if they fit."""
        shapes = [shape for level in self.levels[1:] for shape in (level.shape, level.shape)]
        shapes += [passage.shape for passage in self.passages]
        ends = np.cumsum([np.prod(shape) for shape in shapes]).tolist()
        if room.size < ends[-1]:
            room = self.own_memory(ends[-1])
        pieces = zip([0, *ends], ends, shapes, strict=False)
        arrays = [room[start:end].reshape(shape) for start, end, shape in pieces]
        number = 2 * len(self.passages)
        return list(zip(arrays[0:number:2], arrays[1:number:2], strict=True)), arrays[number:]

    def improve(self, x, b, stencil) -> None:
        """Do one cycle; the halo planes of the second colour of `x` are valid before it, and all after it."""
        self._relax_finest(x, b, stencil, BEFORE)
        passage = self.passages[0]
        transfers = self.transfers
        transfers.average_rows_of_colours(x, b, stencil, *passage.averaging[:2], self.rows[0])
        self._descend(0, stencil)
        coarse = passage.view(self.arrays[0][0])
        transfers.correct_colours(
            coarse, *passage.interpolation(stencil.parity), self.criterion.change, x
        )
        self.halo.fill(x[1])
        self._relax_finest(x, b, stencil, AFTER)

    def _relax_finest(self, x, b, stencil, iterations):
        factors = stencil.relaxing()
        for _ in range(iterations):
            for colour in COLOURS:
                self.kernels.sweep(colour, x, b, stencil, factors, self.criterion.change)
                self.halo.fill(x[colour])

    def _descend(self, index, stencil):
        """Take averages of rows of grid `index` to the next one, and solve there."""
        passage, rows, (x, b) = self.passages[index], self.rows[index], self.arrays[index]
        passage.fine.halo.fill(rows)
        self.transfers.average_planes(rows, passage.averaging[2], passage.view(b))
        passage.collect(b)
        if index + 1 == self.centred and singular(stencil):
            self.transfers.centre(b)
        self.transfers.clear(x)
        self._improve(index + 1, stencil)

    def _improve(self, index, stencil):
        """Do a cycle on coarse grid `index`."""
        last = index == len(self.levels) - 1
        if last and singular(stencil):
            return  # a single cell: any value is a solution
        self._relax(index, stencil, BEFORE)
        if not last:
            level, passage, (x, b) = (
                self.levels[index],
                self.passages[index],
                self.arrays[index - 1],
            )
            tables = (level.couplings(stencil.parity), *passage.averaging[:2])
            self.transfers.average_rows(x, b, stencil, *tables, self.rows[index])
            self._descend(index, stencil)
            coarse = passage.view(self.arrays[index][0])
            self.transfers.correct(coarse, *passage.interpolation(stencil.parity), x)
            level.halo.fill(x)
            self._relax(index, stencil, AFTER)

    def _relax(self, index, stencil, iterations):
        level, (x, b) = self.levels[index], self.arrays[index - 1]
        for _ in range(iterations):
            for colour in COLOURS:
                self.transfers.sweep(
                    colour, level.first, x, b, stencil, level.couplings(stencil.parity)
                )
                level.halo.fill(x)


def singular(stencil) -> bool:
    """Return whether a constant may be added to a solution."""
    return stencil.own == 0 and stencil.parity == SCALAR


def build_levels(kernels, halo):
    """Return the grids of this rank, the finest first, and the passages between them."""
    slab = kernels.slab
    offsets = halo.partition.offsets
    shared = not halo.alone
    sizes = grid_sizes(slab.cells, slab.boundary)
    levels = [_level(slab, slab.cells, halo, kernels)]
    passages = []
    for fine, coarse in zip(sizes, sizes[1:], strict=False):
        offsets = np.searchsorted(centre_planes(fine[2], coarse[2]), offsets).tolist()
        partition = Partition(tuple(offsets))
        shared = (
            shared and min(partition.counts) >= FEWEST_PLANES and np.prod(coarse) > SHARED_CELLS
        )
        periodic = slab.periodic[2]
        own_halo = (
            HaloExchange(halo.transport, partition, halo.communicator, periodic)
            if shared
            else FullGrid(coarse[2], periodic)
        )
        levels.append(_level(slab, coarse, own_halo, kernels))
        kind = Passage if passages else FinestPassage
        passages.append(kind(levels[-2], levels[-1], partition, halo))
    return levels, passages


def _level(slab, cells, halo, kernels):
    spacings = tuple(whole / number for whole, number in zip(slab.cells, cells, strict=True))
    return Level(cells, spacings, slab.periodic, halo, kernels.backend, kernels.dtype)
