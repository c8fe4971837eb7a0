"""External fields on CPU threads."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, FieldFunction, numbers_of

Rows = NDArray[np.float64]

AXES = 3


class Fields:
    """The sum of some fields; see `hybrid_nbody.nbody.kernels.fields.field.Fields`.

    Parameters
    ----------
    backend : Backend
    fields : sequence of ExternalField
        At least one.
    """

    def __init__(self, backend: Backend, fields: Sequence[ExternalField]) -> None:
        self._fill = filler(tuple((field.function, len(field.parameters)) for field in fields))
        self._numbers = numbers_of(fields)

    def add(self, position: Rows, velocity: Rows, mass: Rows, time: float, out: Rows) -> None:
        """Add the accelerations of n bodies to `out`."""
        out += self._values(position, velocity, mass, time)[:, :3]

    def potential(self, position: Rows, velocity: Rows, mass: Rows, time: float) -> Rows:
        """Return the potential at n bodies."""
        return self._values(position, velocity, mass, time)[:, 3]

    def _values(self, position: Rows, velocity: Rows, mass: Rows, time: float) -> Rows:
        values = np.empty((len(mass), 4))
        self._fill(position, velocity, mass, float(time), self._numbers, values)
        return values


@functools.lru_cache
def filler(functions: tuple[tuple[FieldFunction, int], ...]) -> Any:
    """Return a compiled loop over bodies that fills a row of four numbers for each.

    Parameters
    ----------
    functions : tuple of (FieldFunction, int)
        Functions and the number of their parameters.
    """
    value = _nothing
    start = 0
    for function, parameters in functions:
        value = _with(value, function, start, parameters)
        start += AXES + parameters

    @njit(error_model="numpy", parallel=True)
    def fill(position, velocity, mass, time, numbers, values):
        for i in prange(len(mass)):
            x, y, z, phi = value(
                (position[i, 0], position[i, 1], position[i, 2]),
                (velocity[i, 0], velocity[i, 1], velocity[i, 2]),
                mass[i],
                time,
                numbers,
            )
            values[i, 0] = x
            values[i, 1] = y
            values[i, 2] = z
            values[i, 3] = phi

    return fill


@njit(error_model="numpy")
def _nothing(position, velocity, mass, time, numbers):
    """Return the sum of no fields."""
    return 0.0, 0.0, 0.0, 0.0


def _with(before: Any, field: FieldFunction, start: int, parameters: int) -> Any:
    """Return the sum of some fields and one more, of a body; its numbers begin at `start`."""
    function = njit(error_model="numpy")(field)
    centre_of = _several(start, AXES)
    parameters_of = _several(start + AXES, parameters)

    @njit(error_model="numpy")
    def value(position, velocity, mass, time, numbers):
        x, y, z, phi = before(position, velocity, mass, time, numbers)
        x0, y0, z0 = centre_of(numbers)
        about = (position[0] - x0, position[1] - y0, position[2] - z0)
        ax, ay, az, more = function(about, velocity, mass, time, parameters_of(numbers))
        return x + ax, y + ay, z + az, phi + more

    return value


def _several(start: int, length: int) -> Any:
    """Return a function that makes a tuple of some of the numbers in an array."""
    if length == 0:
        return njit(lambda numbers: ())
    before = _several(start, length - 1)
    last = start + length - 1

    @njit
    def several(numbers):
        return before(numbers) + (numbers[last],)

    return several
