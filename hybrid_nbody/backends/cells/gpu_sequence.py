"""Calls of functions of a cell for a few cells each, one after another in one launch.

One block of a GPU makes all of them and waits only for its own threads in between: less than a
launch takes. Each call is a record in a table on the device.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells.cuda_text import BOX, functions_of, unpacked
from hybrid_nbody.backends.cells.translation import DIMENSIONS, NUMBERS, CellFunction
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule

THREADS = 1024
"""Threads of the block."""

MOST_ARGUMENTS = 12
"""Arguments of a function, at most."""

CALL = np.dtype(
    [("function", "i4"), ("unused", "i4"), ("box", "i4", len(BOX)), ("words", "u8", MOST_ARGUMENTS)]
)
"""``Call`` of `KERNEL`."""

MEMBERS = {"Real": "number", "Int": "whole", "Cells": "array", "Table": "array"}
"""Of `Word` in `KERNEL`, by the type of an argument."""

KERNEL = """
union Word {{ unsigned long long all; real *array; real number; int whole; }};
struct Call {{ int function, unused; Box box; Word words[{most}]; }};
static_assert(sizeof(Call) == {size}, "the size of a call");
{calls}
extern "C" __global__ void __launch_bounds__({threads})
    run_calls(const int number, const unsigned long long *table)
{{
    constexpr int pieces = {size} / 8;
    __shared__ Call calls[2];  // this one and the next
    unsigned long long *shared = (unsigned long long *)calls;
    const bool copies = threadIdx.x < pieces;
    if (copies) shared[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    for (int n = 0; n < number; ++n) {{
        const Call &call = calls[n % 2];
        const bool more = copies && n + 1 < number;
        const unsigned long long next = more ? table[(n + 1) * pieces + threadIdx.x] : 0;
        switch (call.function) {{
{cases}
        }}
        if (more) shared[(n + 1) % 2 * pieces + threadIdx.x] = next;
        __syncthreads();
    }}
}}
"""

FUNCTION = """
__device__ __forceinline__ void call_{name}(const Call &call)
{{
    const Box &box = call.box;
    {unpack}
    const int width = {width}, height = j1 - j0, cells = width * height * (k1 - k0);
    for (int n = threadIdx.x; n < cells; n += {threads}) {{
        const int row = n / width, k = k0 + row / height, j = j0 + row % height;
        const int i = {column};
        if (i < i1) {name}({arguments});
    }}
}}
"""

COLUMNS = {
    True: ("(i1 - i0 + 1) / 2", "i0 + ((k + j + i0 + parity) & 1) + 2 * (n % width)"),
    False: ("i1 - i0", "i0 + n % width"),
}
"""How many threads a row takes, and the column of one: of a colour, or of all cells."""


def numbers_of(functions: Mapping[str, CellFunction]) -> dict[str, int]:
    """Return the numbers by which the kernel knows the functions marked for it."""
    marked = (name for name, function in functions.items() if function.in_sequences)
    return {name: number for number, name in enumerate(marked)}


def sequence_source(functions: Mapping[str, CellFunction], dtype: str) -> str:
    """Return the source of the kernel that makes the calls of functions marked for it."""
    names = numbers_of(functions)
    cases = (f"        case {n}: call_{name}(call); break;" for name, n in names.items())
    kernel = KERNEL.format(
        most=MOST_ARGUMENTS,
        size=CALL.itemsize,
        threads=THREADS,
        calls="".join(_call(functions[name]) for name in names),
        cases="\n".join(cases),
    )
    return functions_of(functions, dtype) + kernel


def _call(function: CellFunction) -> str:
    width, column = COLUMNS[function.role == "of_colour"]
    words = (f"call.words[{n}].{MEMBERS[kind]}" for n, kind in enumerate(function.kinds))
    return FUNCTION.format(
        name=function.name,
        unpack=unpacked(),
        width=width,
        column=column,
        threads=THREADS,
        arguments=", ".join((*DIMENSIONS, "k", "j", "i", *words)),
    )


class Sequences:
    """Collects calls and launches them together.

    Parameters
    ----------
    backend : GpuBackend
    functions : mapping of CellFunction
        By name.
    dtype : {"f4", "f8"}
        The working type.
    """

    def __init__(
        self, backend: GpuBackend, functions: Mapping[str, CellFunction], dtype: str
    ) -> None:
        self._backend = backend
        self._module = CudaModule(backend, sequence_source(functions, dtype), {})
        self._numbers = numbers_of(functions)
        self._real = NUMBERS[dtype]
        self._calls: list[Any] | None = None
        self._tables: dict[bytes, Array] = {}  # recordings hold their addresses

    @property
    def collects(self) -> bool:
        """Return whether calls are collected now."""
        return self._calls is not None

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect the calls within, and launch them in the end."""
        assert self._calls is None, "a sequence within another one"
        calls: list[Any] = []
        self._calls = calls
        try:
            yield
        finally:
            self._calls = None
        if calls:
            self._launch(np.array(calls, CALL))

    def add(self, function: CellFunction, box: Sequence[int], arguments: Sequence[Any]) -> None:
        """Add a call."""
        assert self._calls is not None and function.in_sequences, function.name
        words = np.zeros(MOST_ARGUMENTS, "u8")
        for place, (kind, value) in enumerate(zip(function.kinds, arguments, strict=True)):
            words[place] = self._word(kind, value)
        self._calls.append((self._numbers[function.name], 0, tuple(box), words))

    def _word(self, kind: str, value: Any) -> int:
        """Return an argument as the bits of a `Word`."""
        if kind == "Real":
            return int.from_bytes(np.asarray(value, self._real).tobytes(), "little")
        if kind == "Int":
            return int.from_bytes(np.asarray(value, np.int32).tobytes(), "little")
        return int(value.data.ptr)

    def _launch(self, calls: np.ndarray) -> None:
        """Launch calls, whose table is brought to the device the first time."""
        key = calls.tobytes()
        if key not in self._tables:
            self._tables[key] = self._backend.upload(calls.view("u8"))
        self._module.launch("run_calls", THREADS, THREADS, np.int32(len(calls)), self._tables[key])
