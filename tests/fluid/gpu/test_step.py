"""The GPU's parts of a step against the reference."""

import numpy as np
import pytest
from support.fluid_kernels import ghosts_of_signs
from support.gpu_kernels import (
    CASES,
    close,
    colours_of,
    inner,
    make,
    merged,
    rounded,
    upload,
    values,
)

from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.kernels.contract import Flow, Source, Velocity
from hybrid_nbody.fluid.stencil import SCALAR

pytestmark = pytest.mark.gpu


def velocity_of(case, dtype, scale=1.0):
    return [rounded(values(case, seed, scale), dtype) for seed in (4, 5, 6)]


def test_what_is_carried_over_is_added_and_guessed(backend, case, dtype):
    kernels = make(backend, case, dtype)
    x, y = values(case, 1), values(case, 2)
    right_side, guess = kernels.colours(), kernels.colours()
    kernels.split_carried(upload(kernels, x), 0.25, upload(kernels, y), right_side, guess)
    close(merged(kernels, right_side), x + 0.25 * y, dtype)
    close(merged(kernels, guess), y, dtype)


def test_projection_parts(backend, case, dtype):
    kernels, velocity, p = make(backend, case, dtype), velocity_of(case, dtype), values(case, 7)
    fields, colours = [upload(kernels, c) for c in velocity], kernels.colours()
    kernels.divergence(Velocity(*fields), -0.3, colours)
    close(merged(kernels, colours), reference.divergence(velocity, case[1], -0.3), dtype)
    kernels.subtract_gradient(Velocity(*fields), colours_of(kernels, p), 0.7)
    for field, before, slope in zip(
        fields, velocity, reference.gradient(p, case[1], 0.7), strict=True
    ):
        close(inner(kernels, field), before - slope, dtype)


@pytest.mark.parametrize(
    "ghosts", [SCALAR, ghosts_of_signs(-1, 1, -1), ghosts_of_signs(-1, -1, -1)]
)
@pytest.mark.parametrize("scale", [0.3, 9.0])
def test_advection(backend, case, dtype, ghosts, scale):
    kernels = make(backend, case, dtype)
    velocity = velocity_of(case, dtype)
    source = rounded(values(case, 7), dtype)
    fields, out = [upload(kernels, c) for c in velocity], kernels.field()
    flow = Flow(Velocity(*fields), scale)
    kernels.advect(Source(upload(kernels, source), 1, ghosts), out, flow)
    forward = reference.advect(source, velocity, scale, case[1], ghosts)
    close(inner(kernels, out), forward, dtype, 10)
    corrected = kernels.field()
    carried = Source(upload(kernels, source), 1, ghosts)
    kernels.correct(carried, upload(kernels, forward), corrected, flow)
    expected = reference.advect_maccormack(source, velocity, scale, case[1], ghosts)
    close(inner(kernels, corrected), expected, dtype, 10)


@pytest.mark.parametrize("scale", [1.7, -4.0])
def test_a_velocity_that_carries_itself(backend, case, dtype, scale):
    kernels = make(backend, case, dtype)
    velocity = [rounded(values(case, seed), dtype) for seed in (1, 2, 3)]
    fields = [upload(kernels, component) for component in velocity]
    outs = [kernels.field() for _ in range(3)]
    kernels.advect_velocity(Velocity(*outs), Flow(Velocity(*fields), scale))
    for component, (found, single) in enumerate(zip(outs, velocity, strict=True)):
        ghosts = kernels.slab.velocity_ghosts[component]
        close(
            inner(kernels, found),
            reference.advect(single, velocity, scale, case[1], ghosts),
            dtype,
            10.0,
        )


@pytest.mark.parametrize("speed", [1e30, -1e30, np.nan])
def test_advection_from_nowhere(backend, case, dtype, speed):
    """A trace that is too long reads some cell; one that is no number leads to none."""
    kernels, source = make(backend, case, dtype), rounded(values(case, 7), dtype)
    fields, out = [upload(kernels, np.full(source.shape, speed)) for _ in range(3)], kernels.field()
    carried, flow = Source(upload(kernels, source), 1, SCALAR), Flow(Velocity(*fields), 1.0)
    kernels.advect(carried, out, flow)
    found = inner(kernels, out)
    assert np.isnan(found).all() if np.isnan(speed) else (np.abs(found) <= 1).all()
    kernels.correct(carried, upload(kernels, source), out, flow)
    np.testing.assert_array_equal(np.isnan(inner(kernels, out)), np.isnan(speed))


