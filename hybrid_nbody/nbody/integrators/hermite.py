"""Hermite's scheme of order 4 with one adaptive substep that all bodies share.

A step of the simulation has a fixed length; it is covered by as many substeps as Aarseth's
criterion asks for, the last two of which share what is left, so that it is met exactly. A substep
predicts, evaluates and corrects once, P(EC)^1 (Makino & Aarseth, Publ. Astron. Soc. Japan 44, 141,
1992): for the same number of forces, shorter substeps gain more than a second correction. Each step
begins with the forces at the corrected positions, so that they and one number, the substep wanted
next, are all that a restart needs.
"""

import numpy as np

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.nbody.integrators.stages import SMALLEST_SUBSTEP, TRIALS, next_substep
from hybrid_nbody.nbody.kernels.contract import HermitePlan, HermiteScratch
from hybrid_nbody.nbody.kernels.precision import PRECISIONS
from hybrid_nbody.nbody.timing import Laps, NoLaps

ROUNDING = 256
"""A body whose acceleration is below so many roundings of the largest one asks for no substep: what
would be differentiated there is noise, as at the centre of a symmetric system."""


def make_scratch(backend, state) -> HermiteScratch:
    """Return scratch arrays for the bodies of `state`."""
    number = len(state.velocity)
    return HermiteScratch(
        start=backend.zeros((4, number, 3), "f8"),
        velocity=backend.zeros(state.position.shape, "f8"),
        jerk=backend.zeros((number, 3), "f8"),
        substeps=backend.zeros((number,), "f8"),
    )


