"""A field, and what devices do with several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
    """

    function: FieldFunction
    parameters: tuple[float, ...] = ()
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    conservative: bool = True


def numbers_of(fields: Sequence[ExternalField]) -> NDArray[np.float64]:
    """Return the centre and the parameters of each field, one field after another."""
    return np.array([x for field in fields for x in (*field.centre, *field.parameters)], float)


class Fields(Protocol):
    """The sum of some fields on one device, in float64."""

    def add(self, position: Array, velocity: Array, mass: Array, time: float, out: Array) -> None:
        """Add the accelerations of n bodies, (n, 3), to `out`."""

    def potential(self, position: Array, velocity: Array, mass: Array, time: float) -> Array:
        """Return the potential at n bodies, (n,)."""
