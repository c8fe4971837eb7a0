"""The sums over all sources, for one block of targets.

A vector holds one number of each of `LANES` targets, and every lane meets the sources one after
another: a target's sum, and its bits, depend on the sources alone, and no lane is left over. In the
working type, sums are taken over a row of sources and then over the chunk, about the chunk's
origin; chunks are added up in float64.
"""

import numpy as np
from numba import njit

from hybrid_nbody.nbody.kernels.cpu.lanes import (
    LANES,
    VECTOR_MATH,
    cube_over_estimate,
    estimate_inverse_roots,
    inlined,
    root_over_estimate,
    rounded_product,
    scalars,
    vectors,
)

ROW = 16
"""Sources summed in a row: rounding grows with them, and processors foresee the end of a short
loop."""

compiled_block = njit(cache=True, error_model="numpy", fastmath=VECTOR_MATH)


# ---- The pairs -----------------------------------------------------------------------------------


@inlined
def separate(x, y, z, target, real, difference):
    """Fill `difference` with vectors from the targets to a source."""
    for lane in range(LANES):
        difference[0, lane] = real(x - target[0, lane])
        difference[1, lane] = real(y - target[1, lane])
        difference[2, lane] = real(z - target[2, lane])


@inlined
def measure(difference, eps2, square, estimate):
    """Fill `square` with r^2 = |difference|^2 + eps^2, and `estimate` with about 1 / r."""
    for lane in range(LANES):
        dx, dy, dz = difference[0, lane], difference[1, lane], difference[2, lane]
        square[lane] = dx * dx + (dy * dy + (dz * dz + eps2))
    estimate_inverse_roots(square, estimate)


@inlined
def sum_pulls(sources, first, target, own, eps2, real, equal, leave_out, pull):
    """Sum the accelerations towards some sources, m d / r^3 up to a constant; the first one's place is `first`."""
    x, y, z, mass = sources
    difference = vectors(real)
    square = scalars(real)
    estimate = scalars(real)
    clear(pull)
    for j in range(mass.size):
        separate(x[j], y[j], z[j], target, real, difference)
        measure(difference, eps2, square, estimate)
        for lane in range(LANES):
            weight = estimate[lane] if equal else mass[j] * estimate[lane]
            weight *= cube_over_estimate(square[lane], estimate[lane])
            if leave_out and own[lane] == np.int32(first + j):
                weight = real(0)
            pull[0, lane] += weight * difference[0, lane]
            pull[1, lane] += weight * difference[1, lane]
            pull[2, lane] += weight * difference[2, lane]


@inlined
def sum_potentials(sources, first, target, own, eps2, real, phi):
    """Sum the potentials of some sources, m / r up to a constant, in the first component of `phi`."""
    x, y, z, mass = sources
    difference = vectors(real)
    square = scalars(real)
    estimate = scalars(real)
    clear(phi)
    for j in range(mass.size):
        separate(x[j], y[j], z[j], target, real, difference)
        measure(difference, eps2, square, estimate)
        for lane in range(LANES):
            inverse = estimate[lane] * root_over_estimate(square[lane], estimate[lane])
            if own[lane] == np.int32(first + j):
                inverse = real(0)
            phi[0, lane] += mass[j] * inverse


@inlined
def sum_pulls_and_jerks(sources, speeds, first, target, course, own, eps2, real, pull, jerk):
    """Sum accelerations and their time derivatives: m d / r^3 and m [dv - 3 (d .

    dv) / r^2 d] / r^3.
    """
    x, y, z, mass = sources
    vx, vy, vz, _ = speeds
    difference = vectors(real)
    relative = vectors(real)
    square = scalars(real)
    estimate = scalars(real)
    clear(pull)
    clear(jerk)
    for j in range(mass.size):
        separate(x[j], y[j], z[j], target, real, difference)
        separate(vx[j], vy[j], vz[j], course, real, relative)
        measure(difference, eps2, square, estimate)
        for lane in range(LANES):
            inverse = estimate[lane] * root_over_estimate(square[lane], estimate[lane])
            inverse /= root_over_estimate(real(1), real(1))
            if own[lane] == np.int32(first + j):
                inverse = real(0)
            inverse2 = inverse * inverse
            weight = (mass[j] * inverse) * inverse2
            dx, dy, dz = difference[0, lane], difference[1, lane], difference[2, lane]
            dvx = relative[0, lane]
            dvy = relative[1, lane]
            dvz = relative[2, lane]
            rate = real(3) * inverse2 * (dx * dvx + (dy * dvy + rounded_product(dz, dvz)))
            pull[0, lane] += weight * dx
            pull[1, lane] += weight * dy
            pull[2, lane] += weight * dz
            jerk[0, lane] += weight * (dvx - rate * dx)
            jerk[1, lane] += weight * (dvy - rate * dy)
            jerk[2, lane] += weight * (dvz - rate * dz)


# ---- The sums over chunks ------------------------------------------------------------------------


