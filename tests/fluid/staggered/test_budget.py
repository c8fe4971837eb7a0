"""The totals of scalars in a box of which nothing leaves: kept, or what is lost is told."""

import numpy as np
import pytest
from support.ranks import this_rank
from support.staggered import TUNNEL, WALLS, advance, make_stepper, put

from hybrid_nbody.fluid.staggered.diagnostics import measured, quantities_of
from hybrid_nbody.fluid.staggered.state import Physics

CELLS = (12, 12, 4)
SCALARS = {"density": 0.0, "heat": 1e-3}


def eddy(axis, x, y, z):
    """Return the velocity of a steady eddy in the plane of x and y."""
    along = (np.sin(np.pi * x) * np.cos(np.pi * y), -np.cos(np.pi * x) * np.sin(np.pi * y))
    return (*along, 0.0 * x)[axis]


def block(x, y, z):
    return ((x < 0.5) & (y < 0.4)).astype(float)


def stirred(backend, conserve, second_order=True, faces=WALLS, sign=1.0):
    """Return a fluid after twenty steps of the eddy, and its totals before them."""
    physics = Physics(1e-3, SCALARS, {}, second_order, conserve=conserve)
    stepper = make_stepper(backend, this_rank(), CELLS, faces, physics)
    put(stepper, eddy, block)
    stepper.state.scalars["heat"][...] = sign * stepper.state.scalars["density"]
    stepper.resume(0.0)
    before = measured(stepper)
    for step in range(20):
        advance(stepper, 0.1 * step, 0.1)
    return stepper, before


@pytest.mark.parametrize("second_order", [False, True])
def test_totals_are_kept(backend, second_order):
    stepper, before = stirred(backend, True, second_order)
    values = measured(stepper)
    for name in SCALARS:
        np.testing.assert_allclose(
            values[f"total_{name}"], before[f"total_{name}"], rtol=1e-13, atol=0
        )
    assert abs(values["advection_error"]) > 0.01
    quantity = quantities_of(stepper)["advection_error"]
    assert quantity.limit == 0.01
    assert "took back" in quantity.advice


@pytest.mark.parametrize("second_order", [False, True])
def test_what_is_not_taken_back_is_told_of_every_scalar(backend, second_order):
    """The heat is below 0: relative to its magnitude."""
    stepper, before = stirred(backend, False, second_order, sign=-1.0)
    values = measured(stepper)
    for name, error in (("density", "advection_error"), ("heat", "advection_error_heat")):
        grown = np.log(values[f"total_{name}"] / before[f"total_{name}"])
        assert abs(grown) > 0.01
        sign = np.sign(before[f"total_{name}"])
        np.testing.assert_allclose(sign * values[error], grown, rtol=0.05, atol=0)
        assert quantities_of(stepper)[error].limit == 0.01


def test_where_fluid_flows_in_and_out_there_is_no_such_error(backend):
    stepper, _ = stirred(backend, True, faces=TUNNEL)
    assert "advection_error" not in measured(stepper)
    assert measured(stepper).keys() <= quantities_of(stepper).keys()


@pytest.mark.parametrize("second_order", [False, True])
@pytest.mark.parametrize("faces", [WALLS, TUNNEL], ids=["closed", "open"])
@pytest.mark.parametrize("diffusivity", [0.0, 1e-3])
def test_a_scalar_is_kept_as_it_was_where_that_is_of_use(backend, faces, second_order, diffusivity):
    """Of sums in a closed box, of diffusion, and of advection of first order."""
    physics = Physics(0.0, {"density": diffusivity}, {}, second_order)
    stepper = make_stepper(backend, this_rank(), CELLS, faces, physics)
    put(stepper, eddy, block)
    stepper.advection.follow(stepper.state.velocity, 0.1)
    stepper.memory.potential[...] = 7.0
    stepper.scalars.carry(0.1)
    kept = not (backend.download(stepper.memory.potential) == 7.0).all()
    assert kept == (faces is WALLS or diffusivity > 0.0 or not second_order)
