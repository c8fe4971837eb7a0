"""Work that is repeated: a recording of it does the same at each step."""

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from support.bodies import make_backend
from support.staggered import (
    CAVITY,
    PERIODIC,
    TUNNEL,
    WALLS,
    advance,
    make_stepper,
    own,
    put,
)

from hybrid_nbody.backends.cells.cpu import Program
from hybrid_nbody.fluid.obstacles import Box, Sphere
from hybrid_nbody.fluid.staggered.repeats import Repeats
from hybrid_nbody.fluid.staggered.state import Physics
from hybrid_nbody.parallel.exchange.halo import FullGrid, HaloExchange

CELLS = (10, 9, 8)
STUCK = Sphere((0.5, 0.4, 0.4), 0.2)
SLIPPERY = Sphere((0.5, 0.4, 0.4), 0.2, wall="free-slip")
STEPS = 9
"""The arrays of the velocity change places in three steps."""

FACTORS = {4: 16.0, 7: 1.0 / 16.0}
"""By which the velocity grows before some of them."""

LIFT = {"density": (0.0, 0.5, 0.0)}


class Recordings:
    """Notes what work does when it is first seen, and does that when it is seen again."""

    def __init__(self):
        self.known = {}
        self.noted = None
        self.used = Counter()
        self.counts = []  # of each call: how often its key has been used

    def do(self, action, arrays, *others):
        """Stand in for `Repeats.do`; the first time as on a GPU, which takes the work down."""
        key = (*(array.ctypes.data for array in arrays), *others)
        self.used[key] += 1
        self.counts.append(self.used[key])
        if key not in self.known:
            self.noted = []
            action()
            self.known[key], self.noted = self.noted, None
            return
        for call, given, more in self.known[key]:
            call(*given, **more)

    @contextmanager
    def noting(self, monkeypatch):
        """Let functions of a cell, and what ranks exchange, be noted."""
        with monkeypatch.context() as patch:
            patch.setattr(Program, "run", self._noted(Program.run))
            for halo in (FullGrid, HaloExchange):
                for exchange in ("windows", "fill"):
                    patch.setattr(halo, exchange, self._noted(getattr(halo, exchange)))
            patch.setattr(Program, "reduce", self._refused(Program.reduce))
            patch.setattr(Repeats, "do", lambda repeats, *given: self.do(*given))
            yield

    def _noted(self, function):
        def call(*given, **more):
            if self.noted is not None:
                self.noted.append((function, given, more))
            return function(*given, **more)

        return call

    def _refused(self, function):
        def call(*given, **more):
            assert self.noted is None, f"{given[1]} waits for the device"
            return function(*given, **more)

        return call


def physics_of(second_order):
    """Return all that can move a fluid."""
    return Physics(0.01, {"density": 1e-3}, LIFT, second_order, confinement=0.1, conserve=True)


def fluid_of(backend, communicator, faces, physics, obstacles):
    """Return a fluid in motion."""
    stepper = make_stepper(backend, communicator, CELLS, faces, physics, obstacles=obstacles)
    put(stepper, lambda axis, x, y, z: np.sin(9 * x + 5 * y + 7 * z + axis))
    stepper.state.scalars["density"][1:-1, 2:5, 2:5] = 1.0
    return stepper


def accelerate(stepper, factor):
    """Let paths reach more planes in a step of the same length, or fewer."""
    for component in stepper.state.velocity:
        component *= factor


def state_of(stepper):
    """Return all fields of a fluid."""
    state = stepper.state
    arrays = (*state.velocity, state.pressure, *state.scalars.values())
    return [own(stepper, array) for array in arrays]


def assert_recordings_do_the_work(communicator, monkeypatch, second_order, faces, obstacles):
    """Compare a fluid whose work is repeated with one whose work is done each time."""
    backend = make_backend("cpu", threads=1)
    given = (backend, communicator, faces, physics_of(second_order), obstacles)
    steppers = [fluid_of(*given), fluid_of(*given)]
    recordings = Recordings()
    lengths = [0.01, 0.01, 0.007, *[0.01] * (STEPS - 3)]  # one step is shorter
    for number, length in enumerate(lengths):
        time = sum(lengths[:number])
        for stepper in steppers:
            accelerate(stepper, FACTORS.get(number, 1.0))
        advance(steppers[0], time, length)
        with recordings.noting(monkeypatch):
            advance(steppers[1], time, length)
    for found, expected in zip(*map(state_of, reversed(steppers)), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert max(recordings.used.values()) >= 2
    return recordings


@pytest.mark.parametrize("obstacles", [(), (STUCK,), (SLIPPERY,)], ids=["plain", "stuck", "slips"])
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, CAVITY, TUNNEL])
@pytest.mark.parametrize("second_order", [True, False])
def test_recordings_do_what_the_work_does(alone, monkeypatch, second_order, faces, obstacles):
    assert_recordings_do_the_work(alone, monkeypatch, second_order, faces, obstacles)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize(
    ("second_order", "faces", "obstacles"),
    [(True, PERIODIC, ()), (True, TUNNEL, (STUCK,)), (False, WALLS, (SLIPPERY,))],
    ids=["plain", "stuck", "slips"],
)
def test_so_do_those_of_ranks(communicator, monkeypatch, second_order, faces, obstacles):
    assert_recordings_do_the_work(communicator, monkeypatch, second_order, faces, obstacles)


@pytest.mark.mpi(min_size=2)
def test_ranks_record_and_replay_together(communicator, monkeypatch):
    """What only the planes of one rank reach, a thin plate, is no reason to record anew there."""
    plate = Box((0.5, 0.45, 0.1), (0.6, 0.6, 0.02))
    given = (communicator, monkeypatch, False, WALLS, (plate,))
    counts = communicator.gather(assert_recordings_do_the_work(*given).counts)
    assert all(of_a_rank == counts[0] for of_a_rank in counts)
