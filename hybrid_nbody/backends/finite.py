"""A look at whether all numbers of arrays on a GPU are finite."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.launch import CudaModule

if TYPE_CHECKING:
    from hybrid_nbody.backends.gpu import GpuBackend

SOURCE = Path(__file__).with_name("finite.cu")

BLOCK = 256
MOST_THREADS = 1 << 18
"""Threads of a block, and at most."""


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
        self._bad = backend.zeros(1, "i4")  # stays 0 as long as all is well
        self._places: tuple[tuple[int, int], ...] = ()  # of the arrays looked at last
        self._table = self._bad

    def begin(self, arrays: Sequence[Array]) -> Callable[[], bool]:
        """Queue a look; return a function that waits for it and says whether all are finite.

        Parameters
        ----------
        arrays : sequence of Array
            Of float64, in one piece of memory each, none of them empty.
        """
        if not arrays:
            return lambda: True
        self._list(arrays)
        threads = min(max(array.size for array in arrays), MOST_THREADS)
        number = np.int32(len(arrays))
        self._module.launch("find_bad", threads, BLOCK, number, self._table, self._bad)
        return lambda: self._are_finite(arrays)

    def _list(self, arrays: Sequence[Array]) -> None:
        """Bring the places and sizes of the arrays to the device, if these are others than last."""
        places = tuple((array.data.ptr, array.size) for array in arrays)
        if places != self._places:
            self._places = places
            self._table = self.backend.upload(np.array(places, np.int64))

    def _are_finite(self, arrays: Sequence[Array]) -> bool:
        """Return the answer; `arrays` must be kept until then."""
        bad = bool(self.backend.download(self._bad)[0])
        if bad:
            self._bad.fill(0)
        return not bad
