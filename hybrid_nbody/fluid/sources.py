"""Sources of density and velocity: events at steps, in a box or a sphere of cells."""

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.kernels.contract import Kernels


@dataclass(frozen=True)
class Box:
    """Cells of a box.

    Attributes
    ----------
    edges : tuple of int
        x0, x1, y0, y1, z0, z1: cells x0 ... x1 - 1 and so on, of all ranks.
    """

    edges: tuple[int, int, int, int, int, int]

    @classmethod
    def cell(cls, x: int, y: int, z: int) -> "Box":
        """Return a box of one cell."""
        return cls((x, x + 1, y, y + 1, z, z + 1))

    def set(self, kernels: Kernels, field: Array, value: float) -> None:
        """Set the cells of `field` to `value`."""
        kernels.set_box(field, self.edges, value)

    def add(self, kernels: Kernels, field: Array, value: float) -> None:
        """Add `value` to the cells of `field`."""
        kernels.add_box(field, self.edges, value)


@dataclass(frozen=True)
class Sphere:
    """Cells whose centres lie within a sphere.

    Attributes
    ----------
    centre : tuple of float
        In cells: cell (i, j, k) has its centre at (i, j, k).
    radius : float
        In cells.
    """

    centre: tuple[float, float, float]
    radius: float

    def set(self, kernels: Kernels, field: Array, value: float) -> None:
        """Set the cells of `field` to `value`."""
        kernels.set_sphere(field, self.centre, self.radius, value)

    def add(self, kernels: Kernels, field: Array, value: float) -> None:
        """Add `value` to the cells of `field`."""
        kernels.add_sphere(field, self.centre, self.radius, value)


@dataclass(frozen=True)
class Event:
    """A change of the fluid before each step of a range.

    Attributes
    ----------
    first, last : int
        Steps before which it happens, both included; the first step of a run is 0.
    field : {"density", "velocity"}
        The field that changes.
    values : tuple of float
        The density, or three components of the velocity.
    region : Box or Sphere
        The cells where it changes.
    mode : {"set", "add"}
        Whether the values replace what is there, or are added to it.
    """

    first: int
    last: int
    field: str
    values: tuple[float, ...]
    region: Box | Sphere
    mode: str = "set"

    def happens_before(self, step: int) -> bool:
        """Return whether it happens before a step."""
        return self.first <= step <= self.last

    def apply(self, kernels: Kernels, arrays: Sequence[Array]) -> None:
        """Change arrays, one for each of the values."""
        change = {"set": self.region.set, "add": self.region.add}[self.mode]
        for array, value in zip(arrays, self.values, strict=True):
            change(kernels, array, value)


class Sources:
    """All events of a run; those at one step happen in the order in which they were given."""

    def __init__(self, events: Sequence[Event]):
        self.events = tuple(events)

    def at(self, step: int) -> list[Event]:
        """Return the events before a step."""
        return [event for event in self.events if event.happens_before(step)]
