"""Advection on CPU threads against plain NumPy, around edges and across slabs."""

import itertools

import numpy as np
import pytest
from support.fluid_kernels import (
    AROUND,
    FREE,
    INSIDE,
    MIXED,
    cut,
    ghosts_of_signs,
    insides,
    make_kernels,
    random_fields,
    whole,
)

from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.kernels.contract import Flow, Source, Velocity
from hybrid_nbody.fluid.stencil import SCALAR


@pytest.mark.parametrize("ghosts", [SCALAR, ghosts_of_signs(-1, 1, -1)])
@pytest.mark.parametrize("scale", [0.2, 1.7, 40.0])
def test_carried_as_the_reference(case, dtype, scale, ghosts):
    slab = whole(*case)
    kernels, (source, u, v, w) = make_kernels(slab, dtype), random_fields(slab, 4, dtype)
    scale = float(source.dtype.type(scale))
    arguments = insides((source,))[0], insides((u, v, w)), scale, slab.boundary, ghosts
    bound = {"rtol": 0, "atol": 1e-11 if dtype == "f8" else 3e-6 * max(scale, 10)}
    forward, out = kernels.field(), kernels.field()
    carried, flow = Source(source, 1, ghosts), Flow(Velocity(u, v, w), scale)
    kernels.advect(carried, forward, flow)
    np.testing.assert_allclose(forward[INSIDE], reference.advect(*arguments), **bound)
    kernels.correct(carried, forward, out, flow)
    np.testing.assert_allclose(out[INSIDE], reference.advect_maccormack(*arguments), **bound)


def smooth_velocity(slab, dtype):
    """Return a flow in which neighbours come from neighbours, over a few cells."""
    z, y, x = np.indices(slab.shape)
    return [
        (size * np.sin(0.1 * x + 0.2 * y - 0.15 * z + size)).astype(dtype)
        for size in (2.0, -3.0, 1.5)
    ]


@pytest.mark.parametrize("boundary", [FREE, AROUND])
@pytest.mark.parametrize("shift", list(itertools.product((-1, 0, 1), repeat=3)))
def test_feet_on_both_sides_of_a_cell_carry_as_the_reference(boundary, dtype, shift):
    """Those around an edge find there what was stored for them: other memory is NaN."""
    slab = whole((48, 5, 4), boundary)
    kernels = make_kernels(slab, dtype)
    (source,) = random_fields(slab, 1, dtype)
    out = np.empty(slab.shape, dtype)
    swing = 0.2 * np.sin(0.3 * np.indices(slab.shape)[2])
    velocity = [(cells + swing).astype(dtype) for cells in shift]
    scratch = np.full(10 * source.size, np.nan, dtype)
    kernels.advect(Source(source, 1, SCALAR), out, Flow(Velocity(*velocity), 1.0), scratch)
    expected = reference.advect(*insides((source,)), insides(velocity), 1.0, boundary, SCALAR)
    np.testing.assert_allclose(out[INSIDE], expected, rtol=0, atol=1e-12 if dtype == "f8" else 3e-5)


@pytest.mark.parametrize("boundary", [FREE, AROUND, MIXED])
def test_a_smooth_flow_carries_as_the_reference(boundary, dtype):
    slab = whole((50, 6, 8), boundary)
    kernels, (source,) = make_kernels(slab, dtype), random_fields(slab, 1, dtype)
    velocity, out = smooth_velocity(slab, dtype), kernels.field()
    ghosts = ghosts_of_signs(1, -1, 1)
    kernels.advect(Source(source, 1, ghosts), out, Flow(Velocity(*velocity), 1.0))
    expected = reference.advect(*insides((source,)), insides(velocity), 1.0, boundary, ghosts)
    np.testing.assert_allclose(out[INSIDE], expected, rtol=0, atol=1e-12 if dtype == "f8" else 3e-5)


@pytest.mark.parametrize("boundary", [FREE, AROUND])
def test_carried_bits_do_not_depend_on_ranks(boundary, dtype):
    cells, reach = (20, 4, 12), 4
    slab = whole(cells, boundary)
    kernels, (source,) = make_kernels(slab, dtype), random_fields(slab, 1, dtype)
    velocity, out = smooth_velocity(slab, dtype), kernels.field()
    kernels.advect(Source(source, 1, SCALAR), out, Flow(Velocity(*velocity), 1.0))
    planes = np.arange(-reach, cells[2] + reach)
    planes = planes % cells[2] if boundary == AROUND else np.clip(planes, 0, cells[2] - 1)
    far = source[INSIDE][planes]
    for part in cut(cells, boundary, 3):
        own = make_kernels(part, dtype)
        result = own.field()
        speeds = [v[part.first : part.first + part.planes + 2] for v in velocity]
        planes = far[part.first : part.first + part.planes + 2 * reach]
        own.advect(Source(planes, reach, SCALAR), result, Flow(Velocity(*speeds), 1.0))
        np.testing.assert_array_equal(
            result[INSIDE], out[1 + part.first : 1 + part.first + part.planes]
        )


@pytest.mark.parametrize("boundary", [FREE, AROUND])
def test_a_velocity_that_is_not_a_number_is_seen_in_the_result(boundary, dtype):
    slab = whole((34, 6, 4), boundary)
    kernels, (source, u, v, w) = make_kernels(slab, dtype), random_fields(slab, 4, dtype)
    out = kernels.field()
    for component, cell in zip((u, v, w), ((1, 2, 3), (2, 3, 20), (4, 5, 33)), strict=True):
        component[cell] = np.nan
    kernels.advect(Source(source, 1, SCALAR), out, Flow(Velocity(u, v, w), 1.0))
    np.testing.assert_array_equal(np.isnan(out), np.isnan(u + v + w))
