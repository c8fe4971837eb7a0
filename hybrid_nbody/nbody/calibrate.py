"""Short trials of the kernels on a handful of bodies: to compile them before the run, and to measure a rank's speed."""

import time

from hybrid_nbody.nbody.forces.sources import given_order
from hybrid_nbody.nbody.initial_conditions import random_box
from hybrid_nbody.nbody.integrators.composed import HERMITE
from hybrid_nbody.nbody.integrators.hermite import make_scratch, run_formulas
from hybrid_nbody.nbody.integrators.stages import LEAPFROG, StepPlan
from hybrid_nbody.nbody.kernels import make_kernels
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.state import make_state, set_order
from hybrid_nbody.parallel.calibrate import fastest

MOST_BODIES = 1 << 17
"""Sources that a trial has at most: with more, no device is much faster."""

FIRST_TARGETS = 1024
GROWTH = 8
LONG_ENOUGH = 0.01
"""Seconds that a force of a trial takes at least, unless all bodies take less."""

TRIALS = 3
"""Forces by which it is judged whether one takes long enough."""


def trial(backend, number, precision, softening, targets):
    """Return kernels and a state of `number` random bodies, sources packed; the first `targets` are the rank's own."""
    bodies = random_box(number, seed=0)
    state = make_state(backend, slice(0, targets), bodies.mass)
    state.position[:] = backend.upload(bodies.position)
    set_order(backend, state, given_order(number))
    kernels = make_kernels(backend, state, PairForce(precision, softening))
    kernels.pack(state)
    return kernels, state


def compile_kernels(
    backend, precision: str, softening: float, integrator: str = "leapfrog"
) -> None:
    """Run every kernel of a device once, so that all are compiled (and cached on disk) before time counts.

    Those of Hermite's scheme only if it is the integrator: they are many.
    """
    kernels, state = trial(backend, 2, precision, softening, 2)
    if integrator == HERMITE:
        run_formulas(kernels, state, make_scratch(backend, state))
    kernels.run(state, StepPlan(LEAPFROG, 1e-6), 2)
    kernels.accelerations(state)
    kernels.kick(state, 0.0)
    kernels.drift(state, 0.0)
    kernels.potential(state, backend.zeros(2, "f8"))
    backend.synchronize()


def measured_weights(
    backend, precision: str, softening: float, number: int, communicator
) -> list[float]:
    """Return the speed of each rank in interactions a second, measured by all of them at the same time.

    Parameters
    ----------
    backend, precision, softening
        As in the run.
    number : int
        Bodies of the run: devices differ less with a few bodies than with many.
    communicator : Communicator
        Every rank calls together.
    """
    backend = backend.apart()
    kernels, state = long_trial(backend, precision, softening, min(number, MOST_BODIES))
    seconds = fastest(lambda: _seconds(backend, kernels, state), communicator)
    return communicator.gather(len(state.source_index) * len(state.mass) / seconds)


def long_trial(backend, precision: str, softening: float, number: int):
    """Return kernels and a state of `number` sources, and of as many targets as take long enough."""
    targets = min(FIRST_TARGETS, number)
    while True:
        kernels, state = trial(backend, number, precision, softening, targets)
        seconds = min(_seconds(backend, kernels, state) for _ in range(TRIALS))
        if seconds > LONG_ENOUGH or targets == number:
            return kernels, state
        targets = min(GROWTH * targets, number)


def _seconds(backend, kernels, state):
    start = time.perf_counter()
    kernels.accelerations(state)
    backend.synchronize()
    return time.perf_counter() - start
