"""Scratch memory of a device: arrays for intermediate results, each made once under a name."""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.backends.base import Array

Shape = int | tuple[int, ...]


class Workspace:
    """Scratch arrays by name, shape and type.

    An array is made when it is first asked for, and stays where it is: kernels, messages and
    captured graphs may keep its address. Two names never share memory, nor do two shapes of one
    name.

    Parameters
    ----------
    allocate : callable
        Makes an array of a shape and a dtype: a backend's ``zeros``, or its ``pinned`` for memory
        of the host that copies go to and come from.
    """

    def __init__(self, allocate: Callable[[Shape, DTypeLike], Array]):
        self._allocate = allocate
        self._arrays: dict[tuple[str, Shape, DTypeLike], Array] = {}

    def array(self, name: str, shape: Shape, dtype: DTypeLike) -> Array:
        """Return the array of that name, shape and type; it holds what was last written into it.

        A new one holds what `allocate` puts there.
        """
        key = (name, shape, np.dtype(dtype))
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = self._allocate(shape, dtype)
        return found
