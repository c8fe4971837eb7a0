"""The order in which sums over planes are made: the same on hosts and GPUs, for any ranks."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sum_of_strips(found: Floats) -> Floats:
    """Return the sum of what was found of the strips of each plane, from the first strip on.

    Parameters
    ----------
    found : (planes, strips) array of float64

    Returns
    -------
    (planes,) array of float64
    """
    sums = found[:, 0].copy()
    for strip in found.T[1:]:
        sums += strip
    return sums


def sum_of_planes(sums: Floats) -> float:
    """Return the sum of the sums of planes.

    The second half is added to the first, which is a power of two, until one is left. The sum over
    no planes is 0.

    Parameters
    ----------
    sums : (planes,) array of float64
    """
    left = sums.copy()
    while len(left) > 1:
        half = 1 << (len(left) - 1).bit_length() - 1
        left[: len(left) - half] += left[half:]
        left = left[:half]
    return float(left.sum())
