"""Red-black iterations of Poisson's equation, ready to run: plain kernels, and those of the model.

All have ``load(x, b)`` of first guess and right-hand side, ``iterate(count)`` and ``result()``, and
say whether iterations can be ``captured`` in a graph; fields are (nz, ny, nx) of float32.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.benchmarks.fluid.problems import Cells, make_grid
from hybrid_nbody.fluid.kernels.contract import Relaxation, Solve
from hybrid_nbody.fluid.kernels.gpu.red_black import LONGEST_PASS, TiledSolver
from hybrid_nbody.fluid.solvers.base import NEVER_MET
from hybrid_nbody.fluid.solvers.halos import OwnGrid
from hybrid_nbody.fluid.solvers.relaxation import run_passes
from hybrid_nbody.fluid.stencil import POISSON

SOURCE = Path(__file__).with_name("sweeps.cu")
FACTOR = np.float32(1.0 / POISSON.diagonal)

TOLERANCE: Any = np.float32(0)
"""Changes larger than this do not end a solve: random numbers do not settle to the last bit."""

CPU_PASS = 4
"""Those of the model: `hybrid_nbody.fluid.kernels.cpu.red_black.LONGEST_PASS`."""

BEST_BLOCK = (32, 8, 1)
"""Threads along x, y and z: the fastest of the report."""

FOLD_THREADS = 1024


class InterleavedLoops:
    """Interleaved arrays on CPU threads: `hybrid_nbody.benchmarks.fluid.loops`."""

    captured = True

    def __init__(self, backend: Any, cells: Cells):
        from hybrid_nbody.benchmarks.fluid import loops  # compiled for the backend's threads

        self.backend = backend
        self.loops = loops

    def load(self, x: NDArray, b: NDArray) -> None:
        self.x = x.copy()
        self.b = b

    def iterate(self, count: int) -> None:
        self.loops.relax_interleaved(self.x, self.b, FACTOR, count)

    def result(self) -> NDArray:
        return self.x


class PlainKernels:
    """Interleaved arrays on a GPU, by ``sweeps.cu``; a subclass notes changes."""

    captured = True
    noted: tuple[Any, ...] = ()

    def __init__(self, backend: Any, cells: Cells, block: Cells = BEST_BLOCK, kernel="plain"):
        self.backend = backend
        self.kernel = kernel
        self.block = block
        half = -(-cells[0] // 2), *cells[1:]
        self.grid = tuple(-(-n // width) for n, width in zip(half, block, strict=True))
        self.sizes = tuple(map(np.int32, cells))
        self.module = CudaModule(backend, SOURCE, {})

    def load(self, x: NDArray, b: NDArray) -> None:
        self.x = self.backend.upload(x)
        self.b = self.backend.upload(b)

    def iterate(self, count: int) -> None:
        for _ in range(count):
            for colour in (0, 1):
                cells = np.int32(colour), *self.sizes, self.x, self.b, FACTOR
                self.module.launch_grid(self.kernel, self.grid, self.block, (*cells, *self.noted))
            self.end_iteration()

    def end_iteration(self) -> None:
        """Look at what was noted."""

    def result(self) -> NDArray:
        return self.backend.download(self.x)


class OneFlag(PlainKernels):
    """One flag in the device's memory, raised by each thread whose cell changed, or by a block."""

    def __init__(self, kernel: str, backend: Any, cells: Cells):
        super().__init__(backend, cells, kernel=kernel)
        self.control = backend.zeros(3, "i4")
        self.noted = (TOLERANCE, self.control)

    def end_iteration(self) -> None:
        """Let one thread look at the flag."""
        self.module.launch("end_iteration", 1, 1, self.control)


class BlockFlags(OneFlag):
    """A flag of each block; a second kernel folds them into one."""

    def __init__(self, backend: Any, cells: Cells):
        super().__init__("block_flags", backend, cells)
        self.blocks = np.int32(np.prod(self.grid))
        self.flags = backend.zeros(self.blocks, "i4")
        self.noted = (TOLERANCE, self.control, self.flags)

    def end_iteration(self) -> None:
        """Fold the flags."""
        arguments = self.blocks, self.flags, self.control
        self.module.launch("fold", FOLD_THREADS, FOLD_THREADS, *arguments)


