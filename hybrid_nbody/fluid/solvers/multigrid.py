"""Multigrid for the linear systems of a step, on the planes of all ranks.

Every cycle relaxes the finest grid, solves for the error on a grid of half the cells, which does
the same with the next one, adds that, and relaxes once more: V(2,1) with red-black sweeps,
restriction by averages and prolongation by trilinear interpolation (Trottenberg, Oosterlee &
Schueller, "Multigrid", 2001; Mohr & Wienands, "Cell-centred multigrid revisited", 2004). The error
falls by 6 or more in a cycle, whatever the size.

Slabs are shared out as long as every rank has a few planes and a sweep takes longer than a message.
Smaller grids are complete on every rank, all of which do the same work: no messages, and the same
bits.
"""

import math
from functools import cache
from typing import TypeVar

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.grid import Ghosts, Slab
from hybrid_nbody.fluid.kernels.contract import Kernels, Relaxation
from hybrid_nbody.fluid.kernels.multigrid_contract import CoarseSystem, MultigridKernels, Tables
from hybrid_nbody.fluid.solvers.base import COLOURS, Accuracy, IterativeSolver
from hybrid_nbody.fluid.solvers.coarsening import (
    Averaging,
    Cells,
    Interpolation,
    averaging,
    cells_kept_complete,
    centre_planes,
    couplings,
    grid_sizes,
    interpolation,
)
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.stencil import Stencil
from hybrid_nbody.parallel.exchange.halo import FullGrid, HaloExchange
from hybrid_nbody.parallel.partition import Partition

KERNELS = "hybrid_nbody.fluid.kernels"

PRE_SWEEPS = 2
POST_SWEEPS = 1
"""Iterations before and after the correction by a coarser grid."""

FEWEST_PLANES = 4
"""Of a rank; if one has fewer, the grid is complete on every rank."""

CENTRED_CELLS = 1 << 12
"""On the first grid of at most this many cells, the mean of a singular problem's right-hand side is
subtracted."""


Table = TypeVar("Table", np.ndarray, Averaging, Interpolation)
"""An array of indices or weights, or a named tuple of them."""

Signs = tuple[int, int, int]
"""Signs of the ghosts of x, y and z."""

Interpolations = tuple[Interpolation, Interpolation, Interpolation]


class Level:
    """A grid of this rank.

    Parameters
    ----------
    cells : tuple of int
        Cells nx, ny, nz.
    slab : Slab
        The planes of the finest grid.
    halo : HaloExchange or FullGrid
        How ranks see each other's planes.
    kernels : Kernels
        Those of the finest grid.

    Attributes
    ----------
    spacings : tuple of float
        Of x, y and z, in those of the finest grid.
    couplings : callable
        ``couplings(ghosts)`` returns the tables of x, y and z on the device.
    """

    def __init__(self, cells: tuple[int, int, int], slab: Slab, halo: Halo, kernels: Kernels):
        self.cells = cells
        self.spacings = [whole / n for whole, n in zip(slab.cells, cells, strict=True)]
        self.periodic = slab.periodic
        self.halo = halo
        self.backend = kernels.backend
        self.dtype = kernels.dtype
        self.first: int = halo.own.start
        self.planes: int = halo.own.stop - halo.own.start
        self.couplings = cache(self._couplings)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of an array of this rank's cells, with halo planes."""
        return self.planes + 2, self.cells[1], self.cells[0]

    @property
    def shared(self) -> bool:
        """Return whether ranks own different planes."""
        return self.planes < self.cells[2]

    def _couplings(self, ghosts: Ghosts) -> tuple[Array, Array, Array]:
        """Return the tables of x, y and z on the device; that of z for this rank's planes."""
        axes = zip(self.cells, self.spacings, self.periodic, ghosts.axis_signs, strict=True)
        tables = [couplings(*axis) for axis in axes]
        tables[2] = tables[2][:, self.first : self.first + self.planes]
        x, y, z = (upload(table, self) for table in tables)
        return x, y, z


