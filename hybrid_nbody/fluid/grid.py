"""The planes of a grid that one rank owns, and what lies behind their edges."""

from dataclasses import dataclass

from hybrid_nbody.fluid.solvers.stencil import SCALAR

MIRRORED = {
    "free-slip": lambda axis, component: axis == component,
    "no-slip": lambda axis, component: True,
}
"""Whether a wall of an axis mirrors a component of the velocity with a minus sign: its normal one,
or every one."""


@dataclass(frozen=True)
class Slab:
    """Planes of z of a grid of cubic cells; the longest edge of the whole box has length 1.

    Arrays of cells are laid out as (z, y, x), with a halo plane below and one above those that the
    rank owns.

    Attributes
    ----------
    cells : tuple of int
        Cells nx, ny, nz of the whole grid.
    boundary : tuple of str
        ``free-slip``, ``no-slip`` or ``periodic`` for the axes x, y and z.
    first, planes : int
        The rank owns planes first ... first + planes - 1.
    mixed : bool
        Whether ranks compute on devices of several kinds, which must lay planes out and end solves
        alike.
    """

    cells: tuple[int, int, int]
    boundary: tuple[str, str, str]
    first: int
    planes: int
    mixed: bool = False

    @classmethod
    def whole(cls, cells: tuple[int, int, int], boundary: tuple[str, str, str]) -> "Slab":
        """Return the slab of a rank that owns every plane."""
        return cls(cells, boundary, 0, cells[2])

    @property
    def spacing(self) -> float:
        """Edge of a cell."""
        return 1.0 / max(self.cells)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of an array of cells, with its halo planes."""
        return self.planes + 2, self.cells[1], self.cells[0]

    @property
    def half(self) -> int:
        """Most cells of one colour in a row."""
        return (self.cells[0] + 1) // 2

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Which axes wrap around."""
        return tuple(kind == "periodic" for kind in self.boundary)

    @property
    def complete(self) -> bool:
        """Whether the rank owns every plane."""
        return self.planes == self.cells[2]

    @property
    def walls(self) -> tuple[bool, bool]:
        """Whether a wall, and no other plane, lies below and above the slab."""
        last = self.first + self.planes == self.cells[2]
        return not self.periodic[2] and self.first == 0, not self.periodic[2] and last

    def velocity_parity(self, component: int) -> tuple[int, int, int]:
        """Return the sign of the ghosts of a component of the velocity behind the walls of each axis."""
        return velocity_parity(self.boundary, component)


def velocity_parity(boundary: tuple[str, str, str], component: int) -> tuple[int, int, int]:
    """Return the sign of the ghosts of a component of the velocity behind the walls of each axis."""
    signs = list(SCALAR)
    for axis, kind in enumerate(boundary):
        if kind != "periodic" and MIRRORED[kind](axis, component):
            signs[axis] = -1
    return tuple(signs)
