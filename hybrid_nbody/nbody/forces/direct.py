"""Gravity on the bodies of all ranks: exchange the positions, then sum over every source."""

from collections.abc import Callable, Iterator

import numpy as np

from hybrid_nbody.nbody.forces.sources import Order, given_order, heads_of, spatial_order
from hybrid_nbody.nbody.integrators.stages import FORCE, StepPlan
from hybrid_nbody.nbody.kernels import make_kernels
from hybrid_nbody.nbody.kernels.contract import PairForce
from hybrid_nbody.nbody.kernels.precision import PRECISIONS
from hybrid_nbody.nbody.state import make_state, set_order
from hybrid_nbody.nbody.timing import Laps, NoLaps

STEPS_BETWEEN_SORTS = 512
"""Sources are sorted anew at every multiple of this step number: a rule that a restart can
follow."""


class Gravity:
    """Direct summation over all pairs; every rank holds the positions of all bodies.

    Parameters
    ----------
    backend : Backend
        This rank's device.
    exchange : AllgatherExchange
        How this rank sees the other ranks' positions.
    state : State
        This rank's arrays, from `make_state`; changed in place.
    precision : {"single", "mixed", "double"}
        Precision of the pair force.
    softening, G : float
        Plummer softening length and gravitational constant.
    timings : Timings
        Takes the seconds spent under ``force``, ``exchange`` and ``sort``.
    agree : callable, optional
        Returns the `Order` that all ranks use for the one that this rank found: where they compute
        on devices of several kinds, rounding might make them find different ones.
    """

    make_state = staticmethod(make_state)

    def __init__(
        self,
        backend,
        exchange,
        state,
        precision,
        softening,
        G,
        timings,
        agree: Callable[[Order], Order] | None = None,
    ):
        self.backend = backend
        self.exchange = exchange
        self.state = state
        self.timings = timings
        self.agree = agree or (lambda order: order)
        self.sorted = PRECISIONS[precision].local
        self.kernels = self._kernels(PairForce(precision, softening, G))
        self.recorded = {}

    def _kernels(self, pair_force):
        return make_kernels(self.backend, self.state, pair_force)

    # --- the order of the sources -----------------------------------------------------------------

    def start(self, order: Order | None = None) -> None:
        """Bring the positions of all ranks and the accelerations up to date, in a saved order or a new one."""
        self._collect()
        set_order(self.backend, self.state, order or self._new_order())
        self._force(NoLaps())
        self.backend.synchronize()

    def restart(self, order_rows, head_rows, concatenate) -> None:
        """Do the same in the order that was saved as this rank's rows of it.

        Parameters
        ----------
        order_rows, head_rows : (n,) array
            What `order_rows` and `head_rows` gave.
        concatenate : callable
            Returns the rows of all ranks.
        """
        self.start(Order.from_heads(concatenate(order_rows), concatenate(head_rows)))

    def order_rows(self, first: int, last: int) -> np.ndarray:
        """Return which bodies are summed at the places first … last - 1, counted from this rank's first body on."""
        start = self.exchange.own.start
        return self.backend.download(self.state.order[start + first : start + last])

    def head_rows(self, first: int, last: int) -> np.ndarray:
        """Return whether a chunk starts at each of those places."""
        start = self.exchange.own.start
        return heads_of(self.backend.download(self.state.starts), start + first, start + last)

    def _new_order(self) -> Order:
        """Return the order for the present positions, the same on every rank."""
        return self.agree(self._order_found_here())

    def _order_found_here(self) -> Order:
        if self.sorted:
            return spatial_order(self.state.position, self.backend.xp)
        return given_order(len(self.state.position))

    def _sort(self):
        """Sort the sources anew; a step of some integrators ends in a drift, so positions are exchanged before."""
        with self.timings.measure("sort"):
            self._collect()
            set_order(self.backend, self.state, self._new_order())
            self.backend.synchronize()

    def _collect(self):
        """Bring the positions of all ranks up to date."""
        self.exchange.collect(self.state.position)

    # --- steps ------------------------------------------------------------------------------------

    def advance(self, stages, dt: float, first_step: int, steps: int) -> None:
        """Do `steps` steps of `stages`, of length `dt`, from step number `first_step` on."""
        for number in self.batches(first_step, steps):
            (self._run_alone if self.exchange.alone else self._run_together)(stages, dt, number)

    def batches(self, first_step: int, steps: int) -> Iterator[int]:
        """Yield how many steps to do next, until all are done; sort the sources where it is time to."""
        step = first_step
        last = first_step + steps
        while step < last:
            until = last
            if self.sorted:
                until = min(last, step - step % STEPS_BETWEEN_SORTS + STEPS_BETWEEN_SORTS)
                if step % STEPS_BETWEEN_SORTS == 0:
                    self._sort()
            yield until - step
            step = until

    def _run_alone(self, stages, dt, steps):
        """Step without coming back to Python: this rank owns every body."""
        self.timings.add("force", self.kernels.run(self.state, StepPlan(stages, dt), steps))

    def _run_together(self, stages, dt, steps):
        """Step with an exchange before, or beside, every force."""
        (self._replay if self.exchange.recordable else self._step_by_step)(stages, dt, steps)

    def _step_by_step(self, stages, dt, steps):
        """Queue every step by itself; the times of one are read when the next is queued, so that nobody waits."""
        before = None
        for _ in range(steps):
            laps = self._step(stages, dt, Laps(self.backend))
            if before:
                self._account(before)
            before = laps
        if before:
            self._account(before)

    def _account(self, laps):
        for name in ("exchange", "force"):
            self.timings.add(name, laps.seconds(name))

    def _replay(self, stages, dt, steps):
        """Queue one step by itself, with marks, and the others as replays of a recorded one.

        Each replay is taken to compute as long as the first step did; the rest of the time they
        waited for messages.
        """
        laps = self._step(stages, dt, Laps(self.backend))
        replay = self._recorded_step(stages, dt)
        for _ in range(steps - 1):
            replay()
        laps.lap("replays")
        self._account(laps)
        force, motion, replays = (laps.seconds(name) for name in ("force", "motion", "replays"))
        computing = min((steps - 1) * force, replays)
        self.timings.add("force", computing)
        self.timings.add(
            "exchange", max(replays - computing - (steps - 1) * motion, 0.0) if steps > 1 else 0.0
        )

    def _recorded_step(self, stages, dt):
        """Return what does a step without the host, where the device can; it holds for the arrays of this state."""
        if (stages, dt) not in self.recorded:
            self.recorded[stages, dt] = self.backend.recorded(
                lambda: self._step(stages, dt, NoLaps())
            )
        return self.recorded[stages, dt]

    def _step(self, stages, dt, laps):
        """Queue one step; return its laps."""
        act = {"kick": self.kernels.kick, "drift": self.kernels.drift}
        for stage in stages:
            if stage is FORCE:
                self._force(laps)
            else:
                act[stage.action](self.state, stage.fraction * dt)
                laps.lap("motion")
        return laps

    def _force(self, laps):
        """Exchange positions and compute accelerations."""
        self._collect()
        laps.lap("exchange")
        self.kernels.pack(self.state)
        self._sum(laps, "accelerations", self.state)

    def accelerations_and_jerks(self, velocity, jerk, laps) -> None:
        """Exchange positions and velocities, and compute accelerations and their time derivatives.

        Parameters
        ----------
        velocity : (N, 3) array of float64
            Every body's; the rows of other ranks are filled.
        jerk : (n, 3) array of float64
            Filled for this rank's bodies.
        laps : Laps or NoLaps
            Takes the laps ``exchange`` and ``force``.
        """
        self._collect()
        self.exchange.collect(velocity)
        laps.lap("exchange")
        self.kernels.pack(self.state)
        self._sum(laps, "jerks", self.state, velocity, jerk)

    def potential(self):
        """Return the potential at this rank's bodies, an (n,) array on the device, for the present positions."""
        self._collect()
        self.kernels.pack(self.state)
        result = self.backend.zeros(len(self.state.velocity), "f8")
        self._sum(NoLaps(), "potential", self.state, result)
        return result

    def _sum(self, laps, name, *arguments):
        """Let a kernel sum over all sources at this rank's bodies."""
        kernels = self.kernels
        sums = {
            "accelerations": kernels.accelerations,
            "jerks": kernels.accelerations_and_jerks,
            "potential": kernels.potential,
        }
        sums[name](*arguments)
        laps.lap("force")
