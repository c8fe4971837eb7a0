"""Gravity on CPU threads (Numba): an implementation of `hybrid_nbody.nbody.kernels.contract`.

The formula of a pair is in ``pair_force``; ``sums`` hands targets to threads, and ``steps`` does
whole steps without returning to Python.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hybrid_nbody.backends.base import Array, Backend
from hybrid_nbody.nbody.copies import StateCopies
from hybrid_nbody.nbody.kernels.contract import (
    HermitePlan,
    HermitePoint,
    HermiteProgress,
    HermiteScratch,
    PairForce,
)
from hybrid_nbody.nbody.kernels.cpu import hermite
from hybrid_nbody.nbody.kernels.cpu.layout import Copies, Floats, Law, Packing, Substeps
from hybrid_nbody.nbody.kernels.cpu.order import MOST_BODIES, Sorter
from hybrid_nbody.nbody.kernels.cpu.pieces import LongSteps, is_long, pieces
from hybrid_nbody.nbody.kernels.cpu.steps import run_hermite, run_steps
from hybrid_nbody.nbody.kernels.cpu.sums import (
    accelerations,
    accelerations_and_jerks,
    add_scaled,
    add_scaled_on_threads,
    pack,
    pack_offsets,
    potentials,
)
from hybrid_nbody.nbody.kernels.measured import MANY
from hybrid_nbody.nbody.precision import (
    PRECISIONS,
    Precision,
    chunk_capacity,
    excludes_self,
)
from hybrid_nbody.nbody.stages import StepPlan
from hybrid_nbody.nbody.state import Sources, State
from hybrid_nbody.simulation.schedule import NEVER

NO_COPIES = Copies(NEVER, 1, np.zeros((0, 0, 3)), np.zeros((0, 0, 3)))
"""Stands for steps among which nothing is copied."""


class Kernels:
    """Gravity on the threads of one rank; see `hybrid_nbody.nbody.kernels.contract.Kernels`.

    Parameters
    ----------
    backend : CpuBackend
        The threads.
    state : State
        The rank's arrays, of which the sizes matter here.
    pair_force : PairForce
        Precision, softening, gravitational constant and units.
    """

    remark = ""
    skips_massless = True
    hermite = hermite

    def __init__(self, backend: Backend, state: State, pair_force: PairForce):
        precision = PRECISIONS[pair_force.precision]
        number = len(state.mass)
        self.threads: int = backend.threads
        self.is_long = is_long(len(state.source_index), number, self.threads)
        self.local = precision.local
        self.units = pair_force.units
        self.law = tuple(_law(state, pair_force, precision))
        self.origin = np.zeros((chunk_capacity(number), 3))
        self.offset: Floats = np.zeros((3, number), precision.stored)
        self.mass: Floats = np.zeros(number, precision.working)
        self.velocity_origin = np.zeros((0, 3))
        self.velocity_offset: Floats = np.zeros((3, 0), precision.stored)

    def sorter(self, state: State) -> Sorter | None:
        """Return what sorts a few bodies; more of them NumPy sorts as fast."""
        return Sorter(state) if 0 < len(state.mass) <= MOST_BODIES else None

    def pack(self, sources: Sources) -> None:
        """Store the sources as the sums read them."""
        packed = (sources.starts, self.origin, self.offset, self.mass)
        pack(sources.position, self._packing(sources), packed)

    def _packing(self, sources: Sources) -> Packing:
        """Return the fields that `pack` takes beside the positions."""
        units = self.units
        return (sources.mass, sources.order, self.local, 1 / units.length, 1 / units.mass)

    def _packed(self, sources: Sources) -> tuple[Array, ...]:
        """Return the fields of `PackedSources`."""
        return (sources.starts, self.origin, self.offset, self.mass)

    def accelerations(self, state: State) -> None:
        """Fill ``state.acceleration`` from the packed sources."""
        packed = self._packed(state)
        given = (state.own_position, state.source_index, state.acceleration)
        for position, index, result in self._pieces(state, given):
            accelerations((position, index), packed, self.law, result)

    def potential(self, state: State, result: Array) -> None:
        """Fill `result`, (n,), with the potential at this rank's bodies."""
        packed = self._packed(state)
        given = (state.own_position, state.source_index, result)
        for position, index, some in self._pieces(state, given):
            potentials((position, index), packed, self.law, some)

    def _pieces(self, state: State, arrays: tuple[Array, ...]) -> Iterable[tuple[Array, ...]]:
        """Return the rows of arrays of targets that are computed before Python hears a Ctrl-C.

        The arrays themselves where the force is short: cutting them takes as long as the force of a
        few bodies.
        """
        if not self.is_long:
            return (arrays,)
        cuts = pieces(len(state.source_index), len(state.mass), self.threads)
        return (tuple(array[cut] for array in arrays) for cut in cuts)

    def accelerations_and_jerks(self, state: State, velocity: Array, jerk: Array) -> None:
        """Fill ``state.acceleration`` and `jerk`, (n, 3), from the velocities of all bodies."""
        moving = self._velocities()
        arrangement = (state.order, self.local)
        pack_offsets(velocity, 1 / self.units.speed, arrangement, (state.starts, *moving))
        sources = (*self._packed(state), *moving)
        targets = (state.own_position, state.source_index, velocity[state.own])
        for *some, result, rates in self._pieces(state, (*targets, state.acceleration, jerk)):
            accelerations_and_jerks(tuple(some), sources, self.law, result, rates)

    def _velocities(self) -> tuple[Array, Array]:
        """Return the arrays of packed velocities, made when the first jerks are computed."""
        if len(self.velocity_origin) < len(self.origin):
            self.velocity_origin = np.zeros_like(self.origin)
            self.velocity_offset = np.zeros_like(self.offset)
        return self.velocity_origin, self.velocity_offset

    def kick(self, state: State, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self._add(state.velocity, duration, state.acceleration)

    def drift(self, state: State, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self._add(state.own_position, duration, state.velocity)

    def _add(self, result: Array, factor: float, increment: Array) -> None:
        """Add `factor` times an increment to a result, both (n, 3)."""
        add = add_scaled_on_threads if len(result) >= MANY else add_scaled
        add(result, factor, increment)

    def run(self, state: State, plan: StepPlan, steps: int) -> Callable[[], float]:
        """Take whole steps of a rank that owns every body; see the contract."""
        if self.is_long:
            seconds = self._run_long(state, plan, steps)
        else:
            seconds = self._run_short(state, plan, steps, NO_COPIES)
        return lambda: seconds

    @property
    def run_with_copies(
        self,
    ) -> Callable[[State, StepPlan, int, StateCopies], Callable[[], float]] | None:
        """Return what takes steps and copies the state among them; None where steps are long."""
        return None if self.is_long else self._run_with_copies

    def _run_with_copies(
        self, state: State, plan: StepPlan, steps: int, copies: StateCopies
    ) -> Callable[[], float]:
        """Take whole steps, and the copies of the state that are due among them."""
        seconds = self._run_short(state, plan, steps, _next_of(copies))
        copies.note_steps(steps)
        return lambda: seconds

    def _run_short(self, state: State, plan: StepPlan, steps: int, copies: Copies) -> float:
        """Return the seconds spent in the forces of whole steps, taken in compiled code."""
        physics = self._physics(state, self._packed(state))
        given = (plan.encoded(), _bodies(state), physics, tuple(copies))
        seconds: float = run_steps(steps, *given)
        return seconds

    def _run_long(self, state: State, plan: StepPlan, steps: int) -> float:
        """Do the same with forces in pieces."""
        actions = LongSteps(self, state)
        for _ in range(steps):
            plan.perform(actions)
        return actions.seconds

    def run_hermite(
        self,
        state: State,
        scratch: HermiteScratch,
        plan: HermitePlan,
        point: HermitePoint,
        steps: int,
        copies: StateCopies | None,
    ) -> HermiteProgress:
        """Take whole steps of a rank that owns every body, from a point on; it may pause."""
        sources = (*self._packed(state), *self._velocities())
        arrays = Substeps(
            scratch.start,
            scratch.low,
            scratch.origin,
            scratch.velocity,
            scratch.jerk,
            scratch.substeps,
        )
        numbers = (plan.dt, plan.accuracy, plan.rounding, plan.noise, plan.shifts, plan.long)
        physics = self._physics(state, sources)
        wanted = _next_of(copies) if copies else NO_COPIES
        given = (numbers, point, arrays, _bodies(state), physics, tuple(wanted))
        progress: HermiteProgress = run_hermite(steps, *given)
        if copies:
            copies.note_steps(progress.steps)
        return progress

    def _physics(self, state: State, sources: tuple[Array, ...]) -> tuple[Any, ...]:
        """Return the fields of `Physics`."""
        return (self.law, self._packing(state), state.source_index, sources)


def _law(state: State, pair_force: PairForce, precision: Precision) -> Law:
    """Return the pair force as the compiled loops take it."""
    units = pair_force.units
    eps2 = precision.working(pair_force.eps2)
    without_self = excludes_self(state.heaviest / units.mass, eps2)
    return Law(
        accelerations=units.accelerations(pair_force.G),
        potentials=units.potentials(pair_force.G),
        jerks=units.jerks(pair_force.G),
        lengths=1 / units.length,
        speeds=1 / units.speed,
        eps2=eps2,
        equal_masses=state.common_mass is not None and not without_self,
        excludes_self=without_self,
    )


def _next_of(copies: StateCopies) -> Copies:
    """Return the copies that are not taken yet, as the compiled loops take them."""
    memory = copies.next
    left = copies.interval - copies.since
    return Copies(left, copies.interval, memory.position, memory.velocity)


def _bodies(state: State) -> tuple[Array, ...]:
    """Return the fields of `Bodies`."""
    return (state.position, state.velocity, state.acceleration)
