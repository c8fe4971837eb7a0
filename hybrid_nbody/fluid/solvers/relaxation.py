"""Gauss-Seidel, red-black or lexicographic, and successive over-relaxation."""

import math
from functools import cached_property

from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.contract import Array, Kernels, PassSolve, Relaxation, Solve
from hybrid_nbody.fluid.solvers.base import COLOURS, Accuracy, IterativeSolver
from hybrid_nbody.fluid.solvers.halos import Halo, PassHalo, pass_halo
from hybrid_nbody.fluid.stencil import Factors, Stencil


class RedBlack(IterativeSolver):
    """Gauss-Seidel: every cell of one colour, then every cell of the other.

    Bits do not depend on ranks or threads.

    Parameters
    ----------
    kernels, halo, accuracy
        See `IterativeSolver`.
    from_zero : bool
        Whether all first guesses are 0 everywhere, whatever x holds.
    """

    def __init__(self, kernels: Kernels, halo: Halo, accuracy: Accuracy, from_zero: bool = False):
        super().__init__(kernels, halo, accuracy)
        self.from_zero = from_zero
        self.in_passes = accuracy.measured == "change" and kernels.passes_allowed

    @cached_property
    def pass_halo(self) -> PassHalo | None:
        """Return the exchange of planes between passes; None if there are none on some rank."""
        return pass_halo(self.kernels, self.halo, self.in_passes)

    def factors(self, equation: Stencil) -> Factors:
        """Return the change of a cell over its residual."""
        return equation.fixed_ghost_factors

    def solve(self, x: Array, b: Array, equation: Stencil, scratch: Array | None) -> None:
        """See `Solver`."""
        halo = self.pass_halo  # all ranks know the length of passes before they begin
        if halo:
            accuracy = self.accuracy
            solve = Solve(equation, accuracy.limit, accuracy.iterations, self.from_zero)
            run_passes(self.kernels.begin_passes(x, b, solve, scratch), halo)
            return
        if self.from_zero:
            self.kernels.clear(x)
        self.iterate(x, b, equation)
        self.halo.fill(*x)

    def improve(self, x: Array, b: Array, equation: Stencil) -> None:
        """Sweep colour by colour, and exchange the planes that changed."""
        tolerance = self.criterion.tolerated_change
        relaxation = Relaxation(equation, self.factors(equation), tolerance)
        for colour in COLOURS:
            self.kernels.sweep(colour, x, b, relaxation)
            self.halo.fill(x[colour])


def run_passes(solve: PassSolve, halo: PassHalo) -> None:
    """Carry out a solve pass by pass."""
    halo.begin(solve)
    for step in solve.passes:
        halo.before(step)
        solve.run(step)
        halo.after(step, solve)
    solve.finish()
    halo.finish(solve)


class Sor(RedBlack):
    """Successive over-relaxation in the order of `RedBlack`.

    Parameters
    ----------
    omega : float or None
        The relaxation factor; None for the one that damps the smoothest mode fastest (Young,
        "Iterative Solution of Large Linear Systems", 1971).
    """

    def __init__(
        self, kernels: Kernels, halo: Halo, accuracy: Accuracy, omega: float | None = None
    ):
        super().__init__(kernels, halo, accuracy)
        self.in_passes = False
        self.omega = omega

    def factors(self, equation: Stencil) -> Factors:
        """See `RedBlack`; cells at walls are relaxed as much as the others."""
        return equation.relaxation_factors(self.omega or best_omega(equation, self.kernels.slab))


def best_omega(equation: Stencil, slab: Slab) -> float:
    """Return the relaxation factor that damps the smoothest mode but the constant fastest."""
    waves = [
        (2 if periodic else 1) / number
        for number, periodic in zip(slab.cells, slab.periodic, strict=True)
    ]
    couplings = equation.neighbour * (4.0 + 2.0 * math.cos(math.pi * min(waves)))
    radius = couplings / equation.diagonal
    return 2.0 / (1.0 + math.sqrt(1.0 - radius**2))


class Lexicographic:
    """Gauss-Seidel, cell by cell in the order of memory, on one rank and one thread.

    It always does all iterations.

    Parameters are those of `IterativeSolver`.
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
