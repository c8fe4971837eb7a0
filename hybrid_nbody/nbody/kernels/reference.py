"""The pair force in plain NumPy and float64, which all other kernels are tested against.

Newton's law with Plummer softening (Aarseth, "Gravitational N-Body Simulations", 2003, eq. 1.1)::

    a_i   =  G sum_{j != i} m_j (x_j - x_i) / (|x_j - x_i|^2 + eps^2)^(3/2)
    phi_i = -G sum_{j != i} m_j             / (|x_j - x_i|^2 + eps^2)^(1/2)

The jerk is the time derivative of the acceleration (ibid., eq. 2.2, softened); with d = x_j - x_i,
u = v_j - v_i and r^2 = |d|^2 + eps^2::

    da_i/dt = G sum_{j != i} m_j [u / r^3 - 3 (d . u) d / r^5]
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


def accelerations(
    position: Float64,
    mass: Float64,
    softening: float = 0.0,
    G: float = 1.0,
    targets: Sequence[int] | None = None,
) -> Float64:
    """Return the gravitational acceleration of each target body.

    Parameters
    ----------
    position : (N, 3) array of float64
        Positions, in units of length.
    mass : (N,) array of float64
        Masses.
    softening : float
        Plummer softening length eps.
    G : float
        Gravitational constant.
    targets : sequence of int, optional
        Bodies to compute; all by default.

    Returns
    -------
    (len(targets), 3) array of float64
    """
    result = []
    for i in range(len(mass)) if targets is None else targets:
        others = np.arange(len(mass)) != i
        difference = position[others] - position[i]
        distance_squared = np.sum(difference**2, axis=1) + softening**2
        result.append(
            G * np.sum((mass[others] / distance_squared**1.5)[:, None] * difference, axis=0)
        )
    return np.array(result).reshape(-1, 3)


def accelerations_and_jerks(
    position: Float64,
    velocity: Float64,
    mass: Float64,
    softening: float = 0.0,
    G: float = 1.0,
    targets: Sequence[int] | None = None,
) -> tuple[Float64, Float64]:
    """Return accelerations and their time derivatives, the jerks.

    Parameters as in `accelerations`, with `velocity` an (N, 3) array of float64; both results are
    (len(targets), 3).
    """
    result = []
    for i in range(len(mass)) if targets is None else targets:
        others = np.arange(len(mass)) != i
        difference = position[others] - position[i]
        approach = velocity[others] - velocity[i]
        distance_squared = np.sum(difference**2, axis=1) + softening**2
        rate = 3 * np.sum(difference * approach, axis=1) / distance_squared
        change = approach - rate[:, None] * difference
        result.append(G * np.sum((mass[others] / distance_squared**1.5)[:, None] * change, axis=0))
    return accelerations(position, mass, softening, G, targets), np.array(result).reshape(-1, 3)


def potential(
    position: Float64,
    mass: Float64,
    softening: float = 0.0,
    G: float = 1.0,
    targets: Sequence[int] | None = None,
) -> Float64:
    """Return the gravitational potential at each target body, itself left out.

    Parameters and shapes as in `accelerations`; the result is a (len(targets),) array, in units of
    velocity squared.
    """
    result = []
    for i in range(len(mass)) if targets is None else targets:
        others = np.arange(len(mass)) != i
        distance_squared = np.sum((position[others] - position[i]) ** 2, axis=1) + softening**2
        result.append(-G * np.sum(mass[others] / np.sqrt(distance_squared)))
    return np.array(result)
