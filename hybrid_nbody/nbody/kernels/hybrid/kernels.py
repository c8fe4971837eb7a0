"""The pair force on a device and its helper at the same time; twin of ``cpu`` and ``gpu``.

The helper computes the last of a rank's own bodies on the host. Positions come down beside the main
device's work, and the accelerations go up when they are done; the main device computes the other
bodies meanwhile.
"""

from dataclasses import dataclass, replace

import numpy as np

from hybrid_nbody.nbody.integrators.stages import FORCE, StepPlan
from hybrid_nbody.nbody.kernels import make_kernels, make_symmetric_kernels
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.kernels.gpu.exact_sums import is_applicable
from hybrid_nbody.nbody.kernels.hybrid.share import (
    FORCES_BETWEEN,
    WORTHWHILE,
    Choice,
    Rates,
    Readings,
    best_share,
)
from hybrid_nbody.nbody.state import State

FORCE_ALONE = StepPlan((FORCE,), 0.0)
"""A step that moves nothing."""

TRIAL_SECONDS = 0.02
"""What a measurement takes at least, unless one force takes longer."""

LONG_SECONDS = 0.5
"""A force that takes longer is measured once."""

MOST_TRIALS = 200
SAMPLE = 256
"""Bodies with which the helper's rate is measured first."""

REFINEMENTS = 3
"""Shares that are tried beside the devices alone."""

HOPELESS = 2.0
"""A device that would take so many times as long is not tried alone."""


@dataclass(frozen=True)
class Parts:
    """A rank's own bodies in two states, on the main device and on the host, that see the same sources."""

    main: State
    helper: State


