"""The GPU's kernels against the reference, on one slab and on several."""

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.fluid.kernels import gpu, gpu_relax, reference
from hybrid_nbody.fluid.kernels.gpu_tiles import Tiling
from hybrid_nbody.fluid.slab import Slab
from hybrid_nbody.fluid.stencil import POISSON, SCALAR, diffusion

pytestmark = pytest.mark.gpu

CASES = {
    "walls": ((70, 75, 10), ("free-slip", "no-slip", "free-slip")),
    "odd": ((135, 5, 7), ("no-slip", "free-slip", "no-slip")),
    "periodic": ((132, 70, 8), ("periodic", "periodic", "periodic")),
    "mixed": ((20, 34, 6), ("periodic", "free-slip", "periodic")),
    "ring": ((128, 34, 6), ("periodic", "no-slip", "periodic")),
    "one": ((1, 1, 1), ("free-slip", "free-slip", "free-slip")),
}
RTOL = {"f4": 2e-5, "f8": 1e-12}


@pytest.fixture(scope="module")
def backend():
    return make_backend("gpu")


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=["f4", "f8"])
def dtype(request):
    return request.param


WAYS = {
    "resident": None,
    "tiles": Tiling(4, 8, 1, 1, 4),
    "tall tiles": Tiling(8, 4, 1, 1, 3),
    "aligned tiles": Tiling(4, 8, 1, 4, 4),
    "wide tiles": Tiling(4, 8, 2, 4, 2),
}


@pytest.fixture(params=WAYS)
def way(request):
    """How `relax` goes through the grid."""
    return request.param


MADE = {}


def make(backend, case, dtype, first=0, planes=None, way="resident"):
    """Return the kernels of a slab, compiled once."""

    cells, boundary = case
    slab = Slab(cells, boundary, first, cells[2] if planes is None else planes)
    key = slab, dtype, way
    if key not in MADE:
        with pytest.MonkeyPatch.context() as patch:
            if WAYS[way]:
                patch.setattr(gpu_relax, "boxes_of", lambda *_: None)
                patch.setattr(gpu_relax, "tiling_of", lambda *_: WAYS[way])
            MADE[key] = gpu.Kernels(backend, slab, dtype)
    return MADE[key]


def values(case, seed=0, scale=1.0):
    nx, ny, nz = case[0]
    return scale * np.random.default_rng(seed).uniform(-1, 1, (nz, ny, nx))


def upload(kernels, whole):
    """Return the slab's planes of a global array, its halo planes filled; behind walls they are NaN."""
    slab, array = kernels.slab, kernels.field()
    host = np.full(slab.shape, np.nan, kernels.dtype)
    for plane in range(slab.planes + 2):
        z = slab.first + plane - 1
        if slab.periodic[2] or 0 <= z < slab.cells[2]:
            host[plane] = whole[z % slab.cells[2]]
    array.set(host)
    return array


def colours_of(kernels, whole):
    """Return the same as colours."""
    field, colours = upload(kernels, whole), kernels.colours()
    kernels.fill(colours, np.nan)
    kernels.split(field, colours)
    return colours


def merged(kernels, colours):
    field = kernels.field()
    kernels.merge(colours, field)
    return inner(kernels, field)


def inner(kernels, field):
    return kernels.backend.download(field)[1:-1].astype(float)


def close(found, expected, dtype, factor=1.0):
    np.testing.assert_allclose(found, expected, rtol=0, atol=factor * RTOL[dtype] * max(np.abs(expected).max(), 1e-3))


def rounded(array, dtype):
    return array.astype(dtype).astype(float)


STENCILS = {"poisson": POISSON, "diffusion": diffusion(0.7, (1, -1, 1)), "mirrored": diffusion(2.5, (-1, -1, -1))}


