"""The order of bodies whose keys are the same: that of their numbers, wherever they come from."""

from typing import Any

from hybrid_nbody.backends.base import Array


def order_ties(xp: Any, ties: Array, order: Array, numbers: Array) -> None:
    """Put bodies with the same key in the order of their numbers.

    Parameters
    ----------
    xp : module
        NumPy, or what has its functions on the device.
    ties : (m - 1,) array of bool
        Whether a body and the next one along the curve have the same key.
    order : (m,) array of int
        The bodies along the curve; changed.
    numbers : (m,) array of int64
        Of the bodies, all different.
    """
    first = xp.flatnonzero(ties)
    if not bool((numbers[order[first]] > numbers[order[first + 1]]).any()):
        return
    begins = xp.ones(len(order), bool)  # a run of bodies with the same key
    begins[first + 1] = False
    tied = ~begins
    tied[first] = True
    places = xp.flatnonzero(tied)
    runs = xp.cumsum(begins[places])
    bodies = order[places]
    order[places] = bodies[xp.lexsort(xp.stack([numbers[bodies], runs]))]
