"""Gauss-Seidel in lexicographic order, on one rank and one thread."""

from hybrid_nbody.fluid.kernels.contract import Array, Kernels
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.stencil import Stencil


class Lexicographic:
    """Gauss-Seidel, cell by cell in the order of memory; it always does all iterations.

    Parameters are those of `hybrid_nbody.fluid.solvers.base.IterativeSolver`.
    """

    def __init__(self, kernels: Kernels, halo: Halo, accuracy: Accuracy):
        self.kernels = kernels
        self.iterations = accuracy.iterations

    def solve(self, x: Array, b: Array, equation: Stencil, scratch: Array) -> None:
        """See `Solver`; the two fields are in the scratch memory."""
        kernels = self.kernels
        cells, right_side = scratch.reshape(2, *kernels.slab.shape)
        kernels.merge(x, cells)
        kernels.merge(b, right_side)
        kernels.relax_lexicographic(cells, right_side, equation, self.iterations)
        kernels.split(cells, x)
