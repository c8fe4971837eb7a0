"""External fields on one GPU."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, numbers_of
from hybrid_nbody.nbody.kernels.fields.translation import translated

SOURCE = Path(__file__).parent / "fields.cu"
THREADS = 256


def defines(fields: Sequence[ExternalField]) -> dict[str, str | int]:
    """Return the macros of the source: functions, and calls with the numbers of each field."""
    functions = ""
    calls = ""
    start = 0
    for place, field in enumerate(fields):
        functions += translated(field.function, f"field_{place}", len(field.parameters))
        numbers = f"numbers + {start}, numbers + {start + 3}"
        calls += f"add_field(field_{place}, position, velocity, mass, time, {numbers}, sum); "
        start += 3 + len(field.parameters)
    return {"FUNCTIONS": functions, "CALLS": calls}


class Fields:
    """The sum of some fields; see `hybrid_nbody.nbody.kernels.fields.field.Fields`.

    Parameters
    ----------
    backend : GpuBackend
    fields : sequence of ExternalField
        At least one.
    """

    def __init__(self, backend: GpuBackend, fields: Sequence[ExternalField]) -> None:
        self.backend = backend
        self.module = CudaModule(backend, SOURCE, defines(fields), ())
        self.numbers = backend.upload(numbers_of(fields))

    def add(self, position: Array, velocity: Array, mass: Array, time: float, out: Array) -> None:
        """Add the accelerations of n bodies to `out`."""
        self._launch("add_accelerations", (position, velocity, mass), time, out)

    def potential(self, position: Array, velocity: Array, mass: Array, time: float) -> Array:
        """Return the potential at n bodies."""
        out = self.backend.xp.empty(len(mass), "f8")
        self._launch("fill_potentials", (position, velocity, mass), time, out)
        return out

    def _launch(
        self, name: str, bodies: tuple[Array, Array, Array], time: float, out: Array
    ) -> None:
        number = len(bodies[2])
        when = (np.float64(time), self.numbers)
        self.module.launch(name, number, THREADS, np.int32(number), *bodies, *when, out)
