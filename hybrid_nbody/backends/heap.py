"""What becomes of memory that arrays on the host have left: kept for the next ones, or returned.

The C library returns large pieces at once. A force by a tree, which asks for as many of them again,
then waits for the system to clear every page anew. The GNU C library can be told to keep them; with
others nothing changes.
"""

import ctypes
import os
import sys
from collections.abc import Mapping

M_TRIM_THRESHOLD = -1
"""Of ``mallopt``: how many bytes may be free at the end of the heap."""

M_MMAP_MAX = -4
"""Of ``mallopt``: how many pieces may lie outside the heap; these are returned at once."""

NO_LIMIT = -1
"""Stands for any number of bytes."""

SETTINGS = ("MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
"""Variables with which a person may have chosen otherwise; `TUNABLES` has several in one."""

TUNABLES = "GLIBC_TUNABLES"


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Let this process keep the memory that arrays leave, to its end; for a program of our own.

    Returns
    -------
    bool
        Whether it does: not where the C library cannot, or a variable of `environment` says how
        memory is to be treated.
    """
    is_set = any(name in environment for name in SETTINGS)
    if is_set or "malloc" in environment.get(TUNABLES, "") or sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, NO_LIMIT))
