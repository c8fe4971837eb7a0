"""The CPU's kernels with six different faces, some of them walls that move."""

import numpy as np
import pytest
from support.fluid_kernels import (
    BOUNDS,
    INSIDE,
    coloured,
    cut,
    exchange,
    ghosts_of_signs,
    insides,
    make_kernels,
    merged,
    parts_of,
    random_fields,
    relax,
    whole,
)

from hybrid_nbody.fluid.grid import Boundary, Face, Ghost, Ghosts
from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.kernels.contract import Flow, Relaxation, Solve, Source, Velocity
from hybrid_nbody.fluid.kernels.cpu.boundary import Signs, SignsAndOffsets, make_images
from hybrid_nbody.fluid.stencil import diffusion

SLIP, STICK, AROUND = Face("free-slip"), Face("no-slip"), Face("periodic")
LID = Face("no-slip", (0.7, -0.4, 0.2))
BOUNDARIES = {
    "at rest": Boundary((STICK, SLIP, SLIP, STICK, STICK, SLIP)),
    "lid": Boundary((STICK, STICK, SLIP, SLIP, STICK, LID)),
    "moving": Boundary((LID, STICK, SLIP, LID, LID, Face("free-slip", (0.3, 0.2, -0.6)))),
    "lid around x": Boundary((AROUND, AROUND, STICK, LID, SLIP, STICK)),
    "lid around z": Boundary((LID, SLIP, STICK, LID, AROUND, AROUND)),
}
CELLS = [(34, 5, 4), (7, 4, 6), (36, 3, 8)]


@pytest.fixture(params=BOUNDARIES)
def boundary(request):
    """Six faces, not all alike."""
    return BOUNDARIES[request.param]


@pytest.fixture(params=CELLS, ids=str)
def cells(request, boundary):
    """Cells of a grid; even along periodic axes."""
    return tuple(n + n % 2 * p for n, p in zip(request.param, boundary.periodic, strict=True))


@pytest.fixture
def slab(cells, boundary):
    """A grid of one rank."""
    return whole(cells, boundary)


def imposed(kernels, field, stencil):
    """Return a right-hand side with the offsets of the ghosts."""
    b = coloured(kernels, field)
    kernels.impose(stencil, b)
    return b


def test_offsets_are_compiled_only_where_there_are_some():
    assert isinstance(make_images(ghosts_of_signs(1, -1, 1), np.float32), Signs)
    images = make_images(Ghosts(z_high=Ghost(-1, 0.5)), np.float32)
    assert isinstance(images, SignsAndOffsets)
    assert images.z_high_offset == np.float32(0.5)
    assert {type(number) for number in images} == {np.float32}


@pytest.mark.parametrize("component", [0, 1, 2])
def test_solves_are_those_of_the_reference(slab, dtype, component):
    stencil = diffusion(0.7, slab.boundary.velocity_ghosts[component])
    kernels, (x, b) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    expected, _ = reference.relax(*insides((x, b)), stencil, slab.boundary, 5)
    colours, right_side = coloured(kernels, x), imposed(kernels, b, stencil)
    relax(kernels, colours, right_side, Solve(stencil, 0.0, 5))
    np.testing.assert_allclose(merged(kernels, colours), expected, **BOUNDS[dtype])
    found = merged(kernels, colours).astype("f8")
    largest = np.abs(reference.residual(found, b[INSIDE], stencil, slab.boundary)).max()
    residual = kernels.residual(colours, right_side, stencil)
    np.testing.assert_allclose(residual, largest, rtol=1e-3, atol=1e-5)


def test_lexicographic_solves_are_those_of_the_reference(slab, dtype):
    stencil = diffusion(0.7, slab.boundary.velocity_ghosts[0])
    kernels, (x, b) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    expected = reference.relax_lexicographic(*insides((x, b)), stencil, slab.boundary, 2)
    right_side = kernels.field()
    kernels.merge(imposed(kernels, b, stencil), right_side)
    kernels.relax_lexicographic(x, right_side, stencil, 2)
    np.testing.assert_allclose(x[INSIDE], expected, **BOUNDS[dtype])


