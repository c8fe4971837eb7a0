"""Steps from force to force are those of the plan, in graphs as well."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.bodies import make_backend, make_gravity

from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.actions import KernelActions
from hybrid_nbody.nbody.kernels.gpu.steps import STEPS_OF_GRAPHS, StepGraphs
from hybrid_nbody.nbody.stages import EULER, FORCE, LEAPFROG, YOSHIDA4, StepPlan


class Noted:
    """Kernels that note what they are asked for; a graph repeats what was noted."""

    def __init__(self):
        self.done = []
        self.backend = SimpleNamespace(recorded=self.recorded)
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
        moves.perform(
            SimpleNamespace(
                kick=lambda duration: self.kick(state, duration),
                drift=lambda duration: self.drift(state, duration),
            )
        )

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
