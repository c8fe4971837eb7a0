"""Short trials on a small grid: to compile the kernels before the run, and to measure a rank's speed."""

import time

from hybrid_nbody.fluid.kernels import make_kernels
from hybrid_nbody.fluid.slab import Slab
from hybrid_nbody.fluid.solvers import COLOURS, NEVER_MET
from hybrid_nbody.fluid.stencil import POISSON
from hybrid_nbody.fluid.step import Physics, Stepper, make_state
from hybrid_nbody.parallel.halo import Whole

REHEARSED_CELLS = (8, 8, 8)
TRIAL_CELLS = (128, 128, 32)
TRIALS = 3
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
    halo, state = Whole(REHEARSED_CELLS[2], boundary[2] == "periodic"), make_state(kernels)
    stepper = Stepper(kernels, halo, make_solver(kernels, halo), state, physics)
    stepper.step(lambda b: kernels.largest(b))
    kernels.residual(state.x, state.b, POISSON)
    kernels.plane_sums(state.density)
    kernels.plane_sums_with_ghosts(state.density)
    kernels.plane_squares(*state.velocity)
    kernels.begin_solve()
    for colour in COLOURS:
        kernels.sweep(colour, state.x, state.b, POISSON, POISSON.lagging, 0.0)
    kernels.end_iteration()
    kernels.end_solve()
    backend.synchronize()


def measured_weights(backend, boundary, dtype, communicator) -> list[float]:
    """Return the speed of each rank in cells a second of an iteration, measured by all of them at the same time."""
    kernels = make_kernels(backend, Slab.whole(TRIAL_CELLS, boundary), dtype)
    x, b, seconds = kernels.colours(), kernels.colours(), []
    communicator.barrier()
    for _ in range(TRIALS):
        start = time.perf_counter()
        kernels.relax(x, b, POISSON, ITERATIONS, NEVER_MET, None)
        backend.synchronize()
        seconds.append(time.perf_counter() - start)
    return communicator.gather(1.0 / min(seconds))
