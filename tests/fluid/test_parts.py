"""Steps in parts: their lengths, frames at exact times, and the same bits on any ranks."""

import math
import time
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ranks import this_rank

from hybrid_nbody.config import loader
from hybrid_nbody.config.loader import ConfigError, dump
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.config_time import DividedTime
from hybrid_nbody.fluid.parts import MOST_PARTS, Limits, parts_of
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.schedule import AtStep, EveryTime

# --- lengths --------------------------------------------------------------------------------------


def test_a_step_that_is_short_enough_is_one_part():
    assert list(parts_of(0.1, lambda: 0.1)) == [0.1]
    assert list(parts_of(0.1, lambda: 7.0)) == [0.1]


def test_parts_are_equal_where_the_limit_stays():
    assert list(parts_of(1.0, lambda: 0.3)) == [0.25] * 4


def test_rounding_makes_no_part_of_its_own():
    assert len(list(parts_of(0.1 * 3, lambda: 0.1))) == 3


def test_parts_follow_the_speed():
    limits = iter([1.0, 0.5, 0.1, 0.3])
    parts = list(parts_of(1.5, lambda: next(limits)))
    np.testing.assert_allclose(parts, [0.75, 0.375, 0.09375, 0.28125], rtol=1e-15, atol=0)


@given(st.floats(1e-3, 1e3), st.lists(st.floats(1e-2, 2.0), min_size=1, max_size=9))
def test_parts_are_the_step_and_no_longer_than_allowed(step, shares):
    allowed = [step * share for share in shares]
    asked = []

    def limit():
        asked.append(allowed[len(asked) % len(allowed)])
        return asked[-1]

    parts = list(parts_of(step, limit))
    assert math.isclose(sum(parts), step, rel_tol=1e-12)
    assert all(part <= limit * (1 + 2e-9) for part, limit in zip(parts, asked, strict=True))


@pytest.mark.parametrize(
    ("speed", "length"),
    [(0.0, 0.1), (1.0, 0.1), (4.0, 0.0625), (math.inf, 0.1), (math.nan, 0.1)],
)
def test_the_fastest_fluid_crosses_the_cells_that_it_may(speed, length):
    assert Limits(cfl=2.0, longest=0.1, spacing=0.125).length_at(speed) == length


@pytest.mark.parametrize("allowed", [1e-9, 5e-324])
def test_a_step_of_too_many_parts_is_refused(allowed):
    with pytest.raises(NumericalError, match=f"needs more than {MOST_PARTS} parts") as caught:
        list(parts_of(1.0, lambda: allowed))
    assert caught.value.shared


def test_parts_that_become_ever_shorter_are_refused_as_well():
    left = [1.0]

    def allowed():
        part = left[0] / 9000
        left[0] -= part
        return part

    with pytest.raises(NumericalError, match="a step of 1 needs more than"):
        list(parts_of(1.0, allowed))


# --- a model with such steps ----------------------------------------------------------------------

LIMITS = Limits(cfl=0.5, longest=0.2, spacing=0.1)
DT = 0.25


class Slowing:
    """Cells whose speeds v fall as v' = -v^2, in parts by the largest speed of all ranks."""

    number = 7

    def __init__(self, communicator):
        self.communicator = communicator
        cuts = np.linspace(0, self.number, communicator.size + 1).astype(int)
        self.own = slice(*cuts[communicator.rank : communicator.rank + 2])
        self.v = np.linspace(0.1, 3.0, self.number)[self.own]
        self.step = 0
        self.taken = []

    @property
    def time(self):
        return self.step * DT

    def allowed(self):
        slowest = np.array([-self.v.max(initial=0.0)])
        return LIMITS.length_at(-self.communicator.minimum(slowest)[0])

    def advance(self, steps):
        for _ in range(steps):
            for part in parts_of(DT, self.allowed):
                self.v = self.v - part * self.v**2
                self.taken.append(part)
            self.step += 1

    def state(self):
        return np.concatenate(self.communicator.gather(self.v) or [[]])


class NoSignals:
    """Nobody asks to stop."""

    received = ""


