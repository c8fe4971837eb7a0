"""The CPU loops of ``bench flat``, in Numba: gravity in a plane, plain code, float32, a struct of arrays.

Each does the kick of a step, v += dt a(x); `drift` then does x += dt v. The rows of `bodies`, a (5,
N) array of float32, are x, y, vx, vy and mass, with the gravitational constant in it.
"""

import math

from numba import njit, prange

compiled = njit(cache=True, error_model="numpy")
compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)


@compiled
def kick_body(bodies, i, eps2, dt):
    """Sum the pull of every body on body i, and kick it."""
    x, y, vx, vy, mass = bodies
    real = bodies.dtype.type
    ax = ay = real(0)
    for j in range(bodies.shape[1]):
        dx, dy = x[j] - x[i], y[j] - y[i]
        inverse = real(1) / math.sqrt(dx * dx + dy * dy + eps2)
        weight = mass[j] * inverse * inverse * inverse
        ax += weight * dx
        ay += weight * dy
    vx[i] += dt * ax
    vy[i] += dt * ay


@compiled
def serial(bodies, eps2, dt):
    """One thread, one body after another."""
    for i in range(bodies.shape[1]):
        kick_body(bodies, i, eps2, dt)


@compiled_parallel
def threads(bodies, eps2, dt):
    """Threads over the outer loop, in equal shares."""
    for i in prange(bodies.shape[1]):
        kick_body(bodies, i, eps2, dt)


@compiled
def drift(bodies, dt):
    """Move the bodies by their velocities."""
    for i in range(bodies.shape[1]):
        bodies[0, i] += dt * bodies[2, i]
        bodies[1, i] += dt * bodies[3, i]
