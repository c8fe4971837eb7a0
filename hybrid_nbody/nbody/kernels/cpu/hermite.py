"""The formulas of a Hermite substep on a CPU (Numba).

See `hybrid_nbody.nbody.kernels.contract.HermiteFormulas`, which this module is. `start` is not
changed, so that a substep can be repeated.
"""

import numpy as np
from numba import njit

from hybrid_nbody.nbody.integrators.hermite import FIRST_SUBSTEP

compiled = njit(cache=True, error_model="numpy")


@compiled
def predict(h, start, position, velocity):
    """Fill positions and velocities, (n, 3) each, a time `h` after `start`, by Taylor series."""
    for i in range(position.shape[0]):
        for axis in range(3):
            x, v, a, j = start[0, i, axis], start[1, i, axis], start[2, i, axis], start[3, i, axis]
            position[i, axis] = x + h * (v + h / 2 * (a + h / 3 * j))
            velocity[i, axis] = v + h * (a + h / 2 * j)


@compiled
def correct(h, start, acceleration, jerk, position, velocity):
    """Fill corrected positions and velocities from the accelerations and jerks at the end.

    Source: Hut, Makino & McMillan, ApJ 443, L93, 1995.
    """
    for i in range(position.shape[0]):
        for axis in range(3):
            x, v, a, j = start[0, i, axis], start[1, i, axis], start[2, i, axis], start[3, i, axis]
            corrected = v + h / 2 * ((a + acceleration[i, axis]) + h / 6 * (j - jerk[i, axis]))
            position[i, axis] = x + h / 2 * ((v + corrected) + h / 6 * (a - acceleration[i, axis]))
            velocity[i, axis] = corrected


@compiled
def first_steps(accuracy, negligible, acceleration, jerk, result):
    """Fill `result`, (n,), with the first substep of each body, without higher derivatives."""
    for i in range(result.size):
        a = _norm(acceleration[i])
        j = _norm(jerk[i])
        step = FIRST_SUBSTEP * np.sqrt(accuracy) * a / j
        result[i] = np.inf if a <= negligible else _zero_if_nan(step)


@compiled
def next_steps(h, accuracy, negligible, start, acceleration, jerk, result):
    """Fill `result`, (n,), with the substep of each body after one of length `h`.

    Second and third derivatives of the acceleration at the end follow from accelerations and
    jerks at both ends (Makino & Aarseth 1992); a body whose acceleration is at most `negligible`
    does not limit the substep.
    """
    second = np.empty(3)
    third = np.empty(3)
    for i in range(result.size):
        for axis in range(3):
            change = start[2, i, axis] - acceleration[i, axis]
            j0 = start[3, i, axis]
            j1 = jerk[i, axis]
            third[axis] = (12 * change + 6 * h * (j0 + j1)) / (h * h * h)
            second[axis] = (-6 * change - h * (4 * j0 + 2 * j1)) / (h * h) + h * third[axis]
        a = _norm(acceleration[i])
        j = _norm(jerk[i])
        a2 = _norm(second)
        a3 = _norm(third)
        above = a * a2 + j * j
        below = j * a3 + a2 * a2
        unlimited = a <= negligible or below == 0
        result[i] = np.inf if unlimited else _zero_if_nan(np.sqrt(accuracy * above / below))


@compiled
def _norm(vector):
    return np.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])


@compiled
def _zero_if_nan(step):
    """Return a step, or zero if it is NaN: no substep can go on from such a state."""
    return step if step == step else 0.0
