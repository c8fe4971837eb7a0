"""A look for numbers that are not finite."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Mark
from hybrid_nbody.backends.gpu_copies import untimed_mark
from hybrid_nbody.backends.launch import CudaModule

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

SOURCE = Path(__file__).with_name("finite.cu")

BLOCK = 256
MOST_THREADS = 1 << 18
"""Threads of a block, and at most."""


def first_bad(array: NDArray[Any]) -> int:
    """Return the place of the first number that is not finite, counted through all rows.

    It is the size of the array if there is none.
    """
    finite = np.isfinite(array)
    return array.size if finite.all() else int(np.argmin(finite))


class FiniteLook:
    """Looks at several arrays in one launch; a reduction of CuPy would use a single block for each.

    The kernel writes what it finds into memory of the host, as a rule nothing.

    Parameters
    ----------
    backend : GpuBackend
        The device of the arrays.
    """

    def __init__(self, backend: "GpuBackend") -> None:
        self.backend = backend
        self._module = CudaModule(backend, SOURCE, {})
        self._places: tuple[tuple[int, int], ...] = ()  # of the arrays looked at last
        self._table: Array = None

    def begin(self, arrays: Sequence[Array]) -> Callable[[], list[int]]:
        """Queue a look; return a function that waits for it and returns the `first_bad` of each.

        Parameters
        ----------
        arrays : sequence of Array
            Of float64, in one piece of memory each.
        """
        if not arrays:
            return list
        self._list(arrays)
        sizes = [array.size for array in arrays]
        threads = min(max(*sizes, 1), MOST_THREADS)
        answer = self.backend.pinned(len(arrays), "i8")
        answer[:] = sizes
        given = (np.int32(len(arrays)), self._table, np.uint64(answer.ctypes.data))
        self._module.launch("find_bad", threads, BLOCK, *given)
        kept = (*arrays, self._table)
        done = untimed_mark(self.backend, self.backend.stream)
        return partial(self._answer, answer, done, kept)

    def _list(self, arrays: Sequence[Array]) -> None:
        """Bring the places and sizes of the arrays to the device, if these are others than last."""
        places = tuple((array.data.ptr, array.size) for array in arrays)
        if places != self._places:
            self._places = places
            self._table = self.backend.upload(np.array(places, np.int64))

    def _answer(self, answer: NDArray[np.int64], done: Mark, kept: Sequence[Array]) -> list[int]:
        """Return an answer once it is there; what is looked at is kept until then."""
        self.backend.wait(done)
        found: list[int] = answer.tolist()
        return found
