"""The CPU loops of the ladders, in Numba: plain code, float32, no fast math, an array of structs.

Each does the kick of a step, v += dt a(x), for bodies 0 to targets - 1; `drift` then does x += dt
v. A row of `bodies`, an (N, 7) array of float32, is a struct: x, y, z, vx, vy, vz, mass.
"""

import math

from numba import njit, prange

compiled = njit(cache=True, error_model="numpy")
compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)


@compiled
def kick_body(bodies, i, eps2, dt):
    """Sum the pull of every body on body i, and kick it."""
    real = bodies.dtype.type
    ax = ay = az = real(0)
    for j in range(bodies.shape[0]):
        dx = bodies[j, 0] - bodies[i, 0]
        dy = bodies[j, 1] - bodies[i, 1]
        dz = bodies[j, 2] - bodies[i, 2]
        inverse = real(1) / math.sqrt(dx * dx + dy * dy + dz * dz + eps2)
        weight = bodies[j, 6] * inverse * inverse * inverse
        ax += weight * dx
        ay += weight * dy
        az += weight * dz
    bodies[i, 3] += dt * ax
    bodies[i, 4] += dt * ay
    bodies[i, 5] += dt * az


@compiled
def serial(bodies, targets, eps2, dt):
    """One thread, one target after another."""
    for i in range(targets):
        kick_body(bodies, i, eps2, dt)


@compiled_parallel
def threads(bodies, targets, eps2, dt):
    """Threads over the outer loop, in equal shares (a static schedule)."""
    for i in prange(targets):
        kick_body(bodies, i, eps2, dt)


@compiled
def symmetric(bodies, targets, eps2, dt):
    """One thread; each pair once, with F_ij = -F_ji: half the work."""
    real = bodies.dtype.type
    for i in range(targets):
        ax = ay = az = real(0)
        for j in range(i + 1, bodies.shape[0]):
            dx = bodies[j, 0] - bodies[i, 0]
            dy = bodies[j, 1] - bodies[i, 1]
            dz = bodies[j, 2] - bodies[i, 2]
            inverse = real(1) / math.sqrt(dx * dx + dy * dy + dz * dz + eps2)
            weight = dt * inverse * inverse * inverse
            own = weight * bodies[j, 6]
            other = weight * bodies[i, 6]
            ax += own * dx
            ay += own * dy
            az += own * dz
            bodies[j, 3] -= other * dx
            bodies[j, 4] -= other * dy
            bodies[j, 5] -= other * dz
        bodies[i, 3] += ax
        bodies[i, 4] += ay
        bodies[i, 5] += az


@compiled
def drift(bodies, targets, dt):
    """Move the first bodies by their velocities."""
    for i in range(targets):
        for axis in range(3):
            bodies[i, axis] += dt * bodies[i, 3 + axis]
