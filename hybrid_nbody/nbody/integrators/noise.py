"""The rounding of a force, measured by differences.

Accelerations of bodies at slightly larger and larger distances follow a smooth function, whose
third difference over a change of 1e-6 is below 1e-16 of it: what is left is rounding (More & Wild,
"Estimating Computational Noise", SIAM J. Sci. Comput. 33, 1292, 2011).
"""

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.forces.base import JerkForce
from hybrid_nbody.nbody.integrators.base import IntegratorSetup
from hybrid_nbody.nbody.kernels.contract import HermiteScratch
from hybrid_nbody.nbody.kernels.units import power_of_two
from hybrid_nbody.nbody.step_timer import NullTimer

ROUNDING = 256
"""A body does not limit the substep if its acceleration is below this many rounding errors of the
largest one: its derivatives would be noise, as at the centre of a symmetric system."""

STRETCH = 2.0**-20
"""Relative change of all distances between two forces: sixteen units in the last place of float32,
so that the rounding of each force is a new one."""

WEIGHTS = (1.0, -3.0, 3.0, -1.0)
"""Of the forces in their third difference."""

MARGIN = 8.0
"""The largest error of later forces may be this many times that of the measured ones."""

MOST_OF_THE_CRITERION = 32.0
"""At the substep that Aarseth's criterion asks for, noise may hide this many times what the third
derivative adds to the acceleration. Substeps are then three times as long at most: rounding of such
forces is far above the error of longer substeps."""


def hidden_noise(noise: float, accuracy: float) -> float:
    """Return the relative error of accelerations by which derivatives are reduced.

    At a substep of ``sqrt(accuracy)`` times the time scale of a body, its third derivative changes
    a difference of accelerations by ``accuracy**1.5 / 12`` of them.
    """
    return float(min(noise, MOST_OF_THE_CRITERION / 12 * accuracy**1.5))


def least_accuracy(noise: float) -> float:
    """Return the accuracy from which on noise hides no derivative at the substep asked for."""
    return float((12 * noise) ** (2 / 3))


def measured_noise(
    force: JerkForce, bodies: LocalBodies, scratch: HermiteScratch, setup: IntegratorSetup
) -> float:
    """Return the largest error of an acceleration, relative to it, the same for any shares.

    Collective. The bodies stay as they are; the jerks in `scratch` do not.

    Parameters
    ----------
    force : JerkForce
        Its accelerations of the present positions are those of `bodies`.
    bodies : LocalBodies
        This rank's bodies.
    scratch : HermiteScratch
        Its jerks are overwritten.
    setup : IntegratorSetup
        The device and the ranks.
    """
    download = setup.backend.download
    maximum = setup.communicator.maximum
    acceleration = download(bodies.acceleration)
    most = float(maximum(np.array(np.max(np.abs(acceleration), initial=0.0))))
    unit = power_of_two(most)
    size = _norm(acceleration / unit)
    error = _norm(download(_third_difference(force, bodies, scratch)) / unit)
    largest = float(maximum(np.array(np.max(size, initial=0.0))))
    known = size > ROUNDING * force.rounding * largest
    relative = error[known] / (size[known] * np.linalg.norm(WEIGHTS))
    return MARGIN * float(maximum(np.array(np.max(relative, initial=0.0))))


def _third_difference(force: JerkForce, bodies: LocalBodies, scratch: HermiteScratch) -> Array:
    """Return the third difference of the accelerations, (n, 3), over stretches of the system."""
    before = [array.copy() for array in (bodies.position, bodies.acceleration)]
    difference = 0 * bodies.acceleration
    for number, weight in enumerate(WEIGHTS):
        stretch = 1 + number * STRETCH
        bodies.position[:] = before[0] * stretch
        scratch.velocity[:] = bodies.velocity * stretch
        force.accelerations_and_jerks(scratch.jerk, NullTimer())
        difference += weight * bodies.acceleration
    bodies.position[:], bodies.acceleration[:] = before
    return difference


def _norm(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the length of each vector."""
    length: NDArray[np.float64] = np.linalg.norm(vectors, axis=1)
    return length
