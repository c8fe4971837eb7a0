"""Calibration on a small grid: compiles the kernels, and measures each rank's speed."""

import time
from collections.abc import Callable
from functools import partial

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.backends.precompile import can_help, helped
from hybrid_nbody.fluid.grid import Boundary, Slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.kernels.contract import Kernels
from hybrid_nbody.fluid.solvers.base import Accuracy, Solver
from hybrid_nbody.fluid.solvers.halos import Halo
from hybrid_nbody.fluid.solvers.relaxation import RedBlack
from hybrid_nbody.fluid.stencil import POISSON, Stencil
from hybrid_nbody.fluid.step import Physics, Stepper
from hybrid_nbody.fluid.step_memory import State, make_state
from hybrid_nbody.parallel.calibrate import fastest_run
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.exchange.halo import FullGrid

COMPILE_CELLS = (8, 8, 8)
CALIBRATION_CELLS = (128, 128, 32)
ITERATIONS = 10


def compile_kernels(
    backend: Backend,
    boundary: Boundary,
    dtype: str,
    physics: Physics,
    make_solver: Callable[[Kernels, Halo], Solver],
    mixed: bool = False,
) -> None:
    """Do a step and compute diagnostics, so that everything is compiled before time counts.

    Compiled code stays in caches on disk.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    boundary, dtype, physics
        As in the run.
    make_solver : callable
        ``make_solver(kernels, halo)`` returns the run's solver.
    mixed : bool, optional
        See `Slab`.
    """
    slab = Slab(COMPILE_CELLS, boundary, 0, COMPILE_CELLS[2], mixed)
    if can_help(backend):
        with helped(partial(step_without_solver, slab=slab, dtype=dtype, physics=physics)):
            _solve_once(_make_stepper(backend, slab, dtype, physics, make_solver))
    stepper = _make_stepper(backend, slab, dtype, physics, make_solver)
    stepper.step(stepper.kernels.largest)
    _compute_diagnostics(stepper.kernels, stepper.state)
    backend.synchronize()


def step_without_solver(backend: Backend, slab: Slab, dtype: str, physics: Physics) -> None:
    """Do a step that solves no equation: what a helper compiles."""
    stepper = _make_stepper(backend, slab, dtype, physics, NoSolver)
    stepper.step(stepper.kernels.largest)


class NoSolver:
    """Leaves the first guess as it is."""

    def __init__(self, kernels: Kernels, halo: Halo):
        pass

    def solve(self, x: Array, b: Array, equation: Stencil, scratch: Array | None) -> None:
        """Do nothing."""


def _make_stepper(
    backend: Backend,
    slab: Slab,
    dtype: str,
    physics: Physics,
    make_solver: Callable[[Kernels, Halo], Solver],
) -> Stepper:
    """Return what does steps on a grid of its own."""
    kernels = make_kernels(backend, slab, dtype)
    halo = FullGrid(slab.cells[2], slab.periodic[2])
    return Stepper(kernels, halo, make_solver(kernels, halo), make_state(kernels), physics)


def _solve_once(stepper: Stepper) -> None:
    """Solve for a pressure, and compute diagnostics: what is compiled beside a helper."""
    kernels = stepper.kernels
    x, b = kernels.colours(), kernels.colours()
    stepper.solver.solve(x, b, POISSON, stepper.first_scratch)
    _compute_diagnostics(kernels, stepper.state)


def _compute_diagnostics(kernels: Kernels, state: State) -> None:
    kernels.residual(state.x, state.b, POISSON)
    kernels.plane_sums(state.density)
    kernels.plane_sums_with_ghosts(state.density)
    kernels.plane_squares(*state.velocity)


def measured_weights(
    backend: Backend, boundary: Boundary, dtype: str, communicator: Communicator, mixed: bool
) -> list[float]:
    """Return the speed of each rank in solves a second, measured by all of them at the same time.

    Parameters
    ----------
    backend, boundary, dtype
        As in the run.
    communicator : Communicator
        Collective.
    mixed : bool
        See `Slab`.
    """
    slab = Slab(CALIBRATION_CELLS, boundary, 0, CALIBRATION_CELLS[2], mixed)
    kernels = make_kernels(backend, slab, dtype)
    solve = typical_solve(kernels)
    seconds = partial(_seconds, backend, solve, kernels.colours(), kernels.colours())
    seconds()
    return communicator.gather(1.0 / fastest_run(seconds, communicator))


def typical_solve(kernels: Kernels) -> Callable[[Array, Array, Stencil], None]:
    """Return what ranks do most in a run, ``solve(x, b, equation)``.

    Where ranks compute on several kinds of devices, that is sweeps colour by colour.
    """
    slab = kernels.slab
    halo = FullGrid(slab.cells[2], slab.periodic[2])
    solver = RedBlack(kernels, halo, Accuracy(ITERATIONS, 0.0))
    return solver.iterate if slab.mixed else partial(solver.solve, scratch=None)


def _seconds(
    backend: Backend, solve: Callable[[Array, Array, Stencil], None], x: Array, b: Array
) -> float:
    start = time.perf_counter()
    solve(x, b, POISSON)
    backend.synchronize()
    return time.perf_counter() - start
