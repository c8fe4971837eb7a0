"""Short trials by which ranks measure their speed, all at the same time."""

import math
from collections.abc import Callable

ROUNDS = 2

ROUND_SECONDS = 0.1
"""What a round lasts, unless a single trial takes longer."""


def fastest(seconds: Callable[[], float], communicator) -> float:
    """Return the seconds of this rank's fastest trial, done while the other ranks do theirs.

    Ranks of a node slow each other down. So they begin a round together, and all go on for as long;
    what disturbs one round may spare the other.

    Parameters
    ----------
    seconds : callable
        Does one trial and returns what it took. It was called before: all is compiled.
    communicator : Communicator
        Every rank calls together.
    """
    found = []
    for _ in range(ROUNDS):
        communicator.barrier()
        found.append(_fastest_of_a_round(seconds))
    return min(found)


def _fastest_of_a_round(seconds):
    least = math.inf
    left = ROUND_SECONDS
    while left > 0:
        taken = seconds()
        least = min(least, taken)
        left = left - taken
    return least
