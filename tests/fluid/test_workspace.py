"""Scratch memory of a step: what its names stand for."""

import numpy as np
import pytest
from support.bodies import make_backend
from support.fluids import make_kernels

from hybrid_nbody.fluid.workspace import (
    DIFFUSION,
    FIELDS,
    FIRST_PROJECTION,
    SECOND_PROJECTION,
    Pair,
    Workspace,
    make_state,
)

CELLS = (6, 5, 4)


def workspace():
    return Workspace.allocate(make_kernels(make_backend("cpu"), CELLS))


@pytest.mark.parametrize(
    "pair", [*DIFFUSION.values(), FIRST_PROJECTION, SECOND_PROJECTION], ids="+".join
)
def test_a_pair_is_the_memory_of_its_two_fields_and_of_no_other(pair):
    memory = workspace()
    memory.scratch(pair).fill(1.0)
    for name, field in memory.fields.items():
        assert (field == (name in pair)).all(), name


def test_the_solvers_scratch_is_its_own_memory():
    memory = workspace()
    memory.solver_scratch().fill(1.0)
    assert memory.solver.all()
    assert not any(field.any() for field in memory.fields.values())


@pytest.mark.parametrize("pair", [Pair("v", "u"), Pair("u", "w"), Pair("next_density", "u")])
def test_fields_that_are_not_neighbours_are_no_pair(pair):
    with pytest.raises(ValueError, match=f"{pair.second} does not follow {pair.first} in memory"):
        workspace().scratch(pair)


def test_a_diffusion_may_use_the_field_and_its_next_one_alone():
    for name, pair in DIFFUSION.items():
        assert set(pair) == {name, f"next_{name}"}


def test_a_state_is_ten_arrays_of_the_grid():
    state = make_state(make_kernels(make_backend("cpu"), CELLS))
    fields = [*state.velocity, state.density, *state.next_velocity, state.next_density]
    assert len(fields) == len(FIELDS)
    assert all(np.shares_memory(field, state.workspace.block) for field in fields)
    assert np.shares_memory(state.x, state.workspace.solver)
    assert state.carried == (*state.next_velocity, state.next_density)
