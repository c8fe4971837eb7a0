"""Time integrators as sequences of kicks and drifts, the formula beside each stage.

Kicks and drifts of fixed length make symplectic methods (Yoshida, Phys. Lett. A 150, 1990): the energy error of a
bound system oscillates and does not drift. A backend runs many steps without coming back to Python where it can.
"""

from dataclasses import dataclass

import numpy as np

ACTIONS = ("kick", "drift", "force")
"""In the order of their numbers in compiled code, ``gravity.cu`` included."""


@dataclass(frozen=True)
class Stage:
    """One action on all bodies: ``"kick"``, ``"drift"`` or ``"force"``, over a fraction of the step."""

    action: str
    fraction: float = 0.0


FORCE = Stage("force")  # a = a(x)


def kick(fraction: float) -> Stage:
    """Return the stage v += a (fraction dt)."""
    return Stage("kick", fraction)


def drift(fraction: float) -> Stage:
    """Return the stage x += v (fraction dt)."""
    return Stage("drift", fraction)


EULER = (  # semi-implicit (symplectic) Euler, order 1
    FORCE,  # a = a(x)
    kick(1.0),  # v = v + a dt
    drift(1.0),  # x = x + v dt
)

LEAPFROG = (  # kick-drift-kick, order 2, time-reversible
    kick(0.5),  # v = v + a dt/2
    drift(1.0),  # x = x + v dt
    FORCE,  # a = a(x)
    kick(0.5),  # v = v + a dt/2
)

INTEGRATORS = {"euler": EULER, "leapfrog": LEAPFROG}


def numbered(stages, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the stages of a step for compiled code: numbers in `ACTIONS` (int32) and lengths in time (float64)."""
    actions = np.array([ACTIONS.index(stage.action) for stage in stages], np.int32)
    return actions, np.array([stage.fraction * dt for stage in stages])
