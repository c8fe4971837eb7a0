"""What a step of the staggered fluid is given, and what it changes."""

from dataclasses import dataclass

from hybrid_nbody.backends.base import Array
from hybrid_nbody.fluid.staggered.grid import Vector

Three = tuple[float, float, float]


@dataclass(frozen=True)
class Physics:
    """What moves the fluid.

    Attributes
    ----------
    viscosity : float
    diffusivity : dict of float
        Of every scalar.
    lift : dict of (float, float, float)
        The acceleration by a unit of a scalar.
    second_order : bool
        Whether steps are of second order, with MacCormack's correction; else of first.
    confinement : float
        Strength of the force that restores eddies damped by the grid; 0: none.
    conserve : bool
        Whether the total of every scalar stays as it is, in a box that is closed.
    """

    viscosity: float
    diffusivity: dict[str, float]
    lift: dict[str, Three]
    second_order: bool
    confinement: float = 0.0
    conserve: bool = False


@dataclass
class State:
    """The fluid, with valid ghosts between steps.

    Attributes
    ----------
    velocity : tuple of array
    before : tuple of array
        The velocity a step ago; empty where steps are of first order.
    pressure : array
        Over the density of the fluid.
    scalars : dict of array
    """

    velocity: Vector
    before: tuple[Array, ...]
    pressure: Array
    scalars: dict[str, Array]


@dataclass(frozen=True)
class Span:
    """The time of a step.

    Attributes
    ----------
    start, end : float
    length : float
        What lies between them, as it was before `end` was rounded.
    """

    start: float
    length: float
    end: float
