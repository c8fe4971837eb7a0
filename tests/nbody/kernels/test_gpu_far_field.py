"""The blocks of the far field of a tree on a GPU."""

import pytest
from support.gpus import A100, H200, L40S, V100
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for

from hybrid_nbody.nbody.kernels.expansions import Expansion, expansion_for
from hybrid_nbody.nbody.kernels.gpu.tree.choices import CHOICES
from hybrid_nbody.nbody.kernels.gpu.tree.far_field import (
    BLOCK_MEMORY,
    far_field_on,
    size_of_sources,
)
from hybrid_nbody.nbody.kernels.gpu.tree.launches import FOLDER, OPTIONS, defines

EXPANSIONS = [expansion_for(row.least or 1e-7, "single", CHOICES) for row in CHOICES.rows]
"""All that an accuracy may take."""

SOURCE = (FOLDER / "far_field.cu").read_text()


def expansion_of(order, double=False):
    return Expansion(order, 48, 1e-3, double, pairs="single")


def compiled(expansion, facts, architecture, fact="true"):
    macros = defines(expansion, False, far_field_on(facts, expansion))
    source = f"{SOURCE}\nstatic_assert({fact});\n"
    return compile_to_cubin(source, words_for(macros, OPTIONS), architecture)


@pytest.mark.parametrize("expansion", EXPANSIONS, ids=lambda e: f"{e.order}-{e.double}")
@pytest.mark.parametrize("facts", [H200, L40S])
def test_every_expansion_compiles_with_the_memory_that_is_reckoned_with(expansion, facts):
    fact = f"sizeof(Sources) == {size_of_sources(expansion)}"
    assert compiled(expansion, facts, oldest_and_newest()[-1], fact)


@pytest.mark.parametrize("architecture", oldest_and_newest()[:-1])
def test_it_compiles_for_gpus_without_asynchronous_copies(architecture):
    assert "__CUDA_ARCH__" in SOURCE
    assert compiled(expansion_of(3), V100, architecture)


@pytest.mark.parametrize(
    ("order", "blocks"), [(4, (4, 2, 4)), (5, (2, 2, 6)), (6, (2, 2, 4)), (7, (1, 2, 8))]
)
def test_hopper_has_room_for_the_next_sources(order, blocks):
    assert far_field_on(H200, expansion_of(order)) == blocks


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("order", range(3, 8))
@pytest.mark.parametrize("facts", [H200, A100, L40S, V100])
def test_a_second_buffer_leaves_three_quarters_of_the_warps(facts, order, double):
    expansion = expansion_of(order, double)
    found = far_field_on(facts, expansion)
    block = found.warps * found.buffers * size_of_sources(expansion)
    assert block <= BLOCK_MEMORY
    blocks = facts["shared_memory_per_multiprocessor"] // (block + 1024)
    assert found.buffers == 1 or blocks >= 0.75 * found.blocks


@pytest.mark.parametrize(("facts", "order"), [(L40S, 4), (L40S, 5), (A100, 5), (V100, 3)])
def test_one_source_of_a_lane_is_kept_where_two_would_leave_few_warps(facts, order):
    """Or where a copy is not asynchronous."""
    assert far_field_on(facts, expansion_of(order)).buffers == 1
