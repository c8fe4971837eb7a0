"""Sums and largest values over the staggered grid in vector code.

They stand in for functions of `cells.conjugate_gradients` and `cells.sums`.

Sums are of float64. Each lane has its own along the rows of a plane, and these are added in the
end: the order follows from the size of a plane alone.
"""

import numpy as np

from hybrid_nbody.backends.simd import (
    LANES,
    address_of,
    broadcast,
    converted,
    fabs,
    load,
    load_partial,
    maximum,
    minimum,
    reduce_add,
    reduce_max,
)
from hybrid_nbody.backends.threads import each_on_threads
from hybrid_nbody.fluid.kernels.cpu.layout import compiled_with_threads, inlined, linked


@inlined
def numbers_at(array, place, end):
    """Return LANES numbers of a row; 0 for those beyond its end."""
    if place + LANES <= end:
        return load(array, place)
    return load_partial(array, place, end - place)


@inlined
def row_of(k, j, region, sizes):
    """Return the places of the first element of a row and of that after its last."""
    rows, columns = sizes
    start = (k * rows + j) * columns
    return start + region[2], start + region[3]


@inlined
def positive(numbers):
    """Return numbers, and 0 for those that are less."""
    return maximum(numbers, numbers - numbers)


@inlined
def sum_over(term, fields, k, region, sizes):
    """Return the sum of ``term(fields, place, end)``, LANES numbers of a row, over a plane."""
    total = broadcast(0.0)
    for j in range(region[0], region[1]):
        start, end = row_of(k, j, region, sizes)
        for place in range(start, end, LANES):
            total = total + converted(term(fields, place, end), np.float64)
    return reduce_add(total)


@inlined
def product(fields, place, end):
    """Return the products of two fields, each times a factor."""
    a, b, factor = fields
    return (factor * numbers_at(a, place, end)) * (factor * numbers_at(b, place, end))


@inlined
def size(fields, place, end):
    """Return the sizes of a field."""
    return fabs(numbers_at(fields[0], place, end))


@inlined
def growth(fields, place, end):
    """Return what a field has grown; 0 where it has shrunk."""
    before, after = fields
    return positive(numbers_at(after, place, end) - numbers_at(before, place, end))


@linked
def dot_plane(k, a, b, unit, found, region, sizes):
    """Store the sum of the products of two fields in a plane, each times `unit`."""
    found[k] = sum_over(product, (a, b, broadcast(unit)), k, region, sizes)


@linked
def largest_plane(k, a, zero, found, region, sizes):
    """Store the largest size of a field in a plane; a number that is NaN counts as infinite."""
    largest = broadcast(zero)
    infinite = broadcast(type(zero)(np.inf))
    for j in range(region[0], region[1]):
        start, end = row_of(k, j, region, sizes)
        for place in range(start, end, LANES):
            numbers = minimum(size((a,), place, end), infinite)  # not NaN
            largest = maximum(numbers, largest)
    found[k] = reduce_max(largest)


@linked
def magnitude_plane(k, a, found, region, sizes):
    """Store the sum of the sizes of a field in a plane."""
    found[k] = sum_over(size, (a,), k, region, sizes)


@linked
def grown_plane(k, before, after, found, region, sizes):
    """Store the sum of what the elements of a plane have grown; those that have shrunk add 0."""
    found[k] = sum_over(growth, (before, after), k, region, sizes)


# ---- All planes ----------------------------------------------------------------------------------


@compiled_with_threads
def run_dot(
    k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns, found, a, b, unit
):  # fmt: skip
    """Call `dot` for the cells of a region."""
    given = (address_of(a), address_of(b), unit, found, (j0, j1, i0, i1), (rows, columns))
    each_on_threads(dot_plane, k0, k1, given)


@compiled_with_threads
def run_largest(
    k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns, found, a
):  # fmt: skip
    """Call `largest` for the cells of a region."""
    zero = a.dtype.type(0.0)
    given = (address_of(a), zero, found, (j0, j1, i0, i1), (rows, columns))
    each_on_threads(largest_plane, k0, k1, given)


@compiled_with_threads
def run_magnitude(
    k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns, found, a
):  # fmt: skip
    """Call `magnitude` for the cells of a region."""
    given = (address_of(a), found, (j0, j1, i0, i1), (rows, columns))
    each_on_threads(magnitude_plane, k0, k1, given)


@compiled_with_threads
def run_gained(
    k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns, found, before, a
):  # fmt: skip
    """Call `gained` for the cells of a region."""
    given = (address_of(before), address_of(a), found, (j0, j1, i0, i1), (rows, columns))
    each_on_threads(grown_plane, k0, k1, given)


@compiled_with_threads
def run_lost(
    k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns, found, before, a
):  # fmt: skip
    """Call `lost` for the cells of a region: what it has gained on the way back."""
    box = (k0, k1, j0, j1, i0, i1, parity, rows, columns, table_rows, table_columns)
    run_gained(*box, found, a, before)