class Kernels:
    """Gravity on two devices; methods as in the twins, `hybrid_nbody.nbody.kernels.cpu.kernels.Kernels` and the GPU's.

    Parameters
    ----------
    backend : HybridBackend
        Both devices, and the share that was asked for.
    state, pair_force
        As in the twins; the state is the main device's.

    Attributes
    ----------
    share : float or None
        The present share of the helper; None until it is chosen, at the first force.
    choice : Choice or None
        What was measured where the share was chosen here.
    """

    def __init__(self, backend, state, pair_force):
        self.backend = backend
        self.main, self.helper = (
            make_kernels(device, state, pair_force) for device in backend.devices
        )
        self.alone = self._kernels_alone(state, pair_force)
        self.number = len(state.mass)
        self.owned = len(state.velocity)
        self.host = (None, None, None)
        self.parts = (None, None)
        self.room = {}
        self.force_seconds = 0.0
        self.share = self.choice = self.arrived = self.unread = None
        self.adapting = False
        self.readings = Readings()
        if backend.cpu_share != "auto" or not self.owned:
            self.fix(backend.cpu_share if self.owned else 0.0)

    def _kernels_alone(self, state, pair_force):
        """Return the kernels with which the main device does everything: each pair once, where a run on it would."""
        device = self.backend.devices[0]
        every = len(state.velocity) == len(state.mass)
        law = pair_force
        mass = device.download(state.mass)
        if not every or not is_applicable([device.kind], law.precision, mass, law.softening):
            return self.main
        return make_symmetric_kernels(device, state, pair_force)

    def fix(self, share: float) -> None:
        """Let the helper take `share` of the own bodies from now on."""
        self._take(float(share))
        self.adapting = False

    run_hermite = None

    @property
    def hermite(self):
        """The formulas of Hermite's scheme, on the main device."""
        return self.main.hermite

    @property
    def remark(self) -> str:
        """What the log says of the share."""
        return str(self.choice or f"cpu_share {self.share:g}, as asked for") if self.owned else ""

    @property
    def count(self) -> int:
        """How many of the own bodies are the helper's."""
        return round(self.share * self.owned)

    # --- forces -----------------------------------------------------------------------------------

    def pack(self, state):
        """Prepare the sources from the positions of all bodies."""
        if self.share is None:
            self.choose(state)
        if self.adapting and self.readings.forces >= FORCES_BETWEEN and self.count < self.owned:
            self._take(self.readings.adapted(self.share))
        if not self.count:
            self.alone.pack(state)
            return
        self.arrived = self.backend.fetch(state.position, self._host(state).position)
        self.begun = self.backend.mark()
        if self.count < self.owned:
            self.main.pack(state)

    def accelerations(self, state):
        """Fill ``state.acceleration`` for this rank's bodies, after `pack`."""
        if not self.count:
            self.alone.accelerations(state)
            return
        parts = self._parts(state)
        if self.count < self.owned:
            self.main.accelerations(parts.main)
        done = self.backend.mark()
        helper = self._help(parts.helper, self.helper.accelerations)
        self.backend.send(parts.helper.acceleration, state.acceleration[-self.count :])
        self.unread = self.begun, done, self.backend.mark(), helper

    def _help(self, state, compute, *arguments):
        """Let the helper `compute` its part once the positions are there; return the seconds that it took."""
        self.backend.wait(self.arrived)
        self._read()  # the force before is done: positions come after it
        start = self.backend.helper.mark()
        self.helper.pack(state)
        compute(state, *arguments)
        return self.backend.helper.elapsed(start, self.backend.helper.mark())

    def _read(self):
        """Take note of what the last force took, which must be done."""
        if self.unread is not None:
            begun, done, joined, helper = self.unread
            whole = self.backend.elapsed(begun, joined)
            self.readings.add(self.backend.elapsed(begun, done), helper, whole)
            self.force_seconds += whole
            self.unread = None

    def accelerations_and_jerks(self, state, velocity, jerk):
        """Fill ``state.acceleration`` and `jerk` for this rank's bodies; see the twin."""
        if not self.count:
            self.alone.accelerations_and_jerks(state, velocity, jerk)
            return
        parts = self._parts(state)
        cut = self.owned - self.count
        moving = self._room("moving", velocity.shape)
        result = self._room("jerk", jerk.shape)[cut:]
        self.arrived = self.backend.fetch(velocity, moving)  # after the positions
        if cut:
            self.main.accelerations_and_jerks(parts.main, velocity, jerk[:cut])
        self._help(parts.helper, self.helper.accelerations_and_jerks, moving, result)
        self.backend.send(parts.helper.acceleration, state.acceleration[cut:])
        self.backend.send(result, jerk[cut:])

    def potential(self, state, result):
        """Fill `result` with the potential at this rank's bodies, after `pack`."""
        if not self.count:
            self.alone.potential(state, result)
            return
        parts = self._parts(state)
        cut = self.owned - self.count
        if cut:
            self.main.potential(parts.main, result[:cut])
        found = self._room("potential", result.shape)[cut:]
        self._help(parts.helper, self.helper.potential, found)
        self.backend.send(found, result[cut:])

    def kick(self, state, duration):
        """Add the acceleration over `duration` to the velocities."""
        self.main.kick(state, duration)

    def drift(self, state, duration):
        """Add the velocity over `duration` to the positions."""
        self.main.drift(state, duration)

    # --- steps ------------------------------------------------------------------------------------

    def run(self, state, plan, steps):
        """Do whole steps of a rank that owns every body; parameters and result as in the twins.

        A device that takes everything steps by itself, without coming back to Python.
        """
        if self.share is None:
            self.choose(state)
        if not self.count:
            return self.alone.run(state, plan, steps)
        step = self._run_on_helper if self.count == self.owned else self._run_on_both
        return step(state, plan, steps)

    def _run_on_helper(self, state, plan, steps):
        host = self._host(state)
        for name in ("position", "velocity", "acceleration"):
            arrived = self.backend.fetch(getattr(state, name), getattr(host, name))
        self.backend.wait(arrived)
        seconds = self.helper.run(host, plan, steps)
        for name in ("position", "velocity", "acceleration"):
            self.backend.send(getattr(host, name), getattr(state, name))
        return seconds

    def _run_on_both(self, state, plan, steps):
        self._read()
        before = self.force_seconds
        actions = KernelActions(self, state)
        for _ in range(steps):
            plan.perform(actions)
        self.backend.synchronize()
        self._read()
        return self.force_seconds - before

    # --- the share --------------------------------------------------------------------------------

    def choose(self, state) -> Choice:
        """Measure which share is the fastest for the bodies as they are, and take it from now on."""
        rates = self.rates(state)
        whole = self.owned * self.number
        tried = {0.0: whole / rates.main}
        share = rates.predicted
        for _ in range(REFINEMENTS):
            known = any(abs(share - other) < WORTHWHILE * share for other in tried)
            if known or not 0 < round(share * self.owned) < self.owned:
                break
            tried[share] = self.seconds(state, share)
            share = self.readings.balanced(share)
        if whole / rates.helper < HOPELESS * tried[0.0]:
            tried[1.0] = self.seconds(state, 1.0)
        self.choice = Choice(rates, tried, best_share(tried))
        self._take(self.choice.share)
        self.adapting = True
        return self.choice

    def rates(self, state) -> Rates:
        """Measure the rate of each device by itself, for the bodies as they are."""
        return Rates(self.owned * self.number / self.seconds(state, 0.0), self._helper_rate(state))

    def seconds(self, state, share: float) -> float:
        """Return the seconds of a force with a share; the bodies stay where they are."""
        before = self.share, self.adapting
        self.fix(share)
        try:
            if (once := self._forces(state, 1)) > LONG_SECONDS:
                return once
            first = self._forces(state, 2) / 2
            if first > TRIAL_SECONDS:
                return first
            number = int(min(max(TRIAL_SECONDS / max(first, 1e-9), 2), MOST_TRIALS))
            return min(self._forces(state, number) / number for _ in range(2))
        finally:
            self.share, self.adapting = before  # the readings stay, to be looked at
            self.backend.helping = bool(self.share)

    def _forces(self, state, number):
        """Return the seconds of so many forces, done as steps do them: a rank among others prepares each anew."""
        start = self.backend.mark()
        if self.owned == self.number:
            self.run(state, FORCE_ALONE, number)
        else:
            self._run_on_both(state, FORCE_ALONE, number)
        return self.backend.elapsed(start, self.backend.mark())

    def _helper_rate(self, state):
        """Return the helper's rate, measured with as many bodies as take long enough."""
        host = self._host(state)
        device = self.backend.helper
        count = min(SAMPLE, self.owned)
        self.backend.wait(self.backend.fetch(state.position, host.position))
        self.helper.pack(host)
        while True:
            part = self._last(host, count)
            seconds = []
            for _ in range(3):
                start = device.mark()
                self.helper.accelerations(part)
                seconds.append(device.elapsed(start, device.mark()))
            if min(seconds) > TRIAL_SECONDS / 4 or count == self.owned:
                return count * self.number / min(seconds)
            count = min(4 * count, self.owned)

    def _take(self, share):
        self.share = share
        self.readings = Readings()
        self.backend.helping = self.count > 0

    # --- the two parts ----------------------------------------------------------------------------

    def _host(self, state):
        """Return the helper's copy of a state: sources in their present order; positions are fetched for each force."""
        known, orders, host = self.host
        if known is not state or orders != state.orders[0]:
            down = {name: self.backend.download(getattr(state, name)) for name in ON_HOST}
            moving = {name: self._room(name, getattr(state, name).shape) for name in MOVING}
            host = replace(state, **down, **moving)
            self.host = (state, int(state.orders[0]), host)
            self.parts = (None, None)
        return host

    def _parts(self, state) -> Parts:
        """Return the own bodies of each device."""
        host = self._host(state)  # a new one takes the parts with it
        if self.parts[0] != self.count:
            self.parts = self.count, Parts(self._first(state, host), self._last(host, self.count))
        return self.parts[1]

    def _first(self, state, host):
        """Return the own bodies but the helper's."""
        cut = self.owned - self.count
        own_order = self.backend.upload(host.own_order[host.own_order < cut])
        return _share_of(state, slice(0, cut), own_order)

    def _last(self, host, count):
        """Return the last `count` bodies on the host."""
        cut = self.owned - count
        return _share_of(
            host, slice(cut, self.owned), host.own_order[host.own_order >= cut] - np.int32(cut)
        )

    def _room(self, name, shape):
        """Return memory of the host that copies go to and come from, made once."""
        if name not in self.room:
            self.room[name] = self.backend.pinned(shape, "f8")
        return self.room[name]


ON_HOST = ("mass", "order", "starts", "chunks", "source_index", "own_order")
MOVING = ("position", "velocity", "acceleration")


def _share_of(state, rows: slice, own_order) -> State:
    """Return `state` with some of its own bodies; the arrays are views."""
    return replace(
        state,
        own=slice(state.own.start + rows.start, state.own.start + rows.stop),
        velocity=state.velocity[rows],
        acceleration=state.acceleration[rows],
        source_index=state.source_index[rows],
        own_order=own_order,
    )
