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
    """

    def __init__(self, force: Force, bodies: LocalBodies, timer: Timer) -> None:
        self.bodies = bodies
        self.timer = timer
        self._force = force

    def force(self) -> None:
        """Compute the accelerations: a = a(x)."""
        self._force.accelerations(self.timer)

    def kick(self, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.bodies.kick(duration)
        self.timer.record("motion")

    def drift(self, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.bodies.drift(duration)
        self.timer.record("motion")
