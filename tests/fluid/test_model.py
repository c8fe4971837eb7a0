"""The fluid model: against the reference, and the same bits on any ranks, threads and restart."""

from dataclasses import replace

import numpy as np
import pytest
from support.bodies import make_backend
from support.fluids import (
    DEFAULT,
    FREE_SLIP,
    LID,
    MIXED,
    NO_SLIP,
    PERIODIC,
    centre,
    make_model,
    red_black,
    state,
    stirring,
)
from support.ranks import same_bits, this_rank

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.fluid.frames import Frames
from hybrid_nbody.fluid.grid import SCALAR
from hybrid_nbody.fluid.kernels import reference
from hybrid_nbody.fluid.kernels.gpu.red_black import TiledSolver
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.solvers.relaxation import Sor
from hybrid_nbody.fluid.sources import Box, Event
from hybrid_nbody.fluid.step import Stepper

CELLS = (10, 8, 12)
BOUNDARIES = {
    "free-slip": FREE_SLIP,
    "no-slip": NO_SLIP,
    "periodic": PERIODIC,
    "mixed": MIXED,
    "lid": LID,
}
PHYSICS = {
    "plain": DEFAULT,
    "carried over": replace(DEFAULT, carry_over=True, projection="course"),
    "maccormack": replace(DEFAULT, advection="maccormack"),
    "forces": replace(DEFAULT, lift=(0.0, 0.3, 0.1), confinement=0.5),
    "faster than a slab": replace(DEFAULT, dt=3.0),
}


def stirred(physics, communicator, steps=6, **options):
    """Return the state after some steps of a stirred fluid."""
    model = make_model(CELLS, physics, communicator, stirring(CELLS), **options)
    model.advance(steps)
    return model


# ---- Against the truth ---------------------------------------------------------------------------


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("projection", ["exact", "course"])
def test_steps_agree_with_the_reference(backend, alone, boundary, projection):
    kind, physics = BOUNDARIES[boundary], replace(DEFAULT, projection=projection)
    events = (
        Event(0, 0, "density", (8.0,), centre(CELLS)),
        Event(0, 0, "velocity", (1.0, -2.0, 0.5), centre(CELLS)),
    )
    model = make_model(CELLS, physics, alone, events, backend, kind)
    model.advance(3)
    nx, ny, nz = CELLS
    x, y, z = (number // 2 - 1 for number in CELLS)
    velocity, density = [np.zeros((nz, ny, nx)) for _ in range(3)], np.zeros((nz, ny, nx))
    density[z, y, x] = 8.0
    for component, value in zip(velocity, (1.0, -2.0, 0.5), strict=True):
        component[z, y, x] = value
    factor, guess = (0.5 * max(CELLS), np.copy) if projection == "exact" else (0.5, np.zeros_like)
    for _ in range(3):
        velocity, density = reference.step(
            velocity, density, 0.1, 1e-3, 1e-3, kind, factor, guess, iterations=20, tolerance=1e-7
        )
    found = state(model)
    for name, expected in zip(("u", "v", "w", "density"), (*velocity, density), strict=True):
        np.testing.assert_allclose(found[f"state/{name}"], expected, rtol=1e-11, atol=1e-13)


def test_a_wall_that_moves_drags_the_fluid_along(alone):
    model = make_model((8, 8, 8), DEFAULT, alone, boundary=LID)
    model.advance(4)
    u = state(model)["state/u"]
    assert u[-1].mean() > 0.003
    assert u[-1].mean() > 10 * abs(u[:4].mean())


def test_a_uniform_density_stays_uniform_to_the_last_bit(backend, alone):
    """Whatever moves; its value is no binary fraction."""
    for dtype in ("f4", "f8"):
        model = make_model(CELLS, DEFAULT, alone, stirring(CELLS)[1:2], backend, dtype=dtype)
        model.state.density[...] = 0.1
        model.advance(5)
        assert same_bits(np.unique(state(model)["state/density"]), np.array([0.1], dtype))


# ---- Bits ----------------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("physics", "boundary"),
    [
        *(("plain", boundary) for boundary in BOUNDARIES),
        ("carried over", "free-slip"),
        ("maccormack", "no-slip"),
        ("maccormack", "periodic"),
        ("forces", "mixed"),
        ("faster than a slab", "free-slip"),
        ("faster than a slab", "periodic"),
    ],
)
def test_bits_do_not_depend_on_the_ranks(backend, communicator, physics, boundary):
    """Uneven slabs; with a large step the velocity carries across several of them."""
    weights = [1.0 + rank % 2 for rank in range(communicator.size)]
    kind = BOUNDARIES[boundary]
    shared = stirred(
        PHYSICS[physics], communicator, backend=backend, boundary=kind, dtype="f4", weights=weights
    )

    def whole():
        model = stirred(PHYSICS[physics], this_rank(), backend=backend, boundary=kind, dtype="f4")
        return state(model), model.diagnostics()

    expected, values = communicator.on_root(whole)
    for name, found in state(shared).items():
        assert same_bits(found, expected[name]), name
    np.testing.assert_equal(shared.diagnostics(), values)  # a NaN equals a NaN
    assert values["cfl"] > (2 if physics == "faster than a slab" else 0)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("physics", ["plain", "faster than a slab"])
