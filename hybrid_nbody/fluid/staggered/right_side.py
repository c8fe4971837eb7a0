"""The right-hand side of the equation of the pressure, and what closed pockets make of it."""

from hybrid_nbody.backends.base import Array
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.staggered.grid import Grid, Vector
from hybrid_nbody.fluid.staggered.pockets import Pocket
from hybrid_nbody.fluid.staggered.solids import SHORT, Solids

LEAK = 1e-4
"""Mean divergence of a closed pocket, relative to the largest speed, that is refused."""


class RightSide:
    """What flows into cells.

    Parameters
    ----------
    grid : Grid
    solids : Solids
    """

    def __init__(self, grid: Grid, solids: Solids) -> None:
        self.grid = grid
        self.solids = solids

    def set(self, velocity: Vector, out: Array) -> None:
        """Set every cell to what flows into it."""
        for part, masked in self.solids.parts_of(self.grid.region, SHORT):
            given = (*velocity, *self.solids.arguments_where(masked), -1.0, out)
            self.grid.program.run("divergence", part, *given)

    def mean(self, right_side: Array, pocket: Pocket) -> float:
        """Return the mean in a pocket."""
        given = (right_side, self.solids.pocket, float(pocket.number))
        return self.grid.total("total_in", self.grid.region, *given) / pocket.cells

    def balance(self, right_side: Array) -> None:
        """Take the mean out of every pocket."""
        for pocket in self.solids.pockets:
            mean = self.mean(right_side, pocket)
            given = (right_side, self.solids.pocket, float(pocket.number), -mean)
            self.grid.program.run("add_in", self.grid.region, *given)

    def unbalanced(self, velocity: Vector, speed: float, memory: Array) -> float:
        """Return the largest mean divergence of a closed pocket, which no pressure takes away.

        Parameters
        ----------
        velocity : tuple of array
        speed : float
            The largest.
        memory : array

        Raises
        ------
        NumericalError
            If more than rounding flows into one; on every rank.
        """
        if not self.solids.pockets:
            return 0.0
        self.set(velocity, memory)
        means = {pocket: self.mean(memory, pocket) for pocket in self.solids.pockets}
        worst = max(means, key=lambda pocket: abs(means[pocket]))
        if abs(means[worst]) > LEAK * speed:
            raise squeezed(worst, means[worst]).on_all_ranks()
        return abs(means[worst])


def squeezed(pocket: Pocket, inflow: float) -> NumericalError:
    """Return the error of a pocket whose volume would change."""
    what = "more fluid flows in than out" if inflow > 0.0 else "more fluid flows out than in"
    return NumericalError(
        f"obstacles: {pocket} is closed, and {what}: it would have to change its volume; leave a "
        "gap of a cell beside what moves, keep inlets and outlets in one part of the fluid, or "
        "make a face of the box outflow"
    )
