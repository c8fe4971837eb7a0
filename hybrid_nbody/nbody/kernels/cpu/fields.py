"""External fields on CPU threads."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cells.cpu import loaded
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, Moving, numbers_of
from hybrid_nbody.nbody.kernels.fields.python_text import python_source

Rows = NDArray[np.float64]


class Fields:
    """The sum of some fields; see `hybrid_nbody.nbody.kernels.fields.field.Fields`.

    Parameters
    ----------
    backend : Backend
    fields : sequence of ExternalField
        At least one.
    """

    def __init__(self, backend: Backend, fields: Sequence[ExternalField]) -> None:
        functions = [(field.function, len(field.parameters)) for field in fields]
        self._fill = loaded(python_source(functions)).fill
        self._numbers = numbers_of(fields)

    def add(self, moving: Moving, time: float, between: Rows, out: Rows) -> None:
        """Fill `out` with the accelerations between n bodies plus those of the fields."""
        np.add(between, self._values(moving, time)[:, :3], out=out)

    def kick(self, velocity: Rows, acceleration: Rows, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        velocity += acceleration * duration

    def potential(self, moving: Moving, time: float) -> Rows:
        """Return the potential at n bodies."""
        return self._values(moving, time)[:, 3]

    def _values(self, moving: Moving, time: float) -> Rows:
        values = np.empty((len(moving.mass), 4))
        self._fill(*moving, float(time), self._numbers, values)
        return values
