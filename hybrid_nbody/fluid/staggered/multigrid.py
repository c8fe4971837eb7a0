"""A cycle of multigrid for the pressure, with coefficients at faces: a preconditioner.

Coarse cells are made of two along each axis; their coefficients are sums of those of their faces. A
cycle relaxes before and after the correction by a coarser grid, in opposite orders of the colours,
so that it is a symmetric operator, as conjugate gradients need (Tatebe, "The multigrid
preconditioned conjugate gradient method", 1993).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.backends.replays import Replays
from hybrid_nbody.fluid.solvers.coarsening import cells_kept_complete
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.staggered.coefficients import Coefficients
from hybrid_nbody.fluid.staggered.grid import Grid, Vector
from hybrid_nbody.parallel.exchange.halo import FullGrid, HaloExchange
from hybrid_nbody.parallel.partition import Partition

SWEEPS = 2
"""Relaxations of both colours before and after a correction."""

LAST_SWEEPS = 8
"""The same on the coarsest grid."""

GROWTH = 2.0
"""Coefficients of a coarse grid over those of the next finer one, where all is open."""

DAMPING = 0.7
"""Of a relaxation of all cells at once."""

FEWEST_PLANES = 2
"""Of a rank; if one has fewer, the grid is complete on every rank."""

FEW_CELLS = 1 << 12
"""Complete grids of at most as many cells, and all coarser ones, take a GPU a single launch."""


@dataclass(frozen=True)
class Level:
    """A grid of this rank, with the coefficients of its low faces.

    Attributes
    ----------
    grid : Grid
    coefficients : Coefficients
    x, b, r : array
        Correction, right-hand side and residual; those of the finest grid are given to a cycle.
    """

    grid: Grid
    coefficients: Coefficients
    x: Array
    b: Array
    r: Array


class Multigrid:
    """Cycles on the grids of a rank.

    Parameters
    ----------
    grid : Grid
        The finest one.
    coefficients : Coefficients
        On the planes of the rank and one beyond.
    memory : array
        For the residual of the finest grid.
    """

    def __init__(self, grid: Grid, coefficients: Coefficients, memory: Array) -> None:
        self.replays = Replays(grid.backend)
        self.levels = [Level(grid, coefficients, memory, memory, memory)]
        self.kept_complete = cells_kept_complete(grid.backend, grid.halo)
        while max(self.levels[-1].grid.cells) > 1:
            self.levels.append(self._next(self.levels[-1]))
        self.coarsen()

    def _next(self, fine: Level) -> Level:
        grid = coarser(fine.grid, self.kept_complete)
        found = Coefficients.empty(grid, GROWTH * fine.coefficients.even)
        return Level(grid, found, grid.zeros(), grid.zeros(), grid.zeros())

    def coarsen(self) -> None:
        """Make the coefficients of coarse grids from those of the finest one."""
        for fine, coarse in zip(self.levels, self.levels[1:], strict=False):
            transfer = Transfer(fine.grid, coarse.grid)
            transfer.coarsen(fine.coefficients.faces, coarse.coefficients.faces)
            coarse.coefficients.part_from_themselves(coarse.grid)
            coarse.coefficients.mark_plain(coarse.grid)

    def cycle(self, x: Array, b: Array) -> None:
        """Set `x` to an approximate solution for the right-hand side `b`."""
        self._cycle_from(0, replace(self.levels[0], x=x, b=b))

    def _cycle_from(self, number: int, level: Level) -> None:
        """Do the part of a cycle from a level on.

        A device with a queue repeats it as one launch, from the first grid on that needs no host to
        exchange planes: to relax a coarse grid takes less time than to launch that.
        """
        finer = self.levels[number - 1].grid if number else None
        if level.grid.halo.recordable and not (finer and finer.halo.recordable):
            repeated = partial(self._cycle_in_sequence, number, level, finer)
            self.replays.repeat(repeated, (level.x, level.b))
        else:
            self._cycle_in_sequence(number, level, finer)

    def _cycle_in_sequence(self, number: int, level: Level, finer: Grid | None) -> None:
        """Do the same; what is left is one sequence from the finest small grid on."""
        if is_small(level.grid) and not (finer and is_small(finer)):
            with level.grid.program.sequence():
                self._cycle(number, level)
        else:
            self._cycle(number, level)

    def _cycle(self, number: int, level: Level) -> None:
        last = number + 1 == len(self.levels)
        sweeps = sweeps_on(level.grid) if last else SWEEPS
        self._begin(level, sweeps)
        if not last:
            self._correct(number, level)
        self._relax(level, (1, 0) * sweeps)

    def _begin(self, level: Level, sweeps: int) -> None:
        """Relax from zero."""
        grid = level.grid
        colours = (0, 1) * sweeps
        if not coloured(grid):
            grid.clear(level.x)
            self._relax(level, colours)
            return
        first, *others = colours
        given = (level.x, level.b, *level.coefficients.arguments)
        parity = (grid.first + first) % 2
        grid.program.run("begin", grid.everywhere, *given, parity, grid.planes + 1)
        grid.fill(level.x)
        self._relax(level, others)

    def _correct(self, number: int, fine: Level) -> None:
        """Add the correction by the next grid."""
        coarse = self.levels[number + 1]
        transfer = Transfer(fine.grid, coarse.grid)
        run = fine.grid.program.run
        given = (fine.x, fine.b, *fine.coefficients.arguments, fine.r)
        run("residual", fine.grid.region, *given)
        transfer.restrict(fine.r, coarse.b)
        self._cycle_from(number + 1, coarse)
        transfer.prolong(coarse.x, fine.x)
        fine.grid.fill(fine.x)

    def _relax(self, level: Level, colours: Sequence[int]) -> None:
        """Relax cells colour by colour; a sweep of all at once stands for two colours."""
        grid = level.grid
        if not coloured(grid):
            self._relax_uncoloured(level, len(colours) // 2)
            return
        for colour in colours:
            parity = (grid.first + colour) % 2
            given = (level.x, level.b, *level.coefficients.arguments)
            grid.program.run("relax", grid.region, *given, parity=parity)
            grid.fill(level.x)

    def _relax_uncoloured(self, level: Level, sweeps: int) -> None:
        """Relax all cells at once, where some neighbours would be of one colour."""
        grid = level.grid
        for _ in range(sweeps):
            given = (level.x, level.b, *level.coefficients.arguments, level.r)
            grid.program.run("residual", grid.region, *given)
            damped = (level.x, level.r, *level.coefficients.faces, DAMPING)
            grid.program.run("jacobi", grid.region, *damped)
            grid.fill(level.x)


def sweeps_on(coarsest: Grid) -> int:
    """Return the relaxations on the coarsest grid; between walls one solves its only cell."""
    return LAST_SWEEPS if any(coarsest.periodic) else 1


def is_small(grid: Grid) -> bool:
    """Return whether a grid is complete on every rank and has few cells."""
    return grid.halo.alone and math.prod(grid.cells) <= FEW_CELLS


def coloured(grid: Grid) -> bool:
    """Return whether no two neighbours have one colour, also across periodic faces."""
    pairs = zip(grid.cells, grid.periodic, strict=True)
    return all(n % 2 == 0 or n == 1 for n, wraps in pairs if wraps)


def coarser(grid: Grid, kept_complete: int) -> Grid:
    """Return the grid of half the cells, rounded up, along each axis.

    It is complete on every rank if it has at most `kept_complete` cells, or ranks too few planes.
    """
    nx, ny, nz = grid.cells
    cells = (-(-nx // 2), -(-ny // 2), -(-nz // 2))
    partition = coarse_partition(grid.halo.partition)
    shared = min(partition.counts) >= FEWEST_PLANES and math.prod(cells) > kept_complete
    halo: Halo = FullGrid(cells[2], grid.periodic[2])
    if isinstance(grid.halo, HaloExchange) and not grid.halo.alone and shared:
        ranks = grid.halo.communicator
        halo = HaloExchange(grid.halo.transport, partition, ranks, grid.periodic[2])
    return replace(grid, cells=cells, halo=halo)


def coarse_partition(partition: Partition) -> Partition:
    """Return who makes the coarse planes: the owner of the first fine one in each."""
    return Partition(tuple(-(-offset // 2) for offset in partition.offsets))


class Transfer:
    """Restriction and prolongation between a grid and the next coarser one.

    Where the coarse grid is complete on every rank, all bring the planes that they make to each.
    """

    def __init__(self, fine: Grid, coarse: Grid) -> None:
        self.fine = fine
        self.coarse = coarse
        self.partition = coarse_partition(fine.halo.partition)
        self.own = self.partition.share(fine.halo.rank)
        self.collects = not fine.halo.alone and coarse.halo.alone
        self.offset = 2 * self.own.start - fine.first - 1
        self.end = fine.cells[2] - fine.first + 1

    def restrict(self, fine: Array, coarse: Array) -> None:
        """Set coarse cells to the sums of theirs."""
        self.fine.fill(fine)
        given = (self._view(coarse), fine, self.offset, self.end)
        self.fine.program.run("restrict", self._region(None), *given)
        self._collect(coarse[1:-1], self.partition)

    def _collect(self, planes: Array, partition: Partition) -> None:
        """Bring the planes that each rank made to all, where these hold the whole coarse grid."""
        transport = self.fine.halo.transport
        if self.collects and transport is not None:
            transport.allgather(planes, partition)

    def prolong(self, coarse: Array, fine: Array) -> None:
        """Add the corrections of coarse cells to theirs; the ghosts of those are valid."""
        offset = self.fine.first + 1 - 2 * self.coarse.first
        self.fine.program.run("prolong", self.fine.region, coarse, fine, offset)

    def coarsen(self, fine: Vector, coarse: Vector) -> None:
        """Set coarse coefficients from those of fine faces, which are valid beyond the slab."""
        factor = 1 if self.coarse.cells[2] == self.fine.cells[2] else 2
        more: tuple[tuple[int, ...], ...] = ((), (), (factor,))
        for axis, name in enumerate(("coarsen_x", "coarsen_y", "coarsen_z")):
            given = (self._view(coarse[axis]), fine[axis], self.offset, self.end, *more[axis])
            self.fine.program.run(name, self._region(axis), *given)
            self._collect_faces(coarse[axis])
            self.coarse.fill(coarse[axis])

    def _region(self, axis: int | None) -> Region:
        """Return the cells that this rank makes, in a view, and the last faces across an axis."""
        nx, ny, _ = self.coarse.cells
        last = self.fine.first + self.fine.planes == self.fine.cells[2]
        above = int(axis == 2 and last)
        return 1, self._made + 1 + above, 1, ny + 1 + (axis == 1), 1, nx + 1 + (axis == 0)

    @property
    def _made(self) -> int:
        """Return the number of planes that this rank makes."""
        return int(self.own.stop - self.own.start)

    def _view(self, coarse: Array) -> Array:
        """Return the planes that this rank makes, and one beyond each end."""
        start = self.own.start - self.coarse.first
        return coarse[start : start + self._made + 2]

    def _collect_faces(self, coarse: Array) -> None:
        """Bring the coefficients to all ranks, with those of the highest faces of the box."""
        offsets = list(self.partition.offsets)
        offsets[-1] += 1
        self._collect(coarse[1:], Partition(tuple(offsets)))
