"""Two compiled functions, and tasks for a helper."""

import time


def _compiled(function):
    from numba import njit

    return njit(cache=True)(function)


def ours(x):
    return x + 1.0


def theirs(x):
    return x * x / 3.0


def compile_ours(backend):
    global ours
    ours = _compiled(ours)
    ours(1.0)


def compile_theirs(backend):
    global theirs
    theirs = _compiled(theirs)
    theirs(1.0)


def loaded():
    """Return how many versions of `theirs` came from the cache."""
    return sum(theirs.stats.cache_hits.values())


def sleep(backend):
    time.sleep(60)


def fail(backend):
    raise RuntimeError("as it should")
