"""Whole steps of a rank that owns every body, in compiled loops."""

import numpy as np

from hybrid_nbody.backends.numba_clock import seconds
from hybrid_nbody.backends.simd import BLOCK
from hybrid_nbody.nbody.integrators import substeps as rules
from hybrid_nbody.nbody.integrators.substeps import MAX_RETRIES, SMALLEST_SUBSTEP
from hybrid_nbody.nbody.kernels.contract import (
    Corrected,
    Criterion,
    HermitePoint,
    HermiteProgress,
)
from hybrid_nbody.nbody.kernels.cpu import hermite as formulas
from hybrid_nbody.nbody.kernels.cpu.compilers import compiled_with_threads, linked
from hybrid_nbody.nbody.kernels.cpu.layout import (
    Bodies,
    Copies,
    Law,
    MovingSources,
    MovingTargets,
    Physics,
)
from hybrid_nbody.nbody.kernels.cpu.pair_force import block_jerks
from hybrid_nbody.nbody.kernels.cpu.sums import (
    accelerations,
    accelerations_and_jerks,
    add_scaled,
    copy,
    pack,
    pack_offsets,
)
from hybrid_nbody.nbody.stages import ACTIONS

KICK = ACTIONS.index("kick")
DRIFT = ACTIONS.index("drift")

MOST_PAIRS = 1 << 28
"""A compiled loop over substeps comes back to Python after computing about this many pairs: a step
may take long, and signals are noticed there alone."""

PAIRS_OF_A_SUBSTEP = 1 << 10
"""The rest of a substep of a few bodies takes as long as these pairs."""

TIMED = 16
"""Steps, or substeps, of a few bodies of which one is timed: to read the clock twice takes a fifth
of the time of a step of three bodies."""

next_substep = linked(rules.next_substep)

# ---- Kicks and drifts ----------------------------------------------------------------------------


@compiled_with_threads
def run_steps(steps, plan, bodies, physics, copies):
    """Do whole steps of kicks and drifts, and copy the state; return the seconds in the force.

    Parameters
    ----------
    steps : int
    plan : tuple of arrays
        One step, from `hybrid_nbody.nbody.stages.StepPlan.encoded`.
    bodies : tuple
        The fields of `Bodies`, advanced in place.
    physics : tuple
        The fields of `Physics`, with those of `PackedSources`.
    copies : tuple
        The fields of `Copies`.
    """
    bodies = Bodies(*bodies)
    physics = Physics(*physics)
    copies = Copies(*copies)
    actions, lengths = plan
    every = steps_to_timed(bodies)
    last = min(steps, every) - 1
    timed = 0
    force = 0.0
    for step in range(steps):
        is_timed = step % every == last
        timed += is_timed
        for stage in range(actions.size):
            if actions[stage] == KICK:
                add_scaled(bodies.velocity, lengths[stage], bodies.acceleration)
            elif actions[stage] == DRIFT:
                add_scaled(bodies.position, lengths[stage], bodies.velocity)
            else:
                force += update_accelerations(bodies, physics, is_timed)
        copy_if_due(step + 1, bodies, copies)
    return force * steps / max(timed, 1)


@linked
def steps_to_timed(bodies):
    """Return the number of steps, or substeps, of which one is timed."""
    return TIMED if bodies.position.shape[0] <= BLOCK else 1


@linked
def copy_if_due(done, bodies, copies):
    """Copy the state after `done` steps to its place, if a copy is due then."""
    since = done - copies.left
    if since >= 0 and since % copies.interval == 0:
        place = since // copies.interval
        copy(bodies.position, copies.position[place])
        copy(bodies.velocity, copies.velocity[place])


@linked
def update_accelerations(bodies, physics, timed):
    """Compute the accelerations at the present positions; return the seconds of it if `timed`."""
    start = seconds_if(timed)
    pack(bodies.position, physics.packing, physics.sources)
    targets = (bodies.position, physics.source_index)
    accelerations(targets, physics.sources, physics.law, bodies.acceleration)
    return seconds_if(timed) - start


@linked
def seconds_if(timed):
    """Return the time if it is asked for, else zero."""
    return seconds() if timed else 0.0


# ---- Hermite's scheme ----------------------------------------------------------------------------


