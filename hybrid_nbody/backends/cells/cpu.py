"""Functions of a cell on CPU threads: a module of compiled loops is written beside their cache."""

import hashlib
import importlib.util
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba import int64, typeof

from hybrid_nbody.backends.cells import Reduction, Region, python_text, translation
from hybrid_nbody.backends.cells.sums import sum_of_planes
from hybrid_nbody.backends.cells.translation import (
    ARRAYS,
    DIMENSIONS,
    NUMBERS,
    TOTAL,
    described,
    sizes,
)
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.errors import FileError
from hybrid_nbody.files.atomic import reason

WHOLE_NUMBERS = 7 + len(DIMENSIONS)
"""Numbers that every loop is given first: a region, a parity, and sizes of arrays."""


class Program:
    """The functions of some modules; see `hybrid_nbody.backends.cells.Program`.

    Parameters
    ----------
    backend : CpuBackend
    modules : sequence of module
        Functions of cells, callees before callers.
    dtype : {"f4", "f8"}
        The working type.
    faster : module, optional
        Loops that stand in for some of the generated ones.
    """

    def __init__(
        self,
        backend: CpuBackend,
        modules: Sequence[ModuleType],
        dtype: str,
        faster: ModuleType | None = None,
    ) -> None:
        self.faster = faster
        self.functions = described(tuple(modules))
        self.loops = _loops(tuple(modules), dtype)
        self.number = NUMBERS[dtype]

    @cached_property
    def _converters(self) -> Callable[[str], list[Callable[[Any], Any]]]:
        return cache(self._converters_of)

    def _converters_of(self, name: str) -> list[Callable[[Any], Any]]:
        """Return what makes of each argument of a function what its loop takes."""
        flat = dict.fromkeys(ARRAYS, _flat)
        numbers = dict.fromkeys(("Real", TOTAL), self.number)
        converters: dict[str, Callable[[Any], Any]] = {"Int": int, **numbers, **flat}
        return [converters[kind] for kind in self.functions[name].kinds]

    def compile(self, names: Sequence[str], width: int) -> None:
        """See `Program`; what is in the cache is loaded."""
        for name in names:
            self._loop(name, width).compile(self._signature(name))

    def _signature(self, name: str) -> tuple[Any, ...]:
        """Return the types of the arguments with which a loop is called."""
        number = typeof(self.number(0))
        array = typeof(np.empty(0, self.number))
        kinds = {"Real": number, TOTAL: number, "Int": int64, "Cells": array, "Table": array}
        function = self.functions[name]
        found = [typeof(np.empty(0))] if function.role in python_text.WITH_RESULTS else []
        return (*[int64] * WHOLE_NUMBERS, *found, *(kinds[kind] for kind in function.kinds))

    def run(self, name: str, region: Region, *arguments: Any, parity: int = 0) -> None:
        """See `Program`."""
        self._call(name, region, parity, arguments)

    def reduce(self, name: str, region: Region, *arguments: Any) -> np.ndarray:
        """See `Program`."""
        first, end = region[:2]
        found = np.zeros(max(first, end))
        self._call(name, region, 0, arguments, found)
        return found[first:]

    def reduce_each(self, *calls: Reduction) -> list[np.ndarray]:
        """See `Program`."""
        return [self.reduce(*call) for call in calls]

    def reduce_ahead(self, *calls: Reduction) -> Callable[[], list[np.ndarray]]:
        """See `Program`; nothing is left to wait for."""
        found = self.reduce_each(*calls)
        return lambda: found

    def plane_sums(self, call: Reduction, own: slice, number: int) -> np.ndarray:
        """See `Program`."""
        found = np.zeros((number, 1))
        found[own, 0] = self.reduce(*call)
        return found

    def total_of(self, sums: np.ndarray) -> float:
        """See `Program`."""
        return sum_of_planes(sums[:, 0])

    def sequence(self) -> AbstractContextManager[None]:
        """See `Program`; calls are made one by one."""
        return nullcontext()

    def _call(
        self,
        name: str,
        region: Region,
        parity: int,
        arguments: tuple[Any, ...],
        *results: np.ndarray,
    ) -> None:
        """Call a loop, with the array that its results go to if it has any."""
        pairs = zip(self._converters(name), arguments, strict=True)
        given = [convert(value) for convert, value in pairs]
        of_arrays = sizes(self.functions[name], arguments)
        loop = self._loop(name, region[5] - region[4])
        loop(*region, parity, *of_arrays, *results, *given)

    @cached_property
    def _loop(self) -> Callable[[str, int], Any]:
        return cache(self._loop_of)

    def _loop_of(self, name: str, width: int) -> Any:
        """Return the loop of a function over rows of some cells."""
        loop = getattr(self.loops, f"run_{name}")
        if self.faster is None or width < self.faster.LEAST:
            return loop
        return getattr(self.faster, f"run_{name}", loop)


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1)


@cache
def loaded(source: str) -> ModuleType:
    """Return a module from its source, whose file lies where Numba keeps what it compiled."""
    return _module(_digest([source]), lambda: source)


@cache
def _loops(modules: tuple[ModuleType, ...], dtype: str) -> ModuleType:
    """Return the loops over functions of a cell, which are translated the first time alone."""
    made_from = [inspect.getsource(module) for module in (*modules, translation, python_text)]
    return _module(
        _digest([dtype, *made_from]),
        lambda: python_text.python_source(translation.translated(modules), dtype),
    )


def _digest(texts: Sequence[str]) -> str:
    """Return a digest of texts."""
    found = hashlib.sha256()
    for text in texts:
        found.update(text.encode())
    return found.hexdigest()[:16]


def _module(digest: str, source: Callable[[], str]) -> ModuleType:
    """Return the module of a digest, from a file that is written where it is not there."""
    name = f"hybrid_nbody_cells_{digest}"
    path = Path(os.environ["NUMBA_CACHE_DIR"], "generated", f"{name}.py")
    if not path.exists():
        try:
            _write_once(path, source())
        except OSError as error:
            raise FileError(
                f"{path.parent}: the source of kernels cannot be written there "
                f"({reason(error)}); make space, or set NUMBA_CACHE_DIR to another folder"
            ) from error
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader  # a file of this name is there
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba finds it there when it loads what it compiled
    spec.loader.exec_module(module)
    return module


def _write_once(path: Path, text: str) -> None:
    """Write a file unless it is there: what Numba cached is not used for a younger one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp") as file:
        file.write(text)
        file.flush()
        with suppress(FileExistsError):  # another rank was first
            os.link(file.name, path)
