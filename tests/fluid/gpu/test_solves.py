"""The GPU's linear systems against the reference, on one slab and on several."""

from dataclasses import replace

import numpy as np
import pytest
from support.fluid_kernels import ghosts_of_signs, relax
from support.gpu_kernels import (
    CASES,
    STENCILS,
    WAYS,
    close,
    colours_of,
    make,
    merged,
    rounded,
    upload,
    values,
)
from support.ranks import on_threads

from hybrid_nbody.fluid.grid import Boundary
from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.kernels.contract import Relaxation, Solve
from hybrid_nbody.fluid.solvers.base import NEVER_MET
from hybrid_nbody.fluid.solvers.halos import pass_halo
from hybrid_nbody.fluid.solvers.relaxation import run_passes
from hybrid_nbody.fluid.stencil import SCALAR, diffusion
from hybrid_nbody.parallel.exchange.halo import HaloExchange
from hybrid_nbody.parallel.partition import Partition

pytestmark = pytest.mark.gpu


@pytest.fixture(params=WAYS)
def way(request):
    """How `relax` goes through the grid."""
    return request.param


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("iterations", [0, 1, 2, 5])
def test_relax(backend, case, dtype, way, name, iterations):
    kernels, stencil = make(backend, case, dtype, way=way), STENCILS[name]
    x, b = rounded(values(case, 1), dtype), rounded(values(case, 2), dtype)
    found, right = colours_of(kernels, x), colours_of(kernels, b)
    relax(kernels, found, right, Solve(stencil, 0.0, iterations), None)
    close(merged(kernels, found), reference.relax(x, b, stencil, case[1], iterations)[0], dtype)


@pytest.mark.parametrize("iterations", [1, 2, 3, 6, 10])
def test_a_first_guess_that_is_known_to_be_zero(backend, case, dtype, way, iterations):
    kernels, stencil = make(backend, case, dtype, way=way), diffusion(0.7, SCALAR)
    b = rounded(values(case, 2), dtype)
    right = colours_of(kernels, b)
    results = []
    for from_zero in (False, True):
        x = kernels.colours()
        x[...] = np.nan if from_zero else 0.0
        solve = Solve(stencil, NEVER_MET, iterations, from_zero)
        scratch = kernels.backend.upload(np.full(3 * x.size, np.nan, kernels.dtype))
        relax(kernels, x, right, solve, scratch)
        results.append(merged(kernels, x))
    np.testing.assert_array_equal(*results)
    close(results[1], reference.relax(0.0 * b, b, stencil, case[1], iterations)[0], dtype)


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("name", ["walls", "odd", "periodic"])
def test_relax_stops_after_the_right_iteration(backend, dtype, way, name, stop):
    case = CASES[name]
    kernels, stencil = make(backend, case, dtype, way=way), diffusion(0.7, SCALAR)
    x, b = rounded(values(case, 1), dtype), rounded(values(case, 2), dtype)
    changes, present = [], x
    for _ in range(stop):
        present, change = reference.iterate(
            present, b, stencil, case[1], stencil.fixed_ghost_factors
        )
        changes.append(change)
    tolerance = 1.01 * changes[-1]
    assert stop == 1 or changes[-2] > 1.1 * tolerance
    found, right = colours_of(kernels, x), colours_of(kernels, b)
    kernels.reset_statistics()
    relax(kernels, found, right, Solve(stencil, tolerance, 12), None)
    assert kernels.statistics() == {"solves": 1, "iterations": stop, "early": 1}
    close(merged(kernels, found), present, dtype)
    exactly = colours_of(kernels, x)
    relax(kernels, exactly, right, Solve(stencil, 0.0, stop), None)
    np.testing.assert_array_equal(merged(kernels, found), merged(kernels, exactly))
    assert kernels.statistics() == {"solves": 2, "iterations": 2 * stop, "early": 1}
    relax(kernels, exactly, right, Solve(stencil, np.inf, stop), None)
    assert kernels.statistics() == {
        "solves": 3,
        "iterations": 2 * stop + 1,
        "early": 1 + (stop > 1),
    }


def first_plane(kernels):
    """Return where the slab's own planes begin in its colours."""
    return (kernels.colours_shape[1] - kernels.slab.planes) // 2


def exchange(slabs, arrays, colour):
    """Fill the halo planes of several slabs."""
    count = len(slabs)
    edges = [
        (first_plane(kernels), first_plane(kernels) + kernels.slab.planes) for kernels in slabs
    ]
    for rank, kernels in enumerate(slabs):
        low, high = kernels.slab.walls
        after = (rank + 1) % count
        if not low:
            arrays[rank][colour, edges[rank][0] - 1] = arrays[rank - 1][
                colour, edges[rank - 1][1] - 1
            ]
        if not high:
            arrays[rank][colour, edges[rank][1]] = arrays[after][colour, edges[after][0]]