class ReadByHost(PlainKernels):
    """The host reads the largest change after each iteration, as the course's program does."""

    captured = False

    def __init__(self, backend: Any, cells: Cells):
        super().__init__(backend, cells, kernel="largest")
        self.most = backend.zeros(1, "f4")
        self.noted = (self.most,)

    def end_iteration(self) -> None:
        """Wait for the largest change; that it is never small enough does not change the time."""
        self.seen = self.backend.download(self.most)[0] > TOLERANCE
        self.most.fill(0)


class ModelSweeps:
    """Colours in separate arrays, a sweep for each: what ranks that share a grid do."""

    captured = True

    def __init__(self, backend: Any, cells: Cells):
        self.backend = backend
        self.kernels, self.halo = make_grid(backend, cells)
        self.x = self.kernels.colours()
        self.b = self.kernels.colours()
        self.field = self.kernels.field()

    def load(self, x: NDArray, b: NDArray) -> None:
        for host, colours in ((x, self.x), (b, self.b)):
            self.field[1:-1] = self.backend.upload(host)
            self.kernels.split(self.field, colours)

    def iterate(self, count: int) -> None:
        kernels = self.kernels
        relaxation = Relaxation(POISSON, POISSON.fixed_ghost_factors, TOLERANCE)
        kernels.begin_solve()
        for _ in range(count):
            for colour in (0, 1):
                kernels.sweep(colour, self.x, self.b, relaxation)
            kernels.end_iteration()
        kernels.end_solve()

    def result(self) -> NDArray:
        self.kernels.merge(self.x, self.field)
        return self.backend.download(self.field[1:-1])


NOTES = {
    "nothing": (np.int64(0), -1.0),
    "count": (np.int64(0), 0.0),
    "largest": (np.float32(0), float(TOLERANCE)),
}
"""What is noted of changes: its first value, and a limit up to which iterations end."""


class ColourLoops(ModelSweeps):
    """The same by `hybrid_nbody.benchmarks.fluid.loops`, on arrays without padding; see `NOTES`."""

    def __init__(self, backend: Any, cells: Cells, note: str):
        from hybrid_nbody.benchmarks.fluid import loops  # compiled for the backend's threads

        super().__init__(backend, cells)
        zero, self.limit = NOTES[note]
        self.relax = loops.relaxing(getattr(loops, note), zero)
        self.noted = np.zeros((2, cells[2]))
        self.inside = np.s_[:, 1:-1, :, : cells[0] // 2]

    def load(self, x: NDArray, b: NDArray) -> None:
        super().load(x, b)
        self.own = self.x[self.inside].copy(), self.b[self.inside].copy()

    def iterate(self, count: int) -> None:
        self.relax(*self.own, FACTOR, TOLERANCE, count, self.noted, self.limit)

    def result(self) -> NDArray:
        self.x[self.inside] = self.own[0]
        return super().result()


class ModelRelax(ModelSweeps):
    """All iterations of a solve at once: what a rank does that owns the whole grid."""

    tolerance = TOLERANCE

    def iterate(self, count: int) -> None:
        solve = Solve(POISSON, self.tolerance, count)
        run_passes(self.kernels.begin_passes(self.x, self.b, solve, None), OwnGrid(self.halo))


def passes_on_cpu(backend: Any, cells: Cells, longest: int = CPU_PASS) -> ModelRelax:
    """Return the passes by which CPU threads relax a large grid, however small this one is."""
    made = ModelRelax(backend, cells)
    made.kernels.longest_pass = longest
    if longest > 1:
        made.tolerance = np.float32(NEVER_MET)
    return made


def model_passes(backend: Any, cells: Cells, longest: int = LONGEST_PASS) -> ModelRelax:
    """Return the passes by which a GPU relaxes a large grid, however small this one is."""
    made = ModelRelax(backend, cells)
    made.kernels.pass_solver = TiledSolver(made.kernels, longest)
    return made
