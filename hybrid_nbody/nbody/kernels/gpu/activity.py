"""Bodies counted in cells of a square, on a GPU; the kernel is in ``activity.cu``."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.nbody.kernels.gpu.kernels import THREADS

SOURCE = Path(__file__).with_name("activity.cu")


class Counter:
    """Counts bodies on one GPU; see `hybrid_nbody.nbody.kernels.contract.ActivityCounter`."""

    def __init__(self, backend: GpuBackend, cells: int) -> None:
        self.backend = backend
        self.cells = cells
        self.module = CudaModule(backend, SOURCE, {})
        self.module.load("count")
        self.counts = backend.zeros((cells, cells), "i4")

    def count(self, position: Array) -> NDArray[np.int32]:
        """Return the (D, D) counts on the host, valid until the next call."""
        self.counts.fill(0)
        number = len(position)
        arguments = (np.int32(number), position, np.int32(self.cells), self.counts)
        self.module.launch("count", number, THREADS, *arguments)
        counts: NDArray[np.int32] = self.backend.download(self.counts)
        return counts
