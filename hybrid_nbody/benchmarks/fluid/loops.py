"""Red-black iterations of Poisson's equation on CPU threads, in Numba, with the model's bits.

Interleaved arrays are (nz, ny, nx). Colours are (2, nz, ny, nx / 2), nx even: element (k, z, y, c)
is the cell x = 2 c + ((k + y + z) & 1). A cell at a wall takes its own value for that behind it.
"""

from functools import cache

from numba import njit, prange

from hybrid_nbody.benchmarks.harness.loops import compiled, compiled_parallel

inlined = njit(inline="always", error_model="numpy")


@inlined
def change_of(own, around, b, factor, six):
    """Return what a cell changes by; `factor` is 1 / diagonal."""
    left, right, front, back, below, above = around
    total = ((left + right) + (front + back)) + (below + above)
    return factor * (b + (total - six * own))


@compiled
def relax_interleaved_plane(colour, z, x, b, factor):
    """Update every other cell of a plane; the inner loop, without row ends, has no condition."""
    planes, rows, number = x.shape
    six = x.dtype.type(6)
    last = number - 1
    for y in range(rows):
        row = x[z, y]
        right_side = b[z, y]
        start = (colour + y + z) & 1
        front = x[z, max(y - 1, 0)]
        back = x[z, min(y + 1, rows - 1)]
        below = x[max(z - 1, 0), y]
        above = x[min(z + 1, planes - 1), y]
        for c in range(2 - start, last, 2):
            around = row[c - 1], row[c + 1], front[c], back[c], below[c], above[c]
            row[c] += change_of(row[c], around, right_side[c], factor, six)
        if start == 0:
            around = row[0], row[1], front[0], back[0], below[0], above[0]
            row[0] += change_of(row[0], around, right_side[0], factor, six)
        if (last - start) % 2 == 0:
            around = row[last - 1], row[last], front[last], back[last], below[last], above[last]
            row[last] += change_of(row[last], around, right_side[last], factor, six)


@compiled_parallel
def relax_interleaved(x, b, factor, iterations):
    """Do iterations, each of two half sweeps over every other cell."""
    for half in range(2 * iterations):
        for z in prange(x.shape[0]):
            relax_interleaved_plane(half & 1, z, x, b, factor)


# What is noted of the changes decides whether the loop over a row becomes vector code.


@inlined
def nothing(noted, change, tolerance):
    """Note nothing."""
    return noted


@inlined
def count(noted, change, tolerance):
    """Count the changes that are larger than the tolerance, in an integer."""
    return noted + (abs(change) > tolerance)


@inlined
def largest(noted, change, tolerance):
    """Find the largest change, a float."""
    return max(noted, abs(change))


def relaxing_plane(note, zero):
    """Return what relaxes a colour in a plane and returns what `note` makes of the changes."""

    @inlined
    def relax_some(noted, row, around, b, factor, tolerance):
        six = row.dtype.type(6)
        left, right, front, back, below, above = around
        for c in range(len(row)):
            values = left[c], right[c], front[c], back[c], below[c], above[c]
            change = change_of(row[c], values, b[c], factor, six)
            row[c] += change
            noted = note(noted, change, tolerance)
        return noted

    @njit(error_model="numpy")
    def relax_plane(colour, z, x, b, factor, tolerance):
        """Relax the cells of a row that lie between two others, then the one at a wall of x."""
        _, planes, rows, number = x.shape
        other = 1 - colour
        noted = zero
        for y in range(rows):
            shift = (colour + y + z) & 1
            row = x[colour, z, y]
            beside = x[other, z, y]
            right_side = b[colour, z, y]
            front = x[other if y > 0 else colour, z, max(y - 1, 0)]
            back = x[other if y < rows - 1 else colour, z, min(y + 1, rows - 1)]
            below = x[other if z > 0 else colour, max(z - 1, 0), y]
            above = x[other if z < planes - 1 else colour, min(z + 1, planes - 1), y]
            s = slice(1 - shift, number - shift)
            e = slice((number - 1) * shift, (number - 1) * shift + 1)
            around = beside[:-1], beside[1:], front[s], back[s], below[s], above[s]
            noted = relax_some(noted, row[s], around, right_side[s], factor, tolerance)
            left, right = (beside[e], row[e]) if shift else (row[e], beside[e])
            around = left, right, front[e], back[e], below[e], above[e]
            noted = relax_some(noted, row[e], around, right_side[e], factor, tolerance)
        return noted

    return relax_plane


@cache
def relaxing(note, zero):
    """Return a function that does iterations on colours, until no plane's note is above a limit."""
    relax_plane = relaxing_plane(note, zero)

    @njit(error_model="numpy", parallel=True)
    def sweep(colour, x, b, factor, tolerance, noted):
        for z in prange(x.shape[1]):
            noted[colour, z] = relax_plane(colour, z, x, b, factor, tolerance)

    @njit(error_model="numpy")
    def relax(x, b, factor, tolerance, iterations, noted, limit):
        for _ in range(iterations):
            for colour in (0, 1):
                sweep(colour, x, b, factor, tolerance, noted)
            if noted.max() <= limit:
                return

    return relax
