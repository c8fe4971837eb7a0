"""Copies of a GPU's arrays on their way to the host."""

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.downloads import Download

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

MOST_PINNED = 64 << 20
"""Bytes of a copy, at most, that goes into pinned memory, which CuPy keeps to be used again."""


def in_one_piece(array: Array) -> Array:
    """Return an array, or a copy whose numbers follow one another.

    CuPy's download of one with gaps would leave its default stream as the current one: what is
    queued from there on, kernels and copies, would no longer be in order with the stream of the
    backend, nor with messages.
    """
    return array if array.flags.c_contiguous else array.copy()


class Snapshot(Download):
    """A copy on the GPU, which a thread brings to the host beside the GPU's other work."""

    def __init__(self, backend: "GpuBackend", copy: Array) -> None:
        self.nbytes = copy.nbytes
        self._backend = backend
        self._copy = copy
        self._made = backend.mark()

    def rows(self) -> Array:
        """See `Download`; the memory of the GPU is free once the copy is dropped."""
        with self._backend.cupy.cuda.Device(self._backend.device):
            self._backend.downloads.wait_event(self._made)
            found = self._host_memory()
            self._copy.get(out=found, stream=self._backend.downloads, blocking=False)
            self._backend.downloads.synchronize()
        return found

    def _host_memory(self) -> Array:
        """Return memory for the copy: while it goes into other than pinned, launches wait."""
        copy = self._copy
        if copy.nbytes <= MOST_PINNED:
            with suppress(self._backend.cupy.cuda.runtime.CUDARuntimeError):  # there is no more
                return self._backend.pinned(copy.shape, copy.dtype)
        return np.empty(copy.shape, copy.dtype)
