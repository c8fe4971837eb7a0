"""Sums and largest values on CPU threads.

Sums are float64 and run along columns of a plane first: their order follows from the size of a
plane alone.
"""

import numpy as np

from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.cpu.layout import compiled_with_threads, linked, linked_with_arrays


@linked
def total_of(values):
    """Return the sum of a row, from the first to the last."""
    total = 0.0
    for value in values:
        total += value
    return total


@linked
def add_row(row, columns):
    """Add a row to the sums of the columns."""
    for c in range(row.size):
        columns[c] += row[c]


@linked
def add_row_squared(row, columns):
    """Add the squares of a row to the sums of the columns."""
    for c in range(row.size):
        columns[c] += np.float64(row[c]) * np.float64(row[c])


@linked_with_arrays
def columns_of(plane):
    """Return the sums of the columns of a plane."""
    columns = np.zeros(plane.shape[1])
    for y in range(plane.shape[0]):
        add_row(plane[y], columns)
    return columns


@linked
def total_with_ghosts(plane, walled_x, walled_y):
    """Return the sum of a plane in which cells at walls count once more for each wall."""
    columns = columns_of(plane)
    if walled_y:
        add_row(plane[0], columns)
        add_row(plane[-1], columns)
    ghosts = columns[0] + columns[-1] if walled_x else 0.0
    return total_of(columns) + ghosts


@linked_with_arrays
def total_of_squares(plane):
    """Return the sum of the squares of a plane."""
    columns = np.zeros(plane.shape[1])
    for y in range(plane.shape[0]):
        add_row_squared(plane[y], columns)
    return total_of(columns)


@linked
def largest_in(plane):
    """Return the largest absolute value of a plane; NaN if it holds one."""
    largest = abs(plane[0, 0])
    wrong = 0
    for y in range(plane.shape[0]):
        for c in range(plane.shape[1]):
            value = abs(plane[y, c])
            largest = value if value > largest else largest
            wrong += value != value
    return largest if wrong == 0 else largest * np.nan


# ---- All planes ----------------------------------------------------------------------------------


@linked_with_arrays
def sum_at(z, field, walled_x, walled_y, result):
    """Store the sum of a plane and of its ghosts at walls."""
    result[z] = total_with_ghosts(field[z + 1], walled_x, walled_y)


@linked_with_arrays
def add_squares_at(z, field, result):
    """Add the sum of the squares of a plane to its result."""
    result[z] += total_of_squares(field[z + 1])


@linked
def store_largest_at(z, field, result):
    """Store the largest absolute value of a plane."""
    result[z] = largest_in(field[z + 1])


@compiled_with_threads
def plane_sums(field, walled_x, walled_y, result):
    """Fill `result` with the sum of every plane but the halos, and of its ghosts at walls."""
    each_on_threads(sum_at, 0, result.size, (field, walled_x, walled_y, result))


@compiled_with_threads
def add_plane_squares(field, result):
    """Add the sum of the squares of every plane but the halos to `result`."""
    each_on_threads(add_squares_at, 0, result.size, (field, result))


@compiled_with_threads
def largest_per_plane(field, result):
    """Fill `result` with the largest absolute value of every plane but the halos."""
    each_on_threads(store_largest_at, 0, result.size, (field, result))
