"""The pair force on CPU threads (Numba); twin of ``gpu``.

Sources are summed in chunks: each chunk is stored about its own origin, summed in the working type with wide
vectors, and added to float64. The order of a target's sum depends on the sources alone, so its bits do not depend on
threads or ranks.
"""

import math

import numpy as np
from numba import njit, prange

from hybrid_nbody.backends.numba_clock import seconds
from hybrid_nbody.nbody.kernels.precision import PRECISIONS, chunk_capacity

compiled = njit(cache=True, error_model="numpy")
# sums in any order, reciprocals and contractions; NaN and infinity stay what they are: the guard looks for them
VECTOR_MATH = {"reassoc", "contract", "nsz", "arcp", "afn"}
compiled_vector = njit(cache=True, error_model="numpy", fastmath=VECTOR_MATH)
compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)

KICK, DRIFT, FORCE = 0, 1, 2


@compiled_vector
def chunk_acceleration(x, y, z, mass, target, eps2):
    """Sum the accelerations (without G) of one target towards the sources of a chunk; the loop becomes vector code."""
    real = mass.dtype.type
    ax = ay = az = real(0)
    for j in range(mass.size):
        dx = real(x[j] - target[0])
        dy = real(y[j] - target[1])
        dz = real(z[j] - target[2])
        inverse = real(1) / math.sqrt(dx * dx + (dy * dy + (dz * dz + eps2)))
        weight = mass[j] * inverse * (inverse * inverse)
        ax += weight * dx
        ay += weight * dy
        az += weight * dz
    return ax, ay, az


@compiled_vector
def chunk_potential(x, y, z, mass, target, eps2):
    """Sum the potential (without -G) of the sources of one chunk at one target."""
    real = mass.dtype.type
    phi = real(0)
    for j in range(mass.size):
        dx = real(x[j] - target[0])
        dy = real(y[j] - target[1])
        dz = real(z[j] - target[2])
        phi += mass[j] / math.sqrt(dx * dx + (dy * dy + (dz * dz + eps2)))
    return phi


@compiled
def relative(body, origin, offset):
    """Return a position about the origin of a chunk, in the type in which offsets are stored."""
    real = offset.dtype.type
    return real(body[0] - origin[0]), real(body[1] - origin[1]), real(body[2] - origin[2])


@compiled
def chunk_parts(start, end, own):
    """Return the two ranges of a chunk's sources that leave out the source `own` (the target itself)."""
    first, last, before = np.int64(start), np.int64(end), np.int64(own)
    return (first, min(max(before, first), last)), (min(max(before + 1, first), last), last)


@compiled_parallel
def accelerations(targets, place, G, eps2, starts, origin, offset, mass, result):
    """Compute the acceleration of every target: (n, 3) positions, their places among the sources, (n, 3) result."""
    for i in prange(targets.shape[0]):
        sx = sy = sz = 0.0
        for chunk in range(origin.shape[0]):
            target = relative(targets[i], origin[chunk], offset)
            for start, end in chunk_parts(starts[chunk], starts[chunk + 1], place[i]):
                if start < end:
                    ax, ay, az = chunk_acceleration(
                        offset[0, start:end], offset[1, start:end], offset[2, start:end], mass[start:end], target, eps2
                    )
                    sx += ax
                    sy += ay
                    sz += az
        result[i, 0] = G * sx
        result[i, 1] = G * sy
        result[i, 2] = G * sz


@compiled_parallel
def potentials(targets, place, G, eps2, starts, origin, offset, mass, result):
    """Compute the potential at every target: arguments as in `accelerations`, (n,) result."""
    for i in prange(targets.shape[0]):
        total = 0.0
        for chunk in range(origin.shape[0]):
            target = relative(targets[i], origin[chunk], offset)
            for start, end in chunk_parts(starts[chunk], starts[chunk + 1], place[i]):
                if start < end:
                    total += chunk_potential(
                        offset[0, start:end], offset[1, start:end], offset[2, start:end], mass[start:end], target, eps2
                    )
        result[i] = -G * total


@compiled
def pack(position, mass, order, local, starts, origin, offset, packed_mass):
    """Store the sources in summing order, each about the origin of its chunk: its middle body, or zero."""
    stored, working = offset.dtype.type, packed_mass.dtype.type
    for chunk in range(origin.shape[0]):
        start, end = starts[chunk], starts[chunk + 1]
        if local and start < end:
            origin[chunk] = position[order[(start + end) // 2]]
        for k in range(start, end):
            for axis in range(3):
                offset[axis, k] = stored(position[order[k], axis] - origin[chunk, axis])
            packed_mass[k] = working(mass[order[k]])


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
                accelerations(position, place, G, eps2, starts, origin, offset, packed_mass, acceleration)
                force += seconds() - start
    return force


class Kernels:
    """Gravity on the threads of one rank.

    Parameters
    ----------
    backend : CpuBackend
        The threads.
    number : int
        Bodies in all.
    precision : {"single", "mixed", "double"}
        See `PRECISIONS`.
    softening, G : float
        Plummer softening length and gravitational constant.
    """

    def __init__(self, backend, number, precision, softening, G):
        kind = PRECISIONS[precision]
        self.local = kind.local
        self.constants = (float(G), kind.working(softening**2))
        self.origin = np.zeros((chunk_capacity(number), 3))
        self.offset = np.zeros((3, number), kind.stored)
        self.mass = np.zeros(number, kind.working)

    def pack(self, state):
        """Prepare the sources from the positions of all bodies."""
        sources = (state.starts, self.origin, self.offset, self.mass)
        pack(state.position, state.mass, state.order, self.local, *sources)

    def accelerations(self, state):
        """Fill ``state.acceleration`` for this rank's bodies, after `pack`."""
        sources = (*self.constants, state.starts, self.origin, self.offset, self.mass)
        accelerations(state.own_position, state.place, *sources, state.acceleration)

    def potential(self, state, result):
        """Fill `result` with the potential at this rank's bodies, after `pack`."""
        sources = (*self.constants, state.starts, self.origin, self.offset, self.mass)
        potentials(state.own_position, state.place, *sources, result)

    def kick(self, state, duration):
        """Add the acceleration over `duration` to the velocities."""
        add_scaled(state.velocity, duration, state.acceleration)

    def drift(self, state, duration):
        """Add the velocity over `duration` to the positions."""
        add_scaled(state.own_position, duration, state.velocity)

    def run(self, state, stages, dt, steps):
        """Do whole steps of a rank that owns every body, in one compiled loop.

        Parameters
        ----------
        state : State
            Advanced in place.
        stages : sequence of Stage
            One step of the integrator.
        dt : float
            Length of a step.
        steps : int
            Number of steps.

        Returns
        -------
        float
            Seconds spent in the force.
        """
        codes = {"kick": KICK, "drift": DRIFT, "force": FORCE}
        actions = np.array([codes[stage.action] for stage in stages])
        lengths = np.array([stage.fraction * dt for stage in stages])
        arrays = (state.position, state.velocity, state.acceleration, state.mass, state.order, state.place)
        sources = (self.local, *self.constants, state.starts, self.origin, self.offset, self.mass)
        return run_stages(steps, actions, lengths, *arrays, *sources)
