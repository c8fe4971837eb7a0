"""The formulas of a Hermite substep on a GPU, of which the kernels are in ``hermite.cu``.

See `hybrid_nbody.nbody.kernels.contract.HermiteFormulas`; everything is queued on the backend's
stream.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.integrators.substeps import CANCELLATION, FIRST_SUBSTEP
from hybrid_nbody.nbody.kernels.contract import Corrected, Criterion
from hybrid_nbody.nbody.kernels.units import power_of_two

SOURCE = Path(__file__).with_name("hermite.cu")

THREADS = 128
"""Threads of a block."""

DEFINES: dict[str, int | str] = {"THREADS": THREADS, "CANCELLATION": str(CANCELLATION)}
"""Macros of ``hermite.cu``."""


class Formulas:
    """Hermite's formulas on one GPU."""

    def __init__(self, backend: GpuBackend):
        self.module = CudaModule(backend, SOURCE, DEFINES)

    def _launch(self, name: str, threads: int, *arguments: Any) -> None:
        self.module.launch(name, threads, THREADS, np.int32(threads), *arguments)

    def predict(
        self,
        h: float,
        start: Array,
        origin: NDArray[np.float64],
        position: Array,
        velocity: Array,
    ) -> None:
        """Fill positions from `origin` and velocities, (n, 3) each, a time `h` after `start`."""
        arrays = (*origin, position, velocity)
        self._launch("predict", position.size, np.float64(h), start, *arrays)

    def correct(
        self, h: float, start: Array, acceleration: Array, jerk: Array, corrected: Corrected
    ) -> None:
        """Fill corrected positions and velocities from the accelerations and jerks at the end."""
        size = corrected.position.size
        self._launch("correct", size, np.float64(h), start, acceleration, jerk, *corrected)

    def first_steps(
        self, accuracy: float, negligible: float, acceleration: Array, jerk: Array, result: Array
    ) -> None:
        """Fill `result`, (n,), with the first substep of each body."""
        factor = FIRST_SUBSTEP * np.sqrt(accuracy)
        numbers = (factor, np.float64(negligible))
        self._launch("first_steps", result.size, *numbers, acceleration, jerk, result)

    def next_steps(
        self,
        h: float,
        criterion: Criterion,
        start: Array,
        acceleration: Array,
        jerk: Array,
        result: Array,
    ) -> None:
        """Fill `result`, (n,), with the substep of each body that follows one of length `h`."""
        time = power_of_two(criterion.dt)
        scale = 1 / power_of_two(criterion.negligible)
        limits = (criterion.accuracy, criterion.noise, scale * criterion.negligible)
        numbers = map(np.float64, (time, scale, h / time, *limits))
        self._launch("next_steps", result.size, *numbers, start, acceleration, jerk, result)

    def keep(self, acceleration: Array, jerk: Array, corrected: Corrected, start: Array) -> None:
        """Fill `start` with the end of a substep, from which the next one begins."""
        self._launch("keep", jerk.size, acceleration, jerk, *corrected, start)
