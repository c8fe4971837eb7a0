"""The elements of a box between fields with ghosts and colours, against NumPy."""

import numpy as np
import pytest
from support.bodies import make_backend
from support.fluid_kernels import CASES

from hybrid_nbody.fluid.grid import Slab
from hybrid_nbody.fluid.kernels import make_kernels

FIRST = (2, 1, 3)
"""Where the box begins in fields, along z, y and x."""

MARGIN = 4
"""Planes, rows and columns of fields that are none of the box."""

SLABS = [Slab.whole(*case) for case in CASES] + [Slab((33, 3, 17), CASES[1][1], 5, 4)]


@pytest.fixture
def backend(backend_name):
    return make_backend(backend_name, threads=2)


@pytest.fixture(params=["f4", "f8"])
def dtype(request):
    return request.param


def fields(slab, dtype, number=1):
    """Return fields with ghosts of random numbers."""
    columns, rows, _ = slab.cells
    shape = (number, slab.planes + MARGIN, rows + MARGIN, columns + MARGIN)
    return list(np.random.default_rng(3).normal(size=shape).astype(dtype))


def box_of(field, slab, k=0, j=0, i=0):
    """Return the elements of a field that are in the box, or those some steps beside them."""
    starts = np.add(FIRST, (k, j, i))
    ends = np.add(starts, (slab.planes, slab.cells[1], slab.cells[0]))
    return field[tuple(map(slice, starts, ends))]


def elements(kernels, colours):
    """Return what colours hold, without halo planes."""
    table = kernels.backend.zeros(kernels.slab.shape, kernels.dtype)
    kernels.merge(colours, table)
    return kernels.backend.download(table)[1:-1]


@pytest.mark.parametrize("slab", SLABS, ids=str)
def test_what_diffusion_changes(backend, dtype, slab):
    kernels = make_kernels(backend, slab, dtype)
    (a,) = fields(slab, dtype)
    b = kernels.colours()
    kernels.split_spread(backend.upload(a), FIRST, 0.3, b)
    steps = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    around = sum(box_of(a, slab, *step) + box_of(a, slab, *np.negative(step)) for step in steps)
    expected = 0.3 * (around - 6.0 * box_of(a, slab))
    tolerance = {"f4": 1e-5, "f8": 1e-13}[dtype]
    np.testing.assert_allclose(elements(kernels, b), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("slab", SLABS, ids=str)
def test_what_flows_out_of_cells(backend, dtype, slab):
    kernels = make_kernels(backend, slab, dtype)
    u, v, w = fields(slab, dtype, 3)
    b = kernels.colours()
    kernels.split_divergence(tuple(map(backend.upload, (u, v, w))), FIRST, -2.0, b)
    pairs = ((u, (0, 0, 1)), (v, (0, 1, 0)), (w, (1, 0, 0)))
    expected = -2.0 * sum(box_of(a, slab, *step) - box_of(a, slab) for a, step in pairs)
    tolerance = {"f4": 1e-5, "f8": 1e-13}[dtype]
    np.testing.assert_allclose(elements(kernels, b), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("slab", SLABS, ids=str)
def test_elements_come_back_and_others_stay(backend, dtype, slab):
    kernels = make_kernels(backend, slab, dtype)
    a, other = fields(slab, dtype, 2)
    (table,) = fields(slab, dtype)
    table = np.ascontiguousarray(table[: slab.planes + 2, : slab.cells[1], : slab.cells[0]])
    colours = kernels.colours()
    kernels.split(backend.upload(table), colours)
    into, onto = backend.upload(a), backend.upload(other)
    kernels.merge_into(colours, into, FIRST)
    kernels.merge_onto(colours, onto, FIRST)
    box_of(a, slab)[...] = table[1:-1]
    box_of(other, slab)[...] += table[1:-1]
    np.testing.assert_array_equal(backend.download(into), a)
    np.testing.assert_array_equal(backend.download(onto), other)
