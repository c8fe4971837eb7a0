"""Solvers of the linear systems of a step, on the planes of all ranks.

A solver has one method, ``solve(x, b, stencil, room)``: x and b are arrays of colours (see
`hybrid_nbody.fluid.kernels`), x holds the first guess on entry and the solution on exit, its halo
planes included where there are other ranks; room is a flat array as long as two fields, which a
solver may use meanwhile.
"""

import math
from dataclasses import dataclass

from hybrid_nbody.fluid.solvers.stencil import Factors

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
        What is compared with the tolerance: the largest change of a cell in the iteration, or the
        largest residual relative to the largest right-hand side.
    """

    iterations: int
    tolerance: float
    criterion: str = "change"

    @property
    def limit(self) -> float:
        """The tolerance, or a number that nothing meets: a solve without a tolerance does all its iterations."""
        return self.tolerance or NEVER_MET


class Iterative:
    """What solvers share that ask after every iteration whether to go on; ``improve(x, b, stencil)`` does one.

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
        self.kernels = kernels
        self.halo = halo
        self.accuracy = accuracy
        self.criterion = CRITERIA[accuracy.criterion](kernels, halo, accuracy.limit)

    def iterate(self, x, b, stencil) -> None:
        """Improve `x` until the criterion is met or no iteration is left, on all ranks alike."""
        kernels = self.kernels
        kernels.begin_solve()
        self.criterion.begin(b)
        self.halo.fill(x[1])
        for _ in range(self.accuracy.iterations):
            if kernels.stopped():
                break
            self.improve(x, b, stencil)
            self.criterion.note(x, b, stencil)
            kernels.end_iteration()
        kernels.end_solve()


class RedBlack(Iterative):
    """Gauss-Seidel: every cell of one colour, then every cell of the other. Bits do not depend on ranks or threads.

    Parameters are those of `Iterative`.
    """

    fusible = True  # whether kernels may do all iterations by themselves

    def __init__(self, kernels, halo, accuracy: Accuracy):
        super().__init__(kernels, halo, accuracy)
        self.fused = self.fusible and accuracy.criterion == "change" and kernels.relaxes(halo)

    def factors(self, stencil) -> Factors:
        """Return what a cell changes by, over what its equation lacks."""
        return stencil.lagging

    def solve(self, x, b, stencil, room) -> None:
        """Improve `x` in place."""
        if self.fused:
            self.kernels.relax(
                x, b, stencil, self.accuracy.iterations, self.accuracy.limit, room, self.halo
            )
        else:
            self.iterate(x, b, stencil)
            self.halo.fill(*x)

    def improve(self, x, b, stencil) -> None:
        """Sweep colour by colour, and let every rank know of the others' changes."""
        factors = self.factors(stencil)
        for colour in COLOURS:
            self.kernels.sweep(colour, x, b, stencil, factors, self.criterion.change)
            self.halo.fill(x[colour])


class ChangeCriterion:
    """A solve ends when no cell has changed by more than the tolerance."""

    def __init__(self, kernels, halo, tolerance):
        self.kernels = kernels
        self.halo = halo
        self.change = tolerance

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
        self.kernels = kernels
        self.halo = halo
        self.tolerance = tolerance
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
        The factor; None for the one that suits the smoothest mode best (Young, "Iterative Solution
        of Large Linear Systems", 1971).
    """

    fusible = False

    def __init__(self, kernels, halo, accuracy: Accuracy, given: float | None = None):
        super().__init__(kernels, halo, accuracy)
        self.given = given

    def factors(self, stencil) -> Factors:
        """See `RedBlack`; cells at walls are relaxed as much as the others."""
        return stencil.relaxing(self.given or best_omega(stencil, self.kernels.slab))


def best_omega(stencil, slab) -> float:
    """Return the factor that damps the smoothest mode but the constant fastest."""
    waves = [
        (2 if periodic else 1) / number
        for number, periodic in zip(slab.cells, slab.periodic, strict=True)
    ]
    radius = stencil.neighbour * (4.0 + 2.0 * math.cos(math.pi * min(waves))) / stencil.diagonal
    return 2.0 / (1.0 + math.sqrt(1.0 - radius**2))


class Lexicographic:
    """Gauss-Seidel in the order of memory, on one rank and one thread: always as many iterations as are allowed."""

    def __init__(self, kernels, halo, accuracy: Accuracy):
        self.kernels = kernels
        self.iterations = accuracy.iterations

    def solve(self, x, b, stencil, room) -> None:
        """Improve `x` in place."""
        kernels = self.kernels
        cells, right_side = room.reshape(2, *kernels.slab.shape)
        kernels.merge(x, cells)
        kernels.merge(b, right_side)
        kernels.relax_lexicographic(cells, right_side, stencil, self.iterations)
        kernels.split(cells, x)
