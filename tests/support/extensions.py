"""A force and an integrator from outside the package, each added by one registration.

``python extensions.py run tilted.yaml`` is what ``hybrid-nbody run tilted.yaml`` would be if the
program had them: ``gravity.solver: tilted`` and ``time.integrator: rk4``.
"""

import sys

import numpy as np

from hybrid_nbody.nbody.forces.base import JerkForce
from hybrid_nbody.nbody.forces.registry import ForceKind, make_direct
from hybrid_nbody.nbody.integrators.base import Integrator
from hybrid_nbody.nbody.integrators.kick_drift import account
from hybrid_nbody.nbody.integrators.registry import IntegratorKind
from hybrid_nbody.nbody.step_timer import StepTimer

FIELD = np.array([0.5, -0.25, 1.0])
"""The uniform field, in units of acceleration."""


class TiltedForce(JerkForce):
    """The direct sum and a uniform field: a + g, whose jerk is that of the sum."""

    def __init__(self, setup):
        self.pairs = make_direct(setup)
        self.field = setup.backend.upload(FIELD)
        self.bodies = self.pairs.bodies
        self.rounding = self.pairs.rounding

    @property
    def formulas(self):
        return self.pairs.formulas

    @property
    def predicted_velocity(self):
        return self.pairs.predicted_velocity

    def start(self):
        self.pairs.start()
        self._add_field()

    def accelerations(self, timer):
        self.pairs.accelerations(timer)
        self._add_field()
        timer.record("force")

    def accelerations_and_jerks(self, jerk, timer):
        self.pairs.accelerations_and_jerks(jerk, timer)
        self._add_field()
        timer.record("force")

    def _add_field(self):
        self.bodies.acceleration[:] += self.field

    def potential(self):
        """Count the field, phi = -g x, twice: each pair is counted at both of its bodies."""
        return self.pairs.potential() - 2 * (self.bodies.position @ self.field)

    def work(self, jerks):
        return self.pairs.work(jerks)

    def fields(self):
        return self.pairs.fields()

    def restore(self, rows, scalars):
        self.pairs.restore(rows, scalars)
        self._add_field()

    def batches(self, step, steps):
        return self.pairs.batches(step, steps)


class RungeKutta4(Integrator):
    """The classical method of order 4 (Kutta 1901): four forces a step, no kicks and drifts."""

    forces_per_step = 4.0
    uses_jerks = False

    def __init__(self, setup):
        self.setup = setup

    def advance(self, force, bodies, step, steps):
        for number in force.batches(step, steps):
            for _ in range(number):
                timer = StepTimer(self.setup.backend)
                self._step(force, bodies, timer)
                account(timer, self.setup.timings)

    def _step(self, force, bodies, timer):
        dt = self.setup.dt
        x, v = bodies.position.copy(), bodies.velocity.copy()
        slopes = [self._slope(force, bodies, timer)]
        for fraction in (0.5, 0.5, 1.0):
            velocity, acceleration = slopes[-1]
            bodies.position[:] = x + fraction * dt * velocity
            bodies.velocity[:] = v + fraction * dt * acceleration
            slopes.append(self._slope(force, bodies, timer))
        for array, start, rates in zip(
            (bodies.position, bodies.velocity), (x, v), zip(*slopes, strict=True), strict=True
        ):
            array[:] = start + dt / 6 * (rates[0] + 2 * rates[1] + 2 * rates[2] + rates[3])

    def _slope(self, force, bodies, timer):
        """Return the velocities and the accelerations at the current state."""
        force.accelerations(timer)
        return bodies.velocity.copy(), bodies.acceleration.copy()


TILTED = ForceKind(TiltedForce, jerks=True)
RK4 = IntegratorKind(RungeKutta4, forces_per_step=4)


if __name__ == "__main__":
    from hybrid_nbody.cli.main import main
    from hybrid_nbody.nbody.forces import registry as forces
    from hybrid_nbody.nbody.integrators import registry as integrators

    forces.register("tilted", TILTED)
    integrators.register("rk4", RK4)
    sys.exit(main())
