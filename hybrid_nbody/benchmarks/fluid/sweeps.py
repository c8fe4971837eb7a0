"""Red-black iterations of Poisson's equation, made ready to run: plain kernels of this room, and those of the model.

All have ``load(x, b)`` and ``result()``, which take and return fields (nz, ny, nx) of float32 on
the host, and ``iterate(count)``. None of their tests for convergence is ever met: `TOLERANCE`.
"""

from pathlib import Path

import numpy as np

from hybrid_nbody.benchmarks.fluid.problems import DTYPE, make_halo, make_slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.kernels.contract import Relaxation, Solve
from hybrid_nbody.fluid.kernels.gpu.red_black import LONGEST_PASS, TiledSolver
from hybrid_nbody.fluid.solvers.base import NEVER_MET
from hybrid_nbody.fluid.solvers.halos import OwnGrid
from hybrid_nbody.fluid.solvers.relaxation import run_passes
from hybrid_nbody.fluid.stencil import POISSON

SOURCE = Path(__file__).with_name("sweeps.cu")
FACTOR = np.float32(1.0 / POISSON.diagonal)

TOLERANCE = np.float32(0)
"""Changes larger than this do not end a solve: random numbers do not settle to the last bit."""

CPU_PASS = 4
"""Most that the model does on CPU threads:
`hybrid_nbody.fluid.kernels.cpu.red_black.LONGEST_PASS`."""

BEST_BLOCK = (32, 8, 1)
"""Threads along x, y and z: the fastest of the report."""

FOLD_THREADS = 1024


# --- on a CPU -------------------------------------------------------------------------------------


class InterleavedLoops:
    """Interleaved arrays on CPU threads: `hybrid_nbody.benchmarks.fluid.loops.relax_interleaved`."""

    captured = True

    def __init__(self, backend, cells):
        from hybrid_nbody.benchmarks.fluid import (
            loops as fluid_loops,  # compiles for the threads and the cache of `backend`
        )

        self.backend = backend
        self.loops = fluid_loops

    def load(self, x, b):
        """Take a first guess and a right-hand side."""
        self.x = x.copy()
        self.b = b

    def iterate(self, count):
        """Do iterations."""
        self.loops.relax_interleaved(self.x, self.b, FACTOR, count)

    def result(self):
        """Return the solution so far."""
        return self.x


class ColourLoops:
    """Colours in separate arrays on CPU threads; a subclass says what is noted of the changes."""

    captured = True
    note = "nothing"
    zero = np.int64(0)
    limit = -1.0

    def __init__(self, backend, cells):
        from hybrid_nbody.benchmarks.fluid import loops as fluid_loops

        self.backend = backend
        self.loops = fluid_loops
        self.relax = fluid_loops.relaxing(getattr(fluid_loops, self.note), self.zero)
        self.noted = np.zeros((2, cells[2]))

    def load(self, x, b):
        """See `InterleavedLoops`."""
        self.x, self.b = self.loops.split(x), self.loops.split(b)

    def iterate(self, count):
        """See `InterleavedLoops`."""
        self.relax(self.x, self.b, FACTOR, TOLERANCE, count, self.noted, self.limit)

    def result(self):
        """See `InterleavedLoops`."""
        return self.loops.merge(self.x)


class CountingLoops(ColourLoops):
    """Cells that changed by more than the tolerance are counted, in an integer."""

    note = "count"
    limit = 0.0


class LargestLoops(ColourLoops):
    """The largest change is found, a float."""

    note = "largest"
    zero = np.float32(0)
    limit = float(TOLERANCE)


# --- on a GPU -------------------------------------------------------------------------------------


