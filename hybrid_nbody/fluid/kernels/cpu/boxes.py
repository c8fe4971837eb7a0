"""The elements of a box between fields with ghosts and colours, on CPU threads.

2 LANES elements of a row are LANES of either colour. `spread` adds in the order of that of
`hybrid_nbody.fluid.kernels.cells.diffusion`.
"""

from typing import NamedTuple

import numpy as np

from hybrid_nbody.backends.simd import (
    LANES,
    address_of,
    broadcast,
    first_lane,
    load,
    load_partial,
)
from hybrid_nbody.backends.subnormals import flush_subnormals, restore_subnormals
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.colour_contract import First
from hybrid_nbody.fluid.kernels.cpu.colours import (
    clear_around,
    interleaved,
    load_cells,
    prefetch_ahead,
    rows_of,
    store_by_colour,
    store_cells,
)
from hybrid_nbody.fluid.kernels.cpu.layout import compiled_with_threads, inlined, linked


class Frame(NamedTuple):
    """Where a box is in fields with ghosts.

    Attributes
    ----------
    rows, columns : int
        Of the fields.
    k, j, i : int
        The first element.
    """

    rows: int
    columns: int
    k: int
    j: int
    i: int


def frame_of(field: np.ndarray, first: First) -> Frame:
    """Return where a box is in fields like one of them."""
    _, rows, columns = field.shape
    return Frame(rows, columns, *first)


@inlined
def offset_of(z, y, frame):
    """Return where a row of the box starts in a field; plane 0 of colours is a halo."""
    plane = z - 1 + frame.k
    return (plane * frame.rows + y + frame.j) * frame.columns + frame.i


# ---- Diffusion -----------------------------------------------------------------------------------


@inlined
def spread(a, place, count, frame):
    """Return the neighbours of LANES elements less six times these, of which there are `count`."""
    row = frame.columns
    plane = frame.rows * row
    own = load_partial(a, place, count)
    six = broadcast(type(first_lane(own))(6.0))
    total = load_partial(a, place - 1, count) + load_partial(a, place + 1, count)
    total = total + load_partial(a, place - row, count) + load_partial(a, place + row, count)
    total = total + load_partial(a, place - plane, count) + load_partial(a, place + plane, count)
    return total - six * own


@linked
def spread_plane(z, a, ratio, b, frame, grid):
    """Store what diffusion changes in a plane of b."""
    mode = flush_subnormals()
    ratios = broadcast(ratio)
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        offset = offset_of(z, y, frame)
        for i in range(0, grid.pitch, LANES):
            place = offset + 2 * i
            count = grid.columns - 2 * i
            prefetch_ahead(a, place + frame.rows * frame.columns)
            first = ratios * spread(a, place, count, frame)
            last = ratios * spread(a, place + LANES, count - LANES, frame)
            store_by_colour(b, rows, i, (first, last))
    restore_subnormals(mode)


# ---- Divergence ----------------------------------------------------------------------------------


@inlined
def outflow(velocity, place, count, frame):
    """Return what flows out of LANES cells, of which there are `count`."""
    u, v, w = velocity
    row = frame.columns
    plane = frame.rows * row
    x = load_partial(u, place + 1, count) - load_partial(u, place, count)
    y = load_partial(v, place + row, count) - load_partial(v, place, count)
    z = load_partial(w, place + plane, count) - load_partial(w, place, count)
    return x + y + z


@linked
def divergence_plane(z, velocity, factor, b, frame, grid):
    """Store `factor` times what flows out of the cells of a plane in b."""
    mode = flush_subnormals()
    factors = broadcast(factor)
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        offset = offset_of(z, y, frame)
        for i in range(0, grid.pitch, LANES):
            place = offset + 2 * i
            count = grid.columns - 2 * i
            prefetch_ahead(velocity[2], place + frame.rows * frame.columns)
            first = factors * outflow(velocity, place, count, frame)
            last = factors * outflow(velocity, place + LANES, count - LANES, frame)
            store_by_colour(b, rows, i, (first, last))
    restore_subnormals(mode)


# ---- Back into fields ----------------------------------------------------------------------------


@linked
def merge_plane_into(z, colours, field, frame, grid):
    """Set elements of a plane of a field."""
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        offset = offset_of(z, y, frame)
        for i in range(0, (grid.columns + 1) // 2, LANES):
            prefetch_ahead(field, offset + 2 * i)
            cells = interleaved(load(colours, rows.even + i), load(colours, rows.odd + i))
            store_cells(field, offset + 2 * i, grid.columns - 2 * i, cells)


@linked
def merge_plane_onto(z, colours, field, frame, grid):
    """Add to elements of a plane of a field."""
    mode = flush_subnormals()
    for y in range(grid.rows):
        rows = rows_of(z, y, grid)
        offset = offset_of(z, y, frame)
        for i in range(0, (grid.columns + 1) // 2, LANES):
            place = offset + 2 * i
            count = grid.columns - 2 * i
            first, last = interleaved(load(colours, rows.even + i), load(colours, rows.odd + i))
            old = load_cells(field, place, count)
            store_cells(field, place, count, (old[0] + first, old[1] + last))
    restore_subnormals(mode)


# ---- All planes ----------------------------------------------------------------------------------


@compiled_with_threads
def split_spread(field, ratio, b, frame, grid):
    """Store ``ratio * Laplacian field`` by colour."""
    clear_around(b, grid)
    given = (address_of(field), ratio, address_of(b), frame, grid)
    each_on_threads(spread_plane, 1, grid.planes + 1, given)


@compiled_with_threads
def split_divergence(velocity, factor, b, frame, grid):
    """Store `factor` times what flows out of each cell by colour."""
    clear_around(b, grid)
    u, v, w = velocity
    components = address_of(u), address_of(v), address_of(w)
    given = (components, factor, address_of(b), frame, grid)
    each_on_threads(divergence_plane, 1, grid.planes + 1, given)


@compiled_with_threads
def merge_into(colours, field, frame, grid):
    """Set elements of a field to those of colours."""
    given = (address_of(colours), address_of(field), frame, grid)
    each_on_threads(merge_plane_into, 1, grid.planes + 1, given)


@compiled_with_threads
def merge_onto(colours, field, frame, grid):
    """Add those of colours to elements of a field."""
    given = (address_of(colours), address_of(field), frame, grid)
    each_on_threads(merge_plane_onto, 1, grid.planes + 1, given)
