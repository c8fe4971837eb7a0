"""The stages of a step carried out by a force on the bodies of a rank."""

from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.forces.base import Force
from hybrid_nbody.nbody.step_timer import Timer


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
    time : float, optional
        At the start of the step, where the force depends on it.
    """

    def __init__(self, force: Force, bodies: LocalBodies, timer: Timer, time: float = 0.0) -> None:
        self.time = time
        self.bodies = bodies
        self.timer = timer
        self._force = force

    def force(self) -> None:
        """Compute the accelerations: a = a(x), at the time up to which bodies have drifted."""
        self._force.at(self.time)
        self._force.accelerations(self.timer)

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.bodies.kick(duration)
        self.timer.record("motion")

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.bodies.drift(duration)
        self.time += duration
        self.timer.record("motion")
