"""The linear systems of a step: equations that couple a cell with its six neighbours."""

from dataclasses import dataclass
from functools import cached_property

from hybrid_nbody.fluid.grid import SCALAR, Ghosts

Factors = tuple[float, float, float, float, float, float, float, float]
"""The change of a cell over its residual: 1 is added to the index for a wall of x beside the cell,
2 for one of y, 4 for one of z."""


@dataclass(frozen=True)
class Stencil:
    """The equation of a cell: ``shift * x + neighbour * (6 x - sum of six neighbours) = b``.

    Attributes
    ----------
    shift : float
        What is added to the diagonal of the Laplacian: 0 or 1.
    neighbour : float
        Greater than 0.
    ghosts : Ghosts
        The neighbours behind walls. Their offsets belong to b: `impose` of the kernels adds
        them before a solve, and no sweep needs them.
    """

    shift: float
    neighbour: float
    ghosts: Ghosts

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash, which kernels need at every call: computed once, since ghosts are nested."""
        return hash((self.shift, self.neighbour, self.ghosts))

    @cached_property
    def diagonal(self) -> float:
        """The coefficient of x."""
        return self.shift + 6.0 * self.neighbour

    @property
    def singular(self) -> bool:
        """Return whether a constant may be added to a solution."""
        return self.shift == 0 and self.ghosts == SCALAR

    @cached_property
    def fixed_ghost_factors(self) -> Factors:
        """The factors of a relaxation whose ghosts are those before it."""
        factor = 1.0 / self.diagonal
        return factor, factor, factor, factor, factor, factor, factor, factor

    def relaxation_factors(self, omega: float = 1.0) -> Factors:
        """Return the factors of an over-relaxation whose ghosts follow the cells at walls.

        The ghosts belong to the diagonal.

        Raises
        ------
        ValueError
            If the signs of ghosts behind two opposite walls differ.
        """
        signs = self.ghosts.axis_signs

        def factor(case: int) -> float:
            walls = [sign for axis, sign in enumerate(signs) if case >> axis & 1]
            return omega / (self.diagonal - self.neighbour * sum(walls))

        a, b, c, d, e, f, g, h = (factor(case) for case in range(8))
        return a, b, c, d, e, f, g, h


POISSON = Stencil(0.0, 1.0, SCALAR)
"""The compact seven-point Laplacian with its sign turned."""


def diffusion(ratio: float, ghosts: Ghosts) -> Stencil:
    """Return the stencil of implicit diffusion; `ratio` is dt * diffusivity / spacing^2."""
    return Stencil(1.0, ratio, ghosts)
