"""Calibration on a small grid: compiles the kernels, and measures each rank's speed."""

import time
from collections.abc import Callable
from functools import partial

from hybrid_nbody.backends.base import Array, Backend
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
    kernels = make_kernels(backend, slab, dtype)
    halo = FullGrid(COMPILE_CELLS[2], boundary.periodic[2])
    state = make_state(kernels)
    stepper = Stepper(kernels, halo, make_solver(kernels, halo), state, physics)
    stepper.step(lambda b: kernels.largest(b))
    _compute_diagnostics(kernels, state)
    backend.synchronize()


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
