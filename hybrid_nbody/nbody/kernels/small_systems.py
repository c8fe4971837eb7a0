"""What a device does with many small systems."""

from typing import Protocol

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.stages import StepPlan

MOST_BODIES = 32
"""Of a system: a warp of a GPU has one thread for each."""


class Systems(Protocol):
    """Many systems of few bodies on one device, in float64; bodies of two do not meet."""

    def run(self, plan: StepPlan, steps: int, moving: tuple[Array, Array, Array]) -> None:
        """Take whole steps of positions, velocities and accelerations, (S, n, 3) each, in place."""
