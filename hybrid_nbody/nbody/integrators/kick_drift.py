"""Steps of kicks and drifts under any force."""

from collections.abc import Callable
from functools import partial

from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.copies import StateCopies
from hybrid_nbody.nbody.forces.actions import BodyActions, StepClock
from hybrid_nbody.nbody.forces.base import Force
from hybrid_nbody.nbody.integrators.base import Integrator, IntegratorSetup
from hybrid_nbody.nbody.stages import Stage, StepPlan
from hybrid_nbody.nbody.step_timer import StepTimer
from hybrid_nbody.simulation.timings import Timings


class KickDrift(Integrator[Force]):
    """Steps of fixed length, made of kicks and drifts.

    Parameters
    ----------
    stages : tuple of Stage
        One step.
    setup : IntegratorSetup
        Device, length of a step and timings.
    """

    def __init__(self, stages: tuple[Stage, ...], setup: IntegratorSetup) -> None:
        self.plan = StepPlan(stages, setup.dt)
        self.backend = setup.backend
        self.timings = setup.timings

    @property
    def only_kicks_and_drifts(self) -> bool:
        """Return that bodies are moved by their `kick` and `drift` alone."""
        return True

    @property
    def forces_per_step(self) -> float:
        """Return the evaluations of all forces a step."""
        return float(self.plan.forces)

    def advance(self, force: Force, bodies: LocalBodies, step: int, steps: int) -> None:
        """Take `steps` steps from step number `step` on, on the fast path of the force if any."""
        for number in force.batches(step, steps):
            if not force.run(self.plan, number):
                self._step_by_step(force, bodies, range(step, step + number))
            step += number

    def advance_with_copies(self, force: Force) -> Callable[[int, StateCopies], None] | None:
        """Return what takes the steps of all copies, where the force copies the state."""
        run = force.run_with_copies
        if run is None:
            return None

        def advance(step: int, copies: StateCopies) -> None:
            for number in force.batches(step, copies.steps_left):
                run(self.plan, number, copies)

        return advance

    def _step_by_step(self, force: Force, bodies: LocalBodies, steps: range) -> None:
        """Queue every step by itself."""
        for step in steps:
            timer = StepTimer(self.backend)
            clock = StepClock(step, self.plan.dt)
            self.plan.perform(BodyActions(force, bodies, timer, clock))
            self.timings.later(partial(account, timer, self.timings))


def account(timer: StepTimer, timings: Timings) -> None:
    """Add the seconds of a step to the timings of the run."""
    for part in ("exchange", "force"):
        timings.add(part, timer.seconds(part))