class PlainKernels:
    """Interleaved arrays on a GPU, by ``fluid_sweeps.cu``; nothing is noted.

    Parameters
    ----------
    backend : GpuBackend
    cells : tuple of int
        nx, ny, nz.
    block : tuple of int
        Threads along x, y and z.

    Attributes
    ----------
    captured : bool
        Whether iterations can be captured in a graph: the host takes no part in them.
    """

    captured = True
    kernel = "plain"

    def __init__(self, backend, cells, block=BEST_BLOCK):
        self.backend = backend
        self.block = block
        self.grid = tuple(
            -(-n // width) for n, width in zip((-(-cells[0] // 2), *cells[1:]), block, strict=True)
        )
        self.sizes = tuple(map(np.int32, cells))
        self.function = backend.compile(SOURCE, {}).get_function
        self.half_sweep = self.function(self.kernel)
        self.room = ()

    def load(self, x, b):
        """See `InterleavedLoops`."""
        self.x, self.b = self.backend.upload(x), self.backend.upload(b)

    def iterate(self, count):
        """Queue iterations."""
        for _ in range(count):
            for colour in (0, 1):
                arguments = np.int32(colour), *self.sizes, self.x, self.b, FACTOR, *self.room
                self.half_sweep(self.grid, self.block, arguments)
            self.end_iteration()

    def end_iteration(self):
        """Nothing is to be done."""

    def result(self):
        """See `InterleavedLoops`."""
        return self.backend.download(self.x)


class OneFlag(PlainKernels):
    """Every thread whose cell changed raises one flag in the device's memory."""

    kernel = "flag_of_threads"

    def __init__(self, backend, cells):
        super().__init__(backend, cells)
        self.control = backend.zeros(3, "i4")
        self.room, self.end = (TOLERANCE, self.control), self.function("end_iteration")

    def end_iteration(self):
        """Let one thread look at the flag."""
        self.end((1,), (1,), (self.control,))


class OneFlagOncePerBlock(OneFlag):
    """One thread of a block raises the flag, if it is not seen up yet: so does the model."""

    kernel = "flag_of_blocks"


class BlockFlags(PlainKernels):
    """Each block has a flag of its own; a second kernel folds them into one."""

    kernel = "block_flags"

    def __init__(self, backend, cells):
        super().__init__(backend, cells)
        self.blocks = int(np.prod(self.grid))
        self.control = backend.zeros(3, "i4")
        self.flags = backend.zeros(self.blocks, "i4")
        self.room, self.fold = (TOLERANCE, self.control, self.flags), self.function("fold")

    def end_iteration(self):
        """Fold the flags."""
        self.fold((1,), (FOLD_THREADS,), (np.int32(self.blocks), self.flags, self.control))


class ReadByHost(PlainKernels):
    """The largest change is found, and the host reads it after each iteration, as the course's program does."""

    captured = False
    kernel = "largest"

    def __init__(self, backend, cells):
        super().__init__(backend, cells)
        self.most = backend.zeros(1, "f4")
        self.room = (self.most,)

    def end_iteration(self):
        """Wait for the largest change; that it is never small enough does not matter to the time."""
        self.seen = self.backend.download(self.most)[0] > TOLERANCE
        self.most.fill(0)


# --- of the model ---------------------------------------------------------------------------------


class ModelSweeps:
    """Colours in separate arrays, a sweep for each: what ranks that share a grid do."""

    captured = True
    held = {}

    def __init__(self, backend, cells):
        self.backend = backend
        self.kernels = make_kernels(backend, make_slab(cells), DTYPE)
        for name, value in self.held.items():  # whatever the kernels would choose for such a grid
            setattr(self.kernels, name, value)
        self.x, self.b, self.field = (
            self.kernels.colours(),
            self.kernels.colours(),
            self.kernels.field(),
        )

    def load(self, x, b):
        """See `InterleavedLoops`."""
        for host, colours in ((x, self.x), (b, self.b)):
            self.field[1:-1] = self.backend.upload(host)
            self.kernels.split(self.field, colours)

    def iterate(self, count):
        """Queue iterations."""
        kernels = self.kernels
        relaxation = Relaxation(POISSON, POISSON.fixed_ghost_factors, TOLERANCE)
        kernels.begin_solve()
        for _ in range(count):
            for colour in (0, 1):
                kernels.sweep(colour, self.x, self.b, relaxation)
            kernels.end_iteration()
        kernels.end_solve()

    def result(self):
        """See `InterleavedLoops`."""
        self.kernels.merge(self.x, self.field)
        return self.backend.download(self.field[1:-1])


class ModelRelax(ModelSweeps):
    """All iterations of a solve at once: what a rank does that owns the whole grid."""

    tolerance = TOLERANCE

    def __init__(self, backend, cells):
        super().__init__(backend, cells)
        self.halo = OwnGrid(make_halo(cells))

    def iterate(self, count):
        """Queue iterations."""
        solve = Solve(POISSON, self.tolerance, count)
        run_passes(self.kernels.begin_passes(self.x, self.b, solve, None), self.halo)


class OnePassOnCpu(ModelRelax):
    """Both colours in one pass over the grid, on CPU threads."""

    held = {"longest_pass": 1}


class PassesOnCpu(ModelRelax):
    """The longest passes by which CPU threads relax a large grid, however small this one is."""

    held = {"longest_pass": CPU_PASS}
    tolerance = np.float32(NEVER_MET)


class ModelPasses(ModelRelax):
    """The passes over the grid by which a GPU relaxes a large one, however small this one is."""

    longest = LONGEST_PASS

    def __init__(self, backend, cells):
        super().__init__(backend, cells)
        self.kernels.pass_solver = TiledSolver(self.kernels, self.longest)


class FusedColours(ModelPasses):
    """Both colours in one pass over the grid, on a GPU."""

    longest = 1
