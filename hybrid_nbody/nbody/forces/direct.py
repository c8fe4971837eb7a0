"""The direct sum over all pairs where every rank holds the positions of all bodies."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.backends.base import Array
from hybrid_nbody.nbody.bodies import DeviceBodies
from hybrid_nbody.nbody.copies import StateCopies
from hybrid_nbody.nbody.forces.actions import BodyActions
from hybrid_nbody.nbody.forces.base import BodyExchange, ForceSetup, HermitePath, JerkForce
from hybrid_nbody.nbody.kernels import make_kernels
from hybrid_nbody.nbody.kernels.contract import (
    HermiteFormulas,
    HermitePlan,
    HermitePoint,
    HermiteProgress,
    HermiteScratch,
    Kernels,
    Sorter,
)
from hybrid_nbody.nbody.precision import PRECISIONS
from hybrid_nbody.nbody.sources import Order, given_order, heads_of, massive_first, spatial_order
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import State, make_state, set_order
from hybrid_nbody.nbody.step_timer import NullTimer, StepTimer, Timer
from hybrid_nbody.parallel.exchange.allgather import AllgatherExchange
from hybrid_nbody.simulation.model import Field, Role, Work
from hybrid_nbody.simulation.timings import Timings

STEPS_BETWEEN_SORTS = 512
"""Sources are sorted anew at every multiple of this step number: a rule that a restart can
follow."""

OPERATIONS = 20
"""Operations of an interaction: the count that the field has agreed on for rates in GFLOP/s
(Nyland, Harris & Prins, GPU Gems 3, 2007)."""

OPERATIONS_WITH_JERK = 42
"""Those of an acceleration and 22 more for the jerk, counted in the formula of ``reference``."""


class DirectForce(JerkForce):
    """Direct summation over all pairs; every rank holds the positions of all bodies.

    Parameters
    ----------
    setup : ForceSetup
        Device, ranks, exchange, masses and law of the force.

    Attributes
    ----------
    state : State
        The arrays of this rank.
    kernels : Kernels
        Compute the sums on this rank's device.
    """

    relative = True

    def __init__(self, setup: ForceSetup) -> None:
        self.backend = setup.backend
        self.communicator = setup.communicator
        self.exchange: BodyExchange = setup.exchange
        self.pair_force = setup.pair_force
        self.timings = setup.timings
        precision = PRECISIONS[setup.pair_force.precision]
        self.rounding = float(np.finfo(precision.working).eps)
        self.sorted = precision.local
        self.number = setup.number
        self.mixed_devices = len(set(setup.backends)) > 1
        self.state = self._make_state(setup.all_masses())
        self.kernels = self._make_kernels()
        self.bodies = DeviceBodies(self.state, self.kernels)
        self.recorded: dict[StepPlan, Callable[[], None]] = {}

    def _make_state(self, mass: NDArray[np.float64]) -> State:
        return make_state(self.backend, self.exchange.own, mass)

    def _make_kernels(self) -> Kernels:
        return make_kernels(self.backend, self.state, self.pair_force)

    @cached_property
    def all_rows(self) -> AllgatherExchange:
        """Return the exchange, by which every rank sees all rows."""
        if not isinstance(self.exchange, AllgatherExchange):
            raise TypeError(f"{type(self).__name__} needs an AllgatherExchange")
        return self.exchange

    @property
    def remark(self) -> str:
        """Return what the kernels say of their choices."""
        return self.kernels.remark

    # --- sums -------------------------------------------------------------------------------------

    def accelerations(self, timer: Timer) -> None:
        """Exchange positions and compute accelerations."""
        self._collect()
        timer.record("exchange")
        self.kernels.pack(self.state)
        self._sum_accelerations(timer)

    def accelerations_and_jerks(self, jerk: Array, timer: Timer) -> None:
        """Exchange positions and velocities; compute accelerations and jerks."""
        self._collect()
        self.all_rows.collect(self.velocities)
        timer.record("exchange")
        self.kernels.pack(self.state)
        self._sum_jerks(jerk, timer)

    def potential(self) -> Array:
        """Return the potential at this rank's bodies for the current positions."""
        self._collect()
        self.kernels.pack(self.state)
        result = self.backend.zeros(len(self.state.velocity), "f8")
        self._sum_potential(result)
        return result

    def _collect(self) -> None:
        """Fill in the positions of the other ranks' bodies."""
        self.all_rows.collect(self.state.position)

    def _sum_accelerations(self, timer: Timer) -> None:
        self.kernels.accelerations(self.state)
        timer.record("force")

    def _sum_jerks(self, jerk: Array, timer: Timer) -> None:
        self.kernels.accelerations_and_jerks(self.state, self.velocities, jerk)
        timer.record("force")

    def _sum_potential(self, result: Array) -> None:
        self.kernels.potential(self.state, result)

    @cached_property
    def velocities(self) -> Array:
        """Return the predicted velocities of all bodies, (N, 3), where jerks are computed."""
        return self.backend.zeros(self.state.position.shape, "f8")

    @cached_property
    def predicted_velocity(self) -> Array:
        """Return this rank's rows of the predicted velocities."""
        return self.velocities[self.state.own]

    @property
    def formulas(self) -> HermiteFormulas:
        """Return the formulas of Hermite's scheme on this device."""
        return self.kernels.hermite

    def work(self, jerks: bool) -> Work:
        """Return the interactions of all pairs, and the operations of one."""
        operations = OPERATIONS_WITH_JERK if jerks else OPERATIONS
        return Work("interactions", float(self.number) * self.sources, operations)

    # --- the order of the sources -----------------------------------------------------------------

    @cached_property
    def massive(self) -> NDArray[np.bool_] | None:
        """Return which bodies are sources, those with mass; None where all are.

        The first call is collective.
        """
        mass = self.backend.download(self.state.mass)
        some = 0 < np.count_nonzero(mass) < len(mass)
        unable = not (some and self.kernels.skips_massless)
        return None if self.communicator.any(unable) else mass > 0

    @property
    def sources(self) -> int:
        """Return the number of bodies that the sums are over."""
        return self.number if self.massive is None else int(np.count_nonzero(self.massive))

    def start(self) -> None:
        """Order the sources by their current positions and compute the accelerations."""
        self._restart(None)

    def _restart(self, order: Order | None) -> None:
        """Compute the accelerations with the sources in an order, or in a new one."""
        self._collect()
        if order:
            set_order(self.backend, self.state, order)
        else:
            self._order_anew()
        self.accelerations(NullTimer())
        self.backend.synchronize()

    def scalars(self) -> dict[str, float]:
        """Return the units of the kernels."""
        return self.pair_force.units.scalars()

    def restore(self, rows: Callable[[str], NDArray[Any]], scalars: Mapping[str, float]) -> None:
        """Start with the sources in the saved order; in a new one where its chunks do not fit."""
        concatenate = self.communicator.concatenate
        order = concatenate(rows("gravity/order"))
        heads = concatenate(rows("gravity/chunk_head"))
        found = Order.from_heads(order, heads, self.sources)
        if self.massive is not None and not self.massive[order[: self.sources]].all():
            found = None  # written where all bodies were sources
        self._restart(found)

    def fields(self) -> list[Field]:
        """Return the order of the sources and the chunks that they are cut into."""
        return self._fields

    @cached_property
    def _fields(self) -> list[Field]:
        chunk_head = "whether a chunk of sources starts here"
        return [
            self._field("gravity/order", "i4", "bodies in summing order", self.order_rows),
            self._field("gravity/chunk_head", "u1", chunk_head, self.head_rows),
        ]

    def _field(
        self, name: str, dtype: str, description: str, host: Callable[[int, int], NDArray[Any]]
    ) -> Field:
        """Return a field of one number a body."""
        return Field(
            name=name,
            shape=(self.number,),
            dtype=np.dtype(dtype),
            units="1",
            description=description,
            index=self.exchange.own,
            host=host,
            role=Role.INTERNAL,
        )

    def order_rows(self, first: int, last: int) -> NDArray[np.int32]:
        """Return rows first … last - 1 of this rank of the bodies in summing order."""
        start = self.exchange.own.start
        rows: NDArray[np.int32] = self.backend.download(
            self.state.order[start + first : start + last]
        )
        return rows

    def head_rows(self, first: int, last: int) -> NDArray[np.uint8]:
        """Return whether a chunk starts at each of these rows."""
        start = self.exchange.own.start
        return heads_of(self.backend.download(self.state.starts), start + first, start + last)

    def _new_order(self) -> Order:
        """Return the order for the current positions, the same on every rank."""
        return self.agree(self._local_order())

    def _local_order(self) -> Order:
        """Return the order for the positions that this rank holds."""
        if self.massive is not None:
            position = self.backend.download(self.state.position)
            return massive_first(position, self.massive, self.sorted)
        if self.sorted:
            return spatial_order(self.state.position, self.backend.xp)
        return given_order(len(self.state.position))

    def agree(self, order: Order) -> Order:
        """Return the root's order where devices differ: their rounding might, too."""
        if not self.mixed_devices:
            return order
        bodies = self.backend.download(order.bodies) if self.communicator.is_root else None
        shared = self.communicator.broadcast((bodies, order.starts))
        return Order(*shared)

    # --- steps ------------------------------------------------------------------------------------

    def batches(self, step: int, steps: int) -> Iterator[int]:
        """Yield the steps until the sources are to be sorted anew, and sort them then."""
        last = step + steps
        while step < last:
            until = last
            if self.sorted:
                until = min(last, step - step % STEPS_BETWEEN_SORTS + STEPS_BETWEEN_SORTS)
                if step % STEPS_BETWEEN_SORTS == 0:
                    self._sort()
            yield until - step
            step = until

    def _sort(self) -> None:
        """Sort the sources anew; a step may end in a drift, so positions are exchanged before."""
        with self.timings.measure("sort"):
            self._collect()
            self._order_anew()

    def _order_anew(self) -> None:
        """Order the sources by their current positions."""
        if self.sorter:
            self.sorter.sort()
        else:
            set_order(self.backend, self.state, self._new_order())
            self.backend.synchronize()

    @cached_property
    def sorter(self) -> Sorter | None:
        """Return what sorts all bodies on the device, where this rank owns every one."""
        able = self.sorted and self.exchange.alone and self.massive is None
        return self.kernels.sorter(self.state) if able else None

    def run(self, plan: StepPlan, steps: int) -> bool:
        """Take steps in compiled code, or by replaying a recorded step, where possible."""
        if self.exchange.alone:
            self.timings.add_later("force", self.kernels.run(self.state, plan, steps))
        elif self.exchange.recordable:
            self._replay(plan, steps)
        else:
            return False
        return True

    @property
    def run_with_copies(self) -> Callable[[StepPlan, int, StateCopies], None] | None:
        """Return what copies the state within steps, where one device holds every body."""
        run = self.kernels.run_with_copies
        if run is None or not self.exchange.alone:
            return None

        def run_all(plan: StepPlan, steps: int, copies: StateCopies) -> None:
            self.timings.add_later("force", run(self.state, plan, steps, copies))

        return run_all

    @property
    def run_hermite(self) -> HermitePath | None:
        """Return what takes steps in compiled code, where this rank owns every body."""
        run = self.kernels.run_hermite
        if run is None or not self.exchange.alone:
            return None

        def run_all(
            plan: HermitePlan,
            scratch: HermiteScratch,
            point: HermitePoint,
            steps: int,
            copies: StateCopies | None,
        ) -> HermiteProgress:
            progress = run(self.state, scratch, plan, point, steps, copies)
            self.timings.add("force", progress.seconds)
            return progress

        return run_all

    def _replay(self, plan: StepPlan, steps: int) -> None:
        """Queue one step by itself, with marks, and the others as replays of a recorded one."""
        timer = StepTimer(self.backend)
        plan.perform(BodyActions(self, self.bodies, timer))
        self._repeat(plan, steps - 1)
        timer.record("replays")
        self.timings.later(partial(_account_replays, timer, steps - 1, self.timings))

    def _repeat(self, plan: StepPlan, steps: int) -> None:
        """Queue whole steps as replays of a recorded one."""
        replay = self._recorded_step(plan)
        for _ in range(steps):
            replay()

    def _recorded_step(self, plan: StepPlan) -> Callable[[], None]:
        """Return a step that the device takes without the host where it can."""
        if plan not in self.recorded:
            actions = BodyActions(self, self.bodies, NullTimer())
            self.recorded[plan] = self.backend.recorded(lambda: plan.perform(actions))
        return self.recorded[plan]


def _account_replays(timer: StepTimer, number: int, timings: Timings) -> None:
    """Add the seconds of a step and of a number of replays to the timings of the run.

    Each replay is taken to compute as long as the step did; the rest of its time it waited for
    messages.
    """
    force = timer.seconds("force")
    replays = timer.seconds("replays")
    computing = min(number * force, replays)
    waiting = max(replays - computing - number * timer.seconds("motion"), 0.0)
    timings.add("exchange", timer.seconds("exchange") + (waiting if number else 0.0))
    timings.add("force", force + computing)
