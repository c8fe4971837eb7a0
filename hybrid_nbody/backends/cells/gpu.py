"""Functions of a cell on a GPU: one source of CUDA kernels, compiled when the program is made."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Region
from hybrid_nbody.backends.cells.cuda_text import SUM_THREADS, cuda_source
from hybrid_nbody.backends.cells.translation import NUMBERS, CellFunction, sizes, translated
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule

BLOCK = (32, 4, 2)
"""Threads of a block along x, y and z."""


class Program:
    """The functions of some modules; see `hybrid_nbody.backends.cells.Program`.

    Parameters
    ----------
    backend : GpuBackend
    modules : sequence of module
        Functions of cells, callees before callers.
    dtype : {"f4", "f8"}
        The working type.
    """

    def __init__(self, backend: GpuBackend, modules: Sequence[ModuleType], dtype: str) -> None:
        self.backend = backend
        self.functions = translated(modules)
        self.module = CudaModule(backend, cuda_source(self.functions, dtype), {})
        self.number = NUMBERS[dtype]

    def compile(self, names: Sequence[str], width: int) -> None:
        """See `Program`: all functions are one source, which is being compiled already."""

    def run(self, name: str, region: Region, *arguments: Any, parity: int = 0) -> None:
        """See `Program`."""
        k, j, i = (region[end + 1] - region[end] for end in (0, 2, 4))
        if self.functions[name].role == "of_colour":
            i = (i + 1) // 2
        grid = tuple(-(-n // width) for n, width in zip((i, j, k), BLOCK, strict=True))
        if all(extent > 0 for extent in grid):
            given = self._given(name, region, parity, arguments)
            self.module.launch_grid(f"run_{name}", grid, BLOCK, given)

    def reduce(self, name: str, region: Region, *arguments: Any) -> np.ndarray:
        """See `Program`."""
        if region[1] <= region[0]:
            return np.zeros(0)
        found = self.backend.zeros(region[1] - region[0], "f8")
        given = (*self._given(name, region, 0, arguments), found)
        self.module.launch_grid(f"run_{name}", (len(found),), (SUM_THREADS,), given)
        planes: np.ndarray = self.backend.download(found)
        return planes

    def _given(
        self, name: str, region: Region, parity: int, arguments: tuple[Array, ...]
    ) -> tuple[Any, ...]:
        function = self.functions[name]
        whole = (*region, parity, *sizes(function, arguments))
        return (*map(np.int32, whole), *self._converted(function, arguments))

    def _converted(self, function: CellFunction, arguments: tuple[Any, ...]) -> list[Any]:
        convert = {"Real": self.number, "Int": np.int32}
        pairs = zip(function.kinds, arguments, strict=True)
        return [convert[kind](value) if kind in convert else value for kind, value in pairs]
