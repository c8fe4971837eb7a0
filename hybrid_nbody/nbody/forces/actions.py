"""The stages of a step carried out by a force on the bodies of a rank."""

from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.forces.base import Force
from hybrid_nbody.nbody.step_timer import Timer

WHOLE = 1e-9
"""Drifts that end this near the end of a step, in steps, end there but for rounding."""


class StepClock:
    """The time up to which bodies have drifted in a step.

    At the end of the step it is the next multiple of the step to the last bit, so that a restart
    there has the same forces.

    Parameters
    ----------
    step : int
        Number of the step, from 0 on.
    dt : float
        Length of a step, in units of time.
    """

    def __init__(self, step: int, dt: float) -> None:
        self.step = step
        self.dt = dt
        self._part = 0.0

    def drift(self, duration: float) -> None:
        """Note a drift, which may go back in time."""
        self._part += duration / self.dt

    @property
    def time(self) -> float:
        """Return the time."""
        nearest = round(self._part)
        is_whole = abs(self._part - nearest) < WHOLE
        return (self.step + (nearest if is_whole else self._part)) * self.dt


class BodyActions:
    """The actions of `StepPlan.perform`, carried out by a force.

    Parameters
    ----------
    force : Force
        Gives the accelerations.
    bodies : LocalBodies
        This rank's bodies, moved in place.
    timer : Timer
        Records ``motion`` and the parts of the force.
    clock : StepClock, optional
        Set to the start of the step, where the force depends on time.
    """

    def __init__(
        self, force: Force, bodies: LocalBodies, timer: Timer, clock: StepClock | None = None
    ) -> None:
        self.clock = clock or StepClock(0, 1.0)
        self.bodies = bodies
        self.timer = timer
        self._force = force

    def force(self) -> None:
        """Compute the accelerations: a = a(x), at the time up to which bodies have drifted."""
        self._force.at(self.clock.time)
        self._force.accelerations(self.timer)

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.bodies.kick(duration)
        self.timer.record("motion")

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.bodies.drift(duration)
        self.clock.drift(duration)
        self.timer.record("motion")
