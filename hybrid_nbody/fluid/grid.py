"""The grid: its boundary, and the planes of it that one rank owns."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

AXES = "xyz"
FACES = ("x-", "x+", "y-", "y+", "z-", "z+")
"""The faces of the box, in the order of everything that has six."""

CONDITIONS = ("free-slip", "no-slip", "periodic")
"""The boundary conditions of a face."""


class Ghost(NamedTuple):
    """The ghost behind a face, given by the cell at it: ``sign * cell + offset``.

    Attributes
    ----------
    sign : int
        1 or -1.
    offset : float
        In the units of the field; 0 for a wall at rest.
    """

    sign: int
    offset: float = 0.0


COPY = Ghost(1)
"""No gradient at the face. Also what stands for a periodic face, behind which there is no ghost."""


class Ghosts(NamedTuple):
    """The ghosts of a field behind the six faces: those of the axes x, y and z, low before high."""

    x_low: Ghost = COPY
    x_high: Ghost = COPY
    y_low: Ghost = COPY
    y_high: Ghost = COPY
    z_low: Ghost = COPY
    z_high: Ghost = COPY

    @property
    def signs(self) -> tuple[int, ...]:
        """Return the signs of the six faces."""
        return tuple(ghost.sign for ghost in self)

    @property
    def offsets(self) -> tuple[float, ...]:
        """Return the offsets of the six faces."""
        return tuple(ghost.offset for ghost in self)

    @property
    def axis_signs(self) -> tuple[int, int, int]:
        """Return one sign for each axis.

        Raises
        ------
        ValueError
            If the signs of an axis's two faces differ.
        """
        low, high = self.signs[0::2], self.signs[1::2]
        if low != high:
            axis = AXES[[a == b for a, b in zip(low, high, strict=True)].index(False)]
            raise ValueError(
                f"the ghosts behind {axis}- and {axis}+ have different signs, which this solver "
                "does not support; use red-black on CPUs, or the same condition on both faces"
            )
        return low[0], low[1], low[2]


SCALAR = Ghosts()
"""Ghosts of density and pressure: no gradient at any wall."""


@dataclass(frozen=True)
class Face:
    """The condition at one face of the box.

    Attributes
    ----------
    condition : {"free-slip", "no-slip", "periodic"}
    velocity : tuple of float
        The value of the condition: how a wall moves. A free-slip wall imposes its normal component,
        a no-slip wall all three.
    """

    condition: str
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if self.condition not in CONDITIONS:
            raise ValueError(
                f"{self.condition!r} is not a boundary condition; take one of "
                f"{', '.join(CONDITIONS)}"
            )

    def ghost(self, axis: int, component: int) -> Ghost:
        """Return the ghost of a component of the velocity behind this face of an axis.

        A component that the wall imposes has its value halfway between the cell and the ghost.
        """
        normal = axis == component
        imposed = {"free-slip": normal, "no-slip": True, "periodic": False}
        if not imposed[self.condition]:
            return COPY
        return Ghost(-1, 2.0 * self.velocity[component])


@dataclass(frozen=True)
class Boundary:
    """The conditions at the six faces of the box.

    Attributes
    ----------
    faces : tuple of Face
        In the order of `FACES`.
    """

    faces: tuple[Face, Face, Face, Face, Face, Face]

    def __str__(self) -> str:
        """Return the conditions of the faces."""
        return ", ".join(face.condition for face in self.faces)

    def __post_init__(self) -> None:
        if len(self.faces) != len(FACES):
            raise ValueError(
                f"a boundary has six faces ({', '.join(FACES)}), not {len(self.faces)}"
            )
        for axis, (low, high) in zip(AXES, self.axes, strict=True):
            if (low.condition == "periodic") != (high.condition == "periodic"):
                raise ValueError(
                    f"only one of the faces {axis}- and {axis}+ is periodic; make both so, or none"
                )

    @classmethod
    def of_axes(cls, conditions: tuple[str, str, str]) -> "Boundary":
        """Return the boundary whose walls are at rest and alike at both ends of x, y and z."""
        x, y, z = (Face(condition) for condition in conditions)
        return cls((x, x, y, y, z, z))

    @property
    def axes(self) -> tuple[tuple[Face, Face], tuple[Face, Face], tuple[Face, Face]]:
        """Return the low and the high face of x, y and z."""
        x_low, x_high, y_low, y_high, z_low, z_high = self.faces
        return (x_low, x_high), (y_low, y_high), (z_low, z_high)

    @cached_property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return which axes wrap around."""
        x, y, z = (low.condition == "periodic" for low, _ in self.axes)
        return x, y, z

    @property
    def scalar_ghosts(self) -> Ghosts:
        """Return the ghosts of density and pressure."""
        return SCALAR

    @cached_property
    def velocity_ghosts(self) -> tuple[Ghosts, Ghosts, Ghosts]:
        """Return the ghosts of u, v and w."""
        u, v, w = (self._ghosts_of(component) for component in range(3))
        return u, v, w

    def _ghosts_of(self, component: int) -> Ghosts:
        return Ghosts(*(face.ghost(i // 2, component) for i, face in enumerate(self.faces)))


@dataclass(frozen=True)
class Slab:
    """Planes of z of a grid of cubic cells; the longest edge of the whole box has length 1.

    Arrays of cells are laid out as (z, y, x), with a halo plane below and one above those that the
    rank owns.

    Attributes
    ----------
    cells : tuple of int
        Cells nx, ny, nz of the whole grid.
    boundary : Boundary
        The conditions at the faces of the whole grid.
    first, planes : int
        The rank owns planes first ... first + planes - 1.
    mixed : bool
        Whether ranks compute on devices of several kinds, which must lay planes out and end solves
        alike.
    """

    cells: tuple[int, int, int]
    boundary: Boundary
    first: int
    planes: int
    mixed: bool = False

    @classmethod
    def whole(cls, cells: tuple[int, int, int], boundary: Boundary) -> "Slab":
        """Return the slab of a rank that owns every plane."""
        return cls(cells, boundary, 0, cells[2])

    @property
    def spacing(self) -> float:
        """Return the edge of a cell."""
        return 1.0 / max(self.cells)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of an array of cells, with its halo planes."""
        return self.planes + 2, self.cells[1], self.cells[0]

    @property
    def half(self) -> int:
        """Return the largest number of cells of one colour in a row."""
        return (self.cells[0] + 1) // 2

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return which axes wrap around."""
        return self.boundary.periodic

    @property
    def complete(self) -> bool:
        """Return whether the rank owns every plane."""
        return self.planes == self.cells[2]

    @property
    def walls(self) -> tuple[bool, bool]:
        """Return whether a wall, and no other plane, lies below and above the slab."""
        last = self.first + self.planes == self.cells[2]
        return not self.periodic[2] and self.first == 0, not self.periodic[2] and last

    @property
    def velocity_ghosts(self) -> tuple[Ghosts, Ghosts, Ghosts]:
        """Return the ghosts of u, v and w."""
        return self.boundary.velocity_ghosts
