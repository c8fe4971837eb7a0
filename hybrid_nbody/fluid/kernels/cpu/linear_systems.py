"""Linear systems on CPU threads: solves in passes or by single sweeps, residuals, statistics."""

import functools
from collections.abc import Sequence

import numpy as np
from numba import get_num_threads

from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels.contract import Array, Pass, PeerMemory, Relaxation, Solve
from hybrid_nbody.fluid.kernels.cpu import colours, lexicographic, red_black, residual
from hybrid_nbody.fluid.kernels.cpu.layout import (
    aligned_zeros,
    cells_of_rows,
    make_grid,
    tables_of_rows,
    walls_of_rows,
)
from hybrid_nbody.fluid.kernels.cpu.regions import colours_at_face
from hybrid_nbody.fluid.kernels.cpu.residual import Rule, System
from hybrid_nbody.fluid.stencil import Factors, Stencil

BYTES_IN_CACHE = 12 << 20
"""Bytes of a system that about fit into the last cache, where more iterations in a pass over the
grid save nothing."""

UNIT_FACTORS: Factors = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)


class LinearSystems:
    """The part of `hybrid_nbody.fluid.kernels.contract.Kernels` that solves linear systems.

    Parameters
    ----------
    backend : CpuBackend
        The threads.
    slab : Slab
        The planes.
    dtype : {"f4", "f8"}
        The working type.

    Attributes
    ----------
    number : type
        Converts a number to the working type.
    grid : hybrid_nbody.fluid.kernels.cpu.layout.Grid
        The slab for compiled code.
    """

    pass_depth = 1
    relaxes_in_order = True

    def __init__(self, backend: CpuBackend, slab: Slab, dtype: str):
        self.backend = backend
        self.slab = slab
        self.dtype = np.dtype(dtype)
        self.number = self.dtype.type
        self.grid = make_grid(slab)
        self.colours_shape: tuple[int, ...] = (2, *slab.shape[:2], self.grid.pitch)
        self.cells = cells_of_rows(slab.cells[0], self.grid.pitch, self.dtype)
        self.walls = walls_of_rows(slab.cells[0], self.grid.pitch, slab.periodic[0])
        self.changed = np.zeros(1, np.int32)
        self.longest_pass = self._longest_useful_pass()
        self._compiled_equation = functools.cache(self._compile_equation)
        self.begin_solve()
        self.reset_statistics()

    @property
    def blocks(self) -> int:
        """Return the blocks of planes: one for each thread, if there are enough planes."""
        return min(int(get_num_threads()), self.slab.planes)

    def _longest_useful_pass(self) -> int:
        size = 4 * self.slab.shape[0] * self.slab.shape[1] * self.grid.pitch * self.dtype.itemsize
        return 1 if size <= BYTES_IN_CACHE else red_black.LONGEST_PASS

    def colours(self, *number: int) -> Array:
        """Return colours that are zero, or a number of them in one array."""
        return aligned_zeros((*number, *self.colours_shape), self.dtype)

    # ---- Solves ----

    @property
    def passes_allowed(self) -> bool:
        """Return whether the rank owns all planes: between passes, other ranks would see none."""
        return self.slab.complete

    def begin_passes(self, x: Array, b: Array, solve: Solve, scratch: Array | None) -> "WholeSolve":
        """See `Kernels`."""
        if solve.from_zero:
            colours.clear(x.reshape(-1), self.grid)
        return WholeSolve(self, x, b, solve, scratch)

    def peer_planes(self, memory: PeerMemory, rank: int, planes: Sequence[int]) -> None:
        """Return None: processes do not write into each other's memory."""

    def begin_solve(self) -> None:
        """See `Kernels`."""
        self.changed[0] = 0
        self.done = False
        self.iterations_done = 0
        self.ended_early = False

    def sweep(self, colour: int, x: Array, b: Array, relaxation: Relaxation) -> None:
        """See `Kernels`."""
        if self.done:
            return
        equation, factors, tolerance = relaxation
        rule, tables = self._compiled_equation(equation, factors)
        system = x.reshape(-1), b.reshape(-1), rule, tables
        changed = np.zeros(self.grid.planes + 1, np.bool_)
        red_black.sweep(colour, *system, self.number(tolerance), self.grid, changed)
        self.changed[0] |= changed.any()

    def end_iteration(self) -> None:
        """See `Kernels`."""
        if not self.done:
            self.iterations_done += 1
            self.done = not self.changed[0]
            self.changed[0] = 0

    def stopped(self) -> bool:
        """See `Kernels`."""
        self.ended_early = self.done
        return self.done

    def end_solve(self) -> None:
        """See `Kernels`."""
        self.count(self.iterations_done, self.ended_early)

    def relax_lexicographic(self, x: Array, b: Array, equation: Stencil, iterations: int) -> None:
        """See `Kernels`."""
        rule = self.rule(equation)
        diagonal = self.number(equation.diagonal)
        lexicographic.relax(x, b, rule, diagonal, iterations, self.grid)
        self.count(iterations, False)

    # ---- Equations ----

    def impose(self, equation: Stencil, b: Array) -> None:
        """See `Kernels`."""
        for face, offset in enumerate(equation.ghosts.offsets):
            if offset:
                cells = colours_at_face(self.slab, face)
                b[cells] += self.number(equation.neighbour * offset)

    def residual(self, x: Array, b: Array, equation: Stencil) -> float:
        """See `Kernels`."""
        system = self.compiled_system(x, b, equation, UNIT_FACTORS)
        result = np.empty(self.slab.planes, self.dtype)
        residual.max_residuals(*system, self.grid, result)
        return float(result.max())

    def exceeds(self, x: Array, b: Array, equation: Stencil, limit: Array) -> None:
        """See `Kernels`."""
        self.changed[0] |= self.residual(x, b, equation) > limit[0]

    def largest_into(self, colours: Array, factor: float, limit: Array) -> None:
        """See `Kernels`."""
        result = np.empty(self.slab.planes, self.dtype)
        residual.largest_cells(colours.reshape(-1), self.cells.reshape(-1), self.grid, result)
        limit[0] = self.number(factor) * result.max()

    def compiled_system(self, x: Array, b: Array, equation: Stencil, factors: Factors) -> System:
        """Return a system as compiled loops take it, of flat arrays."""
        rule, tables = self._compiled_equation(equation, factors)
        return System(x.reshape(-1), b.reshape(-1), rule, tables)

    def rule(self, equation: Stencil) -> Rule:
        """Return an equation in the working type."""
        numbers = equation.shift, equation.neighbour, *equation.ghosts.signs
        return Rule(*map(self.number, numbers))

    def _compile_equation(self, equation: Stencil, factors: Factors) -> tuple[Rule, Array]:
        numbers = np.array(factors, self.dtype)
        along_x = equation.ghosts.signs[:2]
        tables = tables_of_rows(self.cells, self.walls, along_x, numbers)
        return self.rule(equation), tables

    # ---- Statistics ----

    def statistics(self) -> dict[str, int]:
        """See `Kernels`."""
        return dict(self.counts)

    def reset_statistics(self) -> None:
        """See `Kernels`."""
        self.counts = {"solves": 0, "iterations": 0, "early": 0}

    def count(self, iterations: int, early: bool) -> None:
        """Add a solve to the statistics."""
        self.counts["solves"] += 1
        self.counts["iterations"] += int(iterations)
        self.counts["early"] += int(early)


