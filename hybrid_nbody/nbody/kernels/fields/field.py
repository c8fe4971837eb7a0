"""A field, and what devices do with several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array

FieldFunction = Callable[..., Any]
"""``f(position, velocity, mass, time, parameters)``: the components of the acceleration, and the
potential, all of them numbers; `position` and `velocity` have three components."""


@dataclass(frozen=True)
class ExternalField:
    """A function of scalars about a centre.

    Attributes
    ----------
    function : FieldFunction
        Positions are given to it about the centre.
    parameters : tuple of float
    centre : tuple of float
        (x, y, z), in units of length.
    conservative : bool
        Whether the energy of a body in it is conserved.
    is_round : bool
        Whether it is the same at all angles about the z axis of its centre.
    pattern_speed : float
        Angle by which it turns about that axis in a unit of time.
    """

    function: FieldFunction
    parameters: tuple[float, ...] = ()
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    conservative: bool = True
    is_round: bool = False
    pattern_speed: float = 0.0

    @property
    def axis(self) -> tuple[float, float]:
        """Return where the z axis of its centre is."""
        return self.centre[:2]


class Rotation(NamedTuple):
    """A frame in which fields stand still: it turns about an axis along z.

    Attributes
    ----------
    speed : float
        Angle by which it turns in a unit of time.
    x, y : float
        Where the axis is.
    """

    speed: float
    x: float
    y: float


def rotation_of(fields: Sequence[ExternalField]) -> Rotation | None:
    """Return the frame in which all fields stand still, if one turns; None where there is none.

    Those that turn have one speed and one axis, and the others are round about it.
    """
    frames = {Rotation(field.pattern_speed, *field.axis) for field in fields if field.pattern_speed}
    if len(frames) != 1:
        return None
    (frame,) = frames
    others = [field for field in fields if not field.pattern_speed]
    stand_still = all(field.is_round and field.axis == frame[1:] for field in others)
    return frame if stand_still else None


def numbers_of(fields: Sequence[ExternalField]) -> NDArray[np.float64]:
    """Return the centre and the parameters of each field, one field after another."""
    return np.array([x for field in fields for x in (*field.centre, *field.parameters)], float)


class Moving(NamedTuple):
    """Bodies in fields: (n, 3) positions and velocities, (n,) masses, of float64 on a device."""

    position: Array
    velocity: Array
    mass: Array


class Fields(Protocol):
    """The sum of some fields on one device, in float64."""

    def add(self, moving: Moving, time: float, between: Array, out: Array) -> None:
        """Fill `out` with the accelerations between n bodies, (n, 3), plus those of the fields."""

    def kick(self, velocity: Array, acceleration: Array, duration: float) -> None:
        """Change velocities: v += a `duration`."""

    def potential(self, moving: Moving, time: float) -> Array:
        """Return the potential at n bodies, (n,)."""
