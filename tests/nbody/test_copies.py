"""Copies of the state among the steps: each has the bits of the state at its step."""

import numpy as np
import pytest
from support.bodies import make_backend, make_gravity, make_model
from support.ranks import this_rank

from hybrid_nbody.nbody.copies import Motions, StateCopies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.stages import EULER, LEAPFROG, YOSHIDA4, StepPlan


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("number", [1, 3, 130])
@pytest.mark.parametrize("stages", [EULER, LEAPFROG, YOSHIDA4])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_copy_the_state_in_batches_of_any_length(precision, number, stages, threads):
    backend = make_backend("cpu", threads)
    bodies = plummer(number, seed=3)
    one, other = (make_gravity(backend, bodies, precision, 0.05) for _ in range(2))
    plan = StepPlan(stages, 1e-3)
    copies = StateCopies(3, Motions(*(np.zeros((13, number, 3)) for _ in range(2))))
    for steps in (2, 4, 1, 1, 1, 26, 4):
        one.kernels.run_with_copies(one.state, plan, steps, copies)
    assert copies.steps_left == 0
    for k in range(13):
        other.kernels.run(other.state, plan, 3)
        np.testing.assert_array_equal(copies.memory.position[k], other.state.own_position)
        np.testing.assert_array_equal(copies.memory.velocity[k], other.state.velocity)


def test_where_a_force_is_long_nothing_is_copied_among_steps():
    gravity = make_gravity(make_backend("cpu"), plummer(9, seed=3), "single", 0.05)
    assert gravity.run_with_copies
    gravity.kernels.is_long = True
    assert gravity.run_with_copies is None


@pytest.mark.parametrize("names", [["position"], ["velocity"], ["position", "velocity"]])
def test_a_model_sorts_its_bodies_among_the_copies_as_without_them(names):
    one, other = (make_model(plummer(40, seed=3), 1e-3, this_rank()) for _ in range(2))
    assert one.queue_with_copies(20, {}) is None
    memory = {f"bodies/{name}": np.zeros((30, 40, 3)) for name in names}
    assert one.queue_with_copies(20, memory | {"bodies/activity": memory}) is None
    assert one.step == 0
    one.advance(7)
    one.queue_with_copies(20, memory)()
    assert one.step == 607
    other.advance(7)
    for k in range(30):
        other.advance(20)
        for name, copies in memory.items():
            np.testing.assert_array_equal(copies[k], other.fields()[name].array)
