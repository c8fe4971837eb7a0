"""Calibration: ranks measure their speeds by short runs, all at the same time."""

import math
from collections.abc import Callable

from hybrid_nbody.parallel.communicator import Communicator

ROUNDS = 2
"""Rounds of runs, which all ranks begin together."""

ROUND_SECONDS = 0.1
"""Duration of a round, unless a single run takes longer."""


def fastest_run(run: Callable[[], float], communicator: Communicator) -> float:
    """Return the seconds of this rank's fastest run, done while the other ranks do theirs.

    Ranks of a node slow each other down. So they begin a round together, and all continue for the
    same time; a disturbance of one round may spare the other.

    Parameters
    ----------
    run : callable
        Does one run and returns its seconds. It was called before: everything is compiled.
    communicator : Communicator
        Every rank calls together.
    """
    seconds = []
    for _ in range(ROUNDS):
        communicator.barrier()
        seconds.append(_fastest_of_round(run))
    return min(seconds)


def _fastest_of_round(run: Callable[[], float]) -> float:
    fastest = math.inf
    remaining = ROUND_SECONDS
    while remaining > 0:
        seconds = run()
        fastest = min(fastest, seconds)
        remaining -= seconds
    return fastest