class WholeSolve:
    """A solve whose iterations are all done in one call of compiled code, on all planes.

    Parameters
    ----------
    systems : LinearSystems
    x, b, solve, scratch
        See `hybrid_nbody.fluid.kernels.contract.Kernels.begin_passes`.
    """

    def __init__(
        self, systems: LinearSystems, x: Array, b: Array, solve: Solve, scratch: Array | None
    ):
        self.systems = systems
        self.x = x
        self.b = b
        self.solve = solve
        self.passes: Sequence[Pass] = [Pass(0, solve.max_iterations, x, x)]
        self.longest, self.kept = self._memory(scratch)

    def _memory(self, scratch: Array | None) -> tuple[int, Array]:
        """Return the most iterations of a pass, and where the first guess is kept.

        It is needed if a pass of several iterations does too many.
        """
        longest = self.systems.longest_pass
        if scratch is not None and scratch.size >= self.x.size:
            return longest, scratch[: self.x.size]
        return (1 if self.solve.watched else longest), self.x.reshape(-1)[:0]

    def run(self, step: Pass) -> None:
        """Do all iterations."""
        systems = self.systems
        equation = self.solve.equation
        system = systems.compiled_system(self.x, self.b, equation, equation.fixed_ghost_factors)
        tolerance = systems.number(self.solve.tolerance)
        memory = red_black.Scratch(self.longest, self.kept, systems.blocks)
        done = red_black.relax(system, step.iterations, tolerance, memory, systems.grid)
        systems.count(done, done < step.iterations)

    def changed(self, step: Pass) -> Array:
        """Return no flags: a rank that owns all planes shares them with no other."""
        return np.zeros(0, np.int32)

    def finish(self) -> None:
        """Do nothing: the solution is in place, and counted."""