@compiled_block
def block_accelerations(
    first, targets, place, equal, leave_out, G, eps2, starts, origin, offset, mass, result
):
    """Compute the accelerations of the LANES targets from `first` on; arguments as in `cpu.accelerations`."""
    stored = offset.dtype.type
    real = mass.dtype.type
    position, total, own = targets_from(first, targets, place)
    target = vectors(stored)
    pull = vectors(real)
    subtotal = vectors(real)
    for chunk in range(origin.shape[0]):
        if starts[chunk] == starts[chunk + 1]:
            break
        enter(position, origin[chunk], stored, target)
        clear(subtotal)
        for row in range(starts[chunk], starts[chunk + 1], ROW):
            sources = cut(offset, mass, row, starts[chunk + 1])
            # a loop for each case: inside one, the question would cost a tenth of an interaction
            if leave_out:
                sum_pulls(sources, row, target, own, eps2, real, False, True, pull)
            elif equal:
                sum_pulls(sources, row, target, own, eps2, real, True, False, pull)
            else:
                sum_pulls(sources, row, target, own, eps2, real, False, False, pull)
            add(subtotal, pull)
        add(total, subtotal)
    common_mass = mass[0] if equal else real(1)
    store(first, G * common_mass / cube_over_estimate(real(1), real(1)), total, result)


@compiled_block
def block_potentials(first, targets, place, G, eps2, starts, origin, offset, mass, result):
    """Compute the potentials at the LANES targets from `first` on; arguments as in `cpu.potentials`."""
    stored = offset.dtype.type
    real = mass.dtype.type
    position, total, own = targets_from(first, targets, place)
    target = vectors(stored)
    phi = vectors(real)
    for chunk in range(origin.shape[0]):
        if starts[chunk] == starts[chunk + 1]:
            break
        enter(position, origin[chunk], stored, target)
        for row in range(starts[chunk], starts[chunk + 1], ROW):
            sources = cut(offset, mass, row, starts[chunk + 1])
            sum_potentials(sources, row, target, own, eps2, real, phi)
            add(total, phi)
    for lane in range(min(LANES, result.size - first)):
        result[first + lane] = -G / root_over_estimate(real(1), real(1)) * total[0, lane]


@compiled_block
def block_jerks(
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
    jerks,
):
    """Compute accelerations and jerks of the LANES targets from `first` on; arguments as in the function of ``cpu``."""
    stored = offset.dtype.type
    real = mass.dtype.type
    position, total, own = targets_from(first, targets, place)
    velocity, total_jerk, _ = targets_from(first, moving, place)
    target = vectors(stored)
    course = vectors(stored)
    pull = vectors(real)
    jerk = vectors(real)
    for chunk in range(origin.shape[0]):
        if starts[chunk] == starts[chunk + 1]:
            break
        enter(position, origin[chunk], stored, target)
        enter(velocity, drift[chunk], stored, course)
        for row in range(starts[chunk], starts[chunk + 1], ROW):
            sources = cut(offset, mass, row, starts[chunk + 1])
            speeds = cut(speed, mass, row, starts[chunk + 1])
            sum_pulls_and_jerks(sources, speeds, row, target, course, own, eps2, real, pull, jerk)
            add(total, pull)
            add(total_jerk, jerk)
    store(first, G, total, result)
    store(first, G, total_jerk, jerks)


# ---- Loading, adding, storing --------------------------------------------------------------------


@inlined
def targets_from(first, rows, place):
    """Return the rows and the places of a block of targets, with sums at zero between; absent targets are zero."""
    position = vectors(np.float64)
    total = vectors(np.float64)
    own = scalars(np.int32)
    clear(position)
    clear(total)
    for lane in range(LANES):
        own[lane] = -1
    for lane in range(min(LANES, place.size - first)):
        own[lane] = place[first + lane]
        for axis in range(3):
            position[axis, lane] = rows[first + lane, axis]
    return position, total, own


@inlined
def cut(offset, mass, start, end):
    """Return the components and masses of at most ROW sources."""
    end = min(start + ROW, end)
    return offset[0, start:end], offset[1, start:end], offset[2, start:end], mass[start:end]


@inlined
def enter(position, origin, stored, target):
    """Fill `target` with positions about the origin of a chunk, in the type in which its sources are stored."""
    for lane in range(LANES):
        target[0, lane] = stored(position[0, lane] - origin[0])
        target[1, lane] = stored(position[1, lane] - origin[1])
        target[2, lane] = stored(position[2, lane] - origin[2])


@inlined
def clear(total):
    """Set sums to zero."""
    for lane in range(LANES):
        total[0, lane] = 0
        total[1, lane] = 0
        total[2, lane] = 0


@inlined
def add(total, increment):
    """Add sums to sums."""
    for lane in range(LANES):
        total[0, lane] += increment[0, lane]
        total[1, lane] += increment[1, lane]
        total[2, lane] += increment[2, lane]


@inlined
def store(first, factor, total, rows):
    """Fill the rows of a block of targets with their sums, times a factor."""
    for lane in range(min(LANES, rows.shape[0] - first)):
        for axis in range(3):
            rows[first + lane, axis] = factor * total[axis, lane]
