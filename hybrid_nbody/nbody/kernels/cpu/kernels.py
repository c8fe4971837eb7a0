"""The pair force on CPU threads (Numba); twin of ``gpu``.

The loops over pairs are in ``pair_force``, each for a block of targets; here, blocks are handed to
threads, sources are prepared, and whole steps are done without coming back to Python.
"""

import numpy as np
from numba import njit, prange

from hybrid_nbody.backends.numba_clock import seconds
from hybrid_nbody.nbody.integrators import hermite as integrator
from hybrid_nbody.nbody.integrators.hermite import MAX_RETRIES, SMALLEST_SUBSTEP
from hybrid_nbody.nbody.integrators.stages import ACTIONS
from hybrid_nbody.nbody.kernels.contract import HermiteProgress
from hybrid_nbody.nbody.kernels.cpu import hermite as cpu_hermite
from hybrid_nbody.nbody.kernels.cpu.lanes import LANES
from hybrid_nbody.nbody.kernels.cpu.pair_force import (
    block_accelerations,
    block_jerks,
    block_potentials,
)
from hybrid_nbody.nbody.kernels.precision import PRECISIONS, chunk_capacity, leaves_out_self

compiled = njit(cache=True, error_model="numpy")
compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)

KICK = ACTIONS.index("kick")
DRIFT = ACTIONS.index("drift")

next_substep = compiled(integrator.next_substep)


