"""The operations of multigrid on a GPU (CUDA through CuPy); the kernels are in ``multigrid.cu``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.kernels.gpu.kernels import Kernels
from hybrid_nbody.fluid.kernels.gpu.layout import SUM_THREADS
from hybrid_nbody.fluid.kernels.multigrid_contract import CoarseSystem, Tables
from hybrid_nbody.fluid.stencil import Stencil

SOURCE = Path(__file__).with_name("multigrid.cu")

BLOCK = (32, 4, 1)
"""Threads along x, y and z."""

Size = tuple[np.int32, np.int32, np.int32]


def cells_of(array: Array) -> Size:
    """Return the cells of a field along x, y and z, halo planes left aside."""
    planes, rows, columns = array.shape
    return np.int32(columns), np.int32(rows), np.int32(planes - 2)


class MultigridKernels:
    """The operations on coarse grids; see `hybrid_nbody.fluid.kernels.multigrid_contract`.

    All is queued. Once the kernels of the finest grid know that a solve has converged, nothing more
    is done.

    Parameters
    ----------
    kernels : Kernels
        Those of the finest grid.
    """

    def __init__(self, kernels: Kernels):
        self.kernels = kernels
        self.number = kernels.number
        self.control = kernels.control
        self.module = kernels.compile(SOURCE)

    def _launch(self, name: str, cells: Sequence[Any], *arguments: Any) -> None:
        """Launch a kernel with a thread for each of `cells` along x, y and z."""
        sizes = zip(cells, BLOCK, strict=True)
        grid = tuple(-(-int(number) // threads) for number, threads in sizes)
        self.module.launch_grid(name, grid, BLOCK, (*arguments, self.control))

    def _system(self, system: CoarseSystem) -> tuple[Any, ...]:
        """Return the equations of a coarse grid as arguments of a kernel."""
        numbers = map(self.number, (system.equation.shift, system.equation.neighbour))
        return (system.x, system.b, *numbers, *system.couplings)

    def clear(self, array: Array) -> None:
        """See `MultigridKernels`."""
        array.fill(0)

    def subtract_mean(self, array: Array) -> None:
        """See `MultigridKernels`."""
        inner = array[1:-1]
        arguments = (np.int32(inner.size), inner, self.control)
        self.module.launch_grid("subtract_mean", (1,), (SUM_THREADS,), arguments)

    def sweep(self, colour: int, system: CoarseSystem) -> None:
        """See `MultigridKernels`."""
        columns, rows, planes = size = cells_of(system.x)
        first_colour = np.int32((colour + system.first) % 2)
        threads = ((columns + 1) // 2, rows, planes)
        self._launch("sweep", threads, first_colour, *size, *self._system(system))

    def restrict_rows(self, system: CoarseSystem, tables: Tables, rows: Array) -> None:
        """See `MultigridKernels`."""
        along_x, along_y = tables
        cells = cells_of(rows)
        fine = (*cells_of(system.x), *self._system(system))
        self._launch("restrict_rows", cells, *fine, *along_x, *along_y, *cells[:2], rows)

    def restrict_finest_rows(
        self, x: Array, b: Array, equation: Stencil, tables: Tables, rows: Array
    ) -> None:
        """See `MultigridKernels`."""
        along_x, along_y = tables
        cells = cells_of(rows)
        fine = (x, b, *self.kernels.equation(equation))
        self._launch("restrict_finest_rows", cells, *fine, *along_x, *along_y, *cells[:2], rows)

    def restrict_planes(self, rows: Array, table: tuple[Array, ...], coarse: Array) -> None:
        """See `MultigridKernels`."""
        cells = cells_of(coarse)
        self._launch("restrict_planes", cells, *cells, rows, *table, coarse)

    def prolong(self, coarse: Array, tables: Tables, x: Array) -> None:
        """See `MultigridKernels`."""
        along_x, along_y, along_z = tables
        cells = cells_of(x)
        source = (*cells_of(coarse), coarse, *along_x, *along_y, *along_z)
        self._launch("prolong", cells, *source, *cells, x)

    def prolong_to_finest(self, coarse: Array, tables: Tables, tolerance: float, x: Array) -> None:
        """See `MultigridKernels`."""
        along_x, along_y, along_z = tables
        slab = self.kernels.slab
        cells = (*slab.cells[:2], slab.planes)
        source = (*cells_of(coarse), coarse, *along_x, *along_y, *along_z)
        self._launch("prolong_to_finest", cells, *source, self.number(tolerance), x)
