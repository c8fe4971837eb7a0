"""The six faces of the box: what the fluid does at each of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

from hybrid_nbody.fluid.staggered.profiles import Profile, Stretched

KINDS = ("free-slip", "no-slip", "inflow", "outflow", "periodic")
"""What a face can be."""

NAMES = ("x-", "x+", "y-", "y+", "z-", "z+")
"""The faces in the order of everything that has six."""


@dataclass(frozen=True)
class Face:
    """The condition at one face of the box.

    Attributes
    ----------
    kind : {"free-slip", "no-slip", "inflow", "outflow", "periodic"}
        free-slip: a wall along which the fluid slides; no-slip: a wall that takes the fluid along;
        inflow: the velocity is given; outflow: the fluid leaves as it comes; periodic: what leaves
        here enters at the opposite face.
    velocity : Profile, optional
        Of an inflow, or of a no-slip wall that moves.
    scalars : mapping of str to float
        Of an inflow: the values that come in, 0 for scalars that are not named.

    Raises
    ------
    ValueError
        If the kind is none of these, or has a velocity or scalars where it knows none.
    """

    kind: str
    velocity: Profile | None = None
    scalars: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no kind of face; take one of {', '.join(KINDS)}")
        if self.kind == "inflow" and self.velocity is None:
            raise ValueError("an inflow needs a velocity")
        if self.kind not in ("inflow", "no-slip") and self.velocity is not None:
            raise ValueError(f"{self.kind} has no velocity of its own; only inflow and no-slip do")
        if self.kind != "inflow" and self.scalars:
            raise ValueError(f"{self.kind} gives no scalars; only inflow does")

    @property
    def steady(self) -> bool:
        """Return whether nothing of it changes with time."""
        return self.velocity is None or self.velocity.steady

    def stretched(self, factors: tuple[float, float, float]) -> "Face":
        """Return the same for a box whose edges are shorter by some factors."""
        if self.velocity is None:
            return self
        return replace(self, velocity=Stretched(self.velocity, factors))


@dataclass(frozen=True)
class Faces:
    """The conditions at the six faces of the box.

    Raises
    ------
    ValueError
        If only one face of an axis is periodic, or what flows in cannot leave.
    """

    x_low: Face
    x_high: Face
    y_low: Face
    y_high: Face
    z_low: Face
    z_high: Face

    def __post_init__(self) -> None:
        kinds = tuple(face.kind for face in self)
        fault = half_periodic(kinds) or without_outlet(kinds)
        if fault:
            raise ValueError(fault)

    @classmethod
    def of_axes(cls, kinds: tuple[str, str, str]) -> "Faces":
        """Return faces that are alike at both ends of x, y and z, with walls at rest."""
        x, y, z = (Face(kind) for kind in kinds)
        return cls(x, x, y, y, z, z)

    def __iter__(self) -> Iterator[Face]:
        """Yield the faces in the order of `NAMES`."""
        return (getattr(self, field.name) for field in fields(self))

    def pair(self, axis: int) -> tuple[Face, Face]:
        """Return the low and the high face of an axis, 0, 1 or 2."""
        pairs = ((self.x_low, self.x_high), (self.y_low, self.y_high), (self.z_low, self.z_high))
        return pairs[axis]

    @cached_property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return which axes wrap around."""
        x, y, z = (self.pair(axis)[0].kind == "periodic" for axis in range(3))
        return x, y, z

    def stretched(self, factors: tuple[float, float, float]) -> "Faces":
        """Return the same for a box whose edges are shorter by some factors."""
        return Faces(*(face.stretched(factors) for face in self))

    @property
    def has_outlets(self) -> bool:
        """Return whether fluid may leave through any face."""
        return any(face.kind == "outflow" for face in self)

    @property
    def steady(self) -> bool:
        """Return whether no face changes with time."""
        return all(face.steady for face in self)


def half_periodic(kinds: Sequence[str]) -> str:
    """Return what is wrong where one face of an axis alone is periodic; empty if nothing is.

    Parameters
    ----------
    kinds : sequence of str
        Those of the faces in the order of `NAMES`.
    """
    for low, high in zip(range(0, 6, 2), range(1, 6, 2), strict=True):
        if (kinds[low] == "periodic") != (kinds[high] == "periodic"):
            faces = f"{NAMES[low]} and {NAMES[high]}"
            return f"only one of the faces {faces} is periodic; make both so, or none"
    return ""


def without_outlet(kinds: Sequence[str]) -> str:
    """Return what is wrong where fluid flows in and cannot leave; empty if nothing is.

    Parameters
    ----------
    kinds : sequence of str
        Those of the faces in the order of `NAMES`.
    """
    inlets = [name for name, kind in zip(NAMES, kinds, strict=True) if kind == "inflow"]
    if not inlets or "outflow" in kinds:
        return ""
    return f"what flows in at {', '.join(inlets)} cannot leave; make another face outflow"
