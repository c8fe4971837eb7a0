"""Short trials of the kernels on a small grid: to compile them before the run, and to measure a rank's speed."""

import time

from hybrid_nbody.fluid.model import KERNELS
from hybrid_nbody.fluid.slab import Slab
from hybrid_nbody.fluid.stencil import POISSON, SCALAR

TRIAL_CELLS = (128, 128, 32)
TRIALS = 3
ITERATIONS = 10


def compile_kernels(backend, boundary, dtype) -> None:
    """Run every kernel of a step once, so that all are compiled (and in the caches on disk) before time counts."""
    kernels = _kernels(backend, (4, 4, 4), boundary, dtype)
    fields, x, b = [kernels.field() for _ in range(8)], kernels.colours(), kernels.colours()
    u, v, w = fields[:3]
    kernels.split(u, b)
    kernels.split_sum(u, 0.1, v, x)
    kernels.relax(x, b, POISSON, 1.0, 1, 0.0)
    kernels.merge(x, u)
    kernels.divergence(u, v, w, 1.0, fields[3])
    kernels.subtract_gradient(u, v, w, x, 1.0)
    kernels.advect(fields[3], 1, fields[4], u, v, w, 1.0, SCALAR)
    kernels.set_box(u, (0, 1, 0, 1, 0, 1), 0.0)
    kernels.residual(x, b, POISSON)
    kernels.plane_sums(u)
    kernels.plane_sums_with_ghosts(u)
    kernels.plane_squares(u, v, w)
    backend.synchronize()


def measured_weights(backend, boundary, dtype, communicator) -> list[float]:
    """Return the speed of each rank in cells a second of an iteration, measured by all of them at the same time."""
    kernels = _kernels(backend, TRIAL_CELLS, boundary, dtype)
    x, b, seconds = kernels.colours(), kernels.colours(), []
    communicator.barrier()
    for _ in range(TRIALS):
        start = time.perf_counter()
        kernels.relax(x, b, POISSON, 1.0, ITERATIONS, 0.0)
        backend.synchronize()
        seconds.append(time.perf_counter() - start)
    return communicator.gather(1.0 / min(seconds))


def _kernels(backend, cells, boundary, dtype):
    return backend.kernels(KERNELS).Kernels(backend, Slab(cells, boundary, 0, cells[2]), dtype)
