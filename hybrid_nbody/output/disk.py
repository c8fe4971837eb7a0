"""The speed of a disk, measured by a file that is gone afterwards."""

import os
import tempfile
import time
from pathlib import Path

TRIAL_BYTES = 32 << 20
"""Bytes that are written to measure the speed of a disk."""


def writing_speed(folder: Path) -> float | None:
    """Return the bytes a second that reach the disk of a folder.

    Returns
    -------
    float or None
        None where no file can be written.
    """
    piece = os.urandom(1 << 20)
    start = time.perf_counter()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(TRIAL_BYTES // len(piece)):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        return None
    return TRIAL_BYTES / (time.perf_counter() - start)
