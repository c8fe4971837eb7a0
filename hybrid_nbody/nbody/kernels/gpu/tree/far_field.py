"""How many sources of the far field a GPU has room for; see ``far_field.cu``."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hybrid_nbody.nbody.kernels.expansions import Expansion
from hybrid_nbody.nbody.kernels.gpu.tree.memory import pitch_of

LANES = 32
CHUNK = 16
"""Bytes that a copy to shared memory moves."""

CENTRE_AND_EDGE = 36
"""Bytes of a source in shared memory beside its multipoles."""

BLOCK_MEMORY = 48 << 10
"""Bytes of shared memory that a block has without being asked."""

RESERVED = 1 << 10
"""Bytes of shared memory that each block takes besides."""

MOST_WARPS = 4
"""Warps of a block, where their sources fit."""

ENOUGH = 0.75
"""Share of the warps that registers allow for which there must be room with two buffers: with fewer
warps the copies of the next sources would gain less than is lost."""

FIRST_ASYNCHRONOUS = 8.0
"""Compute capability from which on copies to shared memory need no register."""


class FarField(NamedTuple):
    """The blocks of ``add_far_field``.

    Attributes
    ----------
    warps : int
        Of a block.
    buffers : int
        Sources of a lane in shared memory: 2 where the next one is brought while one is summed.
    blocks : int
        Of a multiprocessor, for which there should be registers.
    """

    warps: int
    buffers: int
    blocks: int


def far_field_on(facts: Mapping[str, Any], expansion: Expansion) -> FarField:
    """Return the blocks of the far field on a GPU.

    Parameters
    ----------
    facts : mapping
        The properties of the GPU, of `hybrid_nbody.backends.gpu.GpuBackend.facts`.
    expansion : Expansion
    """
    wanted = warps_of_registers(expansion)
    asynchronous = float(facts["compute_capability"]) >= FIRST_ASYNCHRONOUS
    memory = facts["shared_memory_per_multiprocessor"]
    if asynchronous and room_for(2, expansion, memory) >= ENOUGH * wanted:
        buffers = 2
    else:
        buffers = 1
    warps = warps_of_block(buffers, expansion)
    return FarField(warps, buffers, wanted // warps)


def room_for(buffers: int, expansion: Expansion, memory: int) -> int:
    """Return the warps of a multiprocessor for whose sources there is shared memory."""
    warps = warps_of_block(buffers, expansion)
    block = warps * buffers * size_of_sources(expansion) + RESERVED
    return memory // block * warps


def warps_of_block(buffers: int, expansion: Expansion) -> int:
    """Return the warps whose sources fit into the shared memory of a block."""
    warps = MOST_WARPS
    while warps > 1 and warps * buffers * size_of_sources(expansion) > BLOCK_MEMORY:
        warps //= 2
    return warps


def size_of_sources(expansion: Expansion) -> int:
    """Return the bytes of ``Sources``: one of each lane."""
    chunks = pitch_of(expansion) * 4 // CHUNK
    return LANES * (CHUNK * (chunks | 1) + CENTRE_AND_EDGE)


def warps_of_registers(expansion: Expansion) -> int:
    """Return the warps of a multiprocessor for which there are registers, if little is spilled."""
    order = expansion.order + expansion.double
    if order < 5:
        return 16
    return 12 if order == 5 else 8