@pytest.mark.parametrize("parts", [2, 3])
def test_ranks_give_the_bits_of_one(slab, dtype, parts):
    stencil = diffusion(0.7, slab.boundary.velocity_ghosts[0])
    kernels, (x, b) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    colours = coloured(kernels, x)
    relax(kernels, colours, imposed(kernels, b, stencil), Solve(stencil, -1.0, 3))
    slabs = cut(slab.cells, slab.boundary, parts)
    each = [make_kernels(part, dtype) for part in slabs]
    xs = [coloured(k, part) for k, part in zip(each, parts_of(x, slabs), strict=True)]
    bs = [imposed(k, part, stencil) for k, part in zip(each, parts_of(b, slabs), strict=True)]
    relaxation = Relaxation(stencil, stencil.fixed_ghost_factors, -1.0)
    for _ in range(3):
        for colour in (0, 1):
            exchange(slabs, [part[1 - colour] for part in xs])
            for k, part, right_side in zip(each, xs, bs, strict=True):
                k.sweep(colour, part, right_side, relaxation)
    found = np.concatenate([merged(k, part) for k, part in zip(each, xs, strict=True)])
    np.testing.assert_array_equal(found, merged(kernels, colours))


def test_differences_are_those_of_the_reference(slab, dtype):
    kernels, (u, v, w) = make_kernels(slab, dtype), random_fields(slab, 3, dtype)
    velocity, divergence, length = Velocity(u, v, w), kernels.colours(), kernels.field()
    kernels.divergence(velocity, 0.7, divergence)
    expected = reference.divergence(insides(velocity), slab.boundary, 0.7)
    np.testing.assert_allclose(merged(kernels, divergence), expected, **BOUNDS[dtype])
    kernels.curl_length(velocity, length)
    curl = reference.curl(insides(velocity), slab.boundary, slab.spacing)
    np.testing.assert_allclose(length[INSIDE], np.sqrt(sum(c**2 for c in curl)), rtol=1e-4)


def test_confinement_is_that_of_the_reference(slab, dtype):
    kernels, (u, v, w) = make_kernels(slab, dtype), random_fields(slab, 3, dtype)
    velocity, length = Velocity(u, v, w), kernels.field()
    out = Velocity(*(kernels.field() for _ in range(3)))
    kernels.curl_length(velocity, length)
    kernels.confine(velocity, length, 0.2, out)
    force = reference.confinement(insides(velocity), slab.boundary, slab.spacing, 0.2)
    for found, old, change in zip(out, insides(velocity), force, strict=True):
        np.testing.assert_allclose(found[INSIDE], old + change, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("component", [0, 1, 2])
@pytest.mark.parametrize("scale", [0.3, 1.7])
def test_advection_is_that_of_the_reference(slab, dtype, component, scale):
    kernels, fields = make_kernels(slab, dtype), random_fields(slab, 4, dtype)
    source, velocity = fields[0], Velocity(*fields[1:])
    scale = float(source.dtype.type(scale))
    ghosts = slab.boundary.velocity_ghosts[component]
    arguments = insides((source,))[0], insides(velocity), scale, slab.boundary, ghosts
    bound = {"rtol": 0, "atol": 1e-11 if dtype == "f8" else 3e-5}
    carried, flow = Source(source, 1, ghosts), Flow(velocity, scale)
    forward, out = kernels.field(), kernels.field()
    kernels.advect(carried, forward, flow)
    np.testing.assert_allclose(forward[INSIDE], reference.advect(*arguments), **bound)
    kernels.correct(carried, forward, out, flow)
    np.testing.assert_allclose(out[INSIDE], reference.advect_maccormack(*arguments), **bound)
