"""Rows of bodies as they come in, and bodies along the curve: there and back by threads.

NumPy would take a third of a step of a million bodies for this, on one thread, and more on several
ranks for the rows that travel.
"""

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from hybrid_nbody.backends.threads import on_threads
from hybrid_nbody.nbody.kernels.cpu.compilers import (
    compiled_parallel,
    compiled_with_threads,
    linked,
)
from hybrid_nbody.nbody.kernels.cpu.tree.curve import Curve
from hybrid_nbody.nbody.kernels.cpu.tree.layout import MASS, SortedBodies, empty_columns
from hybrid_nbody.nbody.kernels.cube import box_around

Vectors = NDArray[np.float64]


@compiled_parallel
def fill_rows(position, acceleration, length, unit, rows):
    """Fill the rows of bodies with positions and the lengths of accelerations.

    Parameters
    ----------
    position, acceleration : (N, 3) array of float64
    length, unit : float
        The units of a length and of an acceleration.
    rows : (N, 5) array of float64
        Filled but for the masses in the fourth column.
    """
    for i in prange(len(rows)):
        for axis in range(3):
            rows[i, axis] = position[i, axis] / length
        x = acceleration[i, 0] / unit  # squares stay in range
        y = acceleration[i, 1] / unit
        z = acceleration[i, 2] / unit
        rows[i, 4] = np.sqrt(x * x + (y * y + z * z))


@compiled_with_threads
def scale_rows(rows, factor, result):
    """Fill `result` with rows of three numbers or more, the first three times a factor.

    Parameters
    ----------
    rows : (N, 3 or more) array of float64
    factor : float
    result : (N, 3) array of float64
        Filled.
    """
    on_threads(scale_some_rows, 0, result.shape[0], (rows, factor, result))


@linked
def scale_some_rows(first, last, rows, factor, result):
    """Do the same for rows first … last - 1."""
    for i in range(first, last):
        for axis in range(3):
            result[i, axis] = factor * rows[i, axis]


def box_of(rows: Vectors) -> Vectors | None:
    """Return the lowest and highest coordinates of bodies, (2, 3).

    They are infinite, the lowest above the highest, where there are no bodies. None is returned if
    a number of `rows`, (N, 4 or 5), is not finite.
    """
    blocks = get_num_threads()
    boxes = np.empty((blocks, 2, 3))
    boxes[:, 0] = np.inf
    boxes[:, 1] = -np.inf
    finite = np.ones(blocks, np.bool_)
    find_boxes(rows, boxes, finite)
    if not finite.all():
        return None
    return box_around(boxes)


@compiled_parallel
def find_boxes(rows, boxes, finite):
    """Find the boxes around blocks of bodies, and whether all of their numbers are finite.

    Parameters
    ----------
    rows : (N, 4 or 5) array of float64
    boxes : (B, 2, 3) array of float64
        Around nothing; they grow.
    finite : (B,) array of bool
        Cleared where a number is not.
    """
    number, columns = rows.shape
    blocks = finite.size
    for block in prange(blocks):
        for i in range(number * block // blocks, number * (block + 1) // blocks):
            for axis in range(3):
                boxes[block, 0, axis] = min(boxes[block, 0, axis], rows[i, axis])
                boxes[block, 1, axis] = max(boxes[block, 1, axis], rows[i, axis])
            for column in range(columns):
                if not np.isfinite(rows[i, column]):
                    finite[block] = False


def sorted_bodies(rows: Vectors, curve: Curve) -> SortedBodies:
    """Return bodies along the curve.

    Parameters
    ----------
    rows : (N, 4 or 5) array of float64
        Positions, masses and, if they are known, the lengths of the last accelerations.
    curve : Curve
    """
    number, given = rows.shape
    bodies = SortedBodies(
        position=np.empty((number, 3)),
        mass=np.empty(number),
        acceleration=np.empty(number) if given > 4 else np.ones(number),
        columns=empty_columns(number),
    )
    if number:
        sort_bodies(rows, curve.order, *bodies)
    return bodies


@compiled_parallel
def sort_bodies(rows, order, position, mass, acceleration, columns):
    """Fill the arrays of `SortedBodies` from rows in an order."""
    known = rows.shape[1] > 4
    for i in prange(order.size):
        row = order[i]
        for axis in range(3):
            position[i, axis] = rows[row, axis]
            columns[axis, i] = rows[row, axis]
        mass[i] = rows[row, 3]
        columns[MASS, i] = rows[row, 3]
        if known:
            acceleration[i] = rows[row, 4]


@compiled_parallel
def unsort(sums, column, starts, work, order, results):
    """Put the sums at bodies, and the work for each, into the order in which bodies came in.

    Parameters
    ----------
    sums : (N, 4) array of float64
        Along the curve.
    column : int
        The first of those wanted.
    starts : (R + 1,) array of int64
        Where the bodies of each part begin along the curve, and where the last ones end.
    work : (R,) array of float64
        For each body of a part.
    order : (N,) array of int32
        The bodies along the curve.
    results : (N, k + 1) array of float64
        Filled: k columns of sums, and the work.
    """
    last = results.shape[1] - 1
    for part in prange(work.size):
        for i in range(starts[part], starts[part + 1]):
            row = order[i]
            for k in range(last):
                results[row, k] = sums[i, column + k] + 0.0  # never -0.0
            results[row, last] = work[part]


@compiled_parallel
def reorder_rows(rows, order, back, result):
    """Copy rows in an order, or from that order back to their places.

    Both in one function take half as long to compile.

    Parameters
    ----------
    rows : (N, k) array of float64
    order : (N,) array of int32
        The number of each row in the order.
    back : bool
        Whether `rows` are in that order, and the result is not.
    result : (N, k) array of float64
        Filled.
    """
    for i in prange(order.size):
        there = order[i]
        for column in range(rows.shape[1]):
            if back:
                result[there, column] = rows[i, column]
            else:
                result[i, column] = rows[there, column]