class Hermite:
    """Steps of `hermite4`; see `hybrid_nbody.nbody.integrators.composed.Composed` for the methods that they share.

    Parameters
    ----------
    gravity : Gravity
        The bodies of all ranks.
    communicator : Communicator
        Every rank calls together.
    ids : (n,) array of int64
        The identity of each of this rank's bodies.
    dt : float
        Length of a step.
    accuracy : float
        Parameter eta of the criterion.
    precision : {"single", "mixed", "double"}
        Of the pair force.
    """

    operations = 42
    """Of an interaction: those of an acceleration and 22 more for the jerk, counted in the formula
    of ``reference``."""

    def __init__(self, gravity, communicator, ids, dt, accuracy, precision):
        self.gravity = gravity
        self.communicator = communicator
        self.ids = ids
        self.dt = dt
        self.accuracy = accuracy
        self.backend = gravity.backend
        self.state = gravity.state
        self.formulas = gravity.kernels.hermite
        self.motion = make_scratch(self.backend, self.state)
        rounding = ROUNDING * float(np.finfo(PRECISIONS[precision].working).eps)
        self.plan = HermitePlan(dt, accuracy, rounding)
        self.wanted = dt
        self.forces = 0
        self.steps = 0

    @property
    def forces_per_step(self) -> float:
        """Evaluations of all forces a step, on average so far."""
        return self.forces / self.steps if self.steps else 1.0

    # --- the state that a restart needs -----------------------------------------------------------

    def begin(self) -> None:
        """Choose the first substep, for bodies at their initial state."""
        negligible = self._begin_step(NoLaps())
        arrays = (self.state.acceleration, self.motion.jerk, self.motion.substeps)
        self.formulas.first_steps(self.accuracy, negligible, *arrays)
        self.wanted = self._shortest()

    def scalars(self) -> dict[str, float]:
        """Return what a checkpoint keeps."""
        return {"substep": self.wanted}

    def restore(self, scalars) -> None:
        """Take back what a checkpoint kept."""
        self.wanted = scalars["substep"]

    # --- steps ------------------------------------------------------------------------------------

    def advance(self, first_step: int, steps: int) -> None:
        """Do `steps` steps from step number `first_step` on.

        Raises
        ------
        NumericalError
            On every rank, if a substep became too small, naming a body.
        """
        alone = self.gravity.exchange.alone and self.gravity.kernels.run_hermite
        for number in self.gravity.batches(first_step, steps):
            done = self._run_compiled(number) if alone else self._run(number)
            self.steps += done
            if done < number:
                raise self._too_small(first_step + done)
            first_step += number

    def _run_compiled(self, steps):
        """Do the same as `_run` without coming back to Python."""
        run = self.gravity.kernels.run_hermite
        done, self.wanted, forces, seconds = run(
            self.state, self.motion, self.plan, self.wanted, steps
        )
        self.forces += forces
        self.gravity.timings.add("force", seconds)
        return done

    def _run(self, steps):
        """Do steps; return how many could be done."""
        for step in range(steps):
            laps = Laps(self.backend)
            negligible = self._begin_step(laps)
            self._account(laps)
            if not self._cover(negligible):
                return step
        return steps

    def _cover(self, negligible):
        """Do the substeps of a step; return whether they could be done."""
        left = self.dt
        while left > 0:
            h = self._substep(left, negligible)
            if not h:
                return False
            left -= h
        return True

    def _begin_step(self, laps):
        """Evaluate forces at the present positions; return which acceleration is negligible."""
        state = self.state
        motion = self.motion
        motion.velocity[state.own] = state.velocity
        self._evaluate(laps)
        self._keep()
        mine = float(abs(state.acceleration).max()) if len(state.velocity) else 0.0
        largest = float(self.communicator.maximum(np.array(mine)))
        laps.lap("exchange")
        return self.plan.rounding * largest

    def _substep(self, left, negligible):
        """Do the next substep of a step of which so much is `left`; return its length, or zero if it is too small."""
        for _ in range(TRIALS):
            h = next_substep(self.wanted, left)
            if h < SMALLEST_SUBSTEP * self.dt:
                return 0.0
            self._try(h, negligible)
            if 2 * self.wanted >= h:
                break
        self._keep()
        return h

    def _try(self, h, negligible):
        """Predict, evaluate and correct; find the substep wanted next."""
        state = self.state
        motion = self.motion
        formulas = self.formulas
        laps = Laps(self.backend)
        formulas.predict(h, motion.start, state.own_position, motion.velocity[state.own])
        laps.lap("motion")
        self._evaluate(laps)
        arrays = (motion.start, state.acceleration, motion.jerk)
        formulas.correct(h, *arrays, state.own_position, state.velocity)
        formulas.next_steps(h, self.accuracy, negligible, *arrays, motion.substeps)
        laps.lap("motion")
        self.wanted = self._shortest()
        laps.lap("exchange")
        self._account(laps)

    def _evaluate(self, laps):
        self.gravity.accelerations_and_jerks(self.motion.velocity, self.motion.jerk, laps)
        self.forces += 1

    def _keep(self):
        """Let the next substep begin here."""
        state = self.state
        for row, array in enumerate(
            (state.own_position, state.velocity, state.acceleration, self.motion.jerk)
        ):
            self.motion.start[row] = array

    def _shortest(self):
        """Return the shortest substep that a body of any rank asks for, at most a step."""
        asked = self.motion.substeps
        mine = float(asked.min()) if len(asked) else self.dt
        return min(float(self.communicator.minimum(np.array(mine))), self.dt)

    def _account(self, laps):
        for name in ("exchange", "force"):
            self.gravity.timings.add(name, laps.seconds(name))

    def _too_small(self, step):
        """Return the error that names the body which asks for the shortest substep, on every rank."""
        asked = self.backend.download(self.motion.substeps)
        row = int(np.argmin(asked)) if len(asked) else -1
        mine = (float(asked[row]), int(self.ids[row])) if len(asked) else (np.inf, -1)
        shortest, body = min(self.communicator.gather(mine))
        return NumericalError(
            f"after step {step} (t = {step * self.dt:g}): body {body} asks for a substep of {shortest:.3g}, too short "
            f"for steps of {self.dt:g}: it meets another one, or its force is no number. Take a "
            "smaller time.dt, a larger gravity.softening, or other bodies; checkpoints written before are kept"
        ).on_all_ranks()


def run_formulas(kernels, state, motion: HermiteScratch) -> None:
    """Run every kernel that Hermite's scheme needs once."""
    kernels.accelerations_and_jerks(state, motion.velocity, motion.jerk)
    arrays = (motion.start, state.acceleration, motion.jerk)
    formulas = kernels.hermite
    formulas.first_steps(1.0, 0.0, *arrays[1:], motion.substeps)
    formulas.predict(0.0, motion.start, state.own_position, motion.velocity[state.own])
    formulas.correct(0.0, *arrays, state.own_position, state.velocity)
    formulas.next_steps(1.0, 1.0, 0.0, *arrays, motion.substeps)
    if kernels.run_hermite:
        kernels.run_hermite(state, motion, HermitePlan(1e-6, 1.0, 0.0), 1e-6, 0)