def frames_of(model, last):
    """Return the times and states at which frames are due, every half a unit of time."""
    loop = TimeLoop(model, model.communicator, NoSignals(), time.monotonic())
    frames = []
    loop.events = [
        Event("frame", EveryTime(0.5, DT), lambda: frames.append((model.time, model.state()))),
        Event("finish", AtStep(last), lambda: loop.stop("finished")),
    ]
    loop.run()
    return frames


def test_frames_come_at_exact_times_and_parts_grow_as_the_fluid_slows(alone):
    model = Slowing(alone)
    assert [at for at, _ in frames_of(model, 8)] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert len(model.taken) > 8
    assert model.taken[0] < 0.02 < 0.08 < model.taken[-1]


def test_a_run_that_goes_on_takes_the_parts_that_it_would_have_taken(alone):
    whole, begun, resumed = (Slowing(alone) for _ in range(3))
    frames = frames_of(whole, 8)
    frames_of(begun, 3)
    resumed.v, resumed.step = begun.v, begun.step
    later = frames_of(resumed, 8)
    assert begun.taken + resumed.taken == whole.taken
    assert [(at, v.tobytes()) for at, v in later] == [(at, v.tobytes()) for at, v in frames[2:]]


@pytest.mark.mpi
def test_ranks_take_the_same_parts(communicator):
    model = Slowing(communicator)
    alone = Slowing(this_rank())
    frames = frames_of(model, 8)
    expected = frames_of(alone, 8)
    assert model.taken == alone.taken
    if communicator.is_root:
        assert [v.tobytes() for _, v in frames] == [v.tobytes() for _, v in expected]


# --- the section ----------------------------------------------------------------------------------


class Timed(ModelConfig):
    """A model with the section."""

    model: Literal["timed"]
    time: DividedTime


MODELS = {"timed": SimpleNamespace(schema=Timed)}


def timed(text, *overrides):
    """Return the section from the YAML within its braces, once it has been written and read."""
    read = loader.loads(f"model: timed\ntime: {{{text}}}\n", "x.yaml", overrides, models=MODELS)
    assert loader.loads(dump(read), "y.yaml", models=MODELS) == read
    return read.time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dt: 0.1, steps: 3", (0.1, None, 0.1)),
        ("cfl: 2, dt_max: 0.1, end: 3", (0.1, 2.0, 0.1)),
        ("cfl: 2, dt: 1, dt_max: 0.1, end: 3", (1.0, 2.0, 0.1)),
        ("cfl: 2, dt: 1, end: 3", (1.0, 2.0, 1.0)),
    ],
)
def test_a_step_and_its_parts(text, expected):
    time = timed(text)
    assert (time.dt, time.cfl, time.longest_part) == expected


def test_the_end_is_a_whole_number_of_steps():
    assert timed("cfl: 2, dt_max: 0.1, end: 3").total_steps == 30


def test_the_step_of_a_written_configuration_stays_where_parts_become_shorter():
    stored = "dt: 0.1, cfl: 2, dt_max: 0.1, end: 3"
    assert timed(stored, "time.dt_max=0.05").dt == 0.1
    assert timed(stored, "time.dt_max=0.05").longest_part == 0.05


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("steps: 3", ["dt: is missing; must be a number, greater than 0"]),
        ("cfl: 2, steps: 3", ["dt: is missing; must be a number, greater than 0"]),
        ("cfl: 0, dt: 1, steps: 3", ["cfl: must be greater than 0 (got 0)"]),
        ("cfl: 2, dt_max: -1, steps: 3", ["dt_max: must be greater than 0 (got -1)"]),
        (
            "cfl: 2, dt_max: '1', end: 3",
            ["dt_max: must be a number, greater than 0, or null (got '1')"],
        ),
        (
            "dt: 1, dt_max: 0.1, steps: 3",
            [
                "dt_max: is the longest part of a step, and without cfl steps have none; leave it "
                "out (got 0.1)"
            ],
        ),
    ],
)
def test_what_is_bad_is_named(text, messages):
    with pytest.raises(ConfigError) as caught:
        timed(text)
    assert str(caught.value).split("\n") == [f"x.yaml:2: time.{message}" for message in messages]
