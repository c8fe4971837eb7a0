"""Steps from force to force are those of the plan, in graphs as well."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import make_backend, make_gravity

from hybrid_nbody.backends.workspace import Workspace
from hybrid_nbody.nbody.copies import Motion, StateCopies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.kernels.gpu.steps import STEPS_OF_GRAPHS, StepGraphs
from hybrid_nbody.nbody.stages import EULER, FORCE, LEAPFROG, YOSHIDA4, StepPlan


class Noted:
    """Kernels that note what they are asked for; a graph repeats what was noted."""

    def __init__(self):
        self.done = []
        self.backend = SimpleNamespace(recorded=self.recorded, capture=self.recorded)
        self.graphs = 0

    def recorded(self, action):
        self.graphs += 1
        return action

    def prepare_force(self, state, number):
        self.forces = number

    def step_force(self, state, moves, number):
        assert number % 2 == self.forces % 2
        self.forces += 1
        self.done.append("force")
        moves.perform(self, state)

    def kick(self, state, duration):
        self.done.append(("kick", duration))

    def drift(self, state, duration):
        self.done.append(("drift", duration))


def stages_of(plan, steps):
    """Return the stages of some steps, one after another."""
    one = [
        "force" if stage == FORCE else (stage.action, stage.fraction * plan.dt)
        for stage in plan.stages
    ]
    return steps * one


@pytest.mark.parametrize("stages", [EULER, LEAPFROG, YOSHIDA4, (FORCE,)])
@pytest.mark.parametrize("steps", [1, 2, 3, *STEPS_OF_GRAPHS, 2 * max(STEPS_OF_GRAPHS) - 1])
def test_all_stages_are_done_in_their_order(stages, steps):
    plan = StepPlan(stages, 0.125)
    kernels = Noted()
    StepGraphs(kernels).run(object(), plan, steps)
    assert kernels.done == stages_of(plan, steps)


def test_graphs_are_made_once_for_a_state():
    plan = StepPlan(LEAPFROG, 0.125)
    kernels = Noted()
    graphs = StepGraphs(kernels)
    state = object()
    graphs.run(state, plan, max(STEPS_OF_GRAPHS) + 2)
    graphs.run(state, plan, 3 * max(STEPS_OF_GRAPHS) + 2)
    assert kernels.graphs == 2  # of many steps, and of one
    graphs.run(object(), plan, 2)
    assert kernels.graphs == 3


def test_as_many_steps_as_last_time_are_one_graph():
    plan = StepPlan(LEAPFROG, 0.125)
    kernels = Noted()
    graphs = StepGraphs(kernels)
    state = object()
    graphs.run(state, plan, 20)
    parts = set(graphs.graphs)
    for _ in range(2):
        graphs.run(state, plan, 20)
    assert set(graphs.graphs) == parts | {(plan, 20)}
    assert kernels.done == stages_of(plan, 60)
    graphs.run(state, plan, 21)
    graphs.run(state, plan, 100)
    graphs.run(state, plan, 100)
    assert (plan, 21) not in graphs.graphs
    assert (plan, 100) not in graphs.graphs


# ---- Copies of the state -------------------------------------------------------------------------


class Moving(Noted):
    """The same, which moves a body; its acceleration is the number of the force."""

    def __init__(self):
        super().__init__()
        self.backend.copy = lambda source, target: np.copyto(target, source)
        self.workspace = Workspace(np.zeros)
        self.state = SimpleNamespace(own_position=np.zeros((1, 3)), velocity=np.ones((1, 3)))

    def kick(self, state, duration):
        state.velocity += duration * len(self.done)
        super().kick(state, duration)

    def drift(self, state, duration):
        state.own_position += duration * state.velocity
        super().drift(state, duration)


def copies_by_hand(stages, interval, number):
    """Return the states after every `interval` steps, taken one step after another."""
    kernels = Moving()
    graphs = StepGraphs(kernels)
    states = []
    for step in range(1, interval * number + 1):
        graphs.run(kernels.state, StepPlan(stages, 0.125), 1)
        if step % interval == 0:
            states.append((kernels.state.own_position.copy(), kernels.state.velocity.copy()))
    return [np.array(values) for values in zip(*states, strict=True)]


@given(
    st.sampled_from([EULER, LEAPFROG, YOSHIDA4]),
    st.integers(1, 30),
    st.integers(1, 40),
    st.lists(st.integers(1, 100)),
)
def test_the_state_is_copied_after_every_interval(stages, interval, number, batches):
    kernels = Moving()
    graphs = StepGraphs(kernels)
    memory = Motion(*(np.full((number, 1, 3), np.nan) for _ in range(2)))
    copies = StateCopies(interval, memory)
    for steps in (*batches, interval * number):
        taken = min(steps, copies.steps)
        if taken:
            graphs.run_with_copies(kernels.state, StepPlan(stages, 0.125), taken, copies)
    assert copies.steps == 0
    position, velocity = copies_by_hand(stages, interval, number)
    np.testing.assert_array_equal(memory.position, position)
    np.testing.assert_array_equal(memory.velocity, velocity)
    assert kernels.done.count("force") == interval * number * StepPlan(stages, 1.0).forces


def test_several_copies_are_one_graph():
    kernels = Moving()
    graphs = StepGraphs(kernels)
    memory = Motion(*(np.zeros((17, 1, 3)) for _ in range(2)))
    graphs.run_with_copies(
        kernels.state, StepPlan(LEAPFROG, 0.125), 16 * 20 + 1, StateCopies(20, memory)
    )
    assert kernels.graphs == 1


# ---- On a GPU ------------------------------------------------------------------------------------

MASSES = {
    "equal": lambda number: 1 / number,
    "unequal": lambda number: np.linspace(0.5, 1.5, number) / number,
    "some without": lambda number: np.arange(number) % 3 / number,
}


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
@pytest.mark.parametrize("masses", MASSES)
@pytest.mark.parametrize("number", [130, 777, 3000])
@pytest.mark.parametrize("softening", [0.0, 0.05])
def test_steps_have_the_bits_of_their_stages(precision, masses, number, softening):
    bodies = plummer(number, seed=3)
    bodies.mass[:] = MASSES[masses](number)
    backend = make_backend("gpu")
    one, other = (make_gravity(backend, bodies, precision, softening) for _ in range(2))
    for steps, stages in ((4, YOSHIDA4), (11, LEAPFROG), (10, LEAPFROG), (10, LEAPFROG)):
        plan = StepPlan(stages, 1e-3)
        one.kernels.run(one.state, plan, steps)()
        for _ in range(steps):
            plan.perform(KernelActions(other.kernels, other.state))
    for name in ("position", "velocity", "acceleration"):
        found, expected = (backend.download(getattr(each.state, name)) for each in (one, other))
        np.testing.assert_array_equal(found, expected)
        assert np.abs(found).min() > 0


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
@pytest.mark.parametrize("masses", MASSES)
@pytest.mark.parametrize("number", [3, 100, 130, 3000, 20000])
@pytest.mark.parametrize("stages", [EULER, LEAPFROG, YOSHIDA4])
def test_copies_have_the_bits_of_the_states(precision, masses, number, stages):
    bodies = plummer(number, seed=3)
    bodies.mass[:] = MASSES[masses](number)
    backend = make_backend("gpu")
    one, other = (make_gravity(backend, bodies, precision, 0.05) for _ in range(2))
    plan = StepPlan(stages, 1e-3)
    memory = Motion(*(backend.zeros((20, number, 3), "f8") for _ in range(2)))
    copies = StateCopies(3, memory)
    for steps in (2, 4, 23, 1, 23, 7):
        one.kernels.run_with_copies(one.state, plan, steps, copies)()
    assert copies.steps == 0
    found = [backend.download(values) for values in (memory.position, memory.velocity)]
    for k in range(20):
        other.kernels.run(other.state, plan, 3)()
        for values, name in zip(found, ("own_position", "velocity"), strict=True):
            expected = backend.download(getattr(other.state, name))
            np.testing.assert_array_equal(values[k], expected)
