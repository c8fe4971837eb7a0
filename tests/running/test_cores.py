"""A run on one rank leaves other processes their cores; its bits stay the same."""

import itertools
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import hybrid_nbody
from hybrid_nbody.backends.cpu import usable_cores
from hybrid_nbody.backends.crowding import ThreadChoice
from hybrid_nbody.running import cores
from hybrid_nbody.running.cores import cores_events

GRAVITY = {
    "model": "nbody",
    "bodies": {"kind": "plummer", "n": 300},
    "gravity": {"softening": 0.05},
    "time": {"dt": 0.01, "steps": 12},
}
FLUID = {
    "model": "fluid",
    "grid": {"cells": [16, 16, 16]},
    "sources": {"events": [{"step": 0, "velocity": [1, 2, 3]}]},
    "time": {"dt": 0.1, "steps": 6},
}


def test_what_is_done_is_said():
    answers = iter(["fewer", ""])
    said = []
    device = SimpleNamespace(makes_way=True, make_way=lambda: next(answers))
    [event] = cores_events(device, said.append)
    event.action()
    event.action()
    assert said == ["fewer"]
    assert cores_events(SimpleNamespace(makes_way=False), said.append) == []


@pytest.mark.skipif(usable_cores() < 2, reason="one core has one thread")
@pytest.mark.parametrize(
    ("config", "field"), [(GRAVITY, "positions"), (FLUID, "velocity")], ids=["gravity", "fluid"]
)
def test_bits_do_not_depend_on_when_threads_give_way(config, field, monkeypatch):
    expected = final(config, field)
    monkeypatch.setattr(cores, "LOOK_SECONDS", 0.0)
    threads = itertools.cycle([1, 2])
    looks = []

    def update(choice):
        choice.threads = next(threads)
        looks.append(choice.threads)
        return choice.threads

    monkeypatch.setattr(ThreadChoice, "update", update)
    found = final(config, field)
    numba.set_num_threads(usable_cores())
    np.testing.assert_array_equal(found, expected)
    assert len(looks) >= 4


def final(config, field):
    simulation = hybrid_nbody.Simulation({**config, "compute": {"backend": "cpu"}})
    simulation.run()
    return np.array(getattr(simulation, field))
