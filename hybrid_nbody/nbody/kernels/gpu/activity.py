"""Counting on a GPU (CUDA through CuPy); twin of ``cpu``. The kernel is in ``activity.cu``."""

from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("activity.cu")

THREADS = 128
"""Threads of a block."""


class Counter:
    """Counts bodies on one GPU; parameters and methods as in the twin, `cpu.Counter`."""

    def __init__(self, backend, cells):
        self.backend = backend
        self.cells = cells
        self.kernel = backend.compile(SOURCE, {}).get_function("count")
        self.counts = backend.zeros((cells, cells), "i4")

    def count(self, position):
        """Return the bodies in each cell."""
        self.counts.fill(0)
        number = len(position)
        if number:
            blocks = -(-number // THREADS)
            self.kernel(
                (blocks,),
                (THREADS,),
                (np.int32(number), position, np.int32(self.cells), self.counts),
            )
        return self.backend.download(self.counts)
