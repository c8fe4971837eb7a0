"""Multigrid: its grids and tables, its rate and its solution, on any size, boundary and ranks.

The oracle is the exact solution of the discrete equations: between walls, the seven-point Laplacian
multiplies the mode k of a discrete cosine transform of n cells by 2 - 2 cos(pi k / n) along every
axis.
"""

from itertools import pairwise

import numpy as np
import pytest
import scipy.fft
from support.bodies import make_backend
from support.fluids import FREE_SLIP, MIXED, NO_SLIP, PERIODIC, make_halo, make_kernels
from support.ranks import same_bits

from hybrid_nbody.fluid.kernels.reference import residual
from hybrid_nbody.fluid.solvers import coarsening, multigrid
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.stencil import POISSON, SCALAR, diffusion
from hybrid_nbody.parallel.partition import Partition

SIZES = [
    (3, 2),
    (3, 3),
    (4, 2),
    (5, 3),
    (6, 4),
    (7, 4),
    (10, 6),
    (18, 10),
    (32, 16),
    (33, 17),
    (1, 1),
    (2, 1),
]


class Problem:
    """A system of equations on the ranks of a communicator, with arrays of zeros to solve it in."""

    def __init__(
        self,
        backend,
        communicator,
        cells,
        boundary=FREE_SLIP,
        stencil=POISSON,
        dtype="f8",
        weights=None,
    ):
        self.backend, self.communicator, self.stencil = backend, communicator, stencil
        self.halo = make_halo(backend, communicator, cells[2], boundary.periodic[2], weights)
        self.kernels = make_kernels(backend, cells, boundary, dtype, self.halo.own)
        self.x, self.b, self.field = (
            self.kernels.colours(),
            self.kernels.colours(),
            self.kernels.field(),
        )
        self.scratch = backend.zeros(2 * self.field.size, dtype)

    def solve(self, b, cycles, tolerance=0.0, criterion="change"):
        """Return x after some cycles from zero, the whole grid."""
        self.field[1:-1] = self.backend.upload(b[self.halo.own].astype(self.kernels.dtype))
        self.kernels.split(self.field, self.b)
        self.kernels.fill(self.x, 0.0)
        solver = multigrid.Multigrid(
            self.kernels, self.halo, Accuracy(cycles, tolerance, criterion)
        )
        solver.solve(self.x, self.b, self.stencil, self.scratch)
        return self.whole()

    def whole(self):
        """Return x of all ranks."""
        self.kernels.merge(self.x, self.field)
        return np.concatenate(self.communicator.gather(self.backend.download(self.field[1:-1])))


def noise(cells, mean=0.0):
    """Return random numbers of every wavelength with a given mean."""
    b = np.random.default_rng(1).standard_normal(cells[::-1])
    return b - b.mean() + mean


def exact(b):
    """Return the solution of the Poisson problem between walls whose average is zero."""
    axes = np.meshgrid(*(2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in b.shape), indexing="ij")
    factor = sum(axes)
    factor[0, 0, 0] = np.inf
    return scipy.fft.idctn(scipy.fft.dctn(b) / factor)


