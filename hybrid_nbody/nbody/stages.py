"""Steps as sequences of kicks and drifts, with the formula beside each stage.

Kicks and drifts of fixed length make symplectic methods (Yoshida, Phys. Lett. A 150, 1990): the
energy error of a bound system oscillates and does not drift. `StepPlan.perform` interprets the
stages on the host; compiled code interprets their encoded form.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

ACTIONS = ("kick", "drift", "force")
"""In the order of their numbers in compiled code, ``motion.cuh`` included."""


@dataclass(frozen=True)
class Stage:
    """One action on all bodies over a fraction of the step.

    Attributes
    ----------
    action : {"kick", "drift", "force"}
    fraction : float
    """

    action: str
    fraction: float = 0.0


FORCE = Stage("force")  # a = a(x)


def kick(fraction: float) -> Stage:
    """Return the stage v += a (fraction dt)."""
    return Stage("kick", fraction)


def drift(fraction: float) -> Stage:
    """Return the stage x += v (fraction dt)."""
    return Stage("drift", fraction)


class Actions(Protocol):
    """The actions of the stages of a step on the bodies."""

    def force(self) -> None:
        """Compute the accelerations: a = a(x)."""

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""


@dataclass(frozen=True)
class StepPlan:
    """The stages of a step and its length.

    Attributes
    ----------
    stages : tuple of Stage
    dt : float
        Length of a step, in units of time.
    """

    stages: tuple[Stage, ...]
    dt: float

    @property
    def forces(self) -> int:
        """Return the number of forces in a step."""
        return self.stages.count(FORCE)

    def around_forces(self) -> tuple["StepPlan", ...]:
        """Return the kicks and drifts before, between and after the forces of a step, in order."""
        moves: list[tuple[Stage, ...]] = [()]
        for stage in self.stages:
            if stage == FORCE:
                moves.append(())
            else:
                moves[-1] += (stage,)
        return tuple(StepPlan(stages, self.dt) for stages in moves)

    def then(self, other: "StepPlan") -> "StepPlan":
        """Return the stages of this plan and those of another of the same length of a step."""
        return StepPlan(self.stages + other.stages, self.dt)

    def perform(self, actions: Actions) -> None:
        """Take one step on the host, stage by stage."""
        for stage in self.stages:
            if stage.action == "kick":
                actions.kick(stage.fraction * self.dt)
            elif stage.action == "drift":
                actions.drift(stage.fraction * self.dt)
            else:
                actions.force()

    def encoded(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the stages for compiled code: indices into `ACTIONS`, and lengths in time."""
        return self._encoded

    @cached_property
    def _encoded(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        actions = np.array([ACTIONS.index(stage.action) for stage in self.stages], np.int32)
        return actions, np.array([stage.fraction * self.dt for stage in self.stages])


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

W1 = 1 / (2 - 2 ** (1 / 3))
W0 = 1 - 2 * W1  # negative: a step back

YOSHIDA4 = (  # leapfrogs over W1 dt, W0 dt and W1 dt, order 4 (Yoshida 1990), time-reversible
    kick(W1 / 2),
    drift(W1),
    FORCE,
    kick((W1 + W0) / 2),  # two kicks by the same forces
    drift(W0),
    FORCE,
    kick((W0 + W1) / 2),
    drift(W1),
    FORCE,
    kick(W1 / 2),
)
