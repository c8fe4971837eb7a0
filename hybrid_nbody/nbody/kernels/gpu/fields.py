"""External fields on one GPU."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, Moving, numbers_of
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

    def add(self, moving: Moving, time: float, between: Array, out: Array) -> None:
        """Fill `out` with the accelerations between n bodies plus those of the fields."""
        self._launch("add_accelerations", moving, time, between, out)

    def kick(self, velocity: Array, acceleration: Array, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        size = velocity.size
        factor = np.float64(duration)
        self.module.launch("kick", size, THREADS, np.int32(size), factor, acceleration, velocity)

    def potential(self, moving: Moving, time: float) -> Array:
        """Return the potential at n bodies."""
        out = self.backend.xp.empty(len(moving.mass), "f8")
        self._launch("fill_potentials", moving, time, out)
        return out

    def _launch(self, name: str, moving: Moving, time: float, *arrays: Array) -> None:
        number = len(moving.mass)
        when = (np.float64(time), self.numbers)
        self.module.launch(name, number, THREADS, np.int32(number), *moving, *when, *arrays)
