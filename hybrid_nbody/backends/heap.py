"""What becomes of memory that arrays on the host have left: kept for the next ones, or returned.

The C library returns large pieces at once. Work that asks for as many of them again a moment later
then waits for the system to clear every page anew. The GNU C library can be told to keep them; with
others nothing changes.
"""

import ctypes
import sys

M_TRIM_THRESHOLD = -1
"""Of ``mallopt``: how many bytes may be free at the end of the heap."""

M_MMAP_MAX = -4
"""Of ``mallopt``: how many pieces may lie outside the heap; these are returned at once."""

ANY_NUMBER = -1


def keep_freed_memory() -> bool:
    """Let this process keep the memory that its arrays leave; return whether that can be done."""
    mallopt = getattr(_library(), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, ANY_NUMBER))


def return_freed_memory() -> None:
    """Return to the system what is kept and not in use."""
    trim = getattr(_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _library() -> object:
    """Return the C library; what has neither function where the system has another kind."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
