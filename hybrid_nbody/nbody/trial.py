"""Short trials of the kernels on a handful of bodies: to compile them before the run, and to measure a rank's speed."""

import time

from hybrid_nbody.nbody.gravity import KERNELS
from hybrid_nbody.nbody.initial_conditions import random_box
from hybrid_nbody.nbody.integrators import LEAPFROG
from hybrid_nbody.nbody.ordering import given_order
from hybrid_nbody.nbody.state import make_state, set_order

TRIAL_BODIES = 4096
TRIALS = 3


def trial(backend, number, precision, softening):
    """Return kernels and a state of `number` random bodies, sources packed."""
    bodies = random_box(number, seed=0)
    state = make_state(backend, slice(0, number), bodies.mass)
    state.position[:] = backend.upload(bodies.position)
    set_order(backend, state, given_order(number))
    kernels = backend.kernels(KERNELS).Kernels(backend, state, precision, softening, 1.0)
    kernels.pack(state)
    return kernels, state


def compile_kernels(backend, precision: str, softening: float) -> None:
    """Run every kernel once, so that all are compiled (and in the caches on disk) before time counts."""
    kernels, state = trial(backend, 2, precision, softening)
    kernels.run(state, LEAPFROG, 1e-6, 2)
    kernels.accelerations(state)
    kernels.kick(state, 0.0)
    kernels.drift(state, 0.0)
    kernels.potential(state, backend.zeros(2, "f8"))
    backend.synchronize()


def measured_weights(backend, precision: str, softening: float, communicator) -> list[float]:
    """Return the speed of each rank in interactions a second, measured by all of them at the same time."""
    kernels, state = trial(backend, TRIAL_BODIES, precision, softening)
    seconds = []
    communicator.barrier()
    for _ in range(TRIALS):
        start = time.perf_counter()
        kernels.accelerations(state)
        backend.synchronize()
        seconds.append(time.perf_counter() - start)
    return communicator.gather(TRIAL_BODIES**2 / min(seconds))