@compiled_with_threads
def run_hermite(steps, plan, point, scratch, bodies, physics, copies):
    """Do whole steps as `hybrid_nbody.nbody.integrators.hermite.Hermite` does them on any ranks.

    It pauses between two substeps when it has computed `MOST_PAIRS`, and after a long step.

    Parameters
    ----------
    steps : int
        Number of steps.
    plan : tuple of float
        The fields of `hybrid_nbody.nbody.kernels.contract.HermitePlan`.
    point : HermitePoint
        Where to begin.
    scratch : Substeps
    bodies : tuple
        The fields of `Bodies`, advanced in place. Accelerations need not be given.
    physics : tuple
        The fields of `Physics`, with those of `MovingSources`.
    copies : tuple
        The fields of `Copies`: states at the ends of steps.

    Returns
    -------
    HermiteProgress
    """
    bodies = Bodies(*bodies)
    physics = Physics(*physics)
    copies = Copies(*copies)
    dt, accuracy, rounding, noise, shifts, long = plan
    wanted, left, negligible, spent = point
    every = steps_to_timed(bodies)
    most = MOST_PAIRS // (bodies.position.shape[0] ** 2 + PAIRS_OF_A_SUBSTEP)
    done = 0
    forces = 0
    timed = 0
    force = 0.0
    stuck = False
    paused = False
    while done < steps and not paused and not stuck:
        is_timed = forces >= every * timed
        if left == 0:
            force += begin_step(scratch, bodies, physics, is_timed)
            timed += is_timed
            forces += 1
            spent = 1
            negligible = rounding * largest_component(bodies.acceleration)
            left = dt
        criterion = Criterion(accuracy, dt, noise, negligible)
        point = HermitePoint(wanted, left, negligible, spent)
        given = (point, criterion, is_timed)
        h, wanted, tried, taken = substep(*given, scratch, bodies, physics)
        if shifts:
            find_origin(scratch.substeps, bodies.position, scratch.origin)
        forces += tried
        timed += tried if is_timed else 0
        spent += tried
        force += taken
        left -= h
        stuck = h == 0
        if left == 0:
            done += 1
            copy_if_due(done, bodies, copies)
        paused = forces > most or (left == 0 and spent > long)
    point = HermitePoint(wanted, left, negligible, spent)
    return HermiteProgress(done, point, stuck, forces, force * forces / max(timed, 1))


@linked
def begin_step(scratch, bodies, physics, timed):
    """Evaluate the forces from which the first substep starts; return their seconds if `timed`."""
    scratch.origin[:] = 0.0
    copy(bodies.velocity, scratch.velocity)
    taken = update_jerks(scratch, bodies, physics, timed)
    corrected = Corrected(bodies.position, bodies.velocity, scratch.low)
    formulas.keep(bodies.acceleration, scratch.jerk, corrected, scratch.start)
    return taken


@linked
def substep(point, criterion, timed, scratch, bodies, physics):
    """Do a substep.

    Parameters
    ----------
    point : HermitePoint
        Within a step.
    criterion : Criterion
    timed : bool
        Whether to take the time of the forces.
    scratch, bodies, physics
        As in `run_hermite`.

    Returns
    -------
    float
        Length of the substep; zero where it became too small.
    float
        The next one by the criterion.
    int, float
        Evaluations of all forces, and their seconds if they are timed.
    """
    dt = criterion.dt
    wanted = point.substep
    start, low, origin, velocity, jerk, substeps = scratch
    acceleration = bodies.acceleration
    corrected = Corrected(bodies.position, bodies.velocity, low)
    h = 0.0
    tried = 0
    taken = 0.0
    while tried <= MAX_RETRIES:
        h = next_substep(wanted, point.left)
        if h < SMALLEST_SUBSTEP * dt:
            return 0.0, wanted, tried, taken
        formulas.predict(h, start, origin, bodies.position, velocity)
        taken += update_jerks(scratch, bodies, physics, timed)
        tried += 1
        formulas.correct(h, start, acceleration, jerk, corrected)
        formulas.next_steps(h, criterion, start, acceleration, jerk, substeps)
        wanted = min(shortest_of(substeps), dt)
        if 2 * wanted >= h:
            break
    formulas.keep(acceleration, jerk, corrected, start)
    return h, wanted, tried, taken


@linked
def largest_component(vectors):
    """Return the largest magnitude of the components of (n, 3) numbers."""
    largest = 0.0
    for i in range(vectors.shape[0]):
        for axis in range(3):
            largest = max(largest, abs(vectors[i, axis]))
    return largest


@linked
def shortest_of(substeps):
    """Return the shortest substep; infinity where there is no body."""
    shortest = np.inf
    for i in range(substeps.size):
        shortest = min(shortest, substeps[i])
    return shortest


@linked
def find_origin(substeps, position, origin):
    """Fill `origin`, (3,), with the position of the body with the shortest substep.

    Of several bodies it takes the largest of each coordinate, the same in any order of bodies.
    """
    shortest = shortest_of(substeps)
    origin[:] = -np.inf
    for i in range(substeps.size):
        if substeps[i] <= shortest:
            for axis in range(3):
                origin[axis] = max(origin[axis], position[i, axis])


@linked
def update_jerks(scratch, bodies, physics, timed):
    """Compute accelerations and jerks for the predicted bodies; return the seconds if `timed`."""
    start = seconds_if(timed)
    law = physics.law
    sources = physics.sources
    starts, origin, offset, mass, velocity_origin, velocity_offset = sources
    pack(bodies.position, physics.packing, (starts, origin, offset, mass))
    _, order, local, _, _ = physics.packing
    velocities = (starts, velocity_origin, velocity_offset)
    pack_offsets(scratch.velocity, Law(*law).speeds, (order, local), velocities)
    targets = (bodies.position, physics.source_index, scratch.velocity)
    if bodies.position.shape[0] <= BLOCK:  # waking threads would take longer than the sum
        first = np.int64(0)  # for a literal 0 the loops would be compiled once more
        at = MovingTargets(*targets)
        block_jerks(
            first, at, MovingSources(*sources), Law(*law), bodies.acceleration, scratch.jerk
        )
    else:
        accelerations_and_jerks(targets, sources, law, bodies.acceleration, scratch.jerk)
    return seconds_if(timed) - start