def test_steps_that_advect_before_it_is_known_how_far_have_the_same_bits(
    communicator, monkeypatch, physics
):
    expected = state(stirred(PHYSICS[physics], communicator))
    record = Stepper._record

    def record_steps_ahead(stepper):
        record(stepper)
        stepper.step_unwatched = stepper._step_ahead

    monkeypatch.setattr(Stepper, "_record", record_steps_ahead)
    for name, found in state(stirred(PHYSICS[physics], communicator)).items():
        assert same_bits(found, expected[name]), name


@pytest.mark.mpi
@pytest.mark.parametrize("criterion", ["change", "residual"])
def test_ranks_stop_together_after_the_iterations_that_one_rank_needs(communicator, criterion):
    def solver(kernels, halo):
        return red_black(kernels, halo, iterations=40, tolerance=1e-2, criterion=criterion)

    shared, whole = (
        stirred(DEFAULT, ranks, steps=2, solver=solver) for ranks in (communicator, this_rank())
    )
    expected = whole.kernels.statistics()
    assert shared.kernels.statistics() == expected
    assert 0 < expected["early"] <= expected["solves"] == 12
    assert same_bits(state(shared)["state/u"], state(whole)["state/u"])


@pytest.mark.mpi
@pytest.mark.parametrize("method", [red_black, Multigrid])
def test_without_a_tolerance_all_ranks_do_all_iterations(communicator, method):
    """Also those of which nothing moves: a cell of density in one slab, the rest at rest."""

    def solver(kernels, halo):
        return (
            method(kernels, halo, Accuracy(7, 0.0))
            if method is Multigrid
            else method(kernels, halo, 7, 0.0)
        )

    events = (Event(0, 0, "density", (1.0,), Box.cell(1, 1, 1)),)
    model = make_model((8, 8, 16), DEFAULT, communicator, events, solver=solver)
    model.advance(2)
    assert model.kernels.statistics() == {"solves": 12, "iterations": 84, "early": 0}


@pytest.mark.mpi
def test_ranks_agree_on_how_far_the_fluid_of_a_slab_that_is_no_number_moves(communicator):
    """They all go on, for the guard to end the run."""
    model = make_model(CELLS, DEFAULT, communicator)
    if communicator.rank == communicator.size - 1:
        model.state.velocity[2][1, 3, 4] = np.nan
    model.advance(2)
    assert model.diagnostics()["max_speed"] == np.inf


@pytest.mark.mpi(min_size=2)
def test_fluid_that_goes_round_the_grid_too_often_is_refused(communicator):
    model = make_model(
        CELLS, replace(DEFAULT, dt=1000.0), communicator, stirring(CELLS), boundary=PERIODIC
    )
    with pytest.raises(
        NumericalError, match=r"more than 16 times round the grid, .* take a smaller time.dt"
    ):
        model.advance(2)


def over_relaxed(kernels, halo):
    return Sor(kernels, halo, Accuracy(20, 1e-7))


def cycles(kernels, halo):
    return Multigrid(kernels, halo, Accuracy(3, 1e-4, "residual"))


def overwritten(action, index):
    """Return an action that spoils its argument at an index before it does anything."""

    def spoiled(*arguments):
        if arguments[index] is not None:
            arguments[index].fill(np.nan)
        return action(*arguments)

    return spoiled


