"""The budget of the density: its total is kept in a step, or what it loses is told."""

from dataclasses import replace

import numpy as np
import pytest
from support.bodies import make_backend
from support.fluids import (
    DEFAULT,
    FREE_SLIP,
    MIXED,
    PERIODIC,
    make_halo,
    make_kernels,
    make_model,
    state,
    stirring,
)
from support.ranks import same_bits, this_rank

from hybrid_nbody.fluid.budget import Budget
from hybrid_nbody.fluid.solvers.base import Accuracy
from hybrid_nbody.fluid.solvers.multigrid import Multigrid
from hybrid_nbody.fluid.sources import Box, Event

CELLS = (16, 16, 4)
STEPS = 100
FLOW = replace(DEFAULT, dt=0.1, viscosity=0.0, diffusivity=1e-4, conserve=True)
DRIFT = {"f4": 1e-6, "f8": 1e-12}
KINDS = {"semi-lagrangian": FLOW, "maccormack": replace(FLOW, advection="maccormack")}


def multigrid(kernels, halo):
    return Multigrid(kernels, halo, Accuracy(10, 1e-4, "residual"))


def cell_flow():
    """Return u and v of one vortex between walls, which does not change with time."""
    x = np.pi * (np.arange(CELLS[0]) + 0.5) / CELLS[0]
    u = np.sin(x) * np.cos(x)[:, None]
    return [np.broadcast_to(field, CELLS[::-1]) for field in (u, -u.T)]


def steady(model, steps):
    """Advance with the same flow in each step."""
    own = slice(model.kernels.slab.first, model.kernels.slab.first + model.kernels.slab.planes)
    for _ in range(steps):
        for array, values in zip(model.state.velocity, cell_flow(), strict=False):
            array[1:-1] = model.backend.upload(np.ascontiguousarray(values[own], array.dtype))
        model.state.velocity.w[...] = 0
        model.advance(1)


def flowing(physics, communicator, steps=STEPS, **options):
    """Return a fluid whose density a steady flow has carried for some steps."""
    events = (Event(0, 0, "density", (1.0,), Box((2, 9, 1, 5, 0, 3))),)
    options = {"solver": multigrid, "boundary": FREE_SLIP, "dtype": "f4"} | options
    model = make_model(CELLS, physics, communicator, events, **options)
    steady(model, steps)
    return model


@pytest.mark.parametrize("advection", KINDS)
@pytest.mark.parametrize("dtype", DRIFT)
def test_a_steady_flow_keeps_the_total(backend, alone, advection, dtype):
    """Without a correction it more than doubles, or loses a third."""
    model = flowing(KINDS[advection], alone, backend=backend, dtype=dtype)
    density = state(model)["state/density"].astype("f8")
    np.testing.assert_allclose(density.sum(), 7 * 4 * 3, rtol=DRIFT[dtype], atol=0)
    assert density.min() >= -1e-4
    assert density.max() <= 1 + 1e-4


@pytest.mark.parametrize("advection", KINDS)
def test_what_is_not_taken_back_is_told(backend, alone, advection):
    physics = replace(KINDS[advection], conserve=False)
    values = flowing(physics, alone, backend=backend, dtype="f8").diagnostics()
    gained = np.log(values["total_density"] / (7 * 4 * 3))
    assert abs(gained) > 0.2
    np.testing.assert_allclose(values["advection_error"], gained, rtol=0.02, atol=0)


def test_what_was_taken_back_is_told(alone):
    assert abs(flowing(FLOW, alone).diagnostics()["advection_error"]) > 0.2


def test_a_fluid_at_rest_is_not_corrected(alone):
    model = make_model(CELLS, FLOW, alone, dtype="f8", solver=multigrid)
    model.state.density[...] = 0.1
    model.advance(3)
    assert same_bits(np.unique(state(model)["state/density"]), np.array([0.1]))
    assert model.diagnostics()["advection_error"] == 0.0


def test_runs_of_the_course_take_nothing_back_and_say_what_they_lose(alone):
    course = replace(DEFAULT, projection="course", conserve=False)
    model = make_model(CELLS, course, alone, stirring(CELLS), dtype="f8")
    model.advance(4)
    before = model.diagnostics()
    model.advance(2)
    values = model.diagnostics()
    gained = np.log(values["total_density"] / before["total_density"])
    told = values["advection_error"] - before["advection_error"]
    assert abs(gained) > 0.1
    np.testing.assert_allclose(told, gained, rtol=0.1, atol=0)  # the sum of the steps' own shares


def test_what_is_carried_over_is_not_summed(alone):
    physics = replace(DEFAULT, projection="course", carry_over=True, conserve=False)
    model = make_model(CELLS, physics, alone, stirring(CELLS))
    model.advance(2)
    assert model.stepper.budget is None
    assert "advection_error" not in model.quantities
    assert "advection_error" not in model.diagnostics()


