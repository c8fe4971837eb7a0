"""Hermite's scheme of order 4 with an adaptive substep that all bodies share.

A step of the simulation has a fixed length. It is covered by substeps after Aarseth's criterion;
the last two of them share what is left of the step, so that its end is met exactly. A substep
predicts, evaluates and corrects once, P(EC)^1 (Makino & Aarseth, Publ. Astron. Soc. Japan 44, 141,
1992): for the same number of forces, shorter substeps gain more than a second correction. Each step
begins with the forces at the corrected positions, so that a restart needs these positions, the
velocities and the length of the next substep alone.

Positions and velocities are carried with their low parts, what rounding leaves of each sum, and
substeps are differences of times: the rounding of a million substeps does not add up. Rounding of
the force, which differences over short substeps magnify, is measured (`noise.py`), and derivatives
that it explains do not shorten a substep.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.nbody.bodies import LocalBodies
from hybrid_nbody.nbody.copies import StateCopies
from hybrid_nbody.nbody.forces.base import HermitePath, JerkForce
from hybrid_nbody.nbody.integrators.base import Integrator, IntegratorSetup, Rows
from hybrid_nbody.nbody.integrators.kick_drift import account
from hybrid_nbody.nbody.integrators.noise import (
    ROUNDING,
    hidden_noise,
    least_accuracy,
    measured_noise,
)
from hybrid_nbody.nbody.integrators.substeps import MAX_RETRIES, SMALLEST_SUBSTEP, next_substep
from hybrid_nbody.nbody.kernels.contract import (
    Corrected,
    Criterion,
    HermiteFormulas,
    HermitePlan,
    HermitePoint,
    HermiteScratch,
)
from hybrid_nbody.nbody.step_timer import NullTimer, StepTimer, Timer

FEW = 255
"""Most bodies whose positions are counted from that with the shortest substep, in double precision:
close pairs of a few bodies are followed for long, and with many it would take time."""

LEAST_ROUNDING = 1e-12
"""Forces with less rounding are computed in double precision."""

LONG_STEP = 64.0
"""Forces of a step after which the noise of the force is measured again, which takes four."""


def _rounded_up(number: float) -> float:
    """Return a number of one digit that is not smaller."""
    digit: float = 10.0 ** np.floor(np.log10(number))
    return float(np.ceil(number / digit)) * digit


def make_scratch(backend: Backend, velocity: Array, low: Array) -> HermiteScratch:
    """Return scratch arrays for as many bodies as `velocity`, (n, 3), takes predictions of.

    `low`, (2, n, 3), are the low parts of their positions and velocities.
    """
    number = len(velocity)
    return HermiteScratch(
        start=backend.zeros((6, number, 3), "f8"),
        low=low,
        origin=np.zeros(3),
        velocity=velocity,
        jerk=backend.zeros((number, 3), "f8"),
        substeps=backend.zeros((number,), "f8"),
    )


class Taken(NamedTuple):
    """How many of some steps were taken, and whether the next one cannot be."""

    steps: int
    is_stuck: bool = False


class Hermite(Integrator[JerkForce]):
    """Steps of a fixed length, each covered by adaptive substeps.

    Parameters
    ----------
    setup : IntegratorSetup
        Its `accuracy` is the parameter eta of Aarseth's criterion.

    Attributes
    ----------
    substep : float
        Length of the next substep by the criterion, in units of time.
    forces, steps : int
        Evaluations of all forces, and steps, so far.
    """

    force: JerkForce
    bodies: LocalBodies
    formulas: HermiteFormulas
    scratch: HermiteScratch
    plan: HermitePlan
    few_substeps: NDArray[np.float64]

    def __init__(self, setup: IntegratorSetup) -> None:
        self.setup = setup
        self.dt = setup.dt
        self.attached = False
        self.substep = setup.dt
        self.noise: float | None = None  # of the force, once it is measured
        self.low = setup.backend.zeros((2, len(setup.ids), 3), "f8")
        self.forces = 0
        self.steps = 0

    @property
    def forces_per_step(self) -> float:
        """Return the evaluations of all forces a step, on average so far."""
        return self.forces / self.steps if self.steps else 1.0

    @property
    def remark(self) -> str:
        """Say it where rounding of the force hides what the accuracy asks for."""
        least = least_accuracy(self.noise or 0.0)
        if self.setup.accuracy >= least:
            return ""
        return (
            f"substeps are limited by the rounding of forces, up to {self.noise:.1g} of an "
            f"acceleration: take time.accuracy {_rounded_up(least):g} or more, or forces that "
            "round less (gravity.precision, gravity.softening)"
        )

    @property
    def uses_jerks(self) -> bool:
        """Return True."""
        return True

    # --- the state that a restart needs -----------------------------------------------------------

    def begin(self, force: JerkForce, bodies: LocalBodies) -> None:
        """Choose the first substep."""
        self.low[:] = 0
        self._attach(force, bodies)
        limits = self._begin_step(NullTimer())
        arrays = (self.scratch.start[2], self.scratch.start[3], self.scratch.substeps)
        force.formulas.first_steps(limits.accuracy, limits.negligible, *arrays)
        self.substep = self._shortest()

    def arrays(self) -> dict[str, Array]:
        """Return the low parts of positions and velocities."""
        return {"position_low": self.low[0], "velocity_low": self.low[1]}

    def scalars(self) -> dict[str, float]:
        """Return the next substep, and the noise of the force once it is known."""
        noise = {} if self.noise is None else {"force_noise": self.noise}
        return {"substep": self.substep} | noise

    def restore(self, rows: Rows, scalars: Mapping[str, float]) -> None:
        """Take back what was saved; an older checkpoint has a substep alone."""
        self.attached = False
        self.substep = scalars["substep"]
        self.noise = scalars.get("force_noise")
        self.low[:] = 0
        if self.noise is not None:
            for name, array in self.arrays().items():
                array[:] = self.setup.backend.upload(rows(name))

    def _attach(self, force: JerkForce, bodies: LocalBodies) -> None:
        """Work on these bodies from now on; allocate scratch arrays if they are new."""
        if self.attached and self.force is force:
            return
        self.attached = True
        self.force = force
        self.bodies = bodies
        self.formulas = force.formulas
        self.scratch = make_scratch(self.setup.backend, force.predicted_velocity, self.low)
        if self.noise is None:
            self.noise = measured_noise(force, bodies, self.scratch, self.setup)
        self.plan = self._plan(self.noise)

    def _plan(self, noise: float) -> HermitePlan:
        """Return a step where the force has some noise.

        In double precision that stays small, and positions of a few bodies are counted from one of
        them: they round less where two are close.
        """
        accuracy = self.setup.accuracy
        number = int(self.setup.communicator.sum(np.array(len(self.setup.ids))))
        double = self.force.rounding < LEAST_ROUNDING
        return HermitePlan(
            dt=self.dt,
            accuracy=accuracy,
            rounding=ROUNDING * self.force.rounding,
            noise=hidden_noise(noise, accuracy),
            shifts=double and number <= FEW and self.force.relative,
            long=np.inf if double else LONG_STEP,
        )

    # --- steps ------------------------------------------------------------------------------------

    def advance(self, force: JerkForce, bodies: LocalBodies, step: int, steps: int) -> None:
        """Take `steps` steps from step number `step` on.

        Raises
        ------
        NumericalError
            On every rank, if a substep became too small, naming a body.
        """
        self._attach(force, bodies)
        path = force.run_hermite
        take = partial(self._run, path, None) if path else self._step_by_step
        self._advance(step, force.batches(step, steps), take)

    def advance_with_copies(self, force: JerkForce) -> Callable[[int, StateCopies], None] | None:
        """Return what takes the steps of all copies on the fast path of the force, if any."""
        path = force.run_hermite
        if path is None:
            return None

        def advance(step: int, copies: StateCopies) -> None:
            self._attach(force, force.bodies)
            batches = force.batches(step, copies.steps_left)
            self._advance(step, batches, partial(self._run, path, copies))

        return advance

    def _advance(self, step: int, batches: Iterable[int], take: Callable[[int], Taken]) -> None:
        """Take batches of steps, all or until one ends early."""
        for number in batches:
            taken = take(number)
            self.steps += taken.steps
            step += taken.steps
            if taken.is_stuck:
                raise self._too_small(step)
            if taken.steps < number:
                return

    def _run(self, path: HermitePath, copies: StateCopies | None, steps: int) -> Taken:
        """Take steps on the fast path of the force; with copies, end with one where it is slow."""
        done = 0
        stuck = False
        point = HermitePoint(self.substep, 0.0, 0.0, 0)
        while done < steps and not stuck:  # the path pauses now and then: signals are noticed here
            progress = path(self.plan, self.scratch, point, steps - done, copies)
            done += progress.steps
            stuck = progress.stuck
            point = progress.point
            self.substep = point.substep
            self.forces += progress.forces
            if point.left == 0:
                self._end_step(point.forces)
            if copies and done < steps:
                steps = min(steps, done + copies.steps_to_next(within_step=point.left > 0))
        return Taken(done, stuck)

    def _step_by_step(self, steps: int) -> Taken:
        """Take steps from the host."""
        for step in range(steps):
            before = self.forces
            timer = StepTimer(self.setup.backend)
            limits = self._begin_step(timer)
            account(timer, self.setup.timings)
            if not self._cover(limits):
                return Taken(step, is_stuck=True)
            self._end_step(self.forces - before)
        return Taken(steps)

    def _end_step(self, forces: int) -> None:
        """Measure the noise anew after a step of many `forces`: bodies that are close round more.

        A restart has the new number.
        """
        if forces > self.plan.long:
            self.noise = measured_noise(self.force, self.bodies, self.scratch, self.setup)
            self.plan = self._plan(self.noise)

    def _cover(self, limits: Criterion) -> bool:
        """Take the substeps of a step; return whether they could be taken."""
        left = self.dt
        while left > 0:
            h = self._substep(left, limits)
            if not h:
                return False
            left -= h
        return True

    def _begin_step(self, timer: Timer) -> Criterion:
        """Evaluate forces at the current positions; return the limits of the step's substeps."""
        bodies = self.bodies
        plan = self.plan
        self.scratch.origin[:] = 0.0
        self.scratch.velocity[:] = bodies.velocity
        self._evaluate(timer)
        self._keep()
        own = float(abs(bodies.acceleration).max()) if len(bodies.velocity) else 0.0
        largest = float(self.setup.communicator.maximum(np.array(own)))
        timer.record("exchange")
        return Criterion(plan.accuracy, plan.dt, plan.noise, plan.rounding * largest)

    def _substep(self, left: float, limits: Criterion) -> float:
        """Take the next substep of a step; return its length, or zero if it would be too small.

        Parameters
        ----------
        left : float
            Time left of the step.
        limits : Criterion
        """
        for _ in range(1 + MAX_RETRIES):
            h = next_substep(self.substep, left)
            if h < SMALLEST_SUBSTEP * self.dt:
                return 0.0
            self._try(h, limits)
            if 2 * self.substep >= h:
                break
        if self.plan.shifts:
            self._find_origin()
        self._keep()
        return h

    def _try(self, h: float, limits: Criterion) -> None:
        """Predict, evaluate and correct; find the next substep."""
        bodies = self.bodies
        scratch = self.scratch
        timer = StepTimer(self.setup.backend)
        predicted = (bodies.position, scratch.velocity)
        self.formulas.predict(h, scratch.start, scratch.origin, *predicted)
        timer.record("motion")
        self._evaluate(timer)
        arrays = (scratch.start, bodies.acceleration, scratch.jerk)
        self.formulas.correct(h, *arrays, Corrected(bodies.position, bodies.velocity, scratch.low))
        self.formulas.next_steps(h, limits, *arrays, scratch.substeps)
        timer.record("motion")
        self.substep = self._shortest()
        timer.record("exchange")
        account(timer, self.setup.timings)

    def _evaluate(self, timer: Timer) -> None:
        self.force.accelerations_and_jerks(self.scratch.jerk, timer)
        self.forces += 1

    def _keep(self) -> None:
        """Let the next substep begin at the current state."""
        bodies = self.bodies
        scratch = self.scratch
        corrected = Corrected(bodies.position, bodies.velocity, scratch.low)
        self.formulas.keep(bodies.acceleration, scratch.jerk, corrected, scratch.start)

    def _shortest(self) -> float:
        """Return the shortest substep by the criterion over all ranks' bodies, at most a step."""
        substeps = self.scratch.substeps
        if self.plan.shifts:  # of few bodies: `_find_origin` needs all of them on the host
            self.few_substeps = substeps = self.setup.backend.download(substeps)
        own = float(substeps.min()) if len(substeps) else self.dt
        return min(float(self.setup.communicator.minimum(np.array(own))), self.dt)

    def _find_origin(self) -> None:
        """Count positions from the body with the shortest substep, the same on every rank.

        Of several bodies the largest of each coordinate is taken.
        """
        communicator = self.setup.communicator
        substeps = self.few_substeps
        shortest = communicator.minimum(np.array(np.min(substeps, initial=np.inf)))
        rows = self.setup.backend.download(self.bodies.position)[substeps <= shortest]
        self.scratch.origin[:] = communicator.maximum(np.max(rows, axis=0, initial=-np.inf))

    def _too_small(self, step: int) -> NumericalError:
        """Return the error that names the body with the shortest substep, on every rank."""
        substeps = self.setup.backend.download(self.scratch.substeps)
        own = (np.inf, -1)
        if len(substeps):
            row = int(np.argmin(substeps))
            own = (float(substeps[row]), int(self.setup.ids[row]))
        shortest, body = min(self.setup.communicator.gather(own))
        return NumericalError(
            f"after step {step} (t = {step * self.dt:g}): body {body} needs a substep of "
            f"{shortest:.3g}, too short for steps of {self.dt:g}. It is about to meet another "
            "body, or its force is NaN. Take a smaller time.dt, a larger gravity.softening, or "
            "other bodies; checkpoints written before are kept"
        ).on_all_ranks()
