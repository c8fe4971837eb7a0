"""The pair force on a CPU: sums over all sources, for one block of targets.

A block holds one number of each of `BLOCK` targets, and every lane meets the sources one after
another: a target's sum, and its bits, depend on the sources alone, and no lane is left over. In the
working type, sums are taken over a row of sources and then over the chunk, about the chunk's
origin; chunks are added up in float64.
"""

import numpy as np
from numba import njit, types
from numba.extending import overload

from hybrid_nbody.backends.simd import (
    BLOCK,
    Vector,
    block_scalars,
    block_vectors,
    broadcast,
    estimate_inverse_roots,
    unfused_product,
)
from hybrid_nbody.nbody.kernels.cpu.compilers import linked_block

ROW = 16
"""Sources summed in a row: rounding grows with them, and processors foresee the end of a short
loop."""

inlined = njit(inline="always")

# ---- Inverse powers of the distance --------------------------------------------------------------

# With e = 1 - r^2 y^2 for an estimate y of 1 / r, r^-n = y^n (1 - e)^(-n/2), expanded in e: to
# first order for float32, where e is below 2^-12, and to fourth for float64. Divided by a constant
# the first order takes one operation: 1 + 3/2 e = 3/2 (5/3 - r^2 y^2). A sum of such terms is
# divided by what the function returns for r = y = 1, where there is nothing to correct.


def cube_over_estimate(square, estimate):
    """Return r^-3 / y times a constant, from ``square = r^2`` and the estimate y of 1 / r."""
    raise NotImplementedError("compiled code only")


@overload(cube_over_estimate, inline="always")
def _cube_over_estimate(square, estimate):
    def single(square, estimate):
        y2 = estimate * estimate
        return y2 * (np.float32(5 / 3) - square * y2)

    def double(square, estimate):
        y2 = estimate * estimate
        e = 1 - square * y2
        return y2 * (1 + e * (1.5 + e * (1.875 + e * (2.1875 + e * 2.4609375))))

    def singles(square, estimate):
        y2 = estimate * estimate
        return y2 * (broadcast(np.float32(5 / 3)) - square * y2)

    def doubles(square, estimate):
        y2 = estimate * estimate
        e = broadcast(1.0) - square * y2
        series = broadcast(2.1875) + e * broadcast(2.4609375)
        series = broadcast(1.5) + e * (broadcast(1.875) + e * series)
        return y2 * (broadcast(1.0) + e * series)

    return _version_for(estimate, single, double, singles, doubles)


def root_over_estimate(square, estimate):
    """Return r^-1 / y times a constant; parameters as in `cube_over_estimate`."""
    raise NotImplementedError("compiled code only")


@overload(root_over_estimate, inline="always")
def _root_over_estimate(square, estimate):
    def single(square, estimate):
        return np.float32(3) - square * (estimate * estimate)

    def double(square, estimate):
        e = 1 - square * (estimate * estimate)
        return 1 + e * (0.5 + e * (0.375 + e * (0.3125 + e * 0.2734375)))

    def singles(square, estimate):
        return broadcast(np.float32(3)) - square * (estimate * estimate)

    def doubles(square, estimate):
        e = broadcast(1.0) - square * (estimate * estimate)
        series = broadcast(0.3125) + e * broadcast(0.2734375)
        series = broadcast(0.5) + e * (broadcast(0.375) + e * series)
        return broadcast(1.0) + e * series

    return _version_for(estimate, single, double, singles, doubles)


def _version_for(estimate, single, double, singles, doubles):
    """Return the function for a number, or for vectors, of the type of an estimate."""
    if isinstance(estimate, Vector):
        return singles if estimate.dtype is types.float32 else doubles
    return single if estimate is types.float32 else double


# ---- Pairs ---------------------------------------------------------------------------------------


@inlined
def subtract(x, y, z, target, working, difference):
    """Fill `difference` with vectors from the targets to a source, in the working type."""
    for lane in range(BLOCK):
        difference[0, lane] = working(x - target[0, lane])
        difference[1, lane] = working(y - target[1, lane])
        difference[2, lane] = working(z - target[2, lane])


@inlined
def soften(difference, eps2, square, estimate):
    """Fill `square` with r^2 = |difference|^2 + eps^2, and `estimate` with about 1 / r."""
    for lane in range(BLOCK):
        dx, dy, dz = difference[0, lane], difference[1, lane], difference[2, lane]
        square[lane] = dx * dx + (dy * dy + (dz * dz + eps2))
    estimate_inverse_roots(square, estimate)


