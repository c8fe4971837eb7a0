"""The contract of the kernels of multigrid: coarse grids, restriction and prolongation."""

from typing import NamedTuple, Protocol

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.stencil import Stencil


class CoarseSystem(NamedTuple):
    """The equations of a coarse grid of multigrid, whose fields are not taken apart by colour.

    Attributes
    ----------
    x, b : (planes + 2, ny, nx) array
        Solution, with valid halo planes, and right-hand side.
    equation : Stencil
        That of the finest grid.
    couplings : tuple of array
        Those of x, y and z; see `hybrid_nbody.fluid.solvers.coarsening.couplings`.
    first : int
        Global number of the first plane.
    """

    x: Array
    b: Array
    equation: Stencil
    couplings: tuple[Array, Array, Array]
    first: int


Tables = tuple[tuple[Array, ...], ...]
"""`Averaging` or `Interpolation` of `hybrid_nbody.fluid.solvers.coarsening` for each axis, on the
device."""


class MultigridKernels(Protocol):
    """The operations on coarse grids, and between grids: restriction and prolongation."""

    def clear(self, array: Array) -> None:
        """Fill an array with zeros."""

    def subtract_mean(self, array: Array) -> None:
        """Subtract the mean of an array that is complete on every rank, halo planes left aside."""

    def sweep(self, colour: int, system: CoarseSystem) -> None:
        """Relax the cells of one colour of a coarse grid; colour 0 has x + y + z even."""

    def restrict_rows(self, system: CoarseSystem, tables: Tables, rows: Array) -> None:
        """Fill `rows`, (planes + 2, my, mx), with the residual averaged along x and y."""

    def restrict_finest_rows(
        self, x: Array, b: Array, equation: Stencil, tables: Tables, rows: Array
    ) -> None:
        """Fill `rows` with the residual of the finest grid, which is stored by colour."""

    def restrict_planes(self, rows: Array, table: tuple[Array, ...], coarse: Array) -> None:
        """Fill `coarse`, (m + 2, my, mx), with averages of `rows` along z.

        The halo planes of `rows` are valid.
        """

    def prolong(self, coarse: Array, tables: Tables, x: Array) -> None:
        """Add what is interpolated from `coarse`, halo planes included, to a coarse grid."""

    def prolong_to_finest(self, coarse: Array, tables: Tables, tolerance: float, x: Array) -> None:
        """Do the same to the finest grid, and note larger changes in `changed` of its kernels."""
