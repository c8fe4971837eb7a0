"""Steps from force to force are those of the plan, in graphs as well."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bodies import make_backend, make_gravity
from support.paper import PaperGpu

from hybrid_nbody.backends.workspace import Workspace
from hybrid_nbody.nbody.copies import Motion, Motions, StateCopies
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.kernels.gpu.steps import (
    COPIES_OF_GRAPHS,
    MOST_STEPS_OF_A_GRAPH,
    MOVES,
    STEPS_OF_GRAPHS,
    Group,
    Moves,
    StepGraphs,
)
from hybrid_nbody.nbody.stages import ACTIONS, EULER, FORCE, LEAPFROG, YOSHIDA4, StepPlan


class Noted:
    """Kernels that note what they are asked for; a graph repeats what was noted."""

    def __init__(self):
        self.done = []
        self.backend = SimpleNamespace(recorded=self.recorded, capture=self.capture)
        self.graphs = 0
        self.captured_at_once = 0

    def recorded(self, action):
        self.graphs += 1
        return action

    def capture(self, action):
        self.captured_at_once += 1
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


def some_state():
    return SimpleNamespace(position=None, velocity=None)


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
    StepGraphs(kernels).run(some_state(), plan, steps)
    assert kernels.done == stages_of(plan, steps)


def test_graphs_are_made_once_for_a_state():
    plan = StepPlan(LEAPFROG, 0.125)
    kernels = Noted()
    graphs = StepGraphs(kernels)
    state = some_state()
    graphs.run(state, plan, max(STEPS_OF_GRAPHS) + 2)
    graphs.run(state, plan, 3 * max(STEPS_OF_GRAPHS) + 2)
    assert kernels.graphs == 2  # of many steps, and of one
    graphs.run(some_state(), plan, 2)
    assert kernels.graphs == 3


def test_as_many_steps_as_last_time_are_one_graph():
    plan = StepPlan(LEAPFROG, 0.125)
    kernels = Noted()
    graphs = StepGraphs(kernels)
    state = some_state()
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
    """The same, which moves a body; a kick is as strong as there were kicks, drifts and forces."""

    def __init__(self):
        super().__init__()
        self.backend.copy = lambda source, target: np.copyto(target, source)
        self.workspace = Workspace(np.zeros)
        position = np.zeros((1, 3))
        self.state = SimpleNamespace(
            position=position, own_position=position, velocity=np.ones((1, 3))
        )

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


def take_with_copies(kernels, stages, interval, number, batches):
    """Take the steps of copies in batches; return the graphs and the copies."""
    graphs = StepGraphs(kernels)
    memory = Motions(*(np.full((number, 1, 3), np.nan) for _ in range(2)))
    copies = StateCopies(interval, memory)
    for steps in batches:
        taken = min(steps, copies.steps_left)
        if taken:
            graphs.run_with_copies(kernels.state, StepPlan(stages, 0.125), taken, copies)
    assert copies.steps_left == 0
    return graphs, memory


@given(
    st.sampled_from([EULER, LEAPFROG, YOSHIDA4]),
    st.integers(1, 130),
    st.integers(1, 20),
    st.lists(st.integers(1, 200)),
)
def test_the_state_is_copied_after_every_interval(stages, interval, number, batches):
    kernels = Moving()
    batches = (*batches, interval * number)
    graphs, memory = take_with_copies(kernels, stages, interval, number, batches)
    position, velocity = copies_by_hand(stages, interval, number)
    np.testing.assert_array_equal(memory.position, position)
    np.testing.assert_array_equal(memory.velocity, velocity)
    assert kernels.done.count("force") == interval * number * StepPlan(stages, 1.0).forces
    for _, group, _ in graphs.graphs:
        assert group.times == 1 or group.all_steps <= MOST_STEPS_OF_A_GRAPH


def test_several_copies_are_one_graph():
    kernels = Moving()
    graphs, _ = take_with_copies(kernels, LEAPFROG, 20, 17, (320 + 1, 19))
    eight = Group(20, times=8, copied=True)
    assert {group for _, group, _ in graphs.graphs} == {eight, Group(18)}


@pytest.mark.parametrize(
    ("interval", "most"),
    [(20, 2 * 20), (33, len(STEPS_OF_GRAPHS) + 3), (127, len(STEPS_OF_GRAPHS) + 3)],
)
def test_batches_of_any_length_need_few_graphs(interval, most):
    kernels = Moving()
    batches = (512, 512, 301, 19, 700) * 10
    graphs, _ = take_with_copies(kernels, LEAPFROG, interval, 20440 // interval - 1, batches)
    groups = {group for _, group, _ in graphs.graphs}
    assert len(groups) <= most
    assert len(graphs.graphs) <= 2 * len(groups)  # after even and odd numbers of forces
    assert 0 < kernels.captured_at_once <= 2 * len(COPIES_OF_GRAPHS)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("stages", [EULER, LEAPFROG, (FORCE,)])
def test_moves_are_told_to_a_kernel_with_the_end_of_the_step_among_them(stages, copied):
    plan = StepPlan(stages, 0.125)
    start, end = plan.around_forces()
    copy = Motion(None, None) if copied else None
    (told,) = Moves(end, start, copy).argument.view(MOVES)
    expected = [*end.stages, *start.stages]
    assert told["number"] == len(expected)
    assert told["copied_after"] == (len(end.stages) if copied else -1)
    actions = [ACTIONS[action] for action in told["actions"][: len(expected)]]
    assert actions == [stage.action for stage in expected]
    lengths = [stage.fraction * 0.125 for stage in expected]
    np.testing.assert_array_equal(told["lengths"][: len(expected)], lengths)


@pytest.mark.parametrize("number", [100, 300, 20000])
def test_kernels_are_launched_as_they_are_declared(number):
    """On a GPU on paper: in one block, in graphs, and with each pair once."""
    backend = PaperGpu(lambda *arguments: 1e-3)
    gravity = make_gravity(backend, plummer(number, seed=3), "single", 0.05)
    memory = Motions(*(np.zeros((12, number, 3)) for _ in range(2)))
    copies = StateCopies(3, memory)
    backend.launches.clear()
    for steps in (2, 33, 1):
        gravity.run_with_copies(StepPlan(LEAPFROG, 1e-3), steps, copies)
    assert copies.steps_left == 0
    copying = [name for name in backend.launches if "copy" in name]
    assert len(copying) == (12 if number == 300 else 0)


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
    memory = Motions(*(backend.zeros((40, number, 3), "f8") for _ in range(2)))
    copies = StateCopies(3, memory)
    for steps in (2, 4, 26, 1, 26, 1, 2, 55, 3):
        one.kernels.run_with_copies(one.state, plan, steps, copies)()
    assert copies.steps_left == 0
    found = [backend.download(values) for values in (memory.position, memory.velocity)]
    for k in range(40):
        other.kernels.run(other.state, plan, 3)()
        for values, name in zip(found, ("own_position", "velocity"), strict=True):
            expected = backend.download(getattr(other.state, name))
            np.testing.assert_array_equal(values[k], expected)


@pytest.mark.gpu
def test_copies_after_steps_without_any_have_the_same_bits():
    backend = make_backend("gpu")
    one, other = (make_gravity(backend, plummer(300, seed=3), "single", 0.05) for _ in range(2))
    plan = StepPlan(LEAPFROG, 1e-3)
    memory = Motions(*(backend.zeros((9, 300, 3), "f8") for _ in range(2)))
    for each in (one, other):
        for _ in range(3):
            each.kernels.run(each.state, plan, 20)()
    one.kernels.run_with_copies(one.state, plan, 27, StateCopies(3, memory))()
    for k in range(9):
        other.kernels.run(other.state, plan, 3)()
        found = backend.download(memory.position[k])
        np.testing.assert_array_equal(found, backend.download(other.state.position))
