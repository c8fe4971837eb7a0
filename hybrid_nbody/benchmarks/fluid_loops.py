"""Red-black iterations of Poisson's equation on CPU threads, in Numba: plain layouts and ways to test for convergence.

Interleaved arrays are (nz, ny, nx). Colours are (2, nz, ny, nx / 2), nx even: element (k, z, y, c) is the cell
x = 2 c + ((k + y + z) & 1). A cell at a wall takes its own value for the one behind it. The operations of a cell, and
their order, are those of the model, so that results have the same bits.
"""

import numpy as np
from numba import njit, prange

compiled = njit(cache=True, error_model="numpy")
compiled_parallel = njit(cache=True, error_model="numpy", parallel=True)
inlined = njit(inline="always", error_model="numpy")


@inlined
def change_of(own, left, right, front, back, below, above, b, factor):
    """Return what a cell changes by; `factor` is omega / diagonal."""
    total = ((left + right) + (front + back)) + (below + above)
    return factor * (b + (total - own.dtype.type(6) * own))


# ---- Interleaved arrays ----------------------------------------------------------------------------------------------


@compiled
def relax_interleaved_row(start, row, front, back, below, above, b, factor):
    """Renew every other cell of a row, from `start` on; the ends are done apart, so that the loop has no condition."""
    six, last = row.dtype.type(6), len(row) - 1
    for x in range(start, last + 1, 2):
        own = row[x]
        left, right = row[x - 1] if x > 0 else own, row[x + 1] if x < last else own
        total = ((left + right) + (front[x] + back[x])) + (below[x] + above[x])
        row[x] = own + factor * (b[x] + (total - six * own))


@compiled_parallel
def relax_interleaved(x, b, factor, iterations):
    """Do iterations, each of two half sweeps over every other cell."""
    planes, rows, _ = x.shape
    for half in range(2 * iterations):
        for z in prange(planes):
            below, above = x[max(z - 1, 0)], x[min(z + 1, planes - 1)]
            for y in range(rows):
                front, back = x[z, max(y - 1, 0)], x[z, min(y + 1, rows - 1)]
                relax_interleaved_row((half + y + z) & 1, x[z, y], front, back, below[y], above[y], b[z, y], factor)
