"""The formulas of a Hermite substep on a CPU (Numba).

See `hybrid_nbody.nbody.kernels.contract.HermiteFormulas`, which this module is. `start` is not
changed, so that a substep can be repeated.
"""

import numpy as np

from hybrid_nbody.nbody.integrators.substeps import CANCELLATION, FIRST_SUBSTEP
from hybrid_nbody.nbody.kernels.contract import Criterion
from hybrid_nbody.nbody.kernels.cpu.compilers import compiled, linked

EXPONENT = 0x7FF << 52
"""The bits of a float64 that hold its exponent."""


@compiled
def predict(h, start, origin, position, velocity):
    """Fill positions from `origin` and velocities a time `h` after `start`, by Taylor series."""
    for i in range(position.shape[0]):
        for axis in range(3):
            x, v, a, j = start[0, i, axis], start[1, i, axis], start[2, i, axis], start[3, i, axis]
            change = start[4, i, axis] + h * (v + h / 2 * (a + h / 3 * j))
            position[i, axis] = (x - origin[axis]) + change
            velocity[i, axis] = v + (start[5, i, axis] + h * (a + h / 2 * j))


@compiled
def correct(h, start, acceleration, jerk, corrected):
    """Fill corrected positions and velocities from the accelerations and jerks at the end.

    Source: Hut, Makino & McMillan, ApJ 443, L93, 1995.
    """
    position, velocity, low = corrected
    for i in range(position.shape[0]):
        for axis in range(3):
            x, v, a, j = start[0, i, axis], start[1, i, axis], start[2, i, axis], start[3, i, axis]
            kick = h / 2 * ((a + acceleration[i, axis]) + h / 6 * (j - jerk[i, axis]))
            end, rest = _add(v, start[5, i, axis] + kick)
            twice = (v + end) + (start[5, i, axis] + rest)
            drift = h / 2 * (twice + h / 6 * (a - acceleration[i, axis]))
            position[i, axis], low[0, i, axis] = _add(x, start[4, i, axis] + drift)
            velocity[i, axis], low[1, i, axis] = end, rest


@compiled
def first_steps(accuracy, negligible, acceleration, jerk, result):
    """Fill `result`, (n,), with the first substep of each body, without higher derivatives."""
    for i in range(result.size):
        a = _length(acceleration[i])
        j = _length(jerk[i])
        step = FIRST_SUBSTEP * np.sqrt(accuracy) * a / j
        result[i] = np.inf if a <= negligible else _zero_if_nan(step)


@compiled
def next_steps(h, criterion, start, acceleration, jerk, result):
    """Fill `result`, (n,), with the substep of each body after one of length `h`.

    Second and third derivatives of the acceleration at the end follow from accelerations and
    jerks at both ends (Makino & Aarseth 1992); a body whose acceleration is negligible does not
    limit the substep. Times and accelerations are divided by powers of two near a step and near
    the negligible acceleration: products of derivatives stay in range, and no digit changes.
    """
    time = _power_of_two(criterion.dt)
    scale = 1 / _power_of_two(criterion.negligible)
    scales = (scale, scale * time)
    limits = Criterion(criterion.accuracy, 1.0, criterion.noise, scale * criterion.negligible)
    for i in range(result.size):
        a = _norm(acceleration[i], scale)
        j = _norm(jerk[i], scale * time)
        derivatives = _derivatives(h / time, scales, (start, acceleration, jerk), i)
        step = time * _substep(h / time, limits, a, j, derivatives)
        result[i] = np.inf if a <= limits.negligible else _zero_if_nan(step)


@linked
def _derivatives(h, scales, arrays, i):
    """Return the norms of the second and third derivatives of the acceleration of body `i`."""
    start, acceleration, jerk = arrays
    scale, jerk_scale = scales
    second_squared = 0.0
    third_squared = 0.0
    for axis in range(3):
        change = scale * (start[2, i, axis] - acceleration[i, axis])
        j0 = jerk_scale * start[3, i, axis]
        j1 = jerk_scale * jerk[i, axis]
        third = (12 * change + 6 * h * (j0 + j1)) / (h * h * h)
        second = (-6 * change - h * (4 * j0 + 2 * j1)) / (h * h) + h * third
        second_squared += second * second
        third_squared += third * third
    return np.sqrt(second_squared), np.sqrt(third_squared)


@linked
def _substep(h, criterion, a, j, derivatives):
    """Return the substep of a body from the norms of its acceleration and of its derivatives.

    A rounding error of the acceleration appears in the derivatives, 6 and 12 times over the second
    and third power of `h`.
    """
    error = criterion.noise * (a + h * j) + CANCELLATION * criterion.negligible
    error2 = 6 * error / (h * h)
    error3 = 2 * error2 / h
    a2, a3 = derivatives
    longest = 2 * h if a2 < 2 * error2 or a3 < 2 * error3 else np.inf
    a2 = 0.0 if a2 <= error2 else a2 - error2  # NaN stays NaN
    a3 = 0.0 if a3 <= error3 else a3 - error3
    below = j * a3 + a2 * a2
    if below == 0:
        return longest
    step = np.sqrt(criterion.accuracy * (a * a2 + j * j) / below)
    return longest if step > longest else step


@compiled
def keep(acceleration, jerk, corrected, start):
    """Fill `start` with the end of a substep, from which the next one begins."""
    position, velocity, low = corrected
    for i in range(position.shape[0]):
        for axis in range(3):
            start[0, i, axis] = position[i, axis]
            start[1, i, axis] = velocity[i, axis]
            start[2, i, axis] = acceleration[i, axis]
            start[3, i, axis] = jerk[i, axis]
            start[4, i, axis] = low[0, i, axis]
            start[5, i, axis] = low[1, i, axis]


@linked
def _add(value, change):
    """Return a sum as it is rounded, and what rounding leaves of it (Knuth's two-sum)."""
    total = value + change
    part = total - value
    return total, (value - (total - part)) + (change - part)


@linked
def _norm(vector, scale):
    """Return the length of a vector times a scale."""
    x = scale * vector[0]
    y = scale * vector[1]
    z = scale * vector[2]
    return np.sqrt(x * x + y * y + z * z)


@linked
def _length(vector):
    """Return the length of a vector whose squares may leave the range."""
    unit = _power_of_two(max(abs(vector[0]), abs(vector[1]), abs(vector[2])))
    return unit * _norm(vector, 1 / unit)


@linked
def _power_of_two(value):
    """Return the largest power of two up to a positive number; 1 where there is none."""
    power = np.int64(np.float64(value).view(np.int64) & EXPONENT).view(np.float64)
    return power if 0 < power < np.inf else 1.0


@linked
def _zero_if_nan(step):
    """Return a step, or zero if it is NaN: no substep can go on from such a state."""
    return step if step == step else 0.0
