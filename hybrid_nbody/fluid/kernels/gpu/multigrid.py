"""Multigrid on a GPU (CUDA through CuPy); twin of ``cpu``. The kernels are in ``multigrid.cu``."""

from pathlib import Path

import numpy as np

from hybrid_nbody.fluid.kernels.gpu.layout import SUM_THREADS

SOURCE = Path(__file__).with_name("multigrid.cu")

BLOCK = (32, 4, 1)
"""Threads along x, y and z."""


def columns_rows_planes(array):
    """Return the cells of a field along x, y and z, halo planes left aside."""
    planes, rows, columns = array.shape
    return np.int32(columns), np.int32(rows), np.int32(planes - 2)


class MultigridKernels:
    """Work on the coarse grids, and between grids; parameters and methods as in the twin.

    All is queued. Once the kernels of the finest grid know that a solve has converged, nothing more
    is done.
    """

    def __init__(self, kernels):
        self.slab = kernels.slab
        self.control = kernels.control
        self.kind = kernels.dtype.type
        self.module = kernels.compile(SOURCE)
        self.module.load("sweep")

    def _launch(self, name, cells, *arguments):
        """Launch a kernel with a thread for each of `cells` along x, y and z."""
        blocks = tuple(
            -(-int(number) // threads) for number, threads in zip(cells, BLOCK, strict=True)
        )
        self.module.launch_grid(name, blocks, BLOCK, (*arguments, self.control))

    def _system(self, stencil):
        return self.kind(stencil.shift), self.kind(stencil.neighbour)

    def clear(self, array):
        """Fill an array with zeros."""
        array.fill(0)

    def subtract_mean(self, array):
        """Subtract the average of an array that is whole on every rank, halo planes left aside."""
        inner = array[1:-1]
        arguments = (np.int32(inner.size), inner, self.control)
        self.module.launch_grid("centre", (1,), (SUM_THREADS,), arguments)

    def sweep(self, colour, coarse):
        """Relax the cells of one colour of a coarse grid."""
        x, b, stencil, couplings, first = coarse
        columns, rows, planes = size = columns_rows_planes(x)
        system = (x, b, *self._system(stencil), *couplings)
        self._launch(
            "sweep",
            ((columns + 1) // 2, rows, planes),
            np.int32((colour + first) % 2),
            *size,
            *system,
        )

    def restrict_rows(self, coarse, tables, rows):
        """Fill `rows` with the residual of a coarse grid, averaged along x and y."""
        x, b, stencil, couplings, _ = coarse
        along_x, along_y = tables
        cells = columns_rows_planes(rows)
        system = (x, b, *self._system(stencil), *couplings)
        self._launch(
            "average_rows",
            cells,
            *columns_rows_planes(x),
            *system,
            *along_x,
            *along_y,
            *cells[:2],
            rows,
        )

    def restrict_finest_rows(self, x, b, stencil, tables, rows):
        """Do the same from the finest grid."""
        along_x, along_y = tables
        cells = columns_rows_planes(rows)
        system = (x, b, *self._system(stencil), *map(self.kind, stencil.ghosts.axis_signs))
        self._launch(
            "average_rows_of_colours", cells, *system, *along_x, *along_y, *cells[:2], rows
        )

    def restrict_planes(self, rows, along_z, coarse):
        """Fill `coarse` with averages along z of `rows`, whose halo planes are valid."""
        cells = columns_rows_planes(coarse)
        self._launch("average_planes", cells, *cells, rows, *along_z, coarse)

    def prolong(self, coarse, tables, x):
        """Add what is interpolated from `coarse`, halo planes included, to a coarse grid."""
        cells = columns_rows_planes(x)
        along_x, along_y, along_z = tables
        numbers = *along_x, *along_y, *along_z
        self._launch("correct", cells, *columns_rows_planes(coarse), coarse, *numbers, *cells, x)

    def prolong_to_finest(self, coarse, tables, tolerance, x):
        """Do the same to the finest grid, and note in the kernels' `changed` what is above the tolerance."""
        cells = (*self.slab.cells[:2], self.slab.planes)
        along_x, along_y, along_z = tables
        numbers = *along_x, *along_y, *along_z
        sizes = columns_rows_planes(coarse)
        self._launch("correct_colours", cells, *sizes, coarse, *numbers, self.kind(tolerance), x)
