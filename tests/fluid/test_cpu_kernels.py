"""The CPU's fluid kernels against plain NumPy, and bits that must not depend on threads and ranks."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bodies import make_backend

from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.slab import Slab
from hybrid_nbody.fluid.stencil import POISSON, SCALAR, Stencil, diffusion

FREE, STUCK, AROUND = ("free-slip",) * 3, ("no-slip",) * 3, ("periodic",) * 3
MIXED, TURNED = ("periodic", "no-slip", "free-slip"), ("free-slip", "no-slip", "periodic")
CASES = [
    ((7, 5, 4), FREE),
    ((33, 3, 17), STUCK),
    ((3, 3, 3), STUCK),
    ((8, 6, 10), AROUND),
    ((34, 5, 3), MIXED),
    ((35, 4, 6), TURNED),
]
BOUNDS = {"f8": {"rtol": 1e-12, "atol": 1e-11}, "f4": {"rtol": 2e-5, "atol": 3e-5}}
INSIDE = slice(1, -1)


def make_kernels(slab, dtype="f8", threads=2):
    backend = make_backend("cpu", threads)  # before the module: it sets Numba up
    from hybrid_nbody.fluid.kernels.cpu import Kernels

    return Kernels(backend, slab, dtype)


def whole(cells, boundary):
    return Slab(cells, boundary, 0, cells[2])


def cut(cells, boundary, parts):
    edges = [cells[2] * part // parts for part in range(parts + 1)]
    return [Slab(cells, boundary, low, high - low) for low, high in zip(edges, edges[1:], strict=False)]


def random_fields(slab, number, dtype="f8", seed=3):
    random = np.random.default_rng(seed)
    return [random.standard_normal(slab.shape).astype(dtype) for _ in range(number)]


def insides(fields):
    return [field[INSIDE].astype("f8") for field in fields]


def coloured(kernels, field):
    colours = kernels.colours()
    kernels.split(field, colours)
    return colours


def merged(kernels, colours):
    field = kernels.field()
    kernels.merge(colours, field)
    return field[INSIDE]


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture(params=BOUNDS)
def dtype(request):
    return request.param


# ---- Linear systems --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stencil", [diffusion(0.3, (1, -1, 1)), diffusion(2.0, (-1, 1, -1)), POISSON])
def test_relaxed_as_the_reference(case, dtype, stencil):
    slab = whole(*case)
    kernels, (x, b) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    colours, right_side = coloured(kernels, x), coloured(kernels, b)
    kernels.relax(colours, right_side, stencil, 6, 0.0, None)
    expected, _ = reference.relax(*insides((x, b)), stencil, slab.boundary, 6)
    np.testing.assert_allclose(merged(kernels, colours), expected, **BOUNDS[dtype])
    residual = np.abs(reference.residual(merged(kernels, colours), b[INSIDE], stencil, slab.boundary)).max()
    np.testing.assert_allclose(kernels.residual(colours, right_side, stencil), residual, rtol=1e-4)


def test_cells_at_walls_take_factors_of_their_own(case, dtype):
    slab, stencil = whole(*case), diffusion(0.7, (1, -1, 1))
    kernels, (x, b) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    colours, factors = coloured(kernels, x), tuple(0.1 + 0.02 * kind for kind in range(8))
    for colour in (0, 1):
        kernels.sweep(colour, colours, coloured(kernels, b), stencil, factors, 0.0)
    expected, _ = reference.relax(*insides((x, b)), stencil, slab.boundary, 1, factors=factors)
    np.testing.assert_allclose(merged(kernels, colours), expected, **BOUNDS[dtype])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_as_many_iterations_as_the_reference(case, threads):
    slab, stencil = whole(*case), diffusion(0.07, (-1, 1, 1))
    kernels, (x,) = make_kernels(slab, threads=threads), random_fields(slab, 1)
    for tolerance in (1e-3, 1e-7):
        expected, iterations = reference.relax(*insides((x, x)), stencil, slab.boundary, 50, tolerance)
        colours = coloured(kernels, x)
        kernels.reset_statistics()
        kernels.relax(colours, coloured(kernels, x), stencil, 50, tolerance, None)
        assert 1 < iterations < 50
        assert kernels.statistics() == {"solves": 1, "iterations": iterations, "early": 1}
        np.testing.assert_allclose(merged(kernels, colours), expected, rtol=1e-12, atol=1e-12)


@given(st.integers(3, 40), st.integers(3, 9), st.integers(3, 9), st.sampled_from([FREE, STUCK]))
@settings(max_examples=30, deadline=None)
def test_any_size_between_walls_is_relaxed_as_the_reference(nx, ny, nz, boundary):
    slab, stencil = whole((nx, ny, nz), boundary), diffusion(0.5, (1, -1, -1))
    kernels, (x, b) = make_kernels(slab), random_fields(slab, 2)
    colours = coloured(kernels, x)
    kernels.relax(colours, coloured(kernels, b), stencil, 3, 0.0, None)
    expected, _ = reference.relax(*insides((x, b)), stencil, boundary, 3)
    np.testing.assert_allclose(merged(kernels, colours), expected, rtol=1e-12, atol=1e-12)


def exchange(slabs, arrays):
    """Fill the halo planes of arrays whose leading axis is z from the neighbouring slabs."""
    number, around = len(slabs), slabs[0].periodic[2]
    for rank, array in enumerate(arrays):
        if rank > 0 or around:
            array[0] = arrays[(rank - 1) % number][slabs[rank - 1].planes]
        if rank + 1 < number or around:
            array[-1] = arrays[(rank + 1) % number][1]


def parts_of(field, slabs):
    """Return the interior of a field by slabs, without halos filled."""
    parts = [np.full(slab.shape, np.nan, field.dtype) for slab in slabs]
    for part, slab in zip(parts, slabs, strict=True):
        part[INSIDE] = field[1 + slab.first : 1 + slab.first + slab.planes]
    return parts


def relax_in_parts(slabs, x, b, stencil, iterations, tolerance, dtype):
    """Relax as ranks do; return the interior and the statistics of each."""
    kernels = [make_kernels(slab, dtype) for slab in slabs]
    xs = [coloured(k, part) for k, part in zip(kernels, parts_of(x, slabs), strict=True)]
    bs = [coloured(k, part) for k, part in zip(kernels, parts_of(b, slabs), strict=True)]
    for k in kernels:
        k.begin_solve()
    for _ in range(iterations):
        if any([k.stopped() for k in kernels]):
            break
        for colour in (0, 1):
            exchange(slabs, [part[1 - colour] for part in xs])
            for k, part, right_side in zip(kernels, xs, bs, strict=True):
                k.sweep(colour, part, right_side, stencil, stencil.lagging, tolerance)
        changed = max(k.changed[0] for k in kernels)
        for k in kernels:
            k.changed[0] = changed
            k.end_iteration()
    for k in kernels:
        k.end_solve()
    return np.concatenate([merged(k, part) for k, part in zip(kernels, xs, strict=True)]), [
        k.statistics() for k in kernels
    ]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_bits_do_not_depend_on_ranks(case, dtype, parts):
    slab, stencil = whole(*case), diffusion(0.3, (1, -1, -1))
    kernels, (x, b) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    colours = coloured(kernels, x)
    kernels.relax(colours, coloured(kernels, b), stencil, 40, 1e-4, None)
    result, statistics = relax_in_parts(cut(*case, parts), x, b, stencil, 40, 1e-4, dtype)
    np.testing.assert_array_equal(result, merged(kernels, colours))
    assert statistics == [kernels.statistics()] * parts
    assert statistics[0]["early"] == 1


def test_bits_do_not_depend_on_threads(case, dtype):
    slab = whole(*case)
    x, b, u, v, w = random_fields(slab, 5, dtype)
    results = []
    for threads in (1, 2, 4):
        kernels = make_kernels(slab, dtype, threads)
        colours, out = coloured(kernels, x), kernels.field()
        kernels.relax(colours, coloured(kernels, b), POISSON, 5, 0.0, None)
        kernels.advect(x, 1, out, u, v, w, 1.7, SCALAR)
        results.append([merged(kernels, colours), out[INSIDE], kernels.plane_sums(x), kernels.plane_squares(u, v)])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_in_the_order_of_memory_as_the_reference(case, dtype):
    slab, stencil = whole(*case), diffusion(0.3, (-1, 1, 1))
    kernels, (x, b) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    expected = reference.relax_in_order(*insides((x, b)), stencil, slab.boundary, 3)
    kernels.relax_lexicographic(x, b, stencil, 3)
    np.testing.assert_allclose(x[INSIDE], expected, **BOUNDS[dtype])
    assert kernels.statistics() == {"solves": 1, "iterations": 3, "early": 0}


def test_a_residual_above_a_limit_is_noted():
    slab, stencil = whole((7, 5, 4), FREE), Stencil(1.0, 0.2, SCALAR)
    kernels, (x, b) = make_kernels(slab), random_fields(slab, 2)
    colours, right_side = coloured(kernels, x), coloured(kernels, b)
    residual = np.abs(reference.residual(*insides((x, b)), stencil, FREE)).max()
    for limit, noted in ((residual * 1.001, 0), (residual * 0.999, 1)):
        kernels.begin_solve()
        kernels.exceeds(colours, right_side, stencil, np.array([limit]))
        assert kernels.changed[0] == noted


def test_the_largest_value_is_stored_as_a_limit(case):
    slab, limit = whole(*case), np.zeros(1)
    kernels, (b,) = make_kernels(slab), random_fields(slab, 1)
    largest = np.abs(b[INSIDE]).max()
    b[0] = b[-1] = 99.0
    colours = coloured(kernels, b)
    colours[:, 0] = 99.0
    kernels.largest_into(colours, 0.5, limit)
    assert limit[0] == 0.5 * largest
    assert kernels.largest(b) == largest


# ---- Fields ----------------------------------------------------------------------------------------------------------


def test_fields_survive_their_colours(case, dtype):
    slab = whole(*case)
    kernels, (x, other) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    np.testing.assert_array_equal(merged(kernels, coloured(kernels, x)), x[INSIDE])
    colours = kernels.colours()
    kernels.split_sum(x, 0.1, other, colours)
    np.testing.assert_array_equal(merged(kernels, colours), (x + x.dtype.type(0.1) * other)[INSIDE])


def test_colours_are_those_of_the_first_plane():
    slab = Slab((8, 4, 6), FREE, 3, 2)
    kernels, (x,) = make_kernels(slab), random_fields(slab, 1)
    colours = coloured(kernels, x)
    for z, y, c in np.ndindex(2, 4, 8):
        np.testing.assert_array_equal(colours[(c + y + z + 3) % 2, z + 1, y, c // 2], x[z + 1, y, c])


def test_differences_as_the_reference(case, dtype):
    slab = whole(*case)
    kernels, (u, v, w, p) = make_kernels(slab, dtype), random_fields(slab, 4, dtype)
    out, pressure = kernels.field(), coloured(kernels, p)
    velocity = insides((u, v, w))
    divergence = kernels.colours()
    kernels.divergence(u, v, w, 0.7, divergence)
    expected = reference.divergence(velocity, slab.boundary, 0.7)
    np.testing.assert_allclose(merged(kernels, divergence), expected, **BOUNDS[dtype])
    kernels.curl_length(u, v, w, out)
    curl = reference.curl(velocity, slab.boundary, slab.spacing)
    np.testing.assert_allclose(out[INSIDE], np.sqrt(sum(c**2 for c in curl)), rtol=1e-5)
    kernels.subtract_gradient(u, v, w, pressure, 0.3)
    slope = reference.gradient(p[INSIDE].astype("f8"), slab.boundary, 0.3)
    for component, old, change in zip((u, v, w), velocity, slope, strict=True):
        np.testing.assert_allclose(component[INSIDE], old - change, **BOUNDS[dtype])


def test_forces_as_the_reference(case, dtype):
    slab = whole(*case)
    kernels, (u, v, w, density) = make_kernels(slab, dtype), random_fields(slab, 4, dtype)
    velocity, length, new = insides((u, v, w)), kernels.field(), [kernels.field() for _ in range(3)]
    kernels.curl_length(u, v, w, length)
    kernels.confine(u, v, w, length, 0.2, *new)
    force = reference.confinement(velocity, slab.boundary, slab.spacing, 0.2)
    for component, old, change in zip(new, velocity, force, strict=True):
        np.testing.assert_allclose(component[INSIDE], old + change, rtol=1e-4, atol=1e-4)
    kernels.buoyancy(u, v, w, density, (0.1, -0.2, 0.3))
    for component, old, factor in zip((u, v, w), velocity, (0.1, -0.2, 0.3), strict=True):
        np.testing.assert_allclose(component[INSIDE], old + factor * density[INSIDE], **BOUNDS[dtype])


@pytest.mark.parametrize("parity", [SCALAR, (-1, 1, -1)])
@pytest.mark.parametrize("scale", [0.2, 1.7, 40.0])
def test_carried_as_the_reference(case, dtype, scale, parity):
    slab = whole(*case)
    kernels, (source, u, v, w) = make_kernels(slab, dtype), random_fields(slab, 4, dtype)
    scale = float(source.dtype.type(scale))
    arguments = insides((source,))[0], insides((u, v, w)), scale, slab.boundary, parity
    bound = {"rtol": 0, "atol": 1e-11 if dtype == "f8" else 3e-6 * max(scale, 10)}
    forward, out = kernels.field(), kernels.field()
    kernels.advect(source, 1, forward, u, v, w, scale, parity)
    np.testing.assert_allclose(forward[INSIDE], reference.advect(*arguments), **bound)
    kernels.correct(source, forward, 1, out, u, v, w, scale, parity)
    np.testing.assert_allclose(out[INSIDE], reference.advect_maccormack(*arguments), **bound)


def smooth_velocity(slab, dtype):
    """Return a flow in which neighbours come from neighbours, over a few cells."""
    z, y, x = np.indices(slab.shape)
    return [(size * np.sin(0.1 * x + 0.2 * y - 0.15 * z + size)).astype(dtype) for size in (2.0, -3.0, 1.5)]


@pytest.mark.parametrize("boundary", [FREE, AROUND])
@pytest.mark.parametrize("shift", list(itertools.product((-1, 0, 1), repeat=3)))
def test_feet_on_both_sides_of_a_cell_carry_as_the_reference(boundary, dtype, shift):
    """Those that lie around an edge find there what was stored for them: other memory is not a number."""
    slab = whole((48, 5, 4), boundary)
    kernels, (source,), out = make_kernels(slab, dtype), random_fields(slab, 1, dtype), np.empty(slab.shape, dtype)
    swing = 0.2 * np.sin(0.3 * np.indices(slab.shape)[2])
    velocity = [(cells + swing).astype(dtype) for cells in shift]
    kernels.advect(source, 1, out, *velocity, 1.0, SCALAR, np.full(10 * source.size, np.nan, dtype))
    expected = reference.advect(*insides((source,)), insides(velocity), 1.0, boundary, SCALAR)
    np.testing.assert_allclose(out[INSIDE], expected, rtol=0, atol=1e-12 if dtype == "f8" else 3e-5)


@pytest.mark.parametrize("boundary", [FREE, AROUND, MIXED])
def test_a_smooth_flow_carries_as_the_reference(boundary, dtype):
    slab = whole((50, 6, 8), boundary)
    kernels, (source,) = make_kernels(slab, dtype), random_fields(slab, 1, dtype)
    velocity, out = smooth_velocity(slab, dtype), kernels.field()
    kernels.advect(source, 1, out, *velocity, 1.0, (1, -1, 1))
    expected = reference.advect(*insides((source,)), insides(velocity), 1.0, boundary, (1, -1, 1))
    np.testing.assert_allclose(out[INSIDE], expected, rtol=0, atol=1e-12 if dtype == "f8" else 3e-5)


@pytest.mark.parametrize("boundary", [FREE, AROUND])
def test_carried_bits_do_not_depend_on_ranks(boundary, dtype):
    cells, reach = (20, 4, 12), 4
    slab = whole(cells, boundary)
    kernels, (source,) = make_kernels(slab, dtype), random_fields(slab, 1, dtype)
    velocity, out = smooth_velocity(slab, dtype), kernels.field()
    kernels.advect(source, 1, out, *velocity, 1.0, SCALAR)
    planes = np.arange(-reach, cells[2] + reach)
    planes = planes % cells[2] if boundary == AROUND else np.clip(planes, 0, cells[2] - 1)
    far = source[INSIDE][planes]
    for part in cut(cells, boundary, 3):
        own = make_kernels(part, dtype)
        result, speeds = own.field(), [v[part.first : part.first + part.planes + 2] for v in velocity]
        own.advect(far[part.first : part.first + part.planes + 2 * reach], reach, result, *speeds, 1.0, SCALAR)
        np.testing.assert_array_equal(result[INSIDE], out[1 + part.first : 1 + part.first + part.planes])


# ---- What must stay --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("boundary", [FREE, STUCK, AROUND])
def test_what_is_uniform_stays_uniform_to_the_last_bit(boundary, dtype):
    slab, value = whole((34, 6, 4), boundary), np.dtype(dtype).type(0.1)
    kernels, velocity = make_kernels(slab, dtype), random_fields(slab, 3, dtype)
    field, out, x, b = kernels.field(), kernels.field(), kernels.colours(), kernels.colours()
    kernels.fill(field, value)
    kernels.split(field, x)
    kernels.split(field, b)
    kernels.relax(x, b, diffusion(0.3, SCALAR), 9, 0.0, None)
    kernels.advect(field, 1, out, *velocity, 1.7, SCALAR)
    np.testing.assert_array_equal(merged(kernels, x), value)
    np.testing.assert_array_equal(out[INSIDE], value)
    assert kernels.statistics()["iterations"] == 1


@pytest.mark.parametrize("boundary", [FREE, AROUND])
def test_a_velocity_that_is_not_a_number_is_seen_in_the_result(boundary, dtype):
    slab = whole((34, 6, 4), boundary)
    kernels, (source, u, v, w) = make_kernels(slab, dtype), random_fields(slab, 4, dtype)
    out = kernels.field()
    for component, place in zip((u, v, w), ((1, 2, 3), (2, 3, 20), (4, 5, 33)), strict=True):
        component[place] = np.nan
    kernels.advect(source, 1, out, u, v, w, 1.0, SCALAR)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(u + v + w))


# ---- Sources and sums ------------------------------------------------------------------------------------------------


def test_boxes_and_spheres_fill_the_planes_of_a_slab():
    cells = (7, 6, 9)
    z, y, x = np.indices(cells[::-1])
    box = (x >= 1) & (x < 4) & (y >= 2) & (y < 6) & (z >= 2) & (z < 8)
    sphere = (x - 3.0) ** 2 + (y - 2.5) ** 2 + (z - 4.0) ** 2 <= 2.5**2
    expected = np.where(sphere, 5.0, np.where(box, 2.0, 0.0) + 0.5 * box) + 0.25 * sphere
    for slab in cut(cells, FREE, 3):
        kernels = make_kernels(slab)
        field = kernels.field()
        kernels.set_box(field, (1, 4, 2, 6, 2, 8), 2.0)
        kernels.add_box(field, (1, 4, 2, 6, 2, 8), 0.5)
        kernels.set_sphere(field, (3.0, 2.5, 4.0), 2.5, 5.0)
        kernels.add_sphere(field, (3.0, 2.5, 4.0), 2.5, 0.25)
        np.testing.assert_array_equal(field[INSIDE], expected[slab.first : slab.first + slab.planes])
        assert not field[0].any() and not field[-1].any()


def test_sums_of_planes(case, dtype):
    slab = whole(*case)
    kernels, (x, y) = make_kernels(slab, dtype), random_fields(slab, 2, dtype)
    (inside, other), rule = insides((x, y)), {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(kernels.plane_sums(x), inside.sum(axis=(1, 2)), **rule)
    np.testing.assert_allclose(kernels.plane_squares(x, y), (inside**2 + other**2).sum(axis=(1, 2)), **rule)
    width = [(0, 0)] + [(0, 0) if periodic else (1, 1) for periodic in slab.periodic[1::-1]]
    ghosted = np.pad(inside, width, "edge")
    np.testing.assert_allclose(kernels.plane_sums_with_ghosts(x), ghosted.sum(axis=(1, 2)), **rule)
