"""Short trials on a small grid: to compile the kernels before the run, and to measure a rank's speed."""

import time
from functools import partial

from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.kernels.contract import Relaxation
from hybrid_nbody.fluid.solvers.base import COLOURS, Accuracy
from hybrid_nbody.fluid.solvers.relaxation import RedBlack
from hybrid_nbody.fluid.stencil import POISSON
from hybrid_nbody.fluid.step import Physics, Stepper
from hybrid_nbody.fluid.workspace import make_state
from hybrid_nbody.parallel.calibrate import fastest_run
from hybrid_nbody.parallel.exchange.halo import FullGrid

REHEARSED_CELLS = (8, 8, 8)
TRIAL_CELLS = (128, 128, 32)
ITERATIONS = 10


def compile_kernels(backend, boundary, dtype, physics: Physics, make_solver) -> None:
    """Do a step, and what diagnostics need, so that all is compiled (and in the caches on disk) before time counts.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    boundary, dtype, physics
        As in the run.
    make_solver : callable
        ``make_solver(kernels, halo)`` returns the run's solver.
    """
    kernels = make_kernels(backend, Slab.whole(REHEARSED_CELLS, boundary), dtype)
    halo = FullGrid(REHEARSED_CELLS[2], boundary.periodic[2])
    state = make_state(kernels)
    stepper = Stepper(kernels, halo, make_solver(kernels, halo), state, physics)
    stepper.step(lambda b: kernels.largest(b))
    kernels.residual(state.x, state.b, POISSON)
    kernels.plane_sums(state.density)
    kernels.plane_sums_with_ghosts(state.density)
    kernels.plane_squares(*state.velocity)
    kernels.begin_solve()
    for colour in COLOURS:
        relaxation = Relaxation(POISSON, POISSON.fixed_ghost_factors, 0.0)
        kernels.sweep(colour, state.x, state.b, relaxation)
    kernels.end_iteration()
    kernels.end_solve()
    backend.synchronize()


def measured_weights(backend, boundary, dtype, communicator, mixed: bool) -> list[float]:
    """Return the speed of each rank in trials a second, measured by all of them at the same time.

    Parameters
    ----------
    backend, boundary, dtype
        As in the run.
    communicator : Communicator
        Every rank calls together.
    mixed : bool
        See `Slab`.
    """
    kernels = make_kernels(backend, Slab(TRIAL_CELLS, boundary, 0, TRIAL_CELLS[2], mixed), dtype)
    solve = solve_of(kernels)
    seconds = partial(_seconds, backend, solve, kernels.colours(), kernels.colours())
    seconds()
    return communicator.gather(1.0 / fastest_run(seconds, communicator))


def solve_of(kernels):
    """Return what ranks do most in a run, ``solve(x, b, stencil)``: those of several kinds sweep colour by colour."""
    slab = kernels.slab
    solver = RedBlack(kernels, FullGrid(slab.cells[2], slab.periodic[2]), Accuracy(ITERATIONS, 0.0))
    return solver.iterate if slab.mixed else partial(solver.solve, scratch=None)


def _seconds(backend, solve, x, b):
    start = time.perf_counter()
    solve(x, b, POISSON)
    backend.synchronize()
    return time.perf_counter() - start
