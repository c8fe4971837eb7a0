"""Pinned memory of the host, through which rows of a GPU pass to other ranks and from them."""

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from hybrid_nbody.backends.base import Array, Mark
from hybrid_nbody.backends.gpu_copies import in_one_piece, untimed_mark

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

LEAST_BYTES = 4096
"""Bytes of memory at least."""

STEPS = 4
"""Sizes of memory from each power of two to the next."""


def size_for(length: int) -> int:
    """Return the bytes of the memory that a number of bytes pass through.

    They are `LEAST_BYTES`, or a quarter more than needed at most. There are few sizes, as CuPy
    keeps memory for those who ask for exactly as much.
    """
    if length <= LEAST_BYTES:
        return LEAST_BYTES
    step = (1 << (length - 1).bit_length()) // (2 * STEPS)
    return -(-length // step) * step


class Upload(NamedTuple):
    """Memory that an upload reads until a mark."""

    memory: Array
    mark: Mark


class Staging:
    """Lends pinned memory for rows; it is used again when nothing holds it and no upload reads it.

    Where an exchange fails, MPI may still write into what was lent for it: the run ends then.

    Parameters
    ----------
    backend : GpuBackend
    """

    def __init__(self, backend: "GpuBackend") -> None:
        self._backend = backend
        self._uploads: deque[Upload] = deque()

    def memory_for(self, rows: Array) -> Array:
        """Return memory for rows, of no defined values."""
        while self._uploads and self._uploads[0].mark.done:
            self._uploads.popleft()
        memory = self._backend.pinned(size_for(rows.nbytes), "u1")
        return memory[: rows.nbytes].view(rows.dtype).reshape(rows.shape)

    def download(self, rows: Array, staged: Array) -> None:
        """Copy rows to the host, and wait until they are there."""
        whole = in_one_piece(rows)
        stream = self._backend.stream
        with self._backend.host_wait:
            whole.get(out=staged, stream=stream)
            stream.synchronize()

    def upload(self, staged: Array, rows: Array) -> None:
        """Copy what the host has to rows, behind the work that is queued so far."""
        stream = self._backend.stream
        rows.set(staged, stream=stream)
        self._uploads.append(Upload(staged, untimed_mark(self._backend, stream)))
