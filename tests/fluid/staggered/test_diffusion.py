"""Implicit viscosity and diffusion: Chebyshev's iteration and conjugate gradients."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.staggered import CAVITY, PERIODIC, TUNNEL, WALLS, make_stepper, own, put, still

from hybrid_nbody.fluid.obstacles import Sphere
from hybrid_nbody.fluid.staggered import diffusion
from hybrid_nbody.fluid.staggered.chebyshev import Spectrum
from hybrid_nbody.fluid.staggered.diffusion import Diffusion, Equation
from hybrid_nbody.fluid.staggered.pressure import Accuracy

CELLS = (12, 8, 6)
BALL = (Sphere((0.5, 0.3, 0.25), 0.2),)
MOVING = (Sphere((0.5, 0.3, 0.25), 0.2, velocity=(0.1, 0.0, 0.0)),)


@given(
    largest=st.floats(1.01, 200.0),
    reduction=st.floats(1e-9, 0.5),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_a_residual_is_as_small_as_promised(largest, reduction, seed):
    spectrum = Spectrum(1.0, largest)
    random = np.random.default_rng(seed)
    eigenvalues = np.concatenate([[1.0, largest], random.uniform(1.0, largest, 30)])
    r = random.normal(size=32)
    begun = np.linalg.norm(r)
    directions = spectrum.directions()
    _, part = next(directions)
    direction = part * r
    turns = spectrum.iterations(reduction)
    for _, (kept, added) in zip(range(turns), directions, strict=False):
        r = r - eigenvalues * direction
        direction = kept * direction + added * r
    assert np.linalg.norm(r) <= 1.001 * reduction * begun


def test_a_viscosity_below_rounding_is_no_error():
    spectrum = Spectrum(1.0, 1.0 + 1e-20)
    assert spectrum.iterations(1e-5) == 1
    directions = spectrum.directions()
    assert [next(directions) for _ in range(3)] == 3 * [(0.0, 1.0)]


def test_no_reduction_is_too_small():
    assert Spectrum(1.0, 2.0).iterations(0.0) == Spectrum(1.0, 2.0).iterations(5e-324) > 100


def test_nothing_is_to_be_done_where_the_residual_is_small_enough():
    assert Spectrum(1.0, 3.0).iterations(1.0) == 0
    assert Spectrum(1.0, 3.0).iterations(7.0) == 0


def disorder(backend, communicator, faces, obstacles, accuracy):
    """Return a fluid in disorder, on any ranks."""
    given = (backend, communicator, CELLS, faces, still(0.1))
    stepper = make_stepper(*given, obstacles=obstacles, accuracy=accuracy)
    noise = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 8, 10, 14))
    planes = slice(stepper.grid.first, stepper.grid.first + stepper.grid.planes + 2)
    put(stepper, lambda axis, x, y, z: noise[axis, planes])
    return stepper


@pytest.mark.parametrize("ratio", [1e-3, 0.1, 1.5])
@pytest.mark.parametrize("obstacles", [(), BALL, MOVING], ids=["plain", "ball", "moving"])
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, CAVITY, TUNNEL])
def test_both_solvers_agree(monkeypatch, backend, communicator, faces, obstacles, ratio):
    found = []
    for largest in (1e3, 0.0):
        monkeypatch.setattr(diffusion, "LARGEST_CONDITION", largest)
        stepper = disorder(backend, communicator, faces, obstacles, Accuracy(1e-11, 200))
        for axis in range(3):
            field = stepper.state.velocity[axis]
            kind = stepper.ghosts.velocity[axis]
            stepper.diffusion.spread(field, kind, stepper.inner[axis], ratio)
        found.append([own(stepper, field) for field in stepper.state.velocity])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("obstacles", [(), BALL], ids=["plain", "ball"])
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, TUNNEL])
def test_both_solvers_spread_a_scalar_alike(monkeypatch, backend, communicator, faces, obstacles):
    found = []
    for largest in (1e3, 0.0):
        monkeypatch.setattr(diffusion, "LARGEST_CONDITION", largest)
        stepper = disorder(backend, communicator, faces, obstacles, Accuracy(1e-11, 200))
        field = stepper.state.scalars["density"]
        field[...] = stepper.state.velocity[0]
        kind = stepper.ghosts.scalar["density"]
        stepper.diffusion.spread(field, kind, stepper.grid.region, 0.7)
        found.append(own(stepper, field))
    np.testing.assert_allclose(*found, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("ratio", [1e-9, 1e-3, 0.7])
@pytest.mark.parametrize("tolerance", [0.0, 1e-3, 1e-11])
@pytest.mark.parametrize("faces", [PERIODIC, TUNNEL])
def test_an_iteration_ahead_of_the_residual_changes_no_bit(
    monkeypatch, backend, communicator, faces, tolerance, ratio
):
    """Neither the number of iterations: one, a few, or as many as are allowed."""
    found = []
    for ahead in (False, True):
        monkeypatch.setattr(Diffusion, "_goes_ahead", ahead)
        stepper = disorder(backend, communicator, faces, BALL, Accuracy(tolerance, 5))
        given = (stepper.ghosts.velocity[2], stepper.inner[2], ratio)
        stepper.diffusion.spread(stepper.state.velocity[2], *given)
        found.append(own(stepper, stepper.state.velocity[2]))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("planes", "runs_ahead", "mixed", "ahead"),
    [(128, True, False, True), (127, True, False, False), (128, False, False, False)]
    + [(128, True, True, False)],
)
def test_all_ranks_go_ahead_or_none(planes, runs_ahead, mixed, ahead):
    """Those of mixed devices do not, nor those of small grids; a host has nothing to wait for."""
    backend = SimpleNamespace(runs_ahead=runs_ahead)
    grid = SimpleNamespace(cells=(128, 128, planes), backend=backend, mixed=mixed)
    assert Diffusion._goes_ahead.fget(SimpleNamespace(grid=grid)) == ahead


def test_what_is_repeated_belongs_to_the_ratio_of_the_step(backend, alone):
    ratios = (0.01, np.nextafter(0.01, 1.0), 0.01)
    last = {}
    for before in (ratios[:2], ()):
        stepper = disorder(backend, alone, WALLS, (), Accuracy(1e-11, 200))
        field = stepper.state.velocity[0]
        held = field.copy()
        given = (field, stepper.ghosts.velocity[0], stepper.inner[0])
        for ratio in (*before, ratios[2], ratios[1]):
            field[...] = held
            stepper.diffusion.spread(*given, ratio)
        last[before] = own(stepper, field)
    np.testing.assert_array_equal(*last.values())


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("obstacles", [(), BALL, MOVING], ids=["plain", "ball", "moving"])
@pytest.mark.parametrize("faces", [PERIODIC, WALLS, TUNNEL])
def test_no_eigenvalue_is_beyond_the_spectrum(backend, alone, faces, obstacles, axis):
    stepper = disorder(backend, alone, faces, obstacles, Accuracy(1e-11, 200))
    solver = stepper.diffusion
    solver.r, solver.direction, solver.image = stepper.memory.own
    region = stepper.inner[axis]
    equation = Equation(stepper.state.velocity[axis], stepper.ghosts.velocity[axis], region, 1.0)
    run = stepper.grid.program.run
    stepper.grid.clear(solver.direction)
    run("copy", region, equation.field, solver.direction)
    growth = 0.0
    for _ in range(300):
        solver._apply(equation)
        growth = stepper.grid.largest("largest", region, solver.image)
        run("copy", region, solver.image, solver.direction)
        run("add_field", region, solver.direction, 1.0 / growth - 1.0, solver.direction)
    largest = solver._spectrum(equation).largest
    assert 0.4 * largest < growth <= largest * (1.0 + 1e-9)
