"""Short runs of the kernels: to compile them before time counts, and to measure speeds of ranks."""

import time
from dataclasses import replace

import numpy as np

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.nbody.forces.speed import SPEEDS
from hybrid_nbody.nbody.initial_conditions import random_box
from hybrid_nbody.nbody.integrators.hermite import make_scratch
from hybrid_nbody.nbody.kernels import make_kernels, make_measuring
from hybrid_nbody.nbody.kernels.contract import (
    Corrected,
    Criterion,
    HermitePlan,
    HermitePoint,
    Kernels,
    PairForce,
)
from hybrid_nbody.nbody.kernels.measured import MANY, TERMS, MeasuredBodies
from hybrid_nbody.nbody.sources import given_order
from hybrid_nbody.nbody.stages import LEAPFROG, StepPlan
from hybrid_nbody.nbody.state import State, make_state, set_order
from hybrid_nbody.parallel.calibrate import fastest_run
from hybrid_nbody.parallel.communicator import Communicator

MOST_BODIES = 1 << 17
"""Largest number of sources of a calibration: with more, no device is much faster."""

FIRST_TARGETS = 1024
"""Bodies at which forces are computed first."""

GROWTH = 8
"""Factor by which they grow until a force takes long enough."""

LONG_ENOUGH = 0.01
"""Seconds that a force takes at least, unless it is on all bodies."""

PACED = 1 << 14
"""Bodies of the sum by which a device is compared with others."""

REPEATS = 3
"""Forces by which it is judged whether one takes long enough."""


def make_sample(
    backend: Backend, pair_force: PairForce, number: int, targets: int
) -> tuple[Kernels, State]:
    """Return what `make_bodies` does, with packed sources."""
    kernels, state = make_bodies(backend, pair_force, number, targets)
    kernels.pack(state)
    return kernels, state


def make_bodies(
    backend: Backend, pair_force: PairForce, number: int, targets: int
) -> tuple[Kernels, State]:
    """Return kernels and a state of random bodies, about as large and heavy as those of the run.

    Parameters
    ----------
    backend : Backend
    pair_force : PairForce
    number, targets : int
        Number of bodies, and of those at which forces are computed.
    """
    units = pair_force.units
    bodies = random_box(number, seed=0, half_width=units.length, mass=units.mass)
    state = make_state(backend, slice(0, targets), bodies.mass)
    state.position[:] = backend.upload(bodies.position)
    set_order(backend, state, given_order(number))
    return make_kernels(backend, state, pair_force), state


def compile_kernels(
    backend: Backend, pair_force: PairForce, number: int, jerks: bool = False, sums: bool = True
) -> None:
    """Run every kernel of a device once, so that all are compiled before time counts.

    Parameters
    ----------
    backend : Backend
    pair_force : PairForce
    number : int
        Bodies of all ranks: some kernels are for many of them.
    jerks : bool, optional
        Whether the kernels of Hermite's scheme, which are many, are to be compiled, too.
    sums : bool, optional
        Whether the kernels of sums over all pairs are to be compiled; Hermite's scheme needs them.
    """
    kernels, state = make_bodies(backend, pair_force, 2, 2)
    kernels.kick(state, 0.0)
    kernels.drift(state, 0.0)
    if sums or jerks:
        _compile_sums(backend, kernels, state)
    if jerks:
        _compile_hermite(backend, kernels, state)
    if number >= MANY:
        _compile_for_many(backend, kernels, state)
    backend.synchronize()


def _compile_for_many(backend: Backend, kernels: Kernels, state: State) -> None:
    """Run every kernel once that only a system of many bodies needs."""
    many = backend.zeros((MANY, 3), "f8")
    kernels.kick(replace(state, velocity=many, acceleration=many), 0.0)
    mass = backend.zeros(2, "f8")
    measured = MeasuredBodies(state.own_position, state.velocity, mass, mass)
    measures = make_measuring(backend).of(measured)
    measures.largest()
    measures.parts(np.zeros(TERMS, np.int64), 1)
    none = np.zeros(1, np.int64)
    measures.about([0.0, 0.0, 0.0]).between(none, none, none, 0)


