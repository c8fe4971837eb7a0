"""Red-black solves on a GPU: the grid kept in its multiprocessors, or passes over it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid_nbody.backends.base import Array
from hybrid_nbody.backends.launch import CudaModule
from hybrid_nbody.fluid.kernels.contract import Pass, PassSolve, Solve
from hybrid_nbody.fluid.kernels.gpu.layout import FOLDER, LONGEST_PASS
from hybrid_nbody.fluid.kernels.gpu.resident_boxes import Boxes, boxes_of
from hybrid_nbody.fluid.kernels.gpu.tiling import tiling_of

if TYPE_CHECKING:
    from hybrid_nbody.fluid.kernels.gpu.linear_systems import LinearSystems
    from hybrid_nbody.fluid.kernels.gpu.peers import Peers

PEER_HALO = np.dtype(
    [("below", "u8"), ("above", "u8"), ("colour_below", "i8"), ("colour_above", "i8")]
)
EARLY_PUSH = np.dtype(
    [
        ("to", PEER_HALO),
        ("complete_tiles", "u8"),
        ("pushers", "i4"),
        ("first", "i4"),
        ("second", "i4"),
    ],
    align=True,
)
"""Structures of ``peer_planes.cuh`` and ``red_black_tiles.cu``."""

COPY_THREADS = 256
"""Threads of a block that copies colours."""

COPY_BLOCKS = 1056
"""Blocks that copy colours."""

SCRATCH_ALIGNMENT = 256
"""Bytes: an array in scratch memory begins at a multiple of them, as an allocated one does."""


def fastest_solver(systems: "LinearSystems") -> "ResidentSolver | TiledSolver":
    """Return the fastest solver for the planes of a slab on its GPU."""
    facts = systems.backend.facts()
    slab = systems.slab
    may_reside = slab.complete and facts["cooperative_launch"]
    boxes = boxes_of(slab, systems.dtype, facts) if may_reside else None
    return ResidentSolver(systems, boxes) if boxes else TiledSolver(systems)


def solve_arguments(systems: "LinearSystems", solve: Solve) -> tuple[Any, ...]:
    """Return the numbers of a solve as arguments of a kernel."""
    equation = solve.equation
    numbers = map(systems.number, (1.0 / equation.diagonal, solve.tolerance))
    return (*systems.equation(equation), *numbers)


class ResidentSolver:
    """Solves of one kernel each (``red_black_resident.cu``).

    Every block of threads keeps a box of the grid in its multiprocessor.

    Parameters
    ----------
    systems : LinearSystems
        A slab that is the whole grid.
    boxes : Boxes
        The boxes.

    Attributes
    ----------
    longest : int
        Not used: there is one pass.
    """

    def __init__(self, systems: "LinearSystems", boxes: Boxes):
        self.systems = systems
        self.boxes = boxes
        self.longest = LONGEST_PASS
        source = FOLDER / "red_black_resident.cu"
        self.module = systems.compile(source, boxes.macros, cooperative=True)
        self.shared_memory = boxes.memory(systems.dtype)
        self.module.allow_shared_memory("relax", self.shared_memory)
        self.barrier = systems.backend.zeros(2, "u8")

    def begin(self, x: Array, b: Array, solve: Solve, scratch: Array | None) -> PassSolve:
        """See `Kernels.begin_passes`; scratch memory is not needed."""
        if solve.from_zero:
            x.fill(0)
        return ResidentSolve(self, x, b, solve)

    def launch(self, x: Array, b: Array, solve: Solve) -> None:
        """Queue a solve, which is added to the statistics."""
        numbers = solve_arguments(self.systems, solve)
        iterations = np.int32(solve.max_iterations)
        arguments = (iterations, x, b, *numbers, self.barrier, self.systems.control)
        grid = (self.boxes.number,)
        self.module.launch_grid("relax", grid, (self.boxes.threads,), arguments, self.shared_memory)


class ResidentSolve:
    """A solve by a single kernel; see `PassSolve`."""

    def __init__(self, solver: ResidentSolver, x: Array, b: Array, solve: Solve):
        self.solver = solver
        self.x = x
        self.b = b
        self.solve = solve
        self.passes: Sequence[Pass] = [Pass(0, solve.max_iterations, x, x)]

    def run(self, step: Pass) -> None:
        """Queue the kernel."""
        self.solver.launch(self.x, self.b, self.solve)

    def changed(self, step: Pass) -> Array:
        """Return no flags: there is no other rank."""
        return self.solver.systems.flags(0, 0)

    def finish(self) -> None:
        """Do nothing: the kernel has counted the solve."""


class TiledSolver:
    """Solves by passes of several iterations each (``red_black_tiles.cu``).

    Passes go from the solution's colours to work colours and back, or the other way round.

    Parameters
    ----------
    systems : LinearSystems
        The slab.
    longest : int
        Most iterations of a pass.

    Attributes
    ----------
    longest : int
        The same, or less: as much as the GPU has memory for, and what other ranks can do.
    pushers : dict of int to int
        Multiprocessors that push planes during a pass, by its iterations.
    """

    def __init__(self, systems: "LinearSystems", longest: int = LONGEST_PASS):
        self.systems = systems
        slab = systems.slab
        facts = systems.backend.facts()
        multiprocessors = facts["multiprocessors"]
        counts = range(1, longest + 1)
        fitting = {count: tiling_of(slab, systems.dtype, count, facts) for count in counts}
        self.tilings = {count: tiling for count, tiling in fitting.items() if tiling}
        self.longest = max(self.tilings)
        self.modules = {count: self._compile(count) for count in self.tilings}
        self.cuts = {
            count: systems.backend.upload(tiling.cuts(slab, count, multiprocessors))
            for count, tiling in self.tilings.items()
        }
        self.pushers = {
            count: tiling.pushers(slab, count, multiprocessors)
            for count, tiling in self.tilings.items()
        }

    def _compile(self, count: int) -> CudaModule:
        """Return the kernels of passes of `count` iterations."""
        tiling = self.tilings[count]
        module = self.systems.compile(FOLDER / "red_black_tiles.cu", tiling.macros(count))
        for name in ("relax", "redo") if count == 1 else ("relax",):
            module.allow_shared_memory(name, tiling.memory(self.systems.dtype))
        return module

    def begin(self, x: Array, b: Array, solve: Solve, scratch: Array | None) -> "TiledSolve":
        """See `Kernels.begin_passes`.

        If colours do not fit into the scratch memory, the first such call makes some to work in.
        """
        return TiledSolve(self, (x, b, self._work_colours(scratch)), solve, scratch)

    def _work_colours(self, scratch: Array | None) -> Array:
        """Return colours to work in: at a fixed offset in the scratch memory, or our own."""
        shape = self.systems.colours_shape
        if scratch is not None:
            size = int(np.prod(shape))
            start = -scratch.data.ptr % SCRATCH_ALIGNMENT // scratch.dtype.itemsize
            if start + size <= scratch.size:
                return scratch[start : start + size].reshape(shape)
        return self.systems.workspace.array("work colours", shape, self.systems.dtype)

    def grid(self, count: int) -> tuple[int, int]:
        """Return the blocks of a pass that have tiles: beside each other in x, and rows of them."""
        across, _ = self.tilings[count].number(self.systems.slab, count)
        return across, len(self.cuts[count]) - 1

    def launch(
        self, name: str, count: int, grid: tuple[int, int], arguments: tuple[Any, ...]
    ) -> None:
        """Launch a kernel that passes over the grid, `count` iterations at once."""
        tiling = self.tilings[count]
        shared_memory = tiling.memory(self.systems.dtype)
        module = self.modules[count]
        module.launch_grid(name, grid, (tiling.threads,), arguments, shared_memory)


class TiledSolve:
    """A solve in passes; see `PassSolve`.

    Parameters
    ----------
    solver : TiledSolver
        Launches the passes.
    colours : tuple of array
        x, b, and work colours.
    solve : Solve
        What is solved.
    scratch : flat array or None
        The memory that the caller lent.

    Attributes
    ----------
    peers : Peers or None
        Push planes while passes go on, if kernels write into the memory of other ranks.
    takes_zeros : bool
        Whether the first pass takes what it would read as zeros.
    begins_in_work : bool
        Whether passes go from work colours to x and back: an odd number of passes then ends in x,
        and nothing has to be copied.
    ends : tuple of array
        The colours from which the first pass goes, and those to which it goes.
    """

    peers: "Peers | None" = None

    def __init__(
        self,
        solver: TiledSolver,
        colours: tuple[Array, Array, Array],
        solve: Solve,
        scratch: Array | None,
    ):
        self.solver = solver
        self.systems = solver.systems
        self.x, self.b, self.work = colours
        self.solve = solve
        self.scratch = scratch
        long, single = divmod(solve.max_iterations, solver.longest)
        self.counts = [solver.longest] * long + [1] * single
        self.takes_zeros = solve.from_zero and bool(self.counts) and not solve.watched
        odd = len(self.counts) % 2 == 1
        self.begins_in_work = self.takes_zeros and odd
        self.ends = (self.work, self.x) if self.begins_in_work else (self.x, self.work)
        self.passes: Sequence[Pass] = self._passes()
        self.numbers = solve_arguments(self.systems, solve)
        if solve.from_zero and not self.takes_zeros:  # what is watched may be done again
            self.x.fill(0)

    def _passes(self) -> list[Pass]:
        """Return passes of the longest kind, and single iterations for the rest."""
        ways = (self.ends, self.ends[::-1])
        passes = [Pass(index, count, *ways[index % 2]) for index, count in enumerate(self.counts)]
        if self.takes_zeros:
            passes[0] = passes[0]._replace(source=None)
        return passes

    def run(self, step: Pass) -> None:
        """Queue a pass, with a row of blocks more if planes are to be pushed meanwhile."""
        previous = self.passes[step.number - 1].iterations if step.number else 0
        early = self.peers.early_push(step) if self.peers else np.zeros(1, EARLY_PUSH)
        across, rows = self.solver.grid(step.iterations)
        grid = (across, rows + (early["pushers"].item() > 0))
        from_zero = self.takes_zeros and step.number == 0
        words = (np.int32(step.number), np.int32(previous), np.int32(from_zero))
        self._launch("relax", step.iterations, grid, words, early)

    def _launch(
        self, name: str, count: int, grid: tuple[int, int], words: tuple[Any, ...], *more: Any
    ) -> None:
        arrays = (*self.ends, self.b, self.solver.cuts[count])
        arguments = (*words, *arrays, *self.numbers, self.systems.control, *more)
        self.solver.launch(name, count, grid, arguments)

    def changed(self, step: Pass) -> Array:
        """See `PassSolve`."""
        return self.systems.flags(step.number, step.iterations)

    def finish(self) -> None:
        """Queue a part of the last pass again, if that did too many iterations; see `PassSolve`."""
        control = self.systems.control
        last = self.passes[-1].iterations if self.passes else 0
        sizes = map(np.int32, (len(self.passes), last, self.solve.max_iterations))
        self.systems.single("red_black", "end_passes", *sizes, control)
        for number in range(self.solver.longest - 1 if self.solve.watched else 0):
            self._launch("redo", 1, self.solver.grid(1), (np.int32(number),))
        if self.begins_in_work:
            return
        module = self.systems.modules["red_black"]
        threads = COPY_BLOCKS * COPY_THREADS
        module.launch("copy_back", threads, COPY_THREADS, self.x, self.work, control)
