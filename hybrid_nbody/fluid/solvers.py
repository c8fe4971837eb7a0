"""Solvers of the linear systems of a step, on the planes of all ranks.

A solver has one method, ``solve(x, b, stencil)``: x and b are arrays of colours (see `hybrid_nbody.fluid.kernels`), x
holds the first guess on entry and the solution on exit, its halo planes included where there are other ranks.
"""

import math
from dataclasses import dataclass

COLOURS = (0, 1)
NEVER_MET = -1.0
"""A tolerance below every change: each counts as one, even none at all."""


@dataclass(frozen=True)
class Accuracy:
    """When a solve ends.

    Attributes
    ----------
    iterations : int
        Most iterations.
    tolerance : float
        A solve ends after an iteration that meets it; 0 never does.
    criterion : {"change", "residual"}
        What is compared with the tolerance: the largest change of a cell in the iteration, or the largest residual
        relative to the largest right-hand side.
    """

    iterations: int
    tolerance: float
    criterion: str = "change"

    @property
    def limit(self) -> float:
        """The tolerance, or a number that nothing meets: a solve without a tolerance does all its iterations."""
        return self.tolerance or NEVER_MET


class RedBlack:
    """Gauss-Seidel: every cell of one colour, then every cell of the other. Bits do not depend on ranks or threads.

    Parameters
    ----------
    kernels : Kernels
        The twin of this rank's device.
    halo : HaloExchange
        How ranks see each other's planes.
    accuracy : Accuracy
        When a solve ends.
    """

    def __init__(self, kernels, halo, accuracy: Accuracy):
        self.kernels, self.halo, self.accuracy = kernels, halo, accuracy
        self.criterion = CRITERIA[accuracy.criterion](kernels, halo, accuracy.limit)
        self.fused = halo.alone and accuracy.criterion == "change"

    def omega(self, stencil) -> float:
        """Return the factor of over-relaxation."""
        return 1.0

    def solve(self, x, b, stencil) -> None:
        """Improve `x` in place."""
        if self.fused:
            accuracy = self.accuracy
            self.kernels.relax(x, b, stencil, self.omega(stencil), accuracy.iterations, accuracy.limit)
        else:
            self._iterate(x, b, stencil)
        for colour in COLOURS:
            self.halo.fill(x[colour])

    def _iterate(self, x, b, stencil):
        """Iterate colour by colour, and let every rank know of the others' changes."""
        kernels, omega = self.kernels, self.omega(stencil)
        kernels.begin_solve()
        self.criterion.begin(b)
        self.halo.fill(x[1])
        for _ in range(self.accuracy.iterations):
            if kernels.stopped():
                break
            for colour in COLOURS:
                kernels.sweep(colour, x, b, stencil, omega, self.criterion.change)
                self.halo.fill(x[colour])
            self.criterion.note(x, b, stencil)
            kernels.end_iteration()
        kernels.end_solve()


class ChangeCriterion:
    """A solve ends when no cell has changed by more than the tolerance."""

    def __init__(self, kernels, halo, tolerance):
        self.kernels, self.halo, self.change = kernels, halo, tolerance

    def begin(self, b):
        """Nothing is needed before the first iteration."""

    def note(self, x, b, stencil):
        """Let a change on any rank count on all; where nothing can stop a solve, all have noted one."""
        if self.change > 0:
            self.halo.maximum(self.kernels.changed)


class ResidualCriterion:
    """A solve ends when the largest residual is within the tolerance times the largest right-hand side."""

    change = math.inf  # of a cell, that a sweep would note

    def __init__(self, kernels, halo, tolerance):
        self.kernels, self.halo, self.tolerance = kernels, halo, tolerance
        self.limit = kernels.backend.zeros(1, kernels.dtype)

    def begin(self, b):
        """Find the largest right-hand side."""
        self.kernels.largest_into(b, self.tolerance, self.limit)
        self.halo.maximum(self.limit)

    def note(self, x, b, stencil):
        """Note whether a residual is too large, on any rank."""
        self.kernels.exceeds(x, b, stencil, self.limit)
        self.halo.maximum(self.kernels.changed)


CRITERIA = {"change": ChangeCriterion, "residual": ResidualCriterion}


class Sor(RedBlack):
    """Successive over-relaxation in the order of `RedBlack`.

    Parameters
    ----------
    given : float or None
        The factor; None for the one that suits the smoothest mode best (Young, "Iterative Solution of Large Linear
        Systems", 1971).
    """

    def __init__(self, kernels, halo, accuracy: Accuracy, given: float | None = None):
        super().__init__(kernels, halo, accuracy)
        self.given = given

    def omega(self, stencil) -> float:
        """See `RedBlack`; never so large that mirrored ghosts, which add to the diagonal, make a solve diverge."""
        slab = self.kernels.slab
        asked = best_omega(stencil, slab) if self.given is None else self.given
        mirrors = sum(sign < 0 for sign in stencil.parity)
        return min(asked, 1.98 * stencil.diagonal / (stencil.diagonal + mirrors * stencil.neighbour))


LAGGING_WALLS = 0.29
"""What the best distance of the factor from 2 is multiplied with where cells at walls read their own old values, which
relaxes them less than the others; measured for a pressure at 32^3 and 64^3."""


def best_omega(stencil, slab) -> float:
    """Return the factor that damps the smoothest mode but the constant fastest."""
    waves = [(2 if periodic else 1) / number for number, periodic in zip(slab.cells, slab.periodic, strict=True)]
    radius = stencil.neighbour * (4.0 + 2.0 * math.cos(math.pi * min(waves))) / stencil.diagonal
    damping = math.sqrt(1.0 - radius**2)
    walled_pressure = stencil.own == 0 and not all(slab.periodic)
    return 2.0 / (1.0 + damping * (LAGGING_WALLS if walled_pressure else 1.0))


class Lexicographic:
    """Gauss-Seidel in the order of memory, on one rank and one thread: always as many iterations as are allowed."""

    def __init__(self, kernels, halo, accuracy: Accuracy):
        self.kernels, self.iterations = kernels, accuracy.iterations
        self.x, self.b = kernels.field(), kernels.field()

    def solve(self, x, b, stencil) -> None:
        """Improve `x` in place."""
        kernels = self.kernels
        kernels.merge(x, self.x)
        kernels.merge(b, self.b)
        kernels.relax_lexicographic(self.x, self.b, stencil, self.iterations)
        kernels.split(self.x, x)
