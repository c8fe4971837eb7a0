"""Subnormal numbers are zero in diffusion, projection and advection on CPUs that can have them so,
and nowhere else.

A number below the smallest normal one has fewer digits the smaller it is, and operations with it
are slow.
"""

import numpy as np
import pytest
from support.fluid_kernels import (
    FREE,
    INSIDE,
    coloured,
    make_kernels,
    merged,
    random_fields,
    relax,
    whole,
)

from hybrid_nbody.fluid.kernels.contract import Flow, Relaxation, Solve, Source, Velocity
from hybrid_nbody.fluid.stencil import POISSON, SCALAR, diffusion

CELLS = (35, 5, 6)
THREADS = [1, 2, 3]


@pytest.fixture(params=["f4", "f8"])
def smallest(request):
    """The smallest normal number of a type."""
    from hybrid_nbody.backends.subnormals import FLUSHES

    if not FLUSHES:
        pytest.skip("subnormal numbers stay what they are on this processor")
    return np.finfo(request.param).smallest_normal


def subnormal_fields(slab, number, smallest):
    """Return fields of subnormal numbers."""
    random = np.random.default_rng(7)
    return list(
        (smallest * random.uniform(-0.9, 0.9, (number, *slab.shape))).astype(smallest.dtype)
    )


def solve(kernels, x, b):
    relax(kernels, x, b, Solve(diffusion(0.3, SCALAR), 0.0, 3))


def sweep(kernels, x, b):
    stencil = diffusion(0.3, SCALAR)
    for colour in (0, 1):
        kernels.sweep(colour, x, b, Relaxation(stencil, stencil.fixed_ghost_factors, 0.0))


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("action", [solve, sweep])
def test_a_subnormal_right_side_is_none(smallest, action, threads):
    slab = whole(CELLS, FREE)
    kernels = make_kernels(slab, smallest.dtype.str[1:], threads)
    (b,) = subnormal_fields(slab, 1, smallest)
    x = coloured(kernels, np.zeros_like(b))
    action(kernels, x, coloured(kernels, b))
    assert not merged(kernels, x).any()


def test_in_the_order_of_memory_too(smallest):
    slab = whole(CELLS, FREE)
    kernels, (b,) = make_kernels(slab, smallest.dtype.str[1:]), subnormal_fields(slab, 1, smallest)
    x = np.zeros_like(b)
    kernels.relax_lexicographic(x, b, diffusion(0.3, SCALAR), 2)
    assert not x.any()


@pytest.mark.parametrize("cells", [CELLS, (7, 5, 6)])
@pytest.mark.parametrize("threads", THREADS)
def test_nothing_is_carried_of_a_subnormal_field(smallest, cells, threads):
    """Neither by whole vectors nor, in rows shorter than one, cell by cell."""
    slab, dtype = whole(cells, FREE), smallest.dtype.str[1:]
    kernels = make_kernels(slab, dtype, threads)
    (source, forward) = subnormal_fields(slab, 2, smallest)
    velocity, out = random_fields(slab, 3, dtype), kernels.field()
    carried, flow = Source(source, 1, SCALAR), Flow(Velocity(*velocity), 1.7)
    kernels.advect(carried, out, flow)
    assert not out.any()
    kernels.correct(carried, forward, out, flow)
    assert not out.any()


@pytest.mark.parametrize("threads", THREADS)
def test_a_subnormal_velocity_has_no_divergence_and_a_subnormal_pressure_no_gradient(
    smallest, threads
):
    slab, dtype = whole(CELLS, FREE), smallest.dtype.str[1:]
    kernels, (u, v, w, p) = make_kernels(slab, dtype, threads), subnormal_fields(slab, 4, smallest)
    colours = kernels.colours()
    kernels.divergence(Velocity(u, v, w), 0.5, colours)
    assert not colours.any()
    kernels.split_carried(kernels.field(), 0.5, p, colours, kernels.colours())
    assert not colours.any()
    velocity = [kernels.field() for _ in range(3)]
    kernels.subtract_gradient(Velocity(*velocity), coloured(kernels, p), 0.5)
    assert not np.any(velocity)


@pytest.mark.parametrize("threads", THREADS)
def test_threads_are_left_as_they_were(smallest, threads):
    """Else NumPy, and compiled loops of others in the same threads, would lose numbers."""
    slab, dtype = whole(CELLS, FREE), smallest.dtype.str[1:]
    kernels, (x, b, u, v, w) = make_kernels(slab, dtype, threads), random_fields(slab, 5, dtype)
    colours = coloured(kernels, x)
    carried, flow = Source(x, 1, SCALAR), Flow(Velocity(u, v, w), 1.7)
    relaxation = Relaxation(POISSON, POISSON.fixed_ghost_factors, 0.0)
    for after in (
        lambda: relax(kernels, colours, coloured(kernels, b), Solve(POISSON, 0.0, 5)),
        lambda: kernels.sweep(0, colours, coloured(kernels, b), relaxation),
        lambda: kernels.advect(carried, kernels.field(), flow),
        lambda: kernels.correct(carried, b, kernels.field(), flow),
        lambda: kernels.relax_lexicographic(x.copy(), b, POISSON, 1),
        lambda: kernels.split_carried(x, 0.5, b, kernels.colours(), kernels.colours()),
        lambda: kernels.divergence(Velocity(u, v, w), 0.5, kernels.colours()),
        lambda: kernels.subtract_gradient(flow.velocity, colours, 0.5),
    ):
        after()
        half = np.full(slab.shape, smallest) / smallest.dtype.type(2)
        assert (half > 0).all()
        forced = [kernels.field() for _ in range(3)]
        kernels.buoyancy(Velocity(*forced), half, (0.5, 0.5, 0.5))
        for component in forced:
            assert (component[INSIDE] == smallest / smallest.dtype.type(4)).all()