@pytest.mark.parametrize("physics", PHYSICS)
@pytest.mark.parametrize("solver", [red_black, over_relaxed, cycles])
def test_memory_that_is_lent_is_free(backend, alone, physics, solver):
    """What scratch memory holds does not matter to a solver or an advection."""
    models = [
        make_model((34, 8, 12), PHYSICS[physics], alone, stirring(CELLS), backend, solver=solver)
        for _ in range(2)
    ]
    plain, spoiled = models
    for model in models:
        if backend.name == "gpu":
            model.kernels.pass_solver = TiledSolver(model.kernels)
        else:
            model.kernels.longest_pass = 4
    spoiled.stepper.solver.solve = overwritten(spoiled.stepper.solver.solve, 3)
    spoiled.kernels.advect = overwritten(spoiled.kernels.advect, 3)
    spoiled.kernels.correct = overwritten(spoiled.kernels.correct, 4)
    for steps in (3, 2):
        for model in models:
            model.advance(steps)
        one, two = state(plain), state(spoiled)
        assert all(same_bits(one[name], two[name]) for name in one)
        assert plain.diagnostics() == spoiled.diagnostics()


@pytest.mark.parametrize("physics", PHYSICS)
def test_bits_do_not_depend_on_the_threads(alone, physics):
    one, two = (
        state(stirred(PHYSICS[physics], alone, backend=make_backend("cpu", n))) for n in (1, 2)
    )
    assert all(same_bits(one[name], two[name]) for name in one)


@pytest.mark.mpi
@pytest.mark.parametrize("physics", PHYSICS)
def test_a_restart_does_not_change_a_bit(backend, communicator, physics):
    """Nor does the number of steps that are asked for at once."""
    first = stirred(PHYSICS[physics], communicator, steps=3, backend=backend)
    rows = {name: field.host(0, field.rows) for name, field in first.fields().items()}
    second = make_model(CELLS, PHYSICS[physics], communicator, stirring(CELLS), backend)
    second.restore(rows.__getitem__, first.scalars())
    for _ in range(3):
        second.advance(1)
    whole = stirred(PHYSICS[physics], communicator, backend=backend)
    expected, found = state(whole), state(second)
    assert all(same_bits(found[name], expected[name]) for name in expected)
    assert second.scalars() == whole.scalars()
    assert second.diagnostics() == whole.diagnostics()


# ---- Output --------------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize(("stride", "planes"), [(1, None), (3, None), (2, (1, 4, 5, 11))])
def test_frames_hold_every_so_many_cells_or_some_planes(communicator, stride, planes):
    model = stirred(DEFAULT, communicator, frames=Frames(("velocity", "density"), stride, planes))
    full = state(stirred(DEFAULT, communicator))
    chosen = list(planes or range(0, CELLS[2], stride))
    found = state(model)
    assert same_bits(found["fluid/density"], full["state/density"][chosen, ::stride, ::stride])
    assert same_bits(found["fluid/velocity"][..., 1], full["state/v"][chosen, ::stride, ::stride])


def test_diagnostics_are_sums_over_cells(backend, alone):
    model = stirred(DEFAULT, alone, backend=backend)
    values, arrays = model.diagnostics(), state(model)
    density, speed = arrays["state/density"], np.stack([arrays[f"state/{name}"] for name in "uvw"])
    ghosts = reference.padded(density, FREE_SLIP, SCALAR)
    np.testing.assert_allclose(values["total_density"], density.sum(), rtol=1e-13)
    np.testing.assert_allclose(values["total_density_with_ghosts"], ghosts.sum(), rtol=1e-13)
    np.testing.assert_allclose(
        values["kinetic_energy"], 0.5 * (speed**2).sum() / max(CELLS) ** 3, rtol=1e-13
    )
    np.testing.assert_allclose(values["max_speed"], np.abs(speed).max(), rtol=1e-15)
    divergence = reference.divergence(list(speed), FREE_SLIP, 0.5 * max(CELLS))
    np.testing.assert_allclose(values["divergence_after"], np.abs(divergence).max(), rtol=1e-12)
    assert values["divergence_before"] > values["divergence_after"] > 0
    assert 0 < values["poisson_residual"] < 1
