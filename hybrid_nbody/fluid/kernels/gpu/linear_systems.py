"""Linear systems on a GPU: solves in passes or by single sweeps, residuals, and statistics."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.gpu import GpuBackend
from hybrid_nbody.backends.launch import CudaModule, Macros
from hybrid_nbody.backends.workspace import Workspace
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.contract import PassSolve, PeerMemory, Relaxation, Solve
from hybrid_nbody.fluid.kernels.gpu.layout import (
    OPTIONS,
    SOURCES,
    defines,
    equation_arguments,
    faces_of,
    halo_of,
    pitch_of,
)
from hybrid_nbody.fluid.kernels.gpu.peers import Peers
from hybrid_nbody.fluid.kernels.gpu.red_black import ResidentSolver, TiledSolver, fastest_solver
from hybrid_nbody.fluid.stencil import Stencil

BLOCK = (64, 4)
"""Threads along x and y of a kernel that has one for each cell."""

WORDS = 24
"""Words of the record of solves on the device: see ``solve.cuh``."""

STATISTICS = {"solves": 1, "iterations": 2, "early": 3}
"""The words of the record that hold statistics."""

DONE = 4
"""The word that says whether the present solve is done."""

FLAGS = 10
"""The first word with flags of iterations."""

FLAGS_OF_A_LAUNCH = 4
"""Most iterations of a launch, each of which has a flag."""

LAUNCHES = 3
"""Launches whose flags are kept at a time."""


class LinearSystems:
    """The part of `hybrid_nbody.fluid.kernels.contract.Kernels` that solves linear systems.

    Launches are queued on the backend's stream and return at once; `statistics` and `residual` wait
    for their result. A solve stops on the device: kernels that are queued after it has converged
    return at once.

    Parameters
    ----------
    backend : GpuBackend
        The device.
    slab : Slab
        The planes.
    dtype : {"f4", "f8"}
        The working type.

    Attributes
    ----------
    number : callable
        Converts a number to the working type.
    modules : dict of str to CudaModule
        The kernels, by the name of their source.
    workspace : Workspace
        Scratch arrays of the device.
    control : array of int32
        The record of solves: see ``solve.cuh``.
    """

    relaxes_in_order = False

    def __init__(self, backend: GpuBackend, slab: Slab, dtype: DTypeLike):
        self.backend = backend
        self.slab = slab
        self.dtype = np.dtype(dtype)
        self.number: Callable[[float], Any] = self.dtype.type
        self.faces = faces_of(slab.boundary)
        self.modules = {name: self.compile(source) for name, source in SOURCES.items()}
        self.workspace = Workspace(backend.zeros)
        self.control = backend.zeros(WORDS, "i4")
        self.changed = self.control[:1]
        self.extreme = backend.zeros(1, dtype)
        self.pass_depth = halo_of(slab)
        planes = slab.planes + 2 * self.pass_depth
        self.colours_shape: tuple[int, ...] = (2, planes, slab.cells[1], pitch_of(slab, dtype))

    def compile(
        self, source: Path, macros: Macros | None = None, cooperative: bool = False
    ) -> CudaModule:
        """Return the kernels of a file for this slab; see `CudaModule`."""
        every_macro = defines(self.slab, self.dtype) | dict(macros or {})
        return CudaModule(self.backend, source, every_macro, OPTIONS, cooperative)

    def colours(self, *number: int) -> Array:
        """Return colours that are zero, or a number of them in one array."""
        return self.backend.zeros((*number, *self.colours_shape), self.dtype)

    # --- launches ---------------------------------------------------------------------------------

    def on_pairs(self, source: str, name: str, *arguments: Any, planes: int | None = None) -> None:
        """Launch a kernel with a thread for every two cells beside each other in x."""
        self._on_rows(self.slab.half, source, name, arguments, planes)

    def on_cells(self, source: str, name: str, *arguments: Any) -> None:
        """Launch a kernel with a thread for every cell."""
        self._on_rows(self.slab.cells[0], source, name, arguments)

    def _on_rows(
        self,
        width: int,
        source: str,
        name: str,
        arguments: tuple[Any, ...],
        planes: int | None = None,
    ) -> None:
        """Launch `width` threads for every row, of this rank's planes by default."""
        if not self.slab.planes:
            return
        across = -(-width // BLOCK[0])
        along = -(-self.slab.cells[1] // BLOCK[1])
        grid = (across, along, planes or self.slab.planes)
        self.modules[source].launch_grid(name, grid, (*BLOCK, 1), arguments)

    def single(self, source: str, name: str, *arguments: Any) -> None:
        """Launch one thread."""
        self.modules[source].launch(name, 1, 1, *arguments)

    # --- solves in passes -------------------------------------------------------------------------

    @functools.cached_property
    def pass_solver(self) -> ResidentSolver | TiledSolver:
        """Return the fastest solver in passes for this slab, compiled at the first request."""
        return fastest_solver(self)

    @property
    def passes_allowed(self) -> bool:
        """Return whether all ranks compute on GPUs; if so, compile the passes."""
        return not self.slab.mixed and self.pass_solver is not None

    @property
    def longest_pass(self) -> int:
        """Return the most iterations of a pass."""
        return self.pass_solver.longest

    @longest_pass.setter
    def longest_pass(self, iterations: int) -> None:
        self.pass_solver.longest = iterations

    def begin_passes(self, x: Array, b: Array, solve: Solve, scratch: Array | None) -> PassSolve:
        """See `Kernels`; everything is queued, so that a caller may capture it."""
        return self.pass_solver.begin(x, b, solve, scratch)

    def peer_planes(self, memory: PeerMemory, rank: int, planes: Sequence[int]) -> Peers | None:
        """See `Kernels`: a rank must own all planes that a pass of its neighbours reads."""
        return Peers(self, memory, rank, planes) if min(planes) >= self.pass_depth else None

    def equation(self, equation: Stencil) -> tuple[Any, ...]:
        """Return an equation as arguments of a kernel."""
        return equation_arguments(equation, self.faces, self.dtype)

    def flags(self, launch: int, iterations: int) -> Array:
        """Return the flags of the iterations of a launch of a solve: not 0 if a cell changed."""
        start = FLAGS + launch % LAUNCHES * FLAGS_OF_A_LAUNCH
        return self.control[start : start + iterations]

    # --- solves by single sweeps ------------------------------------------------------------------

    def begin_solve(self) -> None:
        """See `Kernels`."""
        self.single("red_black", "begin_solve", self.control)

    def sweep(self, colour: int, x: Array, b: Array, relaxation: Relaxation) -> None:
        """See `Kernels`; the factors are indexed on the device by the walls beside a cell."""
        equation, factors, tolerance = relaxation
        by_walls = np.array([(factors,)], [("at", self.dtype, len(factors))])
        numbers = (*self.equation(equation), by_walls, self.number(tolerance))
        self.on_pairs("red_black", "sweep", np.int32(colour), x, b, *numbers, self.control)

    def end_iteration(self) -> None:
        """See `Kernels`."""
        self.single("red_black", "end_iteration", self.control)

    def end_solve(self) -> None:
        """See `Kernels`."""
        self.single("red_black", "end_solve", self.control)

    def stopped(self) -> bool:
        """Return whether a solve is done, where other ranks compute on CPUs and end it then.

        Otherwise only the device knows: once a solve has converged it does nothing more, and the
        host does not wait for it.
        """
        done = self.slab.mixed and bool(self.backend.download(self.control[DONE : DONE + 1])[0])
        if done:
            self.end_iteration()  # one that is left out
        return done

    def relax_lexicographic(self, x: Array, b: Array, equation: Stencil, iterations: int) -> None:
        """Refuse: each cell would wait for the one before it."""
        raise NotImplementedError("a GPU does not relax cells in lexicographic order")

    # --- equations --------------------------------------------------------------------------------

    def impose(self, equation: Stencil, b: Array) -> None:
        """See `Kernels`."""
        offsets = [equation.neighbour * offset for offset in equation.ghosts.offsets]
        if any(offsets):
            by_face = np.array([(offsets,)], [("at", self.dtype, len(offsets))])
            self.on_cells("red_black", "impose", b, by_face)

    def residual(self, x: Array, b: Array, equation: Stencil) -> float:
        """See `Kernels`."""
        self.extreme.fill(0)
        self.on_pairs("red_black", "residual", x, b, *self.equation(equation), self.extreme)
        return float(self.backend.download(self.extreme)[0])

    def exceeds(self, x: Array, b: Array, equation: Stencil, limit: Array) -> None:
        """See `Kernels`."""
        numbers = self.equation(equation)
        self.on_pairs("red_black", "exceeds", x, b, *numbers, limit, self.control)

    # --- statistics -------------------------------------------------------------------------------

    def statistics(self) -> dict[str, int]:
        """See `Kernels`."""
        words = self.backend.download(self.control)
        return {name: int(words[word]) for name, word in STATISTICS.items()}

    def reset_statistics(self) -> None:
        """See `Kernels`."""
        self.control[1:4] = 0