class Transfer:
    """Restriction to a coarser grid and prolongation from it, for the planes that this rank owns.

    Parameters
    ----------
    fine, coarse : Level
    partition : Partition
        The coarse planes of each rank, as long as grids are shared.
    halo : HaloExchange or FullGrid
        That of the finest grid.

    Attributes
    ----------
    restriction : tuple of Averaging
        Tables of x, y and z.
    prolongation : callable
        ``prolongation(ghosts)`` returns the tables of x, y and z.
    shape : (int, int, int)
        That of averages along x and y of this rank's planes.
    """

    def __init__(self, fine: Level, coarse: Level, partition: Partition, halo: Halo):
        self.fine = fine
        self.coarse = coarse
        self.partition = partition
        self.transport = halo.transport
        self.own = partition.share(halo.rank) if fine.shared else slice(0, coarse.cells[2])
        self.collects = fine.shared and not coarse.shared
        self.restriction: Tables = tuple(upload(table, fine) for table in self._averaging())
        self.prolongation = cache(self._upload_interpolation)
        self.shape = fine.planes + 2, coarse.cells[1], coarse.cells[0]

    def _averaging(self) -> tuple[Averaging, Averaging, Averaging]:
        sizes = zip(self.fine.cells, self.coarse.cells, strict=True)
        x, y, z = (averaging(*axis) for axis in sizes)
        z = type(z)(z.cells[:, self.own] - self.fine.first + 1, z.weight[:, self.own])
        return x, y, z

    def _upload_interpolation(self, ghosts: Ghosts) -> Tables:
        return tuple(upload(table, self.fine) for table in self._interpolation(ghosts.axis_signs))

    def _interpolation(self, signs: Signs) -> Interpolations:
        sizes = zip(self.fine.cells, self.coarse.cells, self.fine.periodic, signs, strict=True)
        x, y, z = (interpolation(*axis) for axis in sizes)
        return wrapped(x, self.coarse.cells[0]), wrapped(y, self.coarse.cells[1]), self._own(z)

    def _own(self, table: Interpolation) -> Interpolation:
        """Return this rank's part of the table of z, counted from its first halo plane."""
        first = self.fine.first
        start = self.own.start
        table = type(table)(*(part[first : first + self.fine.planes] for part in table))
        return table._replace(lower=table.lower - start + 1, upper=table.upper - start + 1)

    def view(self, coarse: Array) -> Array:
        """Return this rank's planes of an array of the coarse grid, and one beyond each end."""
        start = self.own.start - self.coarse.first
        return coarse[start : start + self.own.stop - self.own.start + 2]

    def collect(self, coarse: Array) -> None:
        """Bring all ranks' planes to each, where the coarse grid is complete on every rank."""
        if self.transport and self.collects:
            self.transport.allgather(coarse[1:-1], self.partition)


def wrapped(table: Interpolation, number: int) -> Interpolation:
    """Return an `Interpolation` without indices beyond the ends: those are at the other end."""
    return table._replace(lower=table.lower % number, upper=table.upper % number)


def upload(table: Table, level: Level) -> Table:
    """Return a table, or a named tuple of them, on the device.

    Indices become uint32, other numbers the working type.
    """
    if isinstance(table, tuple):
        return type(table)(*(upload(part, level) for part in table))
    dtype = np.uint32 if np.issubdtype(table.dtype, np.integer) else level.dtype
    uploaded: np.ndarray = level.backend.upload(np.ascontiguousarray(table, dtype))
    return uploaded


def by_colour(table: np.ndarray, number: int) -> np.ndarray:
    """Return the table of a row of the finest grid in the order of its colours.

    The last axis, over cells x, becomes (2, half): even x, then odd x, where a missing last one
    weighs nothing.
    """
    padded = np.zeros((*table.shape[:-1], number + number % 2), table.dtype)
    padded[..., :number] = table
    return np.ascontiguousarray(np.stack([padded[..., 0::2], padded[..., 1::2]], axis=-2))


