"""CPU loops of gravity in Numba: plain code, float32, no fast math; kicks and drifts of a step.

In space bodies are structs, an (N, 7) array of x, y, z, vx, vy, vz and mass, and the first targets
move. In a plane (``plane_...``) they are a struct of arrays, (5, N), of x, y, vx, vy and G mass.
"""

import math

from numba import njit, prange

from hybrid_nbody.nbody.kernels.cpu.compilers import compiled_parallel

compiled = njit(cache=True, error_model="numpy")


@compiled
def kick_body(bodies, i, eps2, dt):
    """Sum the accelerations of body i by every body, and kick it."""
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
    """Kick one target after another, on one thread."""
    for i in range(targets):
        kick_body(bodies, i, eps2, dt)


@compiled_parallel
def threads(bodies, targets, eps2, dt):
    """Kick with threads over the outer loop, in equal shares (a static schedule)."""
    for i in prange(targets):
        kick_body(bodies, i, eps2, dt)


@compiled
def symmetric(bodies, targets, eps2, dt):
    """Compute each pair once, with F_ij = -F_ji, on one thread: half the work."""
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


@compiled
def plane_kick_body(bodies, i, eps2, dt):
    """Sum the accelerations of body i by every body, and kick it."""
    x, y, vx, vy, mass = bodies
    real = bodies.dtype.type
    ax = ay = real(0)
    for j in range(bodies.shape[1]):
        dx = x[j] - x[i]
        dy = y[j] - y[i]
        inverse = real(1) / math.sqrt(dx * dx + dy * dy + eps2)
        weight = mass[j] * inverse * inverse * inverse
        ax += weight * dx
        ay += weight * dy
    vx[i] += dt * ax
    vy[i] += dt * ay


@compiled
def plane_serial(bodies, eps2, dt):
    """Kick one body after another, on one thread."""
    for i in range(bodies.shape[1]):
        plane_kick_body(bodies, i, eps2, dt)


@compiled_parallel
def plane_threads(bodies, eps2, dt):
    """Kick with threads over the outer loop, in equal shares."""
    for i in prange(bodies.shape[1]):
        plane_kick_body(bodies, i, eps2, dt)


@compiled
def plane_drift(bodies, dt):
    """Move the bodies by their velocities."""
    for i in range(bodies.shape[1]):
        bodies[0, i] += dt * bodies[2, i]
        bodies[1, i] += dt * bodies[3, i]
