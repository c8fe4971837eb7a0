"""Every solver against the exact solution of the discrete equations by a cosine transform.

With walls on all sides the cells x_i = (i + 1/2) h carry the modes cos(k pi x); the seven-point
Laplacian multiplies each by -(4 / h^2) sin^2(k pi h / 2) along every axis. A normal velocity is
mirrored with a minus sign: sin(k pi x) along that axis, with the same factor.
"""

from functools import partial

import numpy as np
import pytest
import scipy.fft
from support.fluids import FREE_SLIP, make_halo, make_kernels

from hybrid_nbody.fluid.grid import Boundary
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.relaxation import Lexicographic, RedBlack, Sor
from hybrid_nbody.fluid.stencil import POISSON, SCALAR, diffusion

CELLS = (12, 9, 7)

SOLVERS = {
    "red-black": partial(RedBlack, accuracy=Accuracy(4000, 1e-14)),
    "red-black, residual": partial(RedBlack, accuracy=Accuracy(4000, 1e-12, "residual")),
    "sor": partial(Sor, accuracy=Accuracy(400, 1e-14)),
    "sor, given": partial(Sor, accuracy=Accuracy(800, 1e-14), omega=1.7),
    "lexicographic": partial(Lexicographic, accuracy=Accuracy(1500, 0.0)),
}


def right_hand_side(cells=CELLS):
    """Return random numbers whose sum is zero, as a pressure between walls needs."""
    b = np.random.default_rng(1).standard_normal(cells[::-1])
    return b - b.mean()


def modes(b, eigenvalue):
    """Return b with every cosine mode divided by ``eigenvalue(sum of the axes' factors)``.

    The constant stays zero.
    """
    factor = 0.0
    for axis, number in enumerate(b.shape):
        shape = [-1 if other == axis else 1 for other in range(3)]
        factor = factor + (4 * np.sin(0.5 * np.pi * np.arange(number) / number) ** 2).reshape(shape)
    scale = eigenvalue(factor)
    scale[0, 0, 0] = scale[0, 0, 0] or np.inf
    return scipy.fft.idctn(scipy.fft.dctn(b) / scale)


def solve(solver, backend, communicator, b, stencil, cells=CELLS, boundary=FREE_SLIP):
    """Return the solution from a first guess of zero."""
    halo = make_halo(backend, communicator, cells[2], False)
    kernels = make_kernels(backend, cells, boundary, "f8", halo.own)
    field, x, right = kernels.field(), kernels.colours(), kernels.colours()
    field[1:-1] = backend.upload(b[halo.own])
    kernels.split(field, right)
    scratch = kernels.backend.zeros(2 * int(np.prod(kernels.slab.shape)), kernels.dtype)
    solver(kernels, halo).solve(x, right, stencil, scratch)
    kernels.merge(x, field)
    return np.concatenate(communicator.gather(backend.download(field[1:-1]))), kernels


def only_where_it_runs(name, backend):
    if name == "lexicographic" and backend.name == "gpu":
        pytest.skip("lexicographic runs on a CPU alone")


@pytest.mark.parametrize("name", SOLVERS)
def test_the_pressure_is_that_of_a_cosine_transform(backend, alone, name):
    only_where_it_runs(name, backend)
    b = right_hand_side()
    found, _ = solve(SOLVERS[name], backend, alone, b, POISSON)
    expected = modes(b, lambda factor: factor)
    np.testing.assert_allclose(
        found - found.mean(), expected, rtol=0, atol=1e-10 * np.abs(expected).max()
    )


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("ratio", [0.02, 3.0])
def test_diffusion_is_that_of_a_cosine_transform(backend, alone, name, ratio):
    only_where_it_runs(name, backend)
    b = right_hand_side() + 0.3
    found, _ = solve(SOLVERS[name], backend, alone, b, diffusion(ratio, SCALAR))
    expected = modes(b, lambda factor: 1 + ratio * factor)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("criterion", ["change", "residual"])
@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_a_first_guess_of_zero_need_not_be_stored(backend, alone, criterion, tolerance):
    halo = make_halo(backend, alone, CELLS[2], False)
    kernels = make_kernels(backend, CELLS, FREE_SLIP, "f8", halo.own)
    solver = RedBlack(kernels, halo, Accuracy(7, tolerance, criterion), from_zero=True)
    field, b = kernels.field(), kernels.colours()
    field[1:-1] = backend.upload(right_hand_side())
    kernels.split(field, b)
    found = []
    for rest in (0.0, 5.0):
        x = kernels.colours()
        x[...] = rest
        solver.solve(x, b, diffusion(0.7, SCALAR), None)
        kernels.merge(x, field)
        found.append(backend.download(field[1:-1]).copy())
    assert found[0].any()
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", ["free-slip", "no-slip"])
def test_a_step_of_diffusion_damps_a_mode_of_the_velocity_by_its_exact_factor(
    backend, alone, name, kind
):
    """The factor is 1 / (1 + nu dt L), L = sum over the axes of (4 / h^2) sin^2(k h / 2)."""
    only_where_it_runs(name, backend)
    boundary, ratio = Boundary.of_axes((kind,) * 3), 2.0
    ghosts = boundary.velocity_ghosts[0]
    parity = ghosts.axis_signs
    x, y, z = (np.pi * (np.arange(number) + 0.5) / number for number in CELLS)
    along = {1: np.cos, -1: np.sin}
    mode = along[parity[2]](z)[:, None, None] * along[parity[1]](y)[:, None] * along[parity[0]](x)
    found, _ = solve(
        SOLVERS[name], backend, alone, mode, diffusion(ratio, ghosts), boundary=boundary
    )
    damping = 1 + ratio * sum(4 * np.sin(0.5 * np.pi / number) ** 2 for number in CELLS)
    np.testing.assert_allclose(found, mode / damping, rtol=0, atol=1e-12)


def test_over_relaxation_needs_far_fewer_iterations(alone, backend):
    """Four decades of the smoothest mode at 32^3; theory has 2867 sweeps a decade at 64^3."""
    cells = (32, 32, 32)
    b = np.broadcast_to(np.cos(np.pi * (np.arange(32) + 0.5) / 32), (32, 32, 32))
    accuracy = Accuracy(3000, 1e-4, "residual")
    count = {}
    for name, solver in {"plain": RedBlack, "sor": Sor}.items():
        _, kernels = solve(partial(solver, accuracy=accuracy), backend, alone, b, POISSON, cells)
        count[name] = kernels.statistics()["iterations"]
    assert count["plain"] > 1500
    assert count["sor"] < 140


@pytest.mark.parametrize("method", [RedBlack, Sor])
@pytest.mark.parametrize("ratio", [0.1, 10.0, 1e4])
def test_mirrored_walls_never_make_a_solve_diverge(backend, alone, method, ratio):
    """In a corner without slip, ghosts add three neighbours to the diagonal."""
    boundary = Boundary.of_axes(("no-slip",) * 3)
    b = right_hand_side((5, 5, 5))
    accuracy = Accuracy(600, 1e-13)
    options = {"omega": 1.99} if method is Sor else {}
    found, kernels = solve(
        partial(method, accuracy=accuracy, **options),
        backend,
        alone,
        b,
        diffusion(ratio, boundary.velocity_ghosts[0]),
        (5, 5, 5),
        boundary,
    )
    assert np.abs(found).max() <= np.abs(b).max()
