"""A look for numbers that are not finite."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
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
        self._first: Array = None  # the answers: sizes as long as all is well

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
        largest = max(array.size for array in arrays)
        threads = min(max(largest, 1), MOST_THREADS)
        number = np.int32(len(arrays))
        self._module.launch("find_bad", threads, BLOCK, number, self._table, self._first)
        answer = self.backend.pinned(len(arrays), "i8")
        done = self.backend.fetch(self._first, answer)  # beside what is queued next
        kept = (*arrays, self._first)
        return lambda: self._answer(kept, answer, done)

    def _list(self, arrays: Sequence[Array]) -> None:
        """Bring the places and sizes of the arrays to the device, if these are others than last."""
        places = tuple((array.data.ptr, array.size) for array in arrays)
        if places != self._places:
            self._places = places
            self._table = self.backend.upload(np.array(places, np.int64))
            self._first = self._table[:, 1].copy()

    def _answer(self, kept: Sequence[Array], answer: NDArray[np.int64], done: Any) -> list[int]:
        """Wait for the answer; what was looked at, and the answers, are kept until then."""
        self.backend.wait(done)
        found: list[int] = answer.tolist()
        *arrays, _ = kept
        if found != [array.size for array in arrays]:
            self._places = ()  # so that the next look begins with sizes again
        return found
