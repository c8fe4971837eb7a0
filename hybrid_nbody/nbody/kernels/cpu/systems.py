"""Whole steps of many small systems on CPU threads, a system at a time."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.nbody.kernels.cpu.compilers import compiled_parallel
from hybrid_nbody.nbody.stages import ACTIONS, StepPlan

KICK = ACTIONS.index("kick")
DRIFT = ACTIONS.index("drift")

Rows = NDArray[np.float64]


class Systems:
    """Systems of few bodies; see `hybrid_nbody.nbody.kernels.small_systems.Systems`.

    Parameters
    ----------
    backend : CpuBackend
    mass : (S, n) array of float64
        Times the gravitational constant.
    eps2 : (S,) array of float64
        The softening lengths squared.
    """

    def __init__(self, backend: Backend, mass: Rows, eps2: Rows) -> None:
        self._given = (mass, eps2)

    def run(self, plan: StepPlan, steps: int, moving: tuple[Rows, Rows, Rows]) -> None:
        """Take whole steps of positions, velocities and accelerations, (S, n, 3) each."""
        run_systems(steps, *plan.encoded(), *moving, *self._given)


@njit(error_model="numpy", inline="always")
def _attract(position, acceleration, mass, eps2):
    """Set the accelerations of the bodies of a system, each pair once."""
    number = len(mass)
    for i in range(number):
        for axis in range(3):
            acceleration[i, axis] = 0.0
    for i in range(number):
        for j in range(i):
            x = position[j, 0] - position[i, 0]
            y = position[j, 1] - position[i, 1]
            z = position[j, 2] - position[i, 2]
            inverse = 1.0 / np.sqrt(x * x + y * y + z * z + eps2)
            cube = inverse * inverse * inverse
            near = mass[j] * cube
            far = mass[i] * cube
            acceleration[i, 0] += near * x
            acceleration[i, 1] += near * y
            acceleration[i, 2] += near * z
            acceleration[j, 0] -= far * x
            acceleration[j, 1] -= far * y
            acceleration[j, 2] -= far * z


@njit(error_model="numpy", inline="always")
def _add_scaled(result, factor, increment):
    """Add ``factor * increment`` to `result`, both (n, 3)."""
    for i in range(len(result)):
        for axis in range(3):
            result[i, axis] += factor * increment[i, axis]


@compiled_parallel
def run_systems(steps, actions, lengths, position, velocity, acceleration, mass, eps2):
    """Take whole steps of every system, stage by stage."""
    for system in prange(len(mass)):
        x = position[system]
        v = velocity[system]
        a = acceleration[system]
        for _ in range(steps):
            for stage in range(len(actions)):
                if actions[stage] == KICK:
                    _add_scaled(v, lengths[stage], a)
                elif actions[stage] == DRIFT:
                    _add_scaled(x, lengths[stage], v)
                else:
                    _attract(x, a, mass[system], eps2[system])
