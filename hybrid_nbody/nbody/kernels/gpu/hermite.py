"""The formulas of a Hermite substep on a GPU; twin of ``cpu_hermite``.

The kernels are in ``hermite.cu``.
"""

import functools
from pathlib import Path

import numpy as np

from hybrid_nbody.nbody.integrators.hermite import FIRST_SUBSTEP

SOURCE = Path(__file__).with_name("hermite.cu")

THREADS = 128
"""Threads of a block."""


class Formulas:
    """Functions as in the twin, queued on the backend's stream."""

    def __init__(self, backend):
        self.kernel = functools.cache(backend.compile(SOURCE, {"THREADS": THREADS}).get_function)

    def _launch(self, name, threads, *arguments):
        if threads:
            self.kernel(name)(
                (-(-threads // THREADS),), (THREADS,), (np.int32(threads), *arguments)
            )

    def predict(self, h, start, position, velocity):
        """See the twin."""
        self._launch("predict", position.size, np.float64(h), start, position, velocity)

    def correct(self, h, start, acceleration, jerk, position, velocity):
        """See the twin."""
        self._launch(
            "correct", position.size, np.float64(h), start, acceleration, jerk, position, velocity
        )

    def first_steps(self, accuracy, negligible, acceleration, jerk, result):
        """See the twin."""
        factor = FIRST_SUBSTEP * np.sqrt(accuracy)
        self._launch(
            "first_steps", result.size, factor, np.float64(negligible), acceleration, jerk, result
        )

    def next_steps(self, h, accuracy, negligible, start, acceleration, jerk, result):
        """See the twin."""
        numbers = np.float64(h), np.float64(accuracy), np.float64(negligible)
        self._launch("next_steps", result.size, *numbers, start, acceleration, jerk, result)
