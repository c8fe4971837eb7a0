"""Copies of the state among the steps: each has the bits of the state at its step."""

import numpy as np
import pytest
from support.bodies import make_backend, make_gravity, make_model
from support.ranks import this_rank

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.copies import Motions, StateCopies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.model import MOVING
from hybrid_nbody.nbody.stages import EULER, LEAPFROG, YOSHIDA4, StepPlan
from hybrid_nbody.simulation.snapshots import Snapshots


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


@pytest.mark.parametrize("number", [2, 3, 40])
def test_steps_of_substeps_are_copied_at_their_ends(number):
    bodies = plummer(number, seed=3)
    one, other = (
        make_model(bodies, 0.01, this_rank(), integrator="hermite4", accuracy=1e-4)
        for _ in range(2)
    )
    one.advance(2)
    other.advance(2)
    memory = {name: np.zeros((30, number, 3)) for name in MOVING}
    one.queue_with_copies(20, memory)()
    assert one.step == 602
    for k in range(30):
        other.advance(20)
        for name, copies in memory.items():
            np.testing.assert_array_equal(copies[k], other.fields()[name].array)
    assert one.integrator.forces == other.integrator.forces
    assert one.scalars() == other.scalars()


def test_where_steps_take_long_the_host_looks_after_the_next_copy():
    one, other = (
        make_model(plummer(3, seed=3), 0.01, this_rank(), integrator="hermite4") for _ in range(2)
    )
    run = one.force.kernels.run_hermite

    def pausing(state, scratch, plan, point, steps, copies):
        return run(state, scratch, plan, point, min(steps, 7), copies)

    one.force.kernels.run_hermite = pausing
    memory = {name: np.zeros((30, 3, 3)) for name in MOVING}
    one.queue_with_copies(5, memory)()
    assert one.step == 10
    one.queue_with_copies(7, {name: copies[2:] for name, copies in memory.items()})()
    assert one.step == 17
    for k, steps in enumerate((5, 5, 7)):
        other.advance(steps)
        np.testing.assert_array_equal(memory["bodies/position"][k], other.bodies.position)
    assert one.scalars() == other.scalars()


def test_copies_before_a_step_that_cannot_be_taken_are_counted():
    position = np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]])
    bodies = Bodies(position, np.zeros((2, 3)), np.ones(2))
    one, other = (make_model(bodies, 0.01, this_rank(), integrator="hermite4") for _ in range(2))
    snapshots = Snapshots(one, 400)
    with pytest.raises(NumericalError):
        snapshots.take_ahead(1, 400)
    assert len(snapshots.steps) > 20
    assert snapshots.steps.tolist() == list(range(1, one.step + 1))
    assert snapshots.times.tolist() == [0.01 * step for step in snapshots.steps]
    for position in snapshots.copies["bodies/position"]:
        other.advance(1)
        np.testing.assert_array_equal(position, other.bodies.position)


def test_where_a_force_is_long_nothing_is_copied_among_steps():
    gravity = make_gravity(make_backend("cpu"), plummer(9, seed=3), "single", 0.05)
    assert gravity.run_with_copies
    gravity.kernels.is_long = True
    assert gravity.run_with_copies is None


def test_a_model_sorts_its_bodies_among_the_copies_as_without_them():
    one, other = (
        make_model(plummer(40, seed=3), 1e-3, this_rank(), precision="single") for _ in range(2)
    )
    assert one.force.sorted
    assert one.queue_with_copies(20, {}) is None
    memory = {name: np.zeros((30, 40, 3)) for name in MOVING}
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
