"""Direct sums on CPU threads: sources are packed, and blocks of targets are handed to threads."""

from hybrid_nbody.backends.simd import BLOCK
from hybrid_nbody.backends.threads import on_threads
from hybrid_nbody.nbody.kernels.cpu.compilers import compiled, compiled_with_threads, linked
from hybrid_nbody.nbody.kernels.cpu.layout import (
    Law,
    MovingSources,
    MovingTargets,
    PackedSources,
    Targets,
)
from hybrid_nbody.nbody.kernels.cpu.pair_force import (
    block_accelerations,
    block_jerks,
    block_potentials,
)


@linked
def accelerations_of_blocks(first, last, at, sources, law, result):
    """Compute the accelerations of the targets of some blocks."""
    for block in range(first, last):
        block_accelerations(block * BLOCK, at, sources, law, result)


@linked
def potentials_of_blocks(first, last, at, sources, law, result):
    """Compute the potentials at the targets of some blocks."""
    for block in range(first, last):
        block_potentials(block * BLOCK, at, sources, law, result)


@linked
def jerks_of_blocks(first, last, at, sources, law, result, jerk):
    """Compute the accelerations of the targets of some blocks, and their time derivatives."""
    for block in range(first, last):
        block_jerks(block * BLOCK, at, sources, law, result, jerk)


@linked
def blocks_of(at):
    """Return the number of blocks of targets."""
    return -(-at.source_index.size // BLOCK)


@compiled_with_threads
def accelerations(targets, sources, law, result):
    """Compute the acceleration of every target.

    Parameters
    ----------
    targets : tuple
        The fields of `Targets`.
    sources : tuple
        Those of `PackedSources`, from `pack`.
    law : tuple
        Those of `Law`.
    result : (n, 3) array of float64
        Filled.
    """
    at = Targets(*targets)
    given = (at, PackedSources(*sources), Law(*law), result)
    blocks = blocks_of(at)
    if blocks == 1:  # waking threads would take longer than the sum
        accelerations_of_blocks(blocks - 1, blocks, *given)
    else:
        on_threads(accelerations_of_blocks, 0, blocks, given)


@compiled_with_threads
def potentials(targets, sources, law, result):
    """Compute the potential at every target: parameters as in `accelerations`, (n,) result."""
    at = Targets(*targets)
    given = (at, PackedSources(*sources), Law(*law), result)
    blocks = blocks_of(at)
    if blocks == 1:
        potentials_of_blocks(blocks - 1, blocks, *given)
    else:
        on_threads(potentials_of_blocks, 0, blocks, given)


@compiled_with_threads
def accelerations_and_jerks(targets, sources, law, result, jerk):
    """Compute the acceleration of every target and its time derivative.

    Parameters
    ----------
    targets : tuple
        The fields of `MovingTargets`.
    sources : tuple
        Those of `MovingSources`, from `pack` and `pack_offsets`.
    law : tuple
        Those of `Law`.
    result, jerk : (n, 3) array of float64
        Filled.
    """
    at = MovingTargets(*targets)
    given = (at, MovingSources(*sources), Law(*law), result, jerk)
    on_threads(jerks_of_blocks, 0, blocks_of(at), given)


@compiled
def pack(position, packing, sources):
    """Store the sources in the order of the sum, in chunks about an origin each.

    Parameters
    ----------
    position : (N, 3) array of float64
    packing : Packing
    sources : tuple
        The fields of `PackedSources`; all but `starts` are filled.
    """
    mass, order, local, lengths, masses = packing
    starts, origin, offset, packed_mass = sources
    pack_offsets(position, lengths, (order, local), (starts, origin, offset))
    working = packed_mass.dtype.type
    for k in range(order.size):
        packed_mass[k] = working(masses * mass[order[k]])


@compiled
def pack_offsets(vector, factor, arrangement, chunks):
    """Store vectors of all bodies, (N, 3), times a factor, as `pack` does with the positions.

    `arrangement` are the order and whether origins are local; `chunks` the starts, the origins and
    the offsets, of which the last two are filled.
    """
    order, local = arrangement
    starts, origin, offset = chunks
    stored = offset.dtype.type
    for chunk in range(origin.shape[0]):
        start = starts[chunk]
        end = starts[chunk + 1]
        if local and start < end:
            middle = order[(start + end) // 2]
            for axis in range(3):
                origin[chunk, axis] = factor * vector[middle, axis]
        for k in range(start, end):
            for axis in range(3):
                offset[axis, k] = stored(factor * vector[order[k], axis] - origin[chunk, axis])


@linked
def copy(source, target):
    """Copy (n, 3) numbers; an assignment, which checks the shapes, takes seconds to compile."""
    for i in range(target.shape[0]):
        for axis in range(3):
            target[i, axis] = source[i, axis]


@compiled
def add_scaled(result, factor, increment):
    """Add ``factor * increment`` to `result`, both (n, 3)."""
    add_scaled_rows(0, result.shape[0], result, factor, increment)


@compiled_with_threads
def add_scaled_on_threads(result, factor, increment):
    """Do the same for many bodies: a thread alone would take longer than all for a force."""
    on_threads(add_scaled_rows, 0, result.shape[0], (result, factor, increment))


@linked
def add_scaled_rows(first, last, result, factor, increment):
    """Do the same for rows first … last - 1."""
    for i in range(first, last):
        for axis in range(3):
            result[i, axis] += factor * increment[i, axis]