@inlined
def sum_accelerations(row, targets, eps2, equal_masses, excludes_self, acceleration):
    """Sum the accelerations towards a row of sources, m d / r^3 up to a constant.

    `row` is from `row_of`; `targets` are positions about the origin of the row's chunk, and the
    targets' indices as sources.
    """
    first, x, y, z, mass = row
    target, own_index = targets
    working = mass.dtype.type
    difference = block_vectors(working)
    square = block_scalars(working)
    estimate = block_scalars(working)
    clear(acceleration)
    for j in range(mass.size):
        subtract(x[j], y[j], z[j], target, working, difference)
        soften(difference, eps2, square, estimate)
        for lane in range(BLOCK):
            weight = estimate[lane] if equal_masses else mass[j] * estimate[lane]
            weight *= cube_over_estimate(square[lane], estimate[lane])
            if excludes_self and own_index[lane] == np.int32(first + j):
                weight = working(0)
            acceleration[0, lane] += weight * difference[0, lane]
            acceleration[1, lane] += weight * difference[1, lane]
            acceleration[2, lane] += weight * difference[2, lane]


@inlined
def sum_potentials(row, targets, eps2, phi):
    """Sum the potentials of a row of sources, m / r up to a constant, in ``phi[0]``.

    Parameters as in `sum_accelerations`.
    """
    first, x, y, z, mass = row
    target, own_index = targets
    working = mass.dtype.type
    difference = block_vectors(working)
    square = block_scalars(working)
    estimate = block_scalars(working)
    clear(phi)
    for j in range(mass.size):
        subtract(x[j], y[j], z[j], target, working, difference)
        soften(difference, eps2, square, estimate)
        for lane in range(BLOCK):
            inverse = estimate[lane] * root_over_estimate(square[lane], estimate[lane])
            if own_index[lane] == np.int32(first + j):
                inverse = working(0)
            phi[0, lane] += mass[j] * inverse


@inlined
def sum_accelerations_and_jerks(row, velocities, targets, eps2, acceleration, jerk):
    """Sum accelerations and their time derivatives: m d / r^3, m [dv - 3 (d . dv) / r^2 d] / r^3.

    `velocities` are those of the row, also from `row_of`; `targets` are positions and velocities
    about those of the chunk's origin, and the targets' indices as sources.
    """
    first, x, y, z, mass = row
    _, vx, vy, vz, _ = velocities
    target, target_velocity, own_index = targets
    working = mass.dtype.type
    difference = block_vectors(working)
    relative = block_vectors(working)
    square = block_scalars(working)
    estimate = block_scalars(working)
    clear(acceleration)
    clear(jerk)
    for j in range(mass.size):
        subtract(x[j], y[j], z[j], target, working, difference)
        subtract(vx[j], vy[j], vz[j], target_velocity, working, relative)
        soften(difference, eps2, square, estimate)
        for lane in range(BLOCK):
            inverse = estimate[lane] * root_over_estimate(square[lane], estimate[lane])
            inverse /= root_over_estimate(working(1), working(1))
            if own_index[lane] == np.int32(first + j):
                inverse = working(0)
            inverse2 = inverse * inverse
            weight = (mass[j] * inverse) * inverse2
            dx, dy, dz = difference[0, lane], difference[1, lane], difference[2, lane]
            dvx, dvy, dvz = relative[0, lane], relative[1, lane], relative[2, lane]
            rate = working(3) * inverse2 * (dx * dvx + (dy * dvy + unfused_product(dz, dvz)))
            acceleration[0, lane] += weight * dx
            acceleration[1, lane] += weight * dy
            acceleration[2, lane] += weight * dz
            jerk[0, lane] += weight * (dvx - rate * dx)
            jerk[1, lane] += weight * (dvy - rate * dy)
            jerk[2, lane] += weight * (dvz - rate * dz)


# ---- Sums over chunks ----------------------------------------------------------------------------


@linked_block
def block_accelerations(first, targets, sources, law, result):
    """Compute the accelerations of the BLOCK targets from `first` on.

    Parameters
    ----------
    first : int
    targets : Targets
    sources : PackedSources
    law : Law
    result : (n, 3) array of float64
        Filled.
    """
    stored = sources.offset.dtype.type
    working = sources.mass.dtype.type
    starts = sources.starts
    eps2 = law.eps2
    position, total, own_index = load_targets(first, targets, law.lengths, targets.position)
    target = block_vectors(stored)
    acceleration = block_vectors(working)
    subtotal = block_vectors(working)
    for chunk in range(sources.origin.shape[0]):
        if starts[chunk] == starts[chunk + 1]:
            break
        subtract_origin(position, sources.origin[chunk], stored, target)
        clear(subtotal)
        for start in range(starts[chunk], starts[chunk + 1], ROW):
            row = row_of(sources.offset, sources.mass, start, starts[chunk + 1])
            # a loop for each case: a branch inside one would cost a tenth of an interaction
            if law.excludes_self:
                sum_accelerations(row, (target, own_index), eps2, False, True, acceleration)
            elif law.equal_masses:
                sum_accelerations(row, (target, own_index), eps2, True, False, acceleration)
            else:
                sum_accelerations(row, (target, own_index), eps2, False, False, acceleration)
            add(subtotal, acceleration)
        add(total, subtotal)
    common_mass = sources.mass[0] if law.equal_masses else working(1)
    factor = law.accelerations * common_mass / cube_over_estimate(working(1), working(1))
    store(first, factor, total, result)