# ---- Bits ----------------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("boundary", [FREE_SLIP, PERIODIC, MIXED], ids=["walls", "around", "mixed"])
def test_bits_do_not_depend_on_the_ranks(backend, communicator, boundary):
    options = {"steps": 5, "backend": backend, "boundary": boundary}

    def found(ranks):
        model = flowing(FLOW, ranks, **options)
        return state(model)["state/density"], model.diagnostics(), model.scalars()

    expected, *numbers = communicator.on_root(lambda: found(this_rank()))
    density, *others = found(communicator)
    assert same_bits(density, expected)
    assert others == numbers


def test_bits_do_not_depend_on_the_threads(alone):
    one, two = (flowing(FLOW, alone, steps=5, backend=make_backend("cpu", n)) for n in (1, 2))
    assert same_bits(state(one)["state/density"], state(two)["state/density"])
    assert one.scalars() == two.scalars()


@pytest.mark.mpi
def test_a_restart_does_not_change_a_bit(backend, communicator):
    first = flowing(FLOW, communicator, steps=3, backend=backend)
    rows = {name: field.host(0, field.rows) for name, field in first.fields().items()}
    second = flowing(FLOW, communicator, steps=0, backend=backend)
    second.restore(rows.__getitem__, first.scalars())
    steady(second, 4)
    whole = flowing(FLOW, communicator, steps=7, backend=backend)
    assert same_bits(state(second)["state/density"], state(whole)["state/density"])
    assert second.scalars() == whole.scalars()


def test_a_state_of_an_earlier_version_is_taken_back(alone):
    first = flowing(FLOW, alone, steps=1)
    rows = {name: field.host(0, field.rows) for name, field in first.fields().items()}
    scalars = {
        name: value
        for name, value in first.scalars().items()
        if name not in ("advection_error", "density_left")
    }
    second = flowing(FLOW, alone, steps=0)
    second.restore(rows.__getitem__, scalars)
    assert second.diagnostics()["advection_error"] == 0.0


# ---- The correction of one change ----------------------------------------------------------------


def corrected(backend, communicator, before, after, dtype="f8"):
    """Return what a budget makes of a change, and the budget."""
    nz, ny, nx = before.shape
    kernels = make_kernels(backend, (nx, ny, nz), dtype=dtype)
    halo = make_halo(backend, communicator, nz, False)
    budget = Budget(kernels, halo, kernels.field(), True)
    field = kernels.field()
    field[1:-1] = backend.upload(before.astype(dtype))
    budget.begin(field)
    field[1:-1] = backend.upload(after.astype(dtype))
    budget.finish(field)
    return backend.download(field[1:-1]), budget


@pytest.mark.parametrize("sign", [1, -1])
def test_changes_that_are_too_large_are_scaled(backend, alone, sign):
    """Gains of 3 and losses of 1 become gains and losses of 1, in proportion; or the reverse."""
    before = np.full((3, 3, 3), 5.0)
    change = np.zeros_like(before)
    change[0, 0], change[2, 1, 1] = (0.5, 1.0, 1.5), -1.0
    found, budget = corrected(backend, alone, before, before + sign * change)
    expected = np.where(change > 0, change / 3, change)
    np.testing.assert_allclose(found, before + sign * expected, rtol=1e-15, atol=0)
    scalars = budget.scalars()
    np.testing.assert_allclose(scalars["advection_error"], sign * 2 / 135, rtol=1e-14, atol=0)


@pytest.mark.parametrize("sign", [1, -1])
def test_without_losses_nothing_is_gained(backend, alone, sign):
    before = np.random.default_rng(1).random((3, 4, 5))
    found, _ = corrected(backend, alone, before, before + sign * np.ones((3, 4, 5)) / 3)
    assert same_bits(found, before)


def test_a_number_that_is_none_stays_where_it_is(backend, alone):
    """The guard finds it there."""
    before = np.ones((3, 4, 5))
    after = before.copy()
    after[1, 2, 3] = np.nan
    found, _ = corrected(backend, alone, before, after)
    assert np.flatnonzero(np.isnan(found)).tolist() == [np.ravel_multi_index((1, 2, 3), (3, 4, 5))]


def test_what_rounding_hides_is_taken_back_later(backend, alone):
    """A gain too small for a cell's last bit is kept in mind until it is large enough."""
    before = np.ones((3, 4, 5), "f4")
    after = before.copy()
    after[0, 0, 0] += np.float32(2.0**-23)
    after[1] -= np.float32(2.0**-24)
    found, budget = corrected(backend, alone, before, after, "f4")
    left = budget.scalars()["density_left"]
    np.testing.assert_allclose(found.astype("f8").sum() - left, 60.0, rtol=1e-15, atol=0)
