"""Copies of a GPU's arrays on their way to the host."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hybrid_nbody.backends.base import Array, Mark, Shape
from hybrid_nbody.downloads import Download

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

MOST_PINNED = 64 << 20
"""Bytes of a copy, at most, that goes into pinned memory, which CuPy keeps to be used again."""

BATCH_BYTES = 4 << 20
"""Bytes of the copies that come to the host together."""

SMALL_BYTES = BATCH_BYTES // 8
"""Bytes of a copy at most that does."""

ALIGNMENT = 256
"""Bytes of which the place of a copy is a multiple."""


def in_one_piece(array: Array) -> Array:
    """Return an array, or a copy whose numbers follow one another.

    CuPy's download of one with gaps would leave its default stream as the current one: what is
    queued from there on, kernels and copies, would no longer be in order with the stream of the
    backend, nor with messages.
    """
    return array if array.flags.c_contiguous else array.copy()


def untimed_mark(backend: "GpuBackend", stream: Any) -> Mark:
    """Return a mark in a stream that can only be waited for: to note the time takes longer."""
    event = backend.cupy.cuda.Event(disable_timing=True)
    event.record(stream)
    return event


class Snapshot(Download):
    """A copy on the GPU, which a thread brings to the host beside the GPU's other work."""

    def __init__(self, backend: "GpuBackend", copy: Array) -> None:
        self.nbytes = copy.nbytes
        self._backend = backend
        self._copy = copy
        self._made = untimed_mark(backend, backend.stream)

    def rows(self) -> Array:
        """See `Download`; the memory of the GPU is free once the copy is dropped."""
        with self._backend.cupy.cuda.Device(self._backend.device):
            found = _host_memory(self._backend, self._copy.shape, self._copy.dtype)
            _bring(self._backend, self._copy, self._made, found)
        return found


def _bring(backend: "GpuBackend", copy: Array, made: Mark, host: Array) -> None:
    """Bring what a copy on the present GPU holds from a mark on to the host; other work goes on."""
    backend.downloads.wait_event(made)
    copy.get(out=host, stream=backend.downloads, blocking=False)
    backend.downloads.synchronize()


def _host_memory(backend: "GpuBackend", shape: Shape, dtype: DTypeLike) -> Array:
    """Return memory for a copy: while it goes into other than pinned, launches wait."""
    host = np.empty(shape, dtype)
    if host.nbytes <= MOST_PINNED:
        with suppress(backend.cupy.cuda.runtime.CUDARuntimeError):  # there is no more
            return backend.pinned(shape, dtype)
    return host


class Arrivals:
    """Pinned memory through which batches of small copies come to the host, one after another.

    To pin memory for each would take longer than to copy what is there.
    """

    def __init__(self, backend: "GpuBackend") -> None:
        self._backend = backend
        self._one_by_one = threading.Lock()
        self._memory: Array = None

    def take(self, batch: Array, used: int, made: Mark) -> NDArray[np.uint8]:
        """Return the bytes of a batch on the GPU that are used, as they are from a mark on.

        A batch has `BATCH_BYTES` at most.
        """
        with self._one_by_one, self._backend.cupy.cuda.Device(self._backend.device):
            if self._memory is None:
                self._memory = _host_memory(self._backend, BATCH_BYTES, "u1")
            arrived: NDArray[np.uint8] = self._memory[:used]
            _bring(self._backend, batch[:used], made, arrived)
            return arrived.copy()


