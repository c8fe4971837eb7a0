"""Scratch memory of a step: what its names stand for."""

import numpy as np
import pytest
from support import configs
from support.bodies import make_backend
from support.fluids import make_kernels
from support.jobs import FLUID

from hybrid_nbody.fluid.plan import plan
from hybrid_nbody.fluid.step_memory import FIELDS, SCRATCH, StepMemory, complete_bytes, make_state

CELLS = (6, 5, 4)


def step_memory():
    return StepMemory.allocate(make_kernels(make_backend("cpu"), CELLS))


@pytest.mark.parametrize("part", SCRATCH)
def test_scratch_is_the_memory_of_its_two_fields_and_of_no_other(part):
    memory = step_memory()
    memory.scratch(part).fill(1.0)
    for name, field in memory.fields.items():
        assert (field == (name in SCRATCH[part])).all(), name


def test_the_solvers_scratch_is_its_own_memory():
    memory = step_memory()
    memory.solver_scratch().fill(1.0)
    assert memory.solver.all()
    assert not any(field.any() for field in memory.fields.values())


@pytest.mark.parametrize("field", ["u", "v", "w", "density"])
def test_a_diffusion_may_use_the_field_and_its_next_one_alone(field):
    assert SCRATCH[f"diffusion of {field}"] == {field, f"next_{field}"}


def test_a_state_is_ten_arrays_of_the_grid():
    state = make_state(make_kernels(make_backend("cpu"), CELLS))
    fields = [*state.velocity, state.density, *state.next_velocity, state.next_density]
    assert len(fields) == len(FIELDS)
    assert all(np.shares_memory(field, state.memory.block) for field in fields)
    assert np.shares_memory(state.x, state.memory.solver)
    assert state.carried == (*state.next_velocity, state.next_density)


def test_complete_grids_have_an_eighth_of_the_cells_or_as_many_as_a_message_takes():
    assert complete_bytes((64, 64, 63), 1 << 22, "f4", 8) == 8 * 32**3 * 4
    assert complete_bytes((512, 512, 512), 1 << 22, "f8", 8) == 8 * (1 << 22) * 8


@pytest.mark.parametrize("grid", ["collocated", "staggered"])
def test_ranks_need_memory_for_complete_grids(grid):
    text = FLUID.replace("{max_iterations: 5}", "{method: multigrid}")
    config = configs.loads(text + f"fluid: {{grid: {grid}}}\n", "test.yaml")
    alone, shared = (plan(config, (), ranks).memory for ranks in (1, 2))
    assert alone.on(1 << 22) == alone.rank_bytes
    assert shared.on(1 << 22) == shared.rank_bytes + 5 * 6 * 5 * 7 * 4
    assert shared.on(100) == shared.rank_bytes + 5 * 100 * 4