# --- linear systems ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("iterations", [0, 1, 2, 5])
def test_relax(backend, case, dtype, way, name, iterations):
    kernels, stencil = make(backend, case, dtype, way=way), STENCILS[name]
    x, b = rounded(values(case, 1), dtype), rounded(values(case, 2), dtype)
    found, right = colours_of(kernels, x), colours_of(kernels, b)
    kernels.relax(found, right, stencil, iterations, 0.0, None)
    close(merged(kernels, found), reference.relax(x, b, stencil, case[1], iterations)[0], dtype)


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("name", ["walls", "odd", "periodic"])
def test_relax_stops_after_the_right_iteration(backend, dtype, way, name, stop):
    case = CASES[name]
    kernels, stencil = make(backend, case, dtype, way=way), diffusion(0.7, SCALAR)
    x, b = rounded(values(case, 1), dtype), rounded(values(case, 2), dtype)
    changes, present = [], x
    for _ in range(stop):
        present, change = reference.iterate(present, b, stencil, case[1], stencil.lagging)
        changes.append(change)
    tolerance = 1.01 * changes[-1]
    assert stop == 1 or changes[-2] > 1.1 * tolerance
    found, right = colours_of(kernels, x), colours_of(kernels, b)
    kernels.reset_statistics()
    kernels.relax(found, right, stencil, 12, tolerance, None)
    assert kernels.statistics() == {"solves": 1, "iterations": stop, "early": 1}
    close(merged(kernels, found), present, dtype)
    exactly = colours_of(kernels, x)
    kernels.relax(exactly, right, stencil, stop, 0.0, None)
    np.testing.assert_array_equal(merged(kernels, found), merged(kernels, exactly))
    assert kernels.statistics() == {"solves": 2, "iterations": 2 * stop, "early": 1}
    kernels.relax(exactly, right, stencil, stop, np.inf, None)
    assert kernels.statistics() == {"solves": 3, "iterations": 2 * stop + 1, "early": 1 + (stop > 1)}


def exchange(slabs, arrays, colour):
    """Fill the halo planes of several slabs."""
    count = len(slabs)
    for rank, kernels in enumerate(slabs):
        below, above = arrays[rank - 1], arrays[(rank + 1) % count]
        low, high = kernels.slab.walls
        if not low:
            arrays[rank][colour, 0] = below[colour, slabs[rank - 1].slab.planes]
        if not high:
            arrays[rank][colour, -1] = above[colour, 1]


