"""The fluid kernels on a GPU (CUDA through CuPy).

``red_black_resident.cu`` and ``red_black_tiles.cu`` hold whole red-black solves (`red_black.py`),
``red_black.cu`` the parts of others, ``advection.cu`` the advection, ``budget.cu`` what keeps the
total of a field, ``cells.cu`` everything else.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.colour_contract import First
from hybrid_nbody.fluid.kernels.contract import Flow, Source, Velocity
from hybrid_nbody.fluid.kernels.gpu.layout import SUM_THREADS, ghost_arguments
from hybrid_nbody.fluid.kernels.gpu.linear_systems import LinearSystems

BLOCKS_OF_A_PLANE = 8
"""Blocks that search a plane for its largest value."""


FRAME = np.dtype([(name, "i4") for name in ("rows", "columns", "k", "j", "i")])
"""Where a box is in fields with ghosts: ``Frame`` of ``cells.cu``."""

MOST_FRAMES = 256
"""Such arguments that are kept."""


def frame_of(field: Array, first: First) -> np.ndarray:
    """Return where a box is in fields like one of them, as an argument of a kernel."""
    _, rows, columns = field.shape
    return _frame(rows, columns, *first)


@lru_cache(MOST_FRAMES)
def _frame(*numbers: int) -> np.ndarray:
    """Return such an argument; to make it takes as long as to launch a kernel."""
    return np.array([numbers], FRAME)


class Kernels(LinearSystems):
    """The operations on the fields of one rank's planes.

    Parameters are those of `LinearSystems`, methods those of
    `hybrid_nbody.fluid.kernels.contract.Kernels`. `largest` and the sums wait for their result.
    """

    def __init__(self, backend: GpuBackend, slab: Slab, dtype: DTypeLike):
        super().__init__(backend, slab, dtype)
        self.fetched = backend.pinned(1, dtype)

    # --- arrays -----------------------------------------------------------------------------------

    def field(self) -> Array:
        """See `Kernels`."""
        return self.backend.zeros(self.slab.shape, self.dtype)

    def fill(self, array: Array, value: float) -> None:
        """See `Kernels`."""
        array.fill(value)

    def split(self, field: Array, colours: Array) -> None:
        """See `Kernels`."""
        self.on_pairs("cells", "split", field, colours)

    def split_twice(self, field: Array, first: Array, second: Array) -> None:
        """See `Kernels`."""
        self.on_pairs("cells", "split_twice", field, first, second)

    def split_carried(
        self, field: Array, factor: float, carried: Array, b: Array, x: Array
    ) -> None:
        """See `Kernels`."""
        self.on_pairs("cells", "split_sum", field, self.number(factor), carried, b)
        self.on_pairs("cells", "split", carried, x)

    def clear(self, colours: Array) -> None:
        """See `Kernels`."""
        colours.fill(0)

    def merge(self, colours: Array, field: Array) -> None:
        """See `Kernels`."""
        self.on_pairs("cells", "merge", colours, field, planes=self.slab.planes + 2)

    # --- elements of a box ------------------------------------------------------------------------

    def split_spread(self, field: Array, first: First, ratio: float, b: Array) -> None:
        """See `ColourKernels`."""
        frame = frame_of(field, first)
        self.on_pairs("cells", "split_spread", field, self.number(ratio), frame, b)

    def split_divergence(
        self, velocity: tuple[Array, Array, Array], first: First, factor: float, b: Array
    ) -> None:
        """See `ColourKernels`."""
        numbers = self.number(factor), frame_of(velocity[0], first)
        self.on_pairs("cells", "split_divergence", *velocity, *numbers, b)

    def merge_into(self, colours: Array, field: Array, first: First) -> None:
        """See `ColourKernels`."""
        self.on_pairs("cells", "merge_into", colours, frame_of(field, first), field)

    def merge_onto(self, colours: Array, field: Array, first: First) -> None:
        """See `ColourKernels`."""
        self.on_pairs("cells", "merge_onto", colours, frame_of(field, first), field)

    # --- projection -------------------------------------------------------------------------------

    def divergence(self, velocity: Velocity, factor: float, colours: Array) -> None:
        """See `Kernels`."""
        self.on_cells("cells", "divergence", *velocity, self.number(factor), colours)

    def subtract_gradient(self, velocity: Velocity, pressure: Array, factor: float) -> None:
        """See `Kernels`."""
        self.on_cells("cells", "subtract_gradient", *velocity, pressure, self.number(factor))

    # --- advection --------------------------------------------------------------------------------

    def advect(self, source: Source, out: Array, flow: Flow, scratch: Array | None = None) -> None:
        """See `Kernels`; threads make the ghosts: scratch memory is not needed."""
        planes = self._planes(source)
        arguments = (*self._flow(flow), *self._ghosts(source))
        self.on_cells("advection", "advect", source.cells, *planes, out, *arguments)

    def advect_velocity(self, out: Velocity, flow: Flow, scratch: Array | None = None) -> None:
        """See `Kernels`."""
        self.on_cells("advection", "advect_velocity", *out, *self._flow(flow))

    def correct(
        self, source: Source, forward: Array, out: Array, flow: Flow, scratch: Array | None = None
    ) -> None:
        """See `Kernels`."""
        planes = self._planes(source)
        arguments = (*self._flow(flow), *self._ghosts(source))
        self.on_cells("advection", "correct", source.cells, forward, *planes, out, *arguments)

    def _planes(self, source: Source) -> tuple[np.int32, np.int32]:
        """Return the index in the grid of a source's first plane, and the number of planes."""
        return np.int32(self.slab.first - source.depth), np.int32(len(source.cells))

    def _flow(self, flow: Flow) -> tuple[Any, ...]:
        return (*flow.velocity, self.number(flow.scale))

    def _ghosts(self, source: Source) -> tuple[Any, ...]:
        return ghost_arguments(source.ghosts, self.faces, self.dtype)

    # --- forces -----------------------------------------------------------------------------------

    def buoyancy(self, velocity: Velocity, density: Array, factors: Sequence[float]) -> None:
        """See `Kernels`."""
        self.on_cells("cells", "buoyancy", *velocity, density, *map(self.number, factors))

    def curl_length(self, velocity: Velocity, out: Array) -> None:
        """See `Kernels`."""
        factor = self.number(0.5 / self.slab.spacing)
        self.on_cells("cells", "curl_length", *velocity, factor, out)

    def confine(self, velocity: Velocity, length: Array, strength: float, out: Velocity) -> None:
        """See `Kernels`."""
        factors = (0.5 / self.slab.spacing, strength * self.slab.spacing)
        self.on_cells("cells", "confine", *velocity, length, *map(self.number, factors), *out)

    # --- the budget of a field --------------------------------------------------------------------

    def sum_changes(self, before: Array, after: Array, sums: Array) -> None:
        """See `Kernels`."""
        self._on_planes("sum_changes", before, after, sums)

    def update_budget(self, sums: Array, record: Array) -> None:
        """See `Kernels`."""
        self.modules["budget"].launch_grid("update_budget", (1,), (SUM_THREADS,), (sums, record))

    def scale_changes(self, before: Array, after: Array, record: Array, sums: Array) -> None:
        """See `Kernels`."""
        self._on_planes("scale_changes", before, after, record, sums)

    def _on_planes(self, name: str, *arguments: Array) -> None:
        """Launch a block for every plane."""
        grid = (self.slab.planes,)
        self.modules["budget"].launch_grid(name, grid, (SUM_THREADS,), arguments)

    # --- sources ----------------------------------------------------------------------------------

    def add_box(self, field: Array, box: Sequence[int], value: float) -> None:
        """See `Kernels`."""
        self._update("update_box", field, map(np.int32, box), 1, value)

    def set_box(self, field: Array, box: Sequence[int], value: float) -> None:
        """See `Kernels`."""
        self._update("update_box", field, map(np.int32, box), 0, value)

    def add_sphere(
        self, field: Array, centre: Sequence[float], radius: float, value: float
    ) -> None:
        """See `Kernels`."""
        self._update("update_sphere", field, map(np.float64, (*centre, radius**2)), 1, value)

    def set_sphere(
        self, field: Array, centre: Sequence[float], radius: float, value: float
    ) -> None:
        """See `Kernels`."""
        self._update("update_sphere", field, map(np.float64, (*centre, radius**2)), 0, value)

    def _update(
        self, name: str, field: Array, region: Iterable[Any], keep: int, value: float
    ) -> None:
        """Set the cells of a region to ``keep * cell + value``."""
        self.on_cells("cells", name, field, *region, self.number(keep), self.number(value))

    # --- over all cells ---------------------------------------------------------------------------

    def largest(self, array: Array) -> float:
        """See `Kernels`."""
        self._find_largest(array)
        return float(self.backend.download(self.extreme)[0])

    def largest_later(self, array: Array) -> Callable[[], float]:
        """See `Kernels`; the function waits for nothing that is queued after this call."""
        self._find_largest(array)
        arrival = self.backend.fetch(self.extreme, self.fetched)

        def wait() -> float:
            self.backend.wait(arrival)
            return float(self.fetched[0])

        return wait

    def largest_into(self, colours: Array, factor: float, limit: Array) -> None:
        """See `Kernels`."""
        self._find_largest(colours)
        self.single("cells", "take_limit", self.number(factor), self.extreme, limit)

    def _find_largest(self, array: Array) -> None:
        self.extreme.fill(0)
        name = {3: "largest", 4: "largest_in_colours"}[array.ndim]
        grid = (BLOCKS_OF_A_PLANE, self.slab.planes)
        self.modules["cells"].launch_grid(name, grid, (SUM_THREADS,), (array, self.extreme))

    def plane_sums(self, field: Array) -> np.ndarray:
        """See `Kernels`."""
        return self._sums("plane_sums", field)

    def plane_sums_with_ghosts(self, field: Array) -> np.ndarray:
        """See `Kernels`."""
        return self._sums("plane_sums_with_ghosts", field)

    def plane_squares(self, *fields: Array) -> np.ndarray:
        """See `Kernels`."""
        return self._sums("plane_squares", *fields)

    def _sums(self, name: str, *fields: Array) -> np.ndarray:
        planes = self.slab.planes
        sums = self.backend.zeros(planes, "f8")
        for field in fields:
            self.modules["cells"].launch_grid(name, (planes,), (SUM_THREADS,), (field, sums))
        found: np.ndarray = self.backend.download(sums)
        return found
