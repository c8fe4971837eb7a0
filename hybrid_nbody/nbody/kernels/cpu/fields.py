"""External fields on CPU threads."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.cells.cpu import loaded
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, numbers_of
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