# ---- Grids and tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("boundary", [FREE_SLIP, PERIODIC, MIXED])
@pytest.mark.parametrize(
    "cells", [(4, 4, 4), (42, 6, 100), (256, 256, 256), (4, 500, 64), (22, 3, 8)]
)
def test_grids_halve_down_to_one_cell_and_stay_cubic(cells, boundary):
    sizes = coarsening.grid_sizes(cells, boundary.periodic)
    assert sizes[0] == cells
    assert sizes[-1] == (1, 1, 1)
    for fine, coarse in pairwise(sizes):
        assert np.prod(coarse) < np.prod(fine)
        for n, m, wraps, whole in zip(fine, coarse, boundary.periodic, cells, strict=True):
            assert m in (n, -(-n // 2), -(-n // 2) + 1)
            assert not wraps or m % 2 == 0 or m == 1 or n == m == whole
        spacings = [whole / m for whole, m in zip(cells, coarse, strict=True) if m > 1]
        assert not spacings or max(spacings) <= 2.0 * min(spacings)


@pytest.mark.parametrize(("fine", "coarse"), SIZES)
def test_averages_conserve_what_they_average(fine, coarse):
    index, weight = coarsening.averaging(fine, coarse)
    total = np.zeros(fine)
    np.add.at(total, index, weight)
    np.testing.assert_allclose(weight.sum(axis=0), 1.0)
    np.testing.assert_allclose(total, coarse / fine)


@pytest.mark.parametrize(("fine", "coarse"), SIZES)
@pytest.mark.parametrize("sign", [1, -1])
def test_interpolation_is_linear_between_centres_and_obeys_walls(fine, coarse, sign):
    table = coarsening.interpolation(fine, coarse, False, sign)
    centre = (np.arange(coarse) + 0.5) * fine / coarse
    found = table.lower_weight * centre[table.lower] + table.upper_weight * centre[table.upper]
    location = np.arange(fine) + 0.5
    between = (location >= centre[0]) & (location <= centre[-1])
    np.testing.assert_allclose(found[between], location[between], rtol=1e-14)
    near = (
        location < centre[0]
    )  # between the cell at the wall and its ghost, as far behind the wall
    ghost = (1 - sign) / 2 * location[near] / centre[0] + (1 + sign) / 2
    np.testing.assert_allclose((table.lower_weight + table.upper_weight)[near], ghost, rtol=1e-14)


@pytest.mark.parametrize(("fine", "coarse"), SIZES)
@pytest.mark.parametrize("periodic", [False, True])
def test_one_halo_plane_is_enough_wherever_slabs_are_cut(fine, coarse, periodic):
    averaging = coarsening.averaging(fine, coarse)
    table = coarsening.interpolation(fine, coarse, periodic, 1)
    owners = coarsening.centre_planes(fine, coarse)
    for plane, (index, weight) in enumerate(
        zip(averaging.cells.T, averaging.weight.T, strict=True)
    ):
        assert np.abs(index[weight > 0].astype(int) - owners[plane]).max() <= 1
    for cut in range(1, fine):
        first = np.searchsorted(owners, cut)  # of the coarse planes above
        for cells, weights in (
            (table.lower, table.lower_weight),
            (table.upper, table.upper_weight),
        ):
            used = weights > 0
            assert (cells[:cut][used[:cut]] <= first).all()
            assert (cells[cut:][used[cut:]] >= first - 1).all()


def test_periodic_axes_have_no_seam(backend, alone):
    """What is interpolated from a coarse grid moves by two cells if that is moved by one."""
    cells = (12, 8, 16)
    coarse = np.random.default_rng(3).standard_normal((8, 4, 6))
    found = []
    for field in (coarse, np.roll(coarse, (1, 1, 1), axis=(0, 1, 2))):
        problem = Problem(backend, alone, cells, PERIODIC)
        solver = multigrid.Multigrid(problem.kernels, problem.halo, Accuracy(1, 0.0))
        array = backend.upload(np.pad(field, [(1, 1), (0, 0), (0, 0)], mode="wrap"))
        tables = solver.transfers[0].prolongation(SCALAR)
        solver.coarse_kernels.prolong_to_finest(array, tables, 0.0, problem.x)
        found.append(problem.whole())
    np.testing.assert_allclose(
        found[1], np.roll(found[0], (2, 2, 2), axis=(0, 1, 2)), rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(found[0].mean(), coarse.mean(), rtol=1e-12)


# ---- Rate ----------------------------------------------------------------------------------------


def factors(problem, b, boundary, cycles=8):
    """Return by what each cycle but the first multiplies the residual."""
    norms = []
    for number in range(1, cycles + 1):
        missing = residual(problem.solve(b, number), b, problem.stencil, boundary)
        norms.append(np.linalg.norm(missing))
    return np.divide(norms[1:], norms[:-1])


@pytest.mark.parametrize(
    "cells",
    [
        (32, 32, 32),
        (64, 64, 64),
        (33, 31, 63),
        (42, 42, 42),
        (3, 3, 3),
        (3, 4, 5),
        (5, 64, 20),
        (64, 17, 3),
        (7, 50, 9),
    ],
)
def test_a_cycle_between_walls_leaves_a_fifth_of_the_residual(backend, alone, cells):
    found = factors(Problem(backend, alone, cells), noise(cells), FREE_SLIP)
    assert found.max() <= 0.2
    assert found.max() >= 0.01  # or the measurement is wrong


@pytest.mark.parametrize(
    ("cells", "boundary"),
    [
        ((32, 32, 32), PERIODIC),
        ((42, 18, 6), PERIODIC),
        ((30, 18, 64), PERIODIC),
        ((34, 33, 64), MIXED),
    ],
)
def test_a_cycle_leaves_a_fifth_where_axes_are_periodic(backend, alone, cells, boundary):
    assert factors(Problem(backend, alone, cells, boundary), noise(cells), boundary).max() <= 0.2


@pytest.mark.parametrize("component", [0, 1])
@pytest.mark.parametrize(
    ("boundary", "ratio"), [(NO_SLIP, 0.3), (NO_SLIP, 1e4), (FREE_SLIP, 10.0), (MIXED, 100.0)]
)
def test_a_cycle_leaves_a_fifth_of_diffusion_with_mirrored_walls(
    backend, alone, boundary, ratio, component
):
    cells = (22, 33, 17)
    stencil = diffusion(ratio, boundary.velocity_ghosts[component])
    found = factors(
        Problem(backend, alone, cells, boundary, stencil), noise(cells, 0.5), boundary, cycles=6
    )
    assert found.max() <= 0.2


# ---- Solutions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [(3, 3, 3), (12, 9, 7), (3, 20, 40), (32, 32, 32), (41, 5, 6)])
def test_the_pressure_is_that_of_a_cosine_transform(backend, alone, cells):
    b = noise(cells)
    found, expected = Problem(backend, alone, cells).solve(b, 18), exact(b)
    np.testing.assert_allclose(
        found - found.mean(), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


def test_single_precision_gets_down_to_rounding_and_stays_there(backend, alone):
    """A right-hand side rounded to float32 has a mean, for which there is no solution.

    Nothing may drift.
    """
    cells = (40, 33, 24)
    b = noise(cells)
    expected = exact(b)
    problem = Problem(backend, alone, cells, dtype="f4")
    for cycles in (8, 60):
        found = problem.solve(b, cycles).astype("f8")
        assert abs(found.mean()) < 0.1 * np.abs(expected).max()
        np.testing.assert_allclose(
            found - found.mean(), expected, rtol=0, atol=5e-6 * np.abs(expected).max()
        )


def test_a_right_hand_side_without_a_solution_spoils_only_the_constant(backend, alone):
    cells = (16, 18, 20)
    b = noise(cells)
    for cycles in (20, 60):
        found = Problem(backend, alone, cells).solve(b + 1e-3, cycles)
        assert abs(found.mean()) < 0.05
        np.testing.assert_allclose(found - found.mean(), exact(b), rtol=0, atol=1e-3)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_uniform_field_stays_uniform_to_the_last_bit(backend, alone, dtype):
    problem = Problem(backend, alone, (21, 18, 15), stencil=diffusion(3.7, SCALAR), dtype=dtype)
    value = np.dtype(dtype).type(1 / 3)
    uniform = problem.kernels.field()
    problem.kernels.fill(uniform, value)
    problem.kernels.split_twice(uniform, problem.b, problem.x)
    solver = multigrid.Multigrid(problem.kernels, problem.halo, Accuracy(3, 0.0))
    solver.solve(problem.x, problem.b, problem.stencil, problem.scratch)
    assert (problem.whole() == value).all()


# ---- When a solve ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["change", "residual"])
def test_a_solve_ends_once_its_criterion_is_met(backend, alone, criterion):
    cells, tolerance = (24, 20, 16), 1e-6
    b = noise(cells)
    problem = Problem(backend, alone, cells)
    found = problem.solve(b, 50, tolerance, criterion)
    counts = problem.kernels.statistics()
    assert counts["solves"] == counts["early"] == 1
    assert 5 <= counts["iterations"] <= 11
    before = problem.solve(b, counts["iterations"] - 1)
    assert same_bits(found, problem.solve(b, counts["iterations"]))
    if criterion == "residual":
        relative = [
            np.abs(residual(x, b, POISSON, FREE_SLIP)).max() / np.abs(b).max()
            for x in (found, before)
        ]
        assert relative[0] <= tolerance < relative[1]
    else:
        assert np.abs(found - before).max() <= 7 * tolerance  # six half sweeps and a correction


def test_a_solve_without_tolerance_does_all_cycles(backend, alone):
    problem = Problem(backend, alone, (8, 8, 8))
    problem.solve(noise((8, 8, 8)), 7)
    assert problem.kernels.statistics() == {"solves": 1, "iterations": 7, "early": 0}


# ---- Ranks and threads ---------------------------------------------------------------------------


CASES = [
    ((20, 18, 22), FREE_SLIP, POISSON, None),
    ((20, 18, 22), PERIODIC, POISSON, "uneven"),
    ((13, 9, 31), NO_SLIP, diffusion(5.0, NO_SLIP.velocity_ghosts[2]), "uneven"),
    ((5, 4, 17), FREE_SLIP, diffusion(5.0, SCALAR), None),
]


@pytest.mark.mpi
@pytest.mark.parametrize("fewest", [1, 3, 100])
@pytest.mark.parametrize(("cells", "boundary", "stencil", "weights"), CASES)
def test_any_number_of_ranks_gives_the_bits_of_one(
    communicator, alone, backend, cells, boundary, stencil, weights, fewest, monkeypatch
):
    """With coarse grids shared down to `fewest` planes of a rank; with 100, none is."""
    monkeypatch.setattr(multigrid, "FEWEST_PLANES", fewest)
    monkeypatch.setattr(type(backend), "message_cells", multigrid.CENTRED_CELLS // 8)
    monkeypatch.setattr(multigrid, "CENTRED_CELLS", multigrid.CENTRED_CELLS // 8)
    shares = [2.0 + rank for rank in range(communicator.size)] if weights else None
    b = noise(cells)
    shared = Problem(backend, communicator, cells, boundary, stencil, weights=shares)
    single = Problem(backend, alone, cells, boundary, stencil)
    assert same_bits(shared.solve(b, 4), single.solve(b, 4))


@pytest.mark.mpi
def test_ranks_share_coarse_grids_while_they_have_planes(communicator, backend, monkeypatch):
    """The third grid has 64 x 64 x 4 cells for each rank: 32768 for two."""
    monkeypatch.setattr(type(backend), "message_cells", 32768)
    sizes = [communicator.size * planes for planes in (16, 8, 4)]
    kernels = make_kernels(backend, (256, 256, sizes[0]), own=slice(0, sizes[0]))
    halo = make_halo(backend, communicator, sizes[0], False)
    levels, transfers = multigrid.build_levels(kernels, halo)
    assert [level.cells[2] for level in levels[:3]] == sizes
    shared = communicator.size > 1
    assert [level.shared for level in levels[1:5]] == [
        shared,
        communicator.size > 2,
        False,
        False,
    ]
    assert sum(transfer.collects for transfer in transfers) == shared


@pytest.mark.mpi
@pytest.mark.parametrize("criterion", ["change", "residual"])
def test_all_ranks_stop_together_where_one_would(communicator, alone, backend, criterion):
    cells, b = (12, 10, 16), noise((12, 10, 16))
    b[:4] *= 1e-3  # the first rank would be content earlier
    b[:4] -= b.sum() / b[:4].size
    problems = [Problem(backend, ranks, cells) for ranks in (communicator, alone)]
    found = [problem.solve(b, 30, 1e-5, criterion) for problem in problems]
    assert same_bits(*found)
    assert problems[0].kernels.statistics() == problems[1].kernels.statistics()
    assert problems[0].kernels.statistics()["early"] == 1


def test_any_number_of_threads_gives_the_same_bits(alone, monkeypatch):
    cells = (40, 40, 40)  # large enough for several threads on the second grid
    found = [
        Problem(make_backend("cpu", threads), alone, cells, dtype="f4").solve(noise(cells), 2)
        for threads in (1, 3)
    ]
    assert same_bits(*found)


def test_partitions_of_coarse_grids_keep_the_order_of_ranks():
    offsets = Partition.equal(37, 4).offsets
    for fine, coarse in ((37, 19), (19, 10), (10, 5)):
        offsets = np.searchsorted(coarsening.centre_planes(fine, coarse), offsets).tolist()
        assert offsets[0] == 0
        assert offsets[-1] == coarse
        assert offsets == sorted(offsets)
