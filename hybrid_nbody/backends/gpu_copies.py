"""Copies of a GPU's arrays on their way to the host."""

from typing import TYPE_CHECKING

from hybrid_nbody.backends.base import Array
from hybrid_nbody.downloads import Download

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend


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
            found: Array = self._copy.get(stream=self._backend.downloads)
        return found
