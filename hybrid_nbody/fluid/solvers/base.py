"""Common parts of the solvers of linear systems: contract, criteria and the loop of iterations."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hybrid_nbody.fluid.kernels.contract import Array, Kernels
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.stencil import Stencil

COLOURS = (0, 1)
NEVER_MET = -1.0
"""A tolerance below every change: each counts as one, even none at all."""


class Solver(Protocol):
    """Solves a linear system on the planes of all ranks."""

    def solve(self, x: Array, b: Array, equation: Stencil, scratch: Array | None) -> None:
        """Improve `x` in place; collective.

        Parameters
        ----------
        x, b : array by colour
            First guess, which becomes the solution, and right-hand side. A solver that begins from
            zero does not read the guess. The halo planes of x are valid in the end, if there are
            other ranks.
        equation : Stencil
        scratch : flat array or None
            Memory, two fields long, that is free meanwhile.
        """


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
    def measured(self) -> str:
        """Return the criterion; without a tolerance, the one that costs nothing."""
        return self.criterion if self.tolerance else "change"

    @property
    def limit(self) -> float:
        """Return the tolerance, or one that is never met: without one, all iterations are done."""
        return self.tolerance or NEVER_MET


class Criterion(Protocol):
    """Decides after every iteration whether the solve goes on, on all ranks alike.

    Attributes
    ----------
    tolerated_change : float
        Larger changes of a cell are noted by the kernels.
    """

    tolerated_change: float

    def begin(self, b: Array) -> None:
        """Prepare a solve."""

    def check(self, x: Array, b: Array, equation: Stencil) -> None:
        """Leave in `changed` of the kernels, on all ranks, whether the solve goes on."""


class ChangeCriterion:
    """A solve ends when no cell has changed by more than the tolerance."""

    def __init__(self, kernels: Kernels, halo: Halo, tolerance: float):
        self.kernels = kernels
        self.halo = halo
        self.tolerated_change = tolerance

    def begin(self, b: Array) -> None:
        """Do nothing."""

    def check(self, x: Array, b: Array, equation: Stencil) -> None:
        """See `Criterion`; where nothing can end a solve, all ranks have noted a change."""
        if self.tolerated_change > 0:
            self.halo.maximum(self.kernels.changed)


class ResidualCriterion:
    """A solve ends when no residual exceeds the tolerance times the largest right-hand side."""

    tolerated_change = math.inf

    def __init__(self, kernels: Kernels, halo: Halo, tolerance: float):
        self.kernels = kernels
        self.halo = halo
        self.tolerance = tolerance
        self.limit = kernels.backend.zeros(1, kernels.dtype)

    def begin(self, b: Array) -> None:
        """Find the largest residual that is allowed."""
        self.kernels.largest_into(b, self.tolerance, self.limit)
        self.halo.maximum(self.limit)

    def check(self, x: Array, b: Array, equation: Stencil) -> None:
        """See `Criterion`."""
        self.kernels.exceeds(x, b, equation, self.limit)
        self.halo.maximum(self.kernels.changed)


CRITERIA: dict[str, Callable[[Kernels, Halo, float], Criterion]] = {
    "change": ChangeCriterion,
    "residual": ResidualCriterion,
}


class IterativeSolver:
    """The loop of solvers that decide after every iteration whether to go on.

    A subclass has ``improve(x, b, equation)``, which does one iteration.

    Parameters
    ----------
    kernels : Kernels
        Those of this rank's device.
    halo : HaloExchange or FullGrid
        How ranks see each other's planes.
    accuracy : Accuracy
        When a solve ends.
    """

    def __init__(self, kernels: Kernels, halo: Halo, accuracy: Accuracy):
        self.kernels = kernels
        self.halo = halo
        self.accuracy = accuracy
        self.criterion = CRITERIA[accuracy.measured](kernels, halo, accuracy.limit)

    def improve(self, x: Array, b: Array, equation: Stencil) -> None:
        """Do one iteration; the halo planes of the second colour of `x` are valid before it."""
        raise NotImplementedError

    def iterate(self, x: Array, b: Array, equation: Stencil) -> None:
        """Improve `x` until the criterion is met or no iteration is left, on all ranks alike."""
        kernels = self.kernels
        kernels.begin_solve()
        self.criterion.begin(b)
        self.halo.fill(x[1])
        for _ in range(self.accuracy.iterations):
            if kernels.stopped():
                break
            self.improve(x, b, equation)
            self.criterion.check(x, b, equation)
            kernels.end_iteration()
        kernels.end_solve()