class Batch:
    """Memory on the GPU for small copies, which come to the host together.

    Parameters
    ----------
    backend : GpuBackend
        Of the arrays.
    arrivals : Arrivals
    """

    def __init__(self, backend: "GpuBackend", arrivals: Arrivals) -> None:
        self._backend = backend
        self._arrivals = arrivals
        self._memory: Array = backend.cupy.ndarray(BATCH_BYTES, "u1")
        self._made = untimed_mark(backend, backend.stream)
        self._used = 0
        self._is_closed = False
        self._changing = threading.Lock()
        self._fetching = threading.Lock()
        self._on_host: NDArray[np.uint8] | None = None

    def add(self, array: Array) -> Download | None:
        """Queue a copy of an array in one piece; return None if there is no space for it."""
        with self._changing:
            start = self._used
            end = start + array.nbytes
            if self._is_closed or end > BATCH_BYTES:
                return None
            target = self._memory.data + start
            target.copy_from_device_async(array.data, array.nbytes, self._backend.stream)
            self._made.record(self._backend.stream)
            self._used = -(-end // ALIGNMENT) * ALIGNMENT
        return PartOfBatch(self, start, array)

    def bytes_on_host(self) -> NDArray[np.uint8]:
        """Return what the batch holds, once it is on the host; nothing is added from now on."""
        with self._changing:
            self._is_closed = True
        with self._fetching:
            if self._on_host is None:
                self._on_host = self._arrivals.take(self._memory, self._used, self._made)
                self._memory = None
            return self._on_host


class PartOfBatch(Download):
    """One of the copies of a batch.

    Parameters
    ----------
    batch : Batch
    start : int
        Its first byte there.
    array : array
        What was copied, whose shape and type it has.
    """

    def __init__(self, batch: Batch, start: int, array: Array) -> None:
        self.nbytes = array.nbytes
        self._batch = batch
        self._start = start
        self._shape = array.shape
        self._dtype = array.dtype

    def rows(self) -> Array:
        """See `Download`."""
        own = self._batch.bytes_on_host()[self._start : self._start + self.nbytes]
        return own.view(self._dtype).reshape(self._shape)


class HandedOver(Download):
    """The download of an array of at most `BATCH_BYTES` on the GPU that stays as it is.

    Parameters
    ----------
    backend : GpuBackend
    arrivals : Arrivals
    array : array
    """

    def __init__(self, backend: "GpuBackend", arrivals: Arrivals, array: Array) -> None:
        self.nbytes = array.nbytes
        self._arrivals = arrivals
        self._array = array
        self._made = untimed_mark(backend, backend.stream)

    def rows(self) -> Array:
        """See `Download`; the memory of the GPU is free once this is dropped."""
        own = self._arrivals.take(self._array.reshape(-1).view("u1"), self.nbytes, self._made)
        return own.view(self._array.dtype).reshape(self._array.shape)


class Copies:
    """Starts copies; small ones come to the host many at a time.

    To ask for each would take a host longer than a GPU needs for the steps between two frames of
    few bodies.
    """

    def __init__(self, backend: "GpuBackend") -> None:
        self._backend = backend
        self._batch: Batch | None = None
        self._arrivals = Arrivals(backend)

    def start(self, *parts: Array) -> Download:
        """Queue a copy of an array, or of several as the components of one.

        Raises
        ------
        cupy.cuda.memory.OutOfMemoryError
        """
        if len(parts) > 1:
            return Snapshot(self._backend, self._backend.cupy.stack(parts, axis=-1))
        (array,) = parts
        if array.nbytes <= SMALL_BYTES:
            return self._small(in_one_piece(array))
        return Snapshot(self._backend, self._copy(array))

    def hand_over(self, array: Array) -> Download:
        """Return the download of an array in one piece that stays as it is, without a copy."""
        if array.nbytes <= BATCH_BYTES:
            return HandedOver(self._backend, self._arrivals, array)
        return Snapshot(self._backend, array)

    def _small(self, array: Array) -> Download:
        """Return a copy in the present batch, or in a new one."""
        copy = self._batch.add(array) if self._batch else None
        if copy is None:
            self._batch = Batch(self._backend, self._arrivals)
            copy = self._batch.add(array)
            assert copy is not None  # the batch is empty
        return copy

    def _copy(self, array: Array) -> Array:
        """Return a copy of its own."""
        if not array.flags.c_contiguous:
            return array.copy()
        # a kernel of CuPy would have to be compiled first; its empty_like takes three times as long
        copy = self._backend.cupy.ndarray(array.shape, array.dtype)
        self._backend.copy(array, copy)
        return copy
