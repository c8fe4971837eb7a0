"""Inverse powers of the distance from an estimate of 1 / r, for compiled loops.

With e = 1 - r^2 y^2 for an estimate y of 1 / r, r^-n = y^n (1 - e)^(-n/2), expanded in e: to first
order for float32, where e is below 2^-12, and to fourth for float64. Divided by a constant the
first order takes one operation: 1 + 3/2 e = 3/2 (5/3 - r^2 y^2). A sum of such terms is divided by
what the function returns for r = y = 1, where there is nothing to correct.
"""

import numpy as np
from numba import types
from numba.extending import overload


def cube_over_estimate(square, estimate):
    """Return r^-3 / y times a constant, from ``square = r^2`` and the estimate y of 1 / r."""
    raise NotImplementedError("compiled code only")


@overload(cube_over_estimate, inline="always")
def _cube_over_estimate(square, estimate):
    def single(square, estimate):
        y2 = estimate * estimate
        return y2 * (np.float32(5 / 3) - square * y2)

    def double(square, estimate):
        y2 = estimate * estimate
        e = 1 - square * y2
        return y2 * (1 + e * (1.5 + e * (1.875 + e * (2.1875 + e * 2.4609375))))

    return single if estimate is types.float32 else double


def root_over_estimate(square, estimate):
    """Return r^-1 / y times a constant; parameters as in `cube_over_estimate`."""
    raise NotImplementedError("compiled code only")


@overload(root_over_estimate, inline="always")
def _root_over_estimate(square, estimate):
    def single(square, estimate):
        return np.float32(3) - square * (estimate * estimate)

    def double(square, estimate):
        e = 1 - square * (estimate * estimate)
        return 1 + e * (0.5 + e * (0.375 + e * (0.3125 + e * 0.2734375)))

    return single if estimate is types.float32 else double
