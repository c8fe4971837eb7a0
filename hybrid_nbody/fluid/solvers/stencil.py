"""The linear systems of a step: a cell and its six neighbours."""

from typing import NamedTuple

Factors = tuple[float, float, float, float, float, float, float, float]
"""What a cell changes by, over what its equation lacks: 1 is added to the index for a wall of x
beside the cell, 2 for one of y, 4 for one of z."""


class Stencil(NamedTuple):
    """The equation ``own * x + neighbour * (6 x - sum of the six neighbours of x) = b`` in every cell.

    Attributes
    ----------
    own : float
        0 or 1.
    neighbour : float
        Greater than 0.
    parity : tuple of int
        Sign of the ghosts behind a wall of the axes x, y and z: 1 copies the cell at the wall, -1
        mirrors it.
    """

    own: float
    neighbour: float
    parity: tuple[int, int, int]

    @property
    def diagonal(self) -> float:
        """Coefficient of x."""
        return self.own + 6.0 * self.neighbour

    @property
    def lagging(self) -> Factors:
        """Factors of a relaxation in which ghosts behind walls are as they were before it."""
        return (1.0 / self.diagonal,) * 8

    def relaxing(self, omega: float = 1.0) -> Factors:
        """Return the factors of an over-relaxation in which ghosts, made of the cell itself, belong to its diagonal."""
        walls = [
            [sign for axis, sign in enumerate(self.parity) if case >> axis & 1] for case in range(8)
        ]
        return tuple(omega / (self.diagonal - self.neighbour * sum(signs)) for signs in walls)


SCALAR = (1, 1, 1)
"""Parity of what is no component of a velocity."""

POISSON = Stencil(0.0, 1.0, SCALAR)
"""The compact seven-point Laplacian with its sign turned."""


def diffusion(ratio: float, parity: tuple[int, int, int]) -> Stencil:
    """Return the stencil of an implicit step of diffusion; `ratio` is dt * diffusivity / spacing^2."""
    return Stencil(1.0, ratio, parity)
