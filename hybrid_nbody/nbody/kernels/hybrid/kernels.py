"""Gravity on a device and its helper: an implementation of `hybrid_nbody.nbody.kernels.contract`.

The helper computes the last of a rank's own bodies on the host, the main device the others at the
same time. Positions are copied to the host beside the main device's work, and accelerations are
copied back when they are done.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

from hybrid_nbody.backends.base import Array, Mark
from hybrid_nbody.backends.hybrid import HybridBackend
from hybrid_nbody.backends.timing import seconds_of
from hybrid_nbody.nbody.kernels import (
    contract,
    make_kernels,
    make_symmetric_kernels,
)
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.kernels.contract import HermiteFormulas, PairForce
from hybrid_nbody.nbody.kernels.gpu.exact_sums import is_applicable
from hybrid_nbody.nbody.kernels.hybrid.parts import MOVING, SplitState
from hybrid_nbody.nbody.kernels.hybrid.share import (
    FORCES_BETWEEN,
    WORTHWHILE,
    Choice,
    Rates,
    Readings,
    best_share,
)
from hybrid_nbody.nbody.stages import FORCE, StepPlan
from hybrid_nbody.nbody.state import Sources, State

FORCE_ALONE = StepPlan((FORCE,), 0.0)
"""A step that moves nothing."""

SHORTEST_MEASUREMENT = 0.02
"""Seconds that a measurement takes at least, unless one force takes longer."""

LONG_FORCE = 0.5
"""Seconds of a force that is measured once."""

MOST_FORCES = 200
"""Most forces of a measurement."""

SAMPLE = 256
"""Bodies with which the helper's rate is measured first."""

REFINEMENTS = 3
"""Shares that are tried besides those of one device alone."""

HOPELESS = 2.0
"""The helper is not tried alone if it would take this many times as long as the main device."""


class Marks(NamedTuple):
    """The measurements of a force, to be read when it is done.

    Attributes
    ----------
    begun, main_done, joined : mark
        When it began, when the main device had computed its part, and when both were joined.
    helper : float
        Seconds of the helper.
    """

    begun: Mark
    main_done: Mark
    joined: Mark
    helper: float