@pytest.mark.parametrize("name", ["walls", "periodic"])
def test_advection_in_a_part_of_the_grid(backend, dtype, name):
    """All planes that traces reach are given: a periodic axis does not wrap then."""
    case, scale, below = CASES[name], 2.5, 3
    whole, part = make(backend, case, dtype), make(backend, case, dtype, 3, 3)
    velocity, source = velocity_of(case, dtype), values(case, 7)
    expected, found = whole.field(), part.field()
    flow = Flow(Velocity(*(upload(whole, c) for c in velocity)), scale)
    whole.advect(Source(upload(whole, source), 1, SCALAR), expected, flow)
    planes = np.arange(3 - below, 6 + below) % case[0][2]
    around = backend.upload(source[planes].astype(dtype))
    flow = Flow(Velocity(*(upload(part, c) for c in velocity)), scale)
    part.advect(Source(around, below, SCALAR), found, flow)
    reach = slice(3, 6)
    np.testing.assert_array_equal(inner(part, found), inner(whole, expected)[reach])


def test_vorticity(backend, case, dtype):
    kernels, velocity = make(backend, case, dtype), velocity_of(case, dtype)
    spacing = kernels.slab.spacing
    fields = [upload(kernels, c) for c in velocity]
    length = kernels.field()
    kernels.curl_length(Velocity(*fields), length)
    expected = np.sqrt(sum(c**2 for c in reference.curl(velocity, case[1], spacing)))
    close(inner(kernels, length), expected, dtype, 5)
    new = [kernels.field() for _ in fields]
    kernels.confine(Velocity(*fields), upload(kernels, expected), 0.2, Velocity(*new))
    change = reference.confinement(velocity, case[1], spacing, 0.2)
    for field, before, added in zip(new, velocity, change, strict=True):
        close(inner(kernels, field), before + added, dtype, 50)


def test_sources(backend, case, dtype):
    kernels, (nx, ny, nz) = make(backend, case, dtype), case[0]
    x = rounded(values(case, 8), dtype)
    field, expected = upload(kernels, x), x.copy()
    box = (nx // 3, nx, 0, ny // 2 + 1, nz // 2, nz)
    cut = slice(box[4], box[5]), slice(box[2], box[3]), slice(box[0], box[1])
    kernels.add_box(field, box, 0.5)
    expected[cut] += 0.5
    close(inner(kernels, field), expected, dtype)
    kernels.set_box(field, box, 2.0)
    expected[cut] = 2.0
    z, y, c = np.indices(x.shape)
    centre, radius = (nx / 2, ny / 3, nz / 2), 2.2
    ball = (c - centre[0]) ** 2 + (y - centre[1]) ** 2 + (z - centre[2]) ** 2 <= radius**2
    kernels.set_sphere(field, centre, radius, 3.0)
    expected[ball] = 3.0
    kernels.add_sphere(field, centre, radius, 0.25)
    expected[ball] += 0.25
    close(inner(kernels, field), expected, dtype)
    fields = [upload(kernels, x) for _ in range(3)]
    kernels.buoyancy(Velocity(*fields), field, (0.0, 0.5, -1.0))
    for component, factor in zip(fields, (0.0, 0.5, -1.0), strict=True):
        close(inner(kernels, component), x + factor * expected, dtype)


def test_plane_sums(backend, case, dtype):
    kernels, x = make(backend, case, dtype), rounded(values(case, 9), dtype)
    field, cells = upload(kernels, x), case[0][0] * case[0][1]
    np.testing.assert_allclose(kernels.plane_sums(field), x.sum(axis=(1, 2)), atol=1e-14 * cells)
    np.testing.assert_allclose(
        kernels.plane_squares(field, field), 2 * (x**2).sum(axis=(1, 2)), rtol=1e-12
    )
    edges = [np.ones(n) for n in case[0][:2]]
    for axis, edge in enumerate(edges):
        if not kernels.slab.periodic[axis]:
            edge[0] += 1
            edge[-1] += 1
    expected = (x * edges[0][None, None, :] * edges[1][None, :, None]).sum(axis=(1, 2))
    np.testing.assert_allclose(kernels.plane_sums_with_ghosts(field), expected, atol=4e-14 * cells)