@compiled_parallel
def accelerations(targets, place, equal, leave_out, G, eps2, starts, origin, offset, mass, result):
    """Compute the acceleration of every target.

    Parameters
    ----------
    targets : (n, 3) array of float64
        Positions.
    place : (n,) array of int32
        Where each target stands among the sources.
    equal, leave_out : bool
        Whether all masses are the same and multiplied last, and whether a target is left out of its
        own sum.
    G, eps2 : float
        Gravitational constant, and the softening length squared in the working type.
    starts, origin, offset, mass : arrays
        The sources, from `pack`.
    result : (n, 3) array of float64
        Filled.
    """
    blocks = -(-targets.shape[0] // LANES)
    if blocks == 1:  # waking threads would take longer than the sum
        block_accelerations(
            0, targets, place, equal, leave_out, G, eps2, starts, origin, offset, mass, result
        )
    else:
        for block in prange(blocks):
            first = block * LANES
            block_accelerations(
                first,
                targets,
                place,
                equal,
                leave_out,
                G,
                eps2,
                starts,
                origin,
                offset,
                mass,
                result,
            )


@compiled_parallel
def potentials(targets, place, G, eps2, starts, origin, offset, mass, result):
    """Compute the potential at every target: arguments as in `accelerations`, (n,) result."""
    for block in prange(-(-targets.shape[0] // LANES)):
        block_potentials(
            block * LANES, targets, place, G, eps2, starts, origin, offset, mass, result
        )


@compiled_parallel
def accelerations_and_jerks(
    targets, place, G, eps2, starts, origin, offset, mass, result, moving, drift, speed, jerk
):
    """Compute the acceleration of every target and its time derivative.

    Arguments as in `accelerations`; of the velocities, `moving` are the targets', `drift` and
    `speed` the origins and offsets of the sources'. `result` and `jerk` are filled, both (n, 3).
    """
    for block in prange(-(-targets.shape[0] // LANES)):
        first = block * LANES
        block_jerks(
            first,
            targets,
            place,
            G,
            eps2,
            starts,
            origin,
            offset,
            mass,
            result,
            moving,
            drift,
            speed,
            jerk,
        )


@compiled
def pack(position, mass, order, local, starts, origin, offset, packed_mass):
    """Store the sources in summing order, each about the origin of its chunk: its middle body, or zero."""
    pack_offsets(position, order, local, starts, origin, offset)
    working = packed_mass.dtype.type
    for k in range(order.size):
        packed_mass[k] = working(mass[order[k]])


@compiled
def pack_offsets(vector, order, local, starts, origin, offset):
    """Store vectors of all bodies, (N, 3), as `pack` does with the positions."""
    stored = offset.dtype.type
    for chunk in range(origin.shape[0]):
        start = starts[chunk]
        end = starts[chunk + 1]
        if local and start < end:
            origin[chunk] = vector[order[(start + end) // 2]]
        for k in range(start, end):
            for axis in range(3):
                offset[axis, k] = stored(vector[order[k], axis] - origin[chunk, axis])


@compiled
def add_scaled(result, factor, increment):
    """Add ``factor * increment`` to `result`, both (n, 3)."""
    for i in range(result.shape[0]):
        for axis in range(3):
            result[i, axis] += factor * increment[i, axis]


@compiled
def run_stages(
    steps,
    actions,
    lengths,
    position,
    velocity,
    acceleration,
    mass,
    order,
    place,
    local,
    equal,
    leave_out,
    G,
    eps2,
    starts,
    origin,
    offset,
    packed_mass,
):
    """Do whole steps of one rank that owns every body; return the seconds spent in the force."""
    force = 0.0
    for _ in range(steps):
        for stage in range(actions.size):
            if actions[stage] == KICK:
                add_scaled(velocity, lengths[stage], acceleration)
            elif actions[stage] == DRIFT:
                add_scaled(position, lengths[stage], velocity)
            else:
                start = seconds()
                pack(position, mass, order, local, starts, origin, offset, packed_mass)
                sources = (starts, origin, offset, packed_mass)
                accelerations(position, place, equal, leave_out, G, eps2, *sources, acceleration)
                force += seconds() - start
    return force


@compiled
def evaluate(
    position,
    velocity,
    acceleration,
    jerk,
    mass,
    order,
    place,
    local,
    G,
    eps2,
    starts,
    sources,
    speeds,
):
    """Fill accelerations and jerks, (N, 3) each, of one rank that owns every body; return the seconds that it took.

    The arguments from `mass` on are the physics of `run_hermite`.
    """
    start = seconds()
    origin, offset, packed_mass = sources
    drift, speed = speeds
    pack(position, mass, order, local, starts, origin, offset, packed_mass)
    pack_offsets(velocity, order, local, starts, drift, speed)
    packed = (G, eps2, starts, origin, offset, packed_mass)
    moving = (velocity, drift, speed)
    if position.shape[0] <= LANES:  # waking threads would take longer than the sum
        block_jerks(0, position, place, *packed, acceleration, *moving, jerk)
    else:
        accelerations_and_jerks(position, place, *packed, acceleration, *moving, jerk)
    return seconds() - start


@compiled
def run_hermite(steps, dt, accuracy, rounding, wanted, room, bodies, physics):
    """Do whole steps of one rank that owns every body, as `integrators.hermite.Hermite` does them on any ranks.

    Parameters
    ----------
    steps : int
        Number of steps.
    dt : float
        Length of a step, in units of time.
    accuracy : float
        Aarseth's parameter, without a unit.
    rounding : float
        Accelerations up to so many times the largest are negligible.
    wanted : float
        The substep wanted first, in units of time.
    room : tuple of arrays of float64
        To work in, the fields of `HermiteScratch`: ``start`` (4, N, 3), positions,
        velocities, accelerations and jerks at the beginning of a substep; ``velocity`` (N, 3),
        predicted; ``jerk`` (N, 3), at the predicted positions; ``asked`` (N,), the substep that
        each body asks for, in units of time.
    bodies : tuple of arrays of float64
        Positions, velocities and accelerations, (N, 3) each and advanced in place. Accelerations
        need not be given.
    physics : tuple
        The last arguments of `evaluate`: ``mass`` (N,) float64; ``order`` (N,) int32, the bodies in
        the order of the sum; ``place`` (N,) int32, where each body stands in it; ``local`` bool,
        whether a chunk of sources has an origin of its own; ``G`` float64, the gravitational
        constant; ``eps2``, the softening length squared in the working type; ``starts`` (capacity +
        1,) int32, where chunks start in ``order``; and two tuples to work in, ``sources`` (origins
        (capacity, 3) float64 and offsets (3, N) in the stored type, both lengths, and masses (N,)
        in the working type) and ``speeds`` (the same two of the velocities).

    Returns
    -------
    int
        Steps done: fewer than asked for where a substep became too small.
    float
        The substep wanted next.
    int, float
        Evaluations of all forces, and the seconds that they took.
    """
    forces = 0
    force = 0.0
    for step in range(steps):
        force += begin_step(room, bodies, physics)
        forces += 1
        limits = (accuracy, rounding * np.abs(bodies[2]).max(), dt)
        left = dt
        while left > 0:
            h, wanted, trials, taken = substep(left, wanted, limits, room, bodies, physics)
            forces = forces + trials
            force = force + taken
            if h == 0:
                return step, wanted, forces, force
            left -= h
    return steps, wanted, forces, force


@compiled
def begin_step(room, bodies, physics):
    """Evaluate the forces from which the first substep starts, arguments as of `run_hermite`; return their seconds."""
    position, velocity, acceleration = bodies
    start, predicted, jerk, _ = room
    predicted[:] = velocity
    taken = evaluate(position, predicted, acceleration, jerk, *physics)
    keep(start, bodies, jerk)
    return taken


@compiled
def substep(left, wanted, limits, room, bodies, physics):
    """Do a substep; return its length, or zero, the one wanted next, evaluations of the forces and their seconds.

    Of the step so much is `left`, in units of time; `limits` are Aarseth's parameter, the
    negligible acceleration, and the length of a step, all float64; the others are as of
    `run_hermite`.
    """
    accuracy, negligible, dt = limits
    start, predicted, jerk, asked = room
    position, velocity, acceleration = bodies
    h = 0.0
    trials = 0
    taken = 0.0
    while trials <= MAX_RETRIES:
        h = next_substep(wanted, left)
        if h < SMALLEST_SUBSTEP * dt:
            return 0.0, wanted, trials, taken
        cpu_hermite.predict(h, start, position, predicted)
        taken += evaluate(position, predicted, acceleration, jerk, *physics)
        trials += 1
        cpu_hermite.correct(h, start, acceleration, jerk, position, velocity)
        cpu_hermite.next_steps(h, accuracy, negligible, start, acceleration, jerk, asked)
        wanted = min(asked.min(), dt)
        if 2 * wanted >= h:
            break
    keep(start, bodies, jerk)
    return h, wanted, trials, taken


@compiled
def keep(start, bodies, jerk):
    """Keep what is known at the beginning of a substep."""
    position, velocity, acceleration = bodies
    start[0], start[1], start[2], start[3] = position, velocity, acceleration, jerk


class Kernels:
    """Gravity on the threads of one rank.

    Parameters
    ----------
    backend : CpuBackend
        The threads.
    state : State
        The rank's arrays, of which the sizes matter here.
    pair_force : PairForce
        Precision, softening and gravitational constant.

    Attributes
    ----------
    remark : str
        What the log says of how the work is done, if there is a choice.
    """

    remark = ""
    hermite = cpu_hermite

    def __init__(self, backend, state, pair_force):
        kind = PRECISIONS[pair_force.precision]
        number = len(state.mass)
        self.local = kind.local
        eps2 = kind.working(pair_force.softening**2)
        leave_out = leaves_out_self(state.heaviest, eps2)
        self.cases = (state.common_mass is not None and not leave_out, leave_out)
        self.constants = (float(pair_force.G), eps2)
        self.origin = np.zeros((chunk_capacity(number), 3))
        self.offset = np.zeros((3, number), kind.stored)
        self.mass = np.zeros(number, kind.working)
        self.drift_of_chunks = self.speed = None

    def pack(self, state):
        """Prepare the sources from the positions of all bodies."""
        sources = (state.starts, self.origin, self.offset, self.mass)
        pack(state.position, state.mass, state.order, self.local, *sources)

    def accelerations(self, state):
        """Fill ``state.acceleration`` for this rank's bodies, after `pack`."""
        sources = (*self.constants, state.starts, self.origin, self.offset, self.mass)
        accelerations(
            state.own_position, state.source_index, *self.cases, *sources, state.acceleration
        )

    def potential(self, state, result):
        """Fill `result` with the potential at this rank's bodies, after `pack`."""
        sources = (*self.constants, state.starts, self.origin, self.offset, self.mass)
        potentials(state.own_position, state.source_index, *sources, result)

    def accelerations_and_jerks(self, state, velocity, jerk):
        """Fill ``state.acceleration`` and `jerk`, its time derivative, for this rank's bodies, after `pack`.

        Parameters
        ----------
        state : State
            Positions and masses as at `pack`.
        velocity : (N, 3) array of float64
            Velocities of all bodies.
        jerk : (n, 3) array of float64
            Filled, in units of acceleration over time.
        """
        speeds = self._speeds()
        pack_offsets(velocity, state.order, self.local, state.starts, *speeds)
        sources = (*self.constants, state.starts, self.origin, self.offset, self.mass)
        motion = (velocity[state.own], *speeds)
        accelerations_and_jerks(
            state.own_position, state.source_index, *sources, state.acceleration, *motion, jerk
        )

    def _speeds(self):
        """Return room for velocities, which are laid out as positions are, once somebody asks for jerks."""
        if self.speed is None:
            self.drift_of_chunks = np.zeros_like(self.origin)
            self.speed = np.zeros_like(self.offset)
        return self.drift_of_chunks, self.speed

    def kick(self, state, duration):
        """Add the acceleration over `duration` to the velocities."""
        add_scaled(state.velocity, duration, state.acceleration)

    def drift(self, state, duration):
        """Add the velocity over `duration` to the positions."""
        add_scaled(state.own_position, duration, state.velocity)

    def run(self, state, plan, steps):
        """Do whole steps of a rank that owns every body, in one compiled loop.

        Parameters
        ----------
        state : State
            Advanced in place.
        plan : StepPlan
            One step of the integrator.
        steps : int
            Number of steps.

        Returns
        -------
        float
            Seconds spent in the force.
        """
        actions, lengths = plan.encoded()
        arrays = (
            state.position,
            state.velocity,
            state.acceleration,
            state.mass,
            state.order,
            state.source_index,
        )
        sources = (
            self.local,
            *self.cases,
            *self.constants,
            state.starts,
            self.origin,
            self.offset,
            self.mass,
        )
        return run_stages(steps, actions, lengths, *arrays, *sources)

    def run_hermite(self, state, scratch, plan, substep, steps):
        """Do whole steps of a rank that owns every body, in one compiled loop.

        Parameters
        ----------
        state : State
            Advanced in place.
        scratch : HermiteScratch
            Arrays to work in.
        plan : HermitePlan
            Length of a step, and the criterion for substeps.
        substep : float
            The first substep, in units of time.
        steps : int
            Number of steps.

        Returns
        -------
        HermiteProgress
        """
        packed = ((self.origin, self.offset, self.mass), self._speeds())
        physics = (
            state.mass,
            state.order,
            state.source_index,
            self.local,
            *self.constants,
            state.starts,
            *packed,
        )
        room = (scratch.start, scratch.velocity, scratch.jerk, scratch.substeps)
        criterion = (plan.accuracy, plan.rounding, substep)
        bodies = (state.position, state.velocity, state.acceleration)
        return HermiteProgress(*run_hermite(steps, plan.dt, *criterion, room, bodies, physics))