class Kernels:
    """Gravity on two devices; see `hybrid_nbody.nbody.kernels.contract.Kernels`.

    Parameters
    ----------
    backend : HybridBackend
        Both devices, and the share that the configuration asks for.
    state : State
        The arrays of the main device.
    pair_force : PairForce
        Precision, softening and gravitational constant.

    Attributes
    ----------
    share : float or None
        The present share of the helper; None until it is chosen, at the first force.
    choice : Choice or None
        The measurements by which the share was chosen, if it was.
    """

    run_hermite = None
    run_with_copies = None
    arrived: Mark
    begun: Mark

    skips_massless = False

    def __init__(self, backend: HybridBackend, state: State, pair_force: PairForce):
        self.backend = backend
        self.main, self.helper = (
            make_kernels(device, state, pair_force) for device in backend.devices
        )
        self.alone = self._kernels_alone(state, pair_force)
        self.number = len(state.mass)
        self.owned = len(state.velocity)
        self.split = SplitState(backend)
        self.force_seconds = 0.0
        self.share: float | None = None
        self.choice: Choice | None = None
        self.unread: Marks | None = None
        self.adapting = False
        self.readings = Readings()
        if not self.owned:
            self.fix(0.0)
        elif backend.cpu_share != "auto":
            self.fix(float(backend.cpu_share))

    def _kernels_alone(self, state: State, pair_force: PairForce) -> contract.Kernels:
        """Return the main device's kernels for all bodies: the symmetric ones where they apply."""
        device = self.backend.main
        if len(state.velocity) == len(state.mass):
            mass = device.download(state.mass)
            if is_applicable([device.name], pair_force, mass):
                return make_symmetric_kernels(device, state, pair_force)
        return self.main

    def fix(self, share: float) -> None:
        """Let the helper take `share` of the own bodies from now on."""
        self._take(float(share))
        self.adapting = False

    @property
    def hermite(self) -> HermiteFormulas:
        """Return the formulas of Hermite's scheme, on the main device."""
        return self.main.hermite

    @property
    def remark(self) -> str:
        """Return what the log says of the share."""
        if not self.owned:
            return ""
        return str(self.choice or f"cpu_share {self.share:g}, as asked for")

    @property
    def count(self) -> int:
        """Return the number of own bodies that are the helper's."""
        return round((self.share or 0.0) * self.owned)

    def sorter(self, state: State) -> None:
        """Return nothing: the host sorts."""

    # --- forces -----------------------------------------------------------------------------------

    def pack(self, sources: Sources) -> None:
        """Store the sources as the sums read them; they are those of a rank's state."""
        state = cast(State, sources)
        share = self.choose(state).share if self.share is None else self.share
        if self.adapting and self.readings.forces >= FORCES_BETWEEN and self.count < self.owned:
            self._take(self.readings.adapted(share))
        if not self.count:
            self.alone.pack(state)
            return
        self.arrived = self.backend.fetch(state.position, self.split.host(state).position)
        self.begun = self.backend.mark()
        if self.count < self.owned:
            self.main.pack(state)

    def accelerations(self, state: State) -> None:
        """Fill ``state.acceleration`` from the packed sources."""
        if not self.count:
            self.alone.accelerations(state)
            return
        parts = self.split.parts(state, self.count)
        if self.count < self.owned:
            self.main.accelerations(parts.main)
        done = self.backend.mark()
        helper = self._help(parts.helper, self.helper.accelerations)
        self.backend.send(parts.helper.acceleration, state.acceleration[-self.count :])
        self.unread = Marks(self.begun, done, self.backend.mark(), helper)

    def _help(self, state: State, compute: Callable[..., None], *arguments: Array) -> float:
        """Let the helper `compute` its part once the positions are there; return the seconds."""
        self.backend.wait(self.arrived)
        self._read()  # the force before is done: positions come after it
        start = self.backend.helper.mark()
        self.helper.pack(state)
        compute(state, *arguments)
        return self.backend.helper.elapsed(start, self.backend.helper.mark())

    def _read(self) -> None:
        """Take note of the seconds of the last force, which must be done."""
        marks = self.unread
        if marks is not None:
            total = self.backend.elapsed(marks.begun, marks.joined)
            main = self.backend.elapsed(marks.begun, marks.main_done)
            self.readings.add(main, marks.helper, total)
            self.force_seconds += total
            self.unread = None

    def accelerations_and_jerks(self, state: State, velocity: Array, jerk: Array) -> None:
        """Fill ``state.acceleration`` and `jerk`, (n, 3), from the velocities of all bodies."""
        if not self.count:
            self.alone.accelerations_and_jerks(state, velocity, jerk)
            return
        parts = self.split.parts(state, self.count)
        cut = self.owned - self.count
        moving = self.split.pinned("all velocities", velocity.shape)
        result = self.split.pinned("jerk", jerk.shape)[cut:]
        self.arrived = self.backend.fetch(velocity, moving)  # after the positions
        if cut:
            self.main.accelerations_and_jerks(parts.main, velocity, jerk[:cut])
        self._help(parts.helper, self.helper.accelerations_and_jerks, moving, result)
        self.backend.send(parts.helper.acceleration, state.acceleration[cut:])
        self.backend.send(result, jerk[cut:])

    def potential(self, state: State, result: Array) -> None:
        """Fill `result`, (n,), with the potential at this rank's bodies."""
        if not self.count:
            self.alone.potential(state, result)
            return
        parts = self.split.parts(state, self.count)
        cut = self.owned - self.count
        if cut:
            self.main.potential(parts.main, result[:cut])
        found = self.split.pinned("potential", result.shape)[cut:]
        self._help(parts.helper, self.helper.potential, found)
        self.backend.send(found, result[cut:])

    # --- steps ------------------------------------------------------------------------------------

    def kick(self, state: State, duration: float) -> None:
        """Change velocities: v += a `duration`."""
        self.main.kick(state, duration)

    def drift(self, state: State, duration: float) -> None:
        """Change positions: x += v `duration`."""
        self.main.drift(state, duration)

    def run(self, state: State, plan: StepPlan, steps: int) -> Callable[[], float]:
        """Take whole steps of a rank that owns every body; see the contract.

        A device that takes all bodies does so without coming back to Python.
        """
        if self.share is None:
            self.choose(state)
        if not self.count:
            return self.alone.run(state, plan, steps)
        step = self._run_on_helper if self.count == self.owned else self._run_on_both
        return step(state, plan, steps)

    def _run_on_helper(self, state: State, plan: StepPlan, steps: int) -> Callable[[], float]:
        host = self.split.host(state)
        for name in MOVING:
            arrived = self.backend.fetch(getattr(state, name), getattr(host, name))
        self.backend.wait(arrived)
        seconds = self.helper.run(host, plan, steps)
        for name in MOVING:
            self.backend.send(getattr(host, name), getattr(state, name))
        return seconds

    def _run_on_both(self, state: State, plan: StepPlan, steps: int) -> Callable[[], float]:
        self._read()
        before = self.force_seconds
        actions = KernelActions(self, state)
        for _ in range(steps):
            plan.perform(actions)
        self.backend.synchronize()
        self._read()
        seconds = self.force_seconds - before
        return lambda: seconds

    # --- the share --------------------------------------------------------------------------------

    def choose(self, state: State) -> Choice:
        """Measure which share is the fastest for the present bodies, and take it from now on."""
        rates = self.rates(state)
        interactions = self.owned * self.number
        tried = {0.0: interactions / rates.main}
        share = rates.predicted
        for _ in range(REFINEMENTS):
            known = any(abs(share - other) < WORTHWHILE * share for other in tried)
            if known or not 0 < round(share * self.owned) < self.owned:
                break
            tried[share] = self.seconds(state, share)
            share = self.readings.balanced(share)
        if interactions / rates.helper < HOPELESS * tried[0.0]:
            tried[1.0] = self.seconds(state, 1.0)
        self.choice = Choice(rates, tried, best_share(tried))
        self._take(self.choice.share)
        self.adapting = True
        return self.choice

    def rates(self, state: State) -> Rates:
        """Measure the rate of each device by itself, for the present bodies."""
        return Rates(self.owned * self.number / self.seconds(state, 0.0), self._helper_rate(state))

    def seconds(self, state: State, share: float) -> float:
        """Return the seconds of a force with a share; the bodies do not move."""
        before = (self.share, self.adapting)
        self.fix(share)
        try:
            once = self._forces(state, 1)
            if once > LONG_FORCE:
                return once
            first = self._forces(state, 2) / 2
            if first > SHORTEST_MEASUREMENT:
                return first
            number = int(min(max(SHORTEST_MEASUREMENT / max(first, 1e-9), 2), MOST_FORCES))
            return min(self._forces(state, number) / number for _ in range(2))
        finally:
            self.share, self.adapting = before  # the readings stay for `choose`
            self.backend.helping = bool(self.share)

    def _forces(self, state: State, number: int) -> float:
        """Return the seconds of `number` forces, done as steps do them.

        A rank among others prepares each force anew.
        """
        start = self.backend.mark()
        if self.owned == self.number:
            self.run(state, FORCE_ALONE, number)
        else:
            self._run_on_both(state, FORCE_ALONE, number)
        return self.backend.elapsed(start, self.backend.mark())

    def _helper_rate(self, state: State) -> float:
        """Return the helper's rate, measured with as many bodies as take long enough."""
        host = self.split.host(state)
        count = min(SAMPLE, self.owned)
        self.backend.wait(self.backend.fetch(state.position, host.position))
        self.helper.pack(host)
        while True:
            seconds = self._helper_seconds(self.split.last(host, count))
            if seconds > SHORTEST_MEASUREMENT / 4 or count == self.owned:
                return count * self.number / seconds
            count = min(4 * count, self.owned)

    def _helper_seconds(self, part: State) -> float:
        """Return the shortest time of three forces on the helper alone."""
        device = self.backend.helper
        return min(seconds_of(device, lambda: self.helper.accelerations(part)) for _ in range(3))

    def _take(self, share: float) -> None:
        """Begin to use a share, of which nothing is measured yet."""
        self.share = share
        self.readings = Readings()
        self.backend.helping = self.count > 0
