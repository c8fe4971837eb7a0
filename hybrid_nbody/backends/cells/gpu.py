"""Functions of a cell on a GPU: one source of CUDA kernels, compiled when the program is made."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.cells import Reduction, Region
from hybrid_nbody.backends.cells.cuda_text import (
    BOX,
    PLANE_THREADS,
    STRIP_ROWS,
    SUM_THREADS,
    cuda_source,
)
from hybrid_nbody.backends.cells.gpu_sequence import Sequences
from hybrid_nbody.backends.cells.sums import sum_of_strips
from hybrid_nbody.backends.cells.translation import NUMBERS, CellFunction, sizes, translated
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule

BLOCK = (32, 4, 2)
"""Threads of a block along x, y and z."""

DEEP_BLOCK = (32, 8, 1)
"""The same where each takes several planes."""

ROW_WIDTHS = (256, 128, 64)
"""Of the blocks of functions that are `over_rows`, from the best one on."""

IDLE_PART = 0.25
"""Threads that such blocks may have beyond the end of a row, over those within it."""

COLUMN_BLOCK = (1, 256, 1)
"""Threads of a block where a region is a single column, as that of ghosts is."""

DEPTH = 8
"""Planes of a thread at most: what it reads of the next plane is in the cache already."""

DEEP = ("over_columns", "of_colour")
"""Roles of the functions whose threads do."""

ENOUGH_THREADS = 1 << 19
"""Threads that keep a GPU busy; on large ones of today twice as many are resident."""

BOX_TYPE = np.dtype([(name, "i4") for name in BOX])
"""The first argument of a kernel."""

MOST_KNOWN = 4096
"""Shapes of launches that are kept."""

JOINING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plane_sum": sum_of_strips,
    "plane_largest": partial(np.max, axis=1),
}
"""What joins the results of the strips of a plane, by the role of a function."""


class Shape(NamedTuple):
    """How the threads of a launch are arranged.

    Attributes
    ----------
    grid, block : tuple of int
        Blocks, and threads of one, along x, y and z.
    depth : int
        Planes of a thread.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    depth: int


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
        self.sequences = Sequences(backend, self.functions, dtype)
        self.number = NUMBERS[dtype]
        self._memories = {"now": np.zeros(0), "ahead": np.zeros(0)}

    def compile(self, names: Sequence[str], width: int) -> None:
        """See `Program`: all functions are one source, which is being compiled already."""

    def run(self, name: str, region: Region, *arguments: Any, parity: int = 0) -> None:
        """See `Program`."""
        function = self.functions[name]
        shape = shape_of(function.role, region)
        if not all(extent > 0 for extent in shape.grid):
            return
        if self.sequences.collects:
            box = (*region, parity, shape.depth, *sizes(function, arguments))
            self.sequences.add(function, box, arguments)
            return
        given = self._given(name, region, (parity, shape.depth), arguments)
        self.module.launch_grid(f"run_{name}", shape.grid, shape.block, given)

    def sequence(self) -> AbstractContextManager[None]:
        """See `Program`."""
        return self.sequences.collected()

    def reduce(self, name: str, region: Region, *arguments: Any) -> np.ndarray:
        """See `Program`."""
        return self.reduce_each((name, region, *arguments))[0]

    def reduce_each(self, *calls: Reduction) -> list[np.ndarray]:
        """See `Program`."""
        results = self._queued(calls, "now")
        self.backend.synchronize()
        return self._joined_each(calls, results)

    def reduce_ahead(self, *calls: Reduction) -> Callable[[], list[np.ndarray]]:
        """See `Program`."""
        results = self._queued(calls, "ahead")
        queued = self.backend.mark()

        def wait() -> list[np.ndarray]:
            self.backend.wait(queued)
            return self._joined_each(calls, results)

        return wait

    def _queued(self, calls: Sequence[Reduction], when: str) -> list[np.ndarray]:
        """Queue some reductions; kernels write the results of strips into memory of the host.

        `when` is "now" or "ahead": each has memory of its own.
        """
        assert not self.sequences.collects, calls
        shapes = [_pieces_of(region) for _, region, *_ in calls]
        ends = np.cumsum([planes * strips for planes, strips in shapes])
        flat = np.split(self._results(when, int(ends[-1])), ends[:-1])
        results = [own.reshape(shape) for own, shape in zip(flat, shapes, strict=True)]
        for call, own in zip(calls, results, strict=True):
            if own.size:
                self._launch_reduction(call, own.shape, np.uint64(own.ctypes.data))
        return results

    def _launch_reduction(self, call: Reduction, shape: tuple[int, ...], found: Any) -> None:
        """Queue the kernel that writes the results of a call: an array, or an address."""
        name, region, *arguments = call
        planes, strips = shape
        given = (*self._given(name, region, (0, 1), tuple(arguments)), found)
        self.module.launch_grid(f"run_{name}", (strips, planes), (SUM_THREADS,), given)

    def _joined_each(
        self, calls: Sequence[Reduction], results: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the results of every plane, of those of its strips."""
        roles = [self.functions[name].role for name, *_ in calls]
        return [JOINING[role](own) for role, own in zip(roles, results, strict=True)]

    def plane_sums(self, call: Reduction, own: slice, number: int) -> Array:
        """See `Program`; there is a number for each strip of a plane."""
        _, region, *_ = call
        planes, strips = _pieces_of(region)
        assert planes == own.stop - own.start and not self.sequences.collects, call
        found = self.backend.xp.empty((number, strips))
        if planes:
            self._launch_reduction(call, (planes, strips), found[own])
        return found

    def total_of(self, sums: Array) -> Array:
        """See `Program`; an array of one element."""
        found = self.backend.xp.asarray(sums)
        memory = self.backend.xp.empty(len(found))
        total = self.backend.xp.empty(1, self.number)
        given = (*map(np.int32, found.shape), found, memory, total)
        self.module.launch_grid("sum_planes", (1,), (PLANE_THREADS,), given)
        return total

    def _results(self, when: str, number: int) -> np.ndarray:
        """Return pinned memory for some results, the same again where it is large enough."""
        if len(self._memories[when]) < number:
            self._memories[when] = self.backend.pinned(number, "f8")
        return self._memories[when][:number]

    def _given(
        self, name: str, region: Region, more: tuple[int, int], arguments: tuple[Array, ...]
    ) -> tuple[Any, ...]:
        """Return the arguments of a kernel; `more` are the parity and the planes of a thread."""
        function = self.functions[name]
        box = box_of(*region, *more, *sizes(function, arguments))
        return (box, *self._converted(function, arguments))

    def _converted(self, function: CellFunction, arguments: tuple[Any, ...]) -> list[Any]:
        convert = {"Real": self.number, "Int": np.int32}
        pairs = zip(function.kinds, arguments, strict=True)
        return [convert[kind](value) if kind in convert else value for kind, value in pairs]


def _pieces_of(region: Region) -> tuple[int, int]:
    """Return the planes of a region, and the strips of each, whose results are joined."""
    strips = max(-(-(region[3] - region[2]) // STRIP_ROWS), 1)
    return max(region[1] - region[0], 0), strips


@lru_cache(MOST_KNOWN)
def box_of(*numbers: int) -> np.ndarray:
    """Return the first argument of a kernel; to make it takes as long as to launch one."""
    return np.array([numbers], BOX_TYPE)


@lru_cache(MOST_KNOWN)
def shape_of(role: str, region: Region) -> Shape:
    """Return how the threads of a function are arranged: no blocks where there are no cells.

    A thread takes several planes if its function is made for it and enough threads are left.
    """
    k, j, i = (region[end + 1] - region[end] for end in (0, 2, 4))
    if role == "of_colour":
        i = (i + 1) // 2
    depth = min(i * j * k // ENOUGH_THREADS, DEPTH)
    if role in DEEP and depth > 1:
        return _shape((i, j, k), DEEP_BLOCK, depth)
    if i == 1:
        return _shape((i, j, k), COLUMN_BLOCK, 1)
    return _shape((i, j, k), _row_block(i) if role == "over_rows" else BLOCK, 1)


def _row_block(cells: int) -> tuple[int, int, int]:
    """Return the best block whose threads rows of some cells keep busy."""
    most = (1.0 + IDLE_PART) * cells
    fitting = (width for width in ROW_WIDTHS if -(-cells // width) * width <= most)
    width = next(fitting, BLOCK[0])
    return width, math.prod(BLOCK) // width, 1


def _shape(cells: tuple[int, int, int], block: tuple[int, int, int], depth: int) -> Shape:
    widths = (*block[:2], block[2] * depth)
    grid = tuple(-(-n // width) for n, width in zip(cells, widths, strict=True))
    return Shape(grid, block, depth)