def slabs_of(backend, case, dtype):
    """Return the kernels of several slabs that make up the grid."""
    planes = case[0][2]
    cuts = sorted({0, planes // 3, planes // 2, planes})
    return [make(backend, case, dtype, low, high - low) for low, high in zip(cuts, cuts[1:], strict=False)]


def sweep_all(slabs, arrays, rights, stencil, factors, tolerance):
    """Do an iteration on several slabs."""
    for colour in (0, 1):
        for kernels, array, right in zip(slabs, arrays, rights, strict=True):
            kernels.sweep(colour, array, right, stencil, factors, tolerance)
        exchange(slabs, arrays, colour)


def test_sweep_by_the_walls_beside_a_cell(backend, case, dtype):
    stencil, factors = diffusion(0.7, (1, -1, 1)), tuple(0.1 + 0.02 * number for number in range(8))
    x, b = rounded(values(case, 1), dtype), rounded(values(case, 2), dtype)
    expected = reference.iterate(x, b, stencil, case[1], factors)[0]
    slabs = slabs_of(backend, case, dtype)
    found, rights = [colours_of(k, x) for k in slabs], [colours_of(k, b) for k in slabs]
    exchange(slabs, found, 1)
    for kernels in slabs:
        kernels.begin_solve()
    sweep_all(slabs, found, rights, stencil, factors, 0.0)
    parts = [merged(kernels, array) for kernels, array in zip(slabs, found, strict=True)]
    close(np.concatenate(parts), expected, dtype)


def test_bits_do_not_depend_on_slabs_or_blocking(backend, case, dtype, way):
    stencil, tolerance = diffusion(0.7, (1, -1, 1)), 0.05
    x, b = values(case, 1), values(case, 2)
    whole = make(backend, case, dtype, way=way)
    together, right = colours_of(whole, x), colours_of(whole, b)
    whole.reset_statistics()
    whole.relax(together, right, stencil, 9, tolerance, None)
    slabs = slabs_of(backend, case, dtype)
    found, rights = [colours_of(k, x) for k in slabs], [colours_of(k, b) for k in slabs]
    exchange(slabs, found, 1)
    for kernels in slabs:
        kernels.reset_statistics()
        kernels.begin_solve()
    for _ in range(9):
        sweep_all(slabs, found, rights, stencil, stencil.lagging, tolerance)
        changed = max(int(kernels.changed[0]) for kernels in slabs)
        for kernels in slabs:
            kernels.changed.fill(changed)
            kernels.end_iteration()
    for kernels in slabs:
        kernels.end_solve()
        assert kernels.statistics() == whole.statistics()
    parts = [merged(kernels, array) for kernels, array in zip(slabs, found, strict=True)]
    np.testing.assert_array_equal(np.concatenate(parts), merged(whole, together))


def test_uniform_stays_uniform(backend, case, dtype, way):
    kernels = make(backend, case, dtype, way=way)
    x = colours_of(kernels, np.full(case[0][::-1], 0.1))
    b = x.copy()
    kernels.relax(x, b, diffusion(0.3, SCALAR), 7, 0.0, None)
    assert (merged(kernels, x) == rounded(np.array(0.1), dtype)).all()


def two_fields(kernels):
    """Return flat memory of the size of two fields, all NaN."""
    room = kernels.backend.zeros(2 * int(np.prod(kernels.slab.shape)), kernels.dtype)
    kernels.fill(room, np.nan)
    return room


def test_a_captured_solve(backend, dtype, way):
    case = CASES["walls"]
    kernels, stencil = make(backend, case, dtype, way=way), diffusion(0.7, SCALAR)
    x, b = colours_of(kernels, values(case, 1)), colours_of(kernels, values(case, 2))
    start, room = x.copy(), two_fields(kernels)
    kernels.relax(x, b, stencil, 20, 1e-3, room)
    once = merged(kernels, x)
    replay = backend.capture(lambda: kernels.relax(x, b, stencil, 20, 1e-3, room))
    x[...] = start
    replay()
    np.testing.assert_array_equal(merged(kernels, x), once)


@pytest.mark.parametrize(("first", "last", "used"), [(0, None, True), (1, None, True), (0, 100, False)])
def test_relax_in_lent_memory(backend, dtype, first, last, used):
    case = CASES["walls"]
    kernels, stencil = make(backend, case, dtype, way="tiles"), diffusion(0.7, SCALAR)
    x, b = colours_of(kernels, values(case, 1)), colours_of(kernels, values(case, 2))
    start, room = x.copy(), two_fields(kernels)[first:last]
    kernels.relax(x, b, stencil, 5, 0.0, None)
    expected = merged(kernels, x)
    x[...] = start
    kernels.relax(x, b, stencil, 5, 0.0, room)
    np.testing.assert_array_equal(merged(kernels, x), expected)
    assert bool((room == room).any()) == used


def test_residual(backend, case, dtype):
    kernels, stencil = make(backend, case, dtype), STENCILS["diffusion"]
    x, b = rounded(values(case, 1), dtype), rounded(values(case, 2), dtype)
    expected = np.abs(reference.residual(x, b, stencil, case[1])).max()
    found, right = colours_of(kernels, x), colours_of(kernels, b)
    close(kernels.residual(found, right, stencil), expected, dtype)
    limit = backend.zeros(1, dtype)
    for factor in (0.99, 1.01):
        kernels.begin_solve()
        limit.fill(factor * expected)
        kernels.exceeds(found, right, stencil, limit)
        assert int(kernels.changed[0]) == (factor < 1)
    kernels.begin_solve()


def test_largest(backend, case, dtype):
    kernels = make(backend, case, dtype)
    x = rounded(values(case, 3), dtype)
    most = np.abs(x).max()
    assert kernels.largest(upload(kernels, x)) == most
    assert kernels.largest(colours_of(kernels, x)) == most
    limit = backend.zeros(1, dtype)
    kernels.largest_into(colours_of(kernels, x), 0.5, limit)
    assert float(limit[0]) == 0.5 * most


# --- parts of a step --------------------------------------------------------------------------------------------------


def velocity_of(case, dtype, scale=1.0):
    return [rounded(values(case, seed, scale), dtype) for seed in (4, 5, 6)]


def test_split_sum(backend, case, dtype):
    kernels = make(backend, case, dtype)
    x, y = values(case, 1), values(case, 2)
    colours = kernels.colours()
    kernels.split_sum(upload(kernels, x), 0.25, upload(kernels, y), colours)
    close(merged(kernels, colours), x + 0.25 * y, dtype)


def test_projection_parts(backend, case, dtype):
    kernels, velocity, p = make(backend, case, dtype), velocity_of(case, dtype), values(case, 7)
    fields, colours = [upload(kernels, c) for c in velocity], kernels.colours()
    kernels.divergence(*fields, -0.3, colours)
    close(merged(kernels, colours), reference.divergence(velocity, case[1], -0.3), dtype)
    kernels.subtract_gradient(*fields, colours_of(kernels, p), 0.7)
    for field, before, slope in zip(fields, velocity, reference.gradient(p, case[1], 0.7), strict=True):
        close(inner(kernels, field), before - slope, dtype)


@pytest.mark.parametrize("parity", [SCALAR, (-1, 1, -1), (-1, -1, -1)])
@pytest.mark.parametrize("scale", [0.3, 9.0])
def test_advection(backend, case, dtype, parity, scale):
    kernels, velocity, source = make(backend, case, dtype), velocity_of(case, dtype), rounded(values(case, 7), dtype)
    fields, out = [upload(kernels, c) for c in velocity], kernels.field()
    kernels.advect(upload(kernels, source), 1, out, *fields, scale, parity)
    forward = reference.advect(source, velocity, scale, case[1], parity)
    close(inner(kernels, out), forward, dtype, 10)
    corrected = kernels.field()
    kernels.correct(upload(kernels, source), upload(kernels, forward), 1, corrected, *fields, scale, parity)
    expected = reference.advect_maccormack(source, velocity, scale, case[1], parity)
    close(inner(kernels, corrected), expected, dtype, 10)


@pytest.mark.parametrize("scale", [1.7, -4.0])
def test_a_velocity_that_carries_itself(backend, case, dtype, scale):
    kernels = make(backend, case, dtype)
    velocity = [rounded(values(case, seed), dtype) for seed in (1, 2, 3)]
    fields, outs = [upload(kernels, component) for component in velocity], [kernels.field() for _ in range(3)]
    kernels.advect_velocity(outs, *fields, scale)
    for component, (found, single) in enumerate(zip(outs, velocity, strict=True)):
        parity = kernels.slab.velocity_parity(component)
        close(inner(kernels, found), reference.advect(single, velocity, scale, case[1], parity), dtype, 10.0)


@pytest.mark.parametrize("speed", [1e30, -1e30, np.nan])
def test_advection_from_nowhere(backend, case, dtype, speed):
    """A trace that is too long reads some cell; one that is no number leads to none."""
    kernels, source = make(backend, case, dtype), rounded(values(case, 7), dtype)
    fields, out = [upload(kernels, np.full(source.shape, speed)) for _ in range(3)], kernels.field()
    kernels.advect(upload(kernels, source), 1, out, *fields, 1.0, SCALAR)
    found = inner(kernels, out)
    assert np.isnan(found).all() if np.isnan(speed) else (np.abs(found) <= 1).all()
    kernels.correct(upload(kernels, source), upload(kernels, source), 1, out, *fields, 1.0, SCALAR)
    np.testing.assert_array_equal(np.isnan(inner(kernels, out)), np.isnan(speed))


@pytest.mark.parametrize("name", ["walls", "periodic"])
def test_advection_in_a_part_of_the_grid(backend, dtype, name):
    """The planes around are given, far enough for all traces; a periodic axis does not wrap then."""
    case, scale, below = CASES[name], 2.5, 3
    whole, part = make(backend, case, dtype), make(backend, case, dtype, 3, 3)
    velocity, source = velocity_of(case, dtype), values(case, 7)
    expected, found = whole.field(), part.field()
    whole.advect(upload(whole, source), 1, expected, *[upload(whole, c) for c in velocity], scale, SCALAR)
    planes = np.arange(3 - below, 6 + below) % case[0][2]
    around = backend.upload(source[planes].astype(dtype))
    part.advect(around, below, found, *[upload(part, c) for c in velocity], scale, SCALAR)
    reach = slice(3, 6)
    np.testing.assert_array_equal(inner(part, found), inner(whole, expected)[reach])


def test_vorticity(backend, case, dtype):
    kernels, velocity = make(backend, case, dtype), velocity_of(case, dtype)
    spacing, fields, length = kernels.slab.spacing, [upload(kernels, c) for c in velocity], kernels.field()
    kernels.curl_length(*fields, length)
    expected = np.sqrt(sum(c**2 for c in reference.curl(velocity, case[1], spacing)))
    close(inner(kernels, length), expected, dtype, 5)
    new = [kernels.field() for _ in fields]
    kernels.confine(*fields, upload(kernels, expected), 0.2, *new)
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
    kernels.buoyancy(*fields, field, (0.0, 0.5, -1.0))
    for component, factor in zip(fields, (0.0, 0.5, -1.0), strict=True):
        close(inner(kernels, component), x + factor * expected, dtype)


def test_plane_sums(backend, case, dtype):
    kernels, x = make(backend, case, dtype), rounded(values(case, 9), dtype)
    field, cells = upload(kernels, x), case[0][0] * case[0][1]
    np.testing.assert_allclose(kernels.plane_sums(field), x.sum(axis=(1, 2)), atol=1e-14 * cells)
    np.testing.assert_allclose(kernels.plane_squares(field, field), 2 * (x**2).sum(axis=(1, 2)), rtol=1e-12)
    edges = [np.ones(n) for n in case[0][:2]]
    for axis, edge in enumerate(edges):
        if not kernels.slab.periodic[axis]:
            edge[0] += 1
            edge[-1] += 1
    expected = (x * edges[0][None, None, :] * edges[1][None, :, None]).sum(axis=(1, 2))
    np.testing.assert_allclose(kernels.plane_sums_with_ghosts(field), expected, atol=4e-14 * cells)