def slabs_of(backend, case, dtype):
    """Return the kernels of several slabs that make up the grid."""
    planes = case[0][2]
    cuts = sorted({0, planes // 3, planes // 2, planes})
    return [
        make(backend, case, dtype, low, high - low)
        for low, high in zip(cuts, cuts[1:], strict=False)
    ]


def sweep_all(slabs, arrays, rights, stencil, factors, tolerance):
    """Do an iteration on several slabs."""
    for colour in (0, 1):
        for kernels, array, right in zip(slabs, arrays, rights, strict=True):
            kernels.sweep(colour, array, right, Relaxation(stencil, factors, tolerance))
        exchange(slabs, arrays, colour)


def test_sweep_by_the_walls_beside_a_cell(backend, case, dtype):
    stencil = diffusion(0.7, ghosts_of_signs(1, -1, 1))
    factors = tuple(0.1 + 0.02 * number for number in range(8))
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
    stencil, tolerance = diffusion(0.7, ghosts_of_signs(1, -1, 1)), 0.05
    x, b = values(case, 1), values(case, 2)
    whole = make(backend, case, dtype, way=way)
    together, right = colours_of(whole, x), colours_of(whole, b)
    whole.reset_statistics()
    relax(whole, together, right, Solve(stencil, tolerance, 9), None)
    slabs = slabs_of(backend, case, dtype)
    found, rights = [colours_of(k, x) for k in slabs], [colours_of(k, b) for k in slabs]
    exchange(slabs, found, 1)
    for kernels in slabs:
        kernels.reset_statistics()
        kernels.begin_solve()
    for _ in range(9):
        sweep_all(slabs, found, rights, stencil, stencil.fixed_ghost_factors, tolerance)
        changed = max(int(kernels.changed[0]) for kernels in slabs)
        for kernels in slabs:
            kernels.changed.fill(changed)
            kernels.end_iteration()
    for kernels in slabs:
        kernels.end_solve()
        assert kernels.statistics() == whole.statistics()
    parts = [merged(kernels, array) for kernels, array in zip(slabs, found, strict=True)]
    np.testing.assert_array_equal(np.concatenate(parts), merged(whole, together))


class ThreadTransport:
    """Carries planes between ranks that are threads of this process."""

    recordable = True

    def __init__(self, rank, peers):
        self.rank, self.peers = rank, self if peers else None

    def addresses(self, array):
        """See `PeerMemory`."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()  # zeros arrive before anybody writes there
        return self.rank.gather(array.data.ptr)

    def send_receive(self, sends, receives, what):
        posted = [list(messages) for messages in self.rank.gather(sends)]
        for owner, rows in receives:
            number = next(i for i, (to, _) in enumerate(posted[owner]) if to == self.rank.rank)
            rows[...] = posted[owner].pop(number)[1]
        self.rank.gather(None)  # all have what they wanted: arrays may change

    def maximum(self, array):
        array.set(np.max(self.rank.gather(array.get()), axis=0))


def relax_on_threads(backend, case, dtype, cuts, peers, x, b, solve, way="resident"):
    """Return for each slab what it becomes, and the statistics of its solve.

    Ranks that are sent planes queue their work on one stream; those that wait in a
    barrier have streams of their own.
    """
    slabs = [
        make(backend, case, dtype, low, high - low, way)
        for low, high in zip(cuts, cuts[1:], strict=False)
    ]

    def relax(rank):
        (backend.cupy.cuda.Stream(non_blocking=True) if peers else backend.stream).use()
        kernels = slabs[rank.rank]
        halo = HaloExchange(
            ThreadTransport(rank, peers), Partition(cuts), rank, kernels.slab.periodic[2]
        )
        found, right = colours_of(kernels, x), colours_of(kernels, b)
        planes = pass_halo(kernels, halo)
        kernels.reset_statistics()
        run_passes(kernels.begin_passes(found, right, solve, None), planes)
        return merged(kernels, found), kernels.statistics()

    return on_threads(len(slabs), relax)


def assert_bits_of_one_rank(backend, dtype, name, peers, solve):
    """Compare passes on ranks with those on one; from zero, x holds what is no number on ranks."""
    (nx, ny, _), boundary = CASES[name]
    planes = 13 if not boundary.periodic[2] else 14
    case = (nx, ny, planes), boundary
    x, b = values(case, 1), values(case, 2)
    first, stale = (0.0 * x, np.nan * x) if solve.from_zero else (x, x)
    whole = make(backend, case, dtype)
    together, right = colours_of(whole, first), colours_of(whole, b)
    whole.reset_statistics()
    relax(whole, together, right, replace(solve, from_zero=False), None)
    cuts = (0, 5, 9, planes) if peers else (0, 1, 5, 6, planes)
    parts = relax_on_threads(backend, case, dtype, cuts, peers, stale, b, solve)
    assert all(statistics == whole.statistics() for _, statistics in parts)
    np.testing.assert_array_equal(
        np.concatenate([found for found, _ in parts]), merged(whole, together)
    )


@pytest.mark.parametrize("name", ["walls", "odd", "periodic", "mixed", "ring in y"])
@pytest.mark.parametrize("iterations", [1, 4, 9])
@pytest.mark.parametrize("tolerance", [NEVER_MET, 0.05, 0.3])
@pytest.mark.parametrize("peers", [False, True])
def test_shared_passes_have_the_bits_of_one_rank(
    backend, dtype, name, peers, iterations, tolerance
):
    """Also where a slab is thinner than what a pass reads beyond it, and cannot be written into."""
    stencil = diffusion(0.7, ghosts_of_signs(1, -1, 1))
    assert_bits_of_one_rank(backend, dtype, name, peers, Solve(stencil, tolerance, iterations))


@pytest.mark.parametrize("name", ["walls", "odd", "periodic"])
@pytest.mark.parametrize("iterations", [0, 2, 3, 5])
@pytest.mark.parametrize("tolerance", [NEVER_MET, 0.3])
@pytest.mark.parametrize("peers", [False, True])
def test_shared_passes_from_zero_read_nothing_of_x(
    backend, dtype, name, peers, iterations, tolerance
):
    """In one, two and three passes, or none; x holds what is no number on all ranks."""
    stencil = diffusion(0.7, ghosts_of_signs(1, -1, 1))
    solve = Solve(stencil, tolerance, iterations, from_zero=True)
    assert_bits_of_one_rank(backend, dtype, name, peers, solve)


@pytest.mark.parametrize("along_z", ["no-slip", "periodic"])
@pytest.mark.parametrize("iterations", [3, 9])
@pytest.mark.parametrize("tolerance", [NEVER_MET, 0.3])
def test_planes_pushed_while_tiles_walk_on_are_those_of_one_rank(
    backend, dtype, along_z, iterations, tolerance
):
    case = ((132, 10, 50), Boundary.of_axes(("free-slip", "free-slip", along_z)))
    cuts = (0, 12, 30, 50)
    x, b = values(case, 1), values(case, 2)
    whole = make(backend, case, dtype)
    solve = Solve(diffusion(0.7, ghosts_of_signs(1, -1, 1)), tolerance, iterations)
    together, right = colours_of(whole, x), colours_of(whole, b)
    relax(whole, together, right, solve)
    parts = relax_on_threads(backend, case, dtype, cuts, True, x, b, solve, way="long walks")
    assert min(make(backend, case, dtype, 12, 18, "long walks").pass_solver.pushers.values()) > 0
    np.testing.assert_array_equal(
        np.concatenate([found for found, _ in parts]), merged(whole, together)
    )


def test_uniform_stays_uniform(backend, case, dtype, way):
    kernels = make(backend, case, dtype, way=way)
    x = colours_of(kernels, np.full(case[0][::-1], 0.1))
    b = x.copy()
    relax(kernels, x, b, Solve(diffusion(0.3, SCALAR), 0.0, 7))
    assert (merged(kernels, x) == rounded(np.array(0.1), dtype)).all()


def two_fields(kernels):
    """Return flat memory of the size of two fields, all NaN."""
    scratch = kernels.backend.zeros(2 * int(np.prod(kernels.slab.shape)), kernels.dtype)
    kernels.fill(scratch, np.nan)
    return scratch


def test_a_captured_solve(backend, dtype, way):
    case = CASES["walls"]
    kernels, stencil = make(backend, case, dtype, way=way), diffusion(0.7, SCALAR)
    x, b = colours_of(kernels, values(case, 1)), colours_of(kernels, values(case, 2))
    start, scratch = x.copy(), two_fields(kernels)
    relax(kernels, x, b, Solve(stencil, 1e-3, 20), scratch)
    once = merged(kernels, x)
    replay = backend.capture(lambda: relax(kernels, x, b, Solve(stencil, 1e-3, 20), scratch))
    x[...] = start
    replay()
    np.testing.assert_array_equal(merged(kernels, x), once)


@pytest.mark.parametrize(
    ("first", "last", "used"), [(0, None, True), (1, None, True), (0, 100, False)]
)
def test_relax_in_lent_memory(backend, dtype, first, last, used):
    case = CASES["walls"]
    kernels, stencil = make(backend, case, dtype, way="tiles"), diffusion(0.7, SCALAR)
    x, b = colours_of(kernels, values(case, 1)), colours_of(kernels, values(case, 2))
    start, scratch = x.copy(), two_fields(kernels)[first:last]
    relax(kernels, x, b, Solve(stencil, 0.0, 5), None)
    expected = merged(kernels, x)
    x[...] = start
    relax(kernels, x, b, Solve(stencil, 0.0, 5), scratch)
    np.testing.assert_array_equal(merged(kernels, x), expected)
    assert bool((scratch == scratch).any()) == used


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