class FinestTransfer(Transfer):
    """The transfer from and to the finest grid, whose cells are stored by colour."""

    def _averaging(self) -> tuple[Averaging, Averaging, Averaging]:
        x, y, z = super()._averaging()
        half = (self.fine.cells[0] + 1) // 2
        return type(x)(x.cells % 2 * half + x.cells // 2, x.weight), y, z

    def _interpolation(self, signs: Signs) -> Interpolations:
        x, y, z = super()._interpolation(signs)
        return type(x)(*(by_colour(part, self.fine.cells[0]) for part in x)), y, z


class Multigrid(IterativeSolver):
    """V(2,1) cycles; every cycle counts as an iteration.

    Parameters are those of `IterativeSolver`; kernels and halo are those of the finest grid. The
    change of a cycle is the largest of any sweep or correction on that grid.
    """

    def __init__(self, kernels: Kernels, halo: Halo, accuracy: Accuracy):
        super().__init__(kernels, halo, accuracy)
        module = kernels.backend.kernels(KERNELS, "multigrid")
        self.coarse_kernels: MultigridKernels = module.MultigridKernels(kernels)
        self.levels, self.transfers = build_levels(kernels, halo)
        self.own_memory = cache(lambda size: kernels.backend.zeros(size, kernels.dtype))
        sizes = [int(np.prod(level.cells)) for level in self.levels]
        self.systems: list[CoarseSystem] = []  # of the present equation; see `prepare`
        self.rows: list[Array] = []
        self.centred = next(i for i, size in enumerate(sizes) if i > 0 and size <= CENTRED_CELLS)

    def solve(self, x: Array, b: Array, equation: Stencil, scratch: Array) -> None:
        """See `Solver`."""
        self.prepare(equation, scratch)
        self.iterate(x, b, equation)

    def prepare(self, equation: Stencil, scratch: Array) -> None:
        """Get ready for cycles that keep the coarse grids in scratch memory."""
        self.systems, self.rows = self._lay_out(equation, scratch)

    def _lay_out(self, equation: Stencil, scratch: Array) -> tuple[list[CoarseSystem], list[Array]]:
        """Return the systems of coarse grids, and rows for restriction, in scratch if they fit."""
        shapes = [shape for level in self.levels[1:] for shape in (level.shape, level.shape)]
        shapes += [transfer.shape for transfer in self.transfers]
        ends = np.cumsum([np.prod(shape) for shape in shapes]).tolist()
        if scratch.size < ends[-1]:
            scratch = self.own_memory(ends[-1])
        pieces = zip([0, *ends], ends, shapes, strict=False)
        arrays = [scratch[start:end].reshape(shape) for start, end, shape in pieces]
        number = 2 * len(self.transfers)
        systems = [
            CoarseSystem(x, b, equation, level.couplings(equation.ghosts), level.first)
            for level, x, b in zip(
                self.levels[1:], arrays[0:number:2], arrays[1:number:2], strict=True
            )
        ]
        return systems, arrays[number:]

    def improve(self, x: Array, b: Array, equation: Stencil) -> None:
        """Do one cycle; see `IterativeSolver`. All halo planes of `x` are valid after it."""
        self._relax_finest(x, b, equation, PRE_SWEEPS)
        transfer = self.transfers[0]
        kernels = self.coarse_kernels
        kernels.restrict_finest_rows(x, b, equation, transfer.restriction[:2], self.rows[0])
        self._solve_coarser(0, equation)
        coarse = transfer.view(self._system(1).x)
        tables = transfer.prolongation(equation.ghosts)
        kernels.prolong_to_finest(coarse, tables, self.criterion.tolerated_change, x)
        self.halo.fill(x[1])
        self._relax_finest(x, b, equation, POST_SWEEPS)

    def _relax_finest(self, x: Array, b: Array, equation: Stencil, iterations: int) -> None:
        factors = equation.relaxation_factors()
        relaxation = Relaxation(equation, factors, self.criterion.tolerated_change)
        for _ in range(iterations):
            for colour in COLOURS:
                self.kernels.sweep(colour, x, b, relaxation)
                self.halo.fill(x[colour])

    def _system(self, level: int) -> CoarseSystem:
        """Return the system on grid `level`, 1 or more."""
        return self.systems[level - 1]

    def _solve_coarser(self, index: int, equation: Stencil) -> None:
        """Restrict the rows of grid `index` to the next one, and improve the solution there."""
        transfer = self.transfers[index]
        rows = self.rows[index]
        coarse = self._system(index + 1)
        transfer.fine.halo.fill(rows)
        self.coarse_kernels.restrict_planes(rows, transfer.restriction[2], transfer.view(coarse.b))
        transfer.collect(coarse.b)
        if index + 1 == self.centred and equation.singular:
            self.coarse_kernels.subtract_mean(coarse.b)
        self.coarse_kernels.clear(coarse.x)
        self._improve_coarse(index + 1, equation)

    def _improve_coarse(self, index: int, equation: Stencil) -> None:
        """Do a cycle on coarse grid `index`."""
        last = index == len(self.levels) - 1
        if last and equation.singular:
            return  # a single cell: any value is a solution
        self._relax_coarse(index, PRE_SWEEPS)
        if not last:
            self._correct_coarse(index, equation)
            self._relax_coarse(index, POST_SWEEPS)

    def _correct_coarse(self, index: int, equation: Stencil) -> None:
        """Correct the solution on coarse grid `index` by that on the next one."""
        transfer = self.transfers[index]
        system = self._system(index)
        self.coarse_kernels.restrict_rows(system, transfer.restriction[:2], self.rows[index])
        self._solve_coarser(index, equation)
        coarse = transfer.view(self._system(index + 1).x)
        self.coarse_kernels.prolong(coarse, transfer.prolongation(equation.ghosts), system.x)
        self.levels[index].halo.fill(system.x)

    def _relax_coarse(self, index: int, iterations: int) -> None:
        system = self._system(index)
        for _ in range(iterations):
            for colour in COLOURS:
                self.coarse_kernels.sweep(colour, system)
                self.levels[index].halo.fill(system.x)


def build_levels(kernels: Kernels, halo: Halo) -> tuple[list[Level], list[Transfer]]:
    """Return the grids of this rank, the finest first, and the transfers between them."""
    slab = kernels.slab
    offsets = halo.partition.offsets
    shared = not halo.alone
    # what is centred is complete: a mean is of all cells
    kept_complete = max(cells_kept_complete(kernels.backend, halo), CENTRED_CELLS)
    sizes = grid_sizes(slab.cells, slab.periodic)
    levels = [Level(slab.cells, slab, halo, kernels)]
    transfers: list[Transfer] = []
    for fine, coarse in zip(sizes, sizes[1:], strict=False):
        offsets = np.searchsorted(centre_planes(fine[2], coarse[2]), offsets).tolist()
        partition = Partition(tuple(offsets))
        shared = shared and is_shared(coarse, partition, kept_complete)
        levels.append(Level(coarse, slab, coarse_halo(shared, partition, halo), kernels))
        transfer = Transfer if transfers else FinestTransfer
        transfers.append(transfer(levels[-2], levels[-1], partition, halo))
    return levels, transfers


def is_shared(cells: Cells, partition: Partition, kept_complete: int) -> bool:
    """Return whether ranks share a coarse grid: one of more than `kept_complete` cells."""
    return min(partition.counts) >= FEWEST_PLANES and math.prod(cells) > kept_complete


def coarse_halo(shared: bool, partition: Partition, halo: Halo) -> Halo:
    """Return the halo of a coarse grid; `halo` is the finest grid's."""
    if isinstance(halo, FullGrid) or not shared:
        return FullGrid(partition.total, halo.periodic)
    return HaloExchange(halo.transport, partition, halo.communicator, halo.periodic)