@linked_block
def block_potentials(first, targets, sources, law, result):
    """Compute the potentials at the BLOCK targets from `first` on.

    Parameters as in `block_accelerations`; `result`, (n,) float64, is filled.
    """
    stored = sources.offset.dtype.type
    working = sources.mass.dtype.type
    starts = sources.starts
    eps2 = law.eps2
    position, total, own_index = load_targets(first, targets, law.lengths, targets.position)
    target = block_vectors(stored)
    phi = block_vectors(working)
    for chunk in range(sources.origin.shape[0]):
        if starts[chunk] == starts[chunk + 1]:
            break
        subtract_origin(position, sources.origin[chunk], stored, target)
        for start in range(starts[chunk], starts[chunk + 1], ROW):
            row = row_of(sources.offset, sources.mass, start, starts[chunk + 1])
            sum_potentials(row, (target, own_index), eps2, phi)
            add(total, phi)
    factor = -law.potentials / root_over_estimate(working(1), working(1))
    for lane in range(min(BLOCK, result.size - first)):
        result[first + lane] = factor * total[0, lane]


@linked_block
def block_jerks(first, targets, sources, law, result, jerks):
    """Compute accelerations and jerks of the BLOCK targets from `first` on.

    Parameters
    ----------
    first : int
    targets : MovingTargets
    sources : MovingSources
    law : Law
    result, jerks : (n, 3) array of float64
        Filled.
    """
    stored = sources.offset.dtype.type
    working = sources.mass.dtype.type
    starts = sources.starts
    eps2 = law.eps2
    position, total, own_index = load_targets(first, targets, law.lengths, targets.position)
    velocity, total_jerk, _ = load_targets(first, targets, law.speeds, targets.velocity)
    target = block_vectors(stored)
    target_velocity = block_vectors(stored)
    acceleration = block_vectors(working)
    jerk = block_vectors(working)
    for chunk in range(sources.origin.shape[0]):
        end = starts[chunk + 1]
        if starts[chunk] == end:
            break
        subtract_origin(position, sources.origin[chunk], stored, target)
        subtract_origin(velocity, sources.velocity_origin[chunk], stored, target_velocity)
        for start in range(starts[chunk], end, ROW):
            row = row_of(sources.offset, sources.mass, start, end)
            velocities = row_of(sources.velocity_offset, sources.mass, start, end)
            moving = (target, target_velocity, own_index)
            sum_accelerations_and_jerks(row, velocities, moving, eps2, acceleration, jerk)
            add(total, acceleration)
            add(total_jerk, jerk)
    store(first, law.accelerations, total, result)
    store(first, law.jerks, total_jerk, jerks)


# ---- Loading, adding, storing --------------------------------------------------------------------


@inlined
def load_targets(first, targets, factor, rows):
    """Return vectors of a block of targets, sums at zero, and the targets' indices as sources.

    Vectors are `rows` times a factor. Lanes beyond the last target hold zeros and the index -1.
    """
    source_index = targets.source_index
    position = block_vectors(np.float64)
    total = block_vectors(np.float64)
    own_index = block_scalars(np.int32)
    clear(position)
    clear(total)
    for lane in range(BLOCK):
        own_index[lane] = -1
    for lane in range(min(BLOCK, source_index.size - first)):
        own_index[lane] = source_index[first + lane]
        for axis in range(3):
            position[axis, lane] = factor * rows[first + lane, axis]
    return position, total, own_index


@inlined
def row_of(offset, mass, start, end):
    """Return at most ROW sources: the index of the first, the components of all, and masses."""
    end = min(start + ROW, end)
    return start, offset[0, start:end], offset[1, start:end], offset[2, start:end], mass[start:end]


@inlined
def subtract_origin(position, origin, stored, target):
    """Fill `target` with positions about the origin of a chunk, in the type of stored sources."""
    for lane in range(BLOCK):
        target[0, lane] = stored(position[0, lane] - origin[0])
        target[1, lane] = stored(position[1, lane] - origin[1])
        target[2, lane] = stored(position[2, lane] - origin[2])


@inlined
def clear(total):
    """Set sums to zero."""
    for lane in range(BLOCK):
        total[0, lane] = 0
        total[1, lane] = 0
        total[2, lane] = 0


@inlined
def add(total, increment):
    """Add sums to sums."""
    for lane in range(BLOCK):
        total[0, lane] += increment[0, lane]
        total[1, lane] += increment[1, lane]
        total[2, lane] += increment[2, lane]


@inlined
def store(first, factor, total, rows):
    """Fill the rows of a block of targets with their sums, times a factor."""
    for lane in range(min(BLOCK, rows.shape[0] - first)):
        for axis in range(3):
            rows[first + lane, axis] = factor * total[axis, lane]