def _compile_sums(backend: Backend, kernels: Kernels, state: State) -> None:
    """Run every kernel of sums over all pairs once."""
    kernels.pack(state)
    kernels.run(state, StepPlan(LEAPFROG, 1e-6), 2)
    kernels.accelerations(state)
    kernels.potential(state, backend.zeros(2, "f8"))


def _compile_hermite(backend: Backend, kernels: Kernels, state: State) -> None:
    """Run every kernel that Hermite's scheme needs once, on a state that owns every body."""
    shape = state.velocity.shape
    scratch = make_scratch(backend, backend.zeros(shape, "f8"), backend.zeros((2, *shape), "f8"))
    kernels.accelerations_and_jerks(state, scratch.velocity, scratch.jerk)
    arrays = (scratch.start, state.acceleration, scratch.jerk)
    formulas = kernels.hermite
    formulas.first_steps(1.0, 0.0, *arrays[1:], scratch.substeps)
    formulas.predict(0.0, scratch.start, scratch.origin, state.own_position, scratch.velocity)
    corrected = Corrected(state.own_position, state.velocity, scratch.low)
    formulas.correct(0.0, *arrays, corrected)
    formulas.next_steps(1.0, Criterion(1.0, 1.0, 0.0, 0.0), *arrays, scratch.substeps)
    formulas.keep(*arrays[1:], corrected, scratch.start)
    if kernels.run_hermite:
        plan = HermitePlan(1e-6, 1.0, 0.0, 0.0, True, 1e6)
        kernels.run_hermite(state, scratch, plan, HermitePoint(1e-6, 0.0, 0.0, 0), 0, None)


def measured_weights(
    backend: Backend, pair_force: PairForce, number: int, communicator: Communicator
) -> list[float]:
    """Return the interactions a second of each rank, measured by all of them at the same time.

    Parameters
    ----------
    backend : Backend
    pair_force : PairForce
    number : int
        Bodies of the run: devices differ less with a few bodies than with many.
    communicator : Communicator
        Every rank calls together.
    """
    backend = backend.apart()
    kernels, state = long_sample(backend, pair_force, min(number, MOST_BODIES))
    seconds = fastest_run(lambda: _seconds(backend, kernels, state), communicator)
    return communicator.gather(len(state.source_index) * len(state.mass) / seconds)


def measured_pace(backend: Backend, pair_force: PairForce, communicator: Communicator) -> float:
    """Return the speed of the slowest rank beside that in the tables, by a brief direct sum.

    The fast multipole method is taken to be faster or slower by as much. It is 1 where the tables
    have no such device.

    Parameters
    ----------
    backend : Backend
    pair_force : PairForce
    communicator : Communicator
        Every rank calls together.
    """
    if backend.name not in SPEEDS:
        return 1.0
    rate = min(measured_weights(backend, pair_force, PACED, communicator))
    return rate / (backend.threads * SPEEDS[backend.name].pairs[pair_force.precision])


def long_sample(backend: Backend, pair_force: PairForce, number: int) -> tuple[Kernels, State]:
    """Return kernels and a state of `number` sources, with enough targets for a force to last."""
    targets = min(FIRST_TARGETS, number)
    while True:
        kernels, state = make_sample(backend, pair_force, number, targets)
        seconds = min(_seconds(backend, kernels, state) for _ in range(REPEATS))
        if seconds > LONG_ENOUGH or targets == number:
            return kernels, state
        targets = min(GROWTH * targets, number)


def _seconds(backend: Backend, kernels: Kernels, state: State) -> float:
    start = time.perf_counter()
    kernels.accelerations(state)
    backend.synchronize()
    return time.perf_counter() - start
