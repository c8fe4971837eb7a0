"""What enters and leaves a box: bounds of scalars, viscosity before outlets, flows, formulas."""

import numpy as np
import pytest

from hybrid_nbody import Simulation
from hybrid_nbody.errors import NumericalError

TUNNEL = {"x-": {"inflow": [1, 0, 0], "density": 1}, "x+": "outflow"}
CORNER = {"x-": {"inflow": [1, 0.5, 0.2], "density": 1}, "x+": "outflow", "y+": "outflow"}
CHANNEL = {"all": "no-slip", "x-": {"inflow": [1, 0, 0]}, "x+": "outflow"}
CYLINDER = {"cylinder": {"centre": [0.225, 0.856, 0.235], "axis": [1, 1, 1], "radius": 0.207}}
BLOCK = {"box": {"low": [0, 0, 0], "high": [0.25, 0.375, 0.75]}}


def fluid(cells, dt, boundary, obstacles=(), **keys):
    """Return a fluid in float64 on the CPU."""
    return Simulation(
        model="fluid",
        grid={"cells": cells},
        fluid={"dtype": "float64", "boundary": boundary, **keys},
        solver={"tolerance": 1e-10},
        time={"dt": dt},
        obstacles=list(obstacles),
        compute={"backend": "cpu", "threads": 1},
    )


@pytest.mark.parametrize(
    ("cells", "boundary", "obstacles", "advection"),
    [
        ([16, 8, 8], TUNNEL, (), "maccormack"),
        ([12, 9, 8], CORNER, (), "maccormack"),
        ([8, 16, 16], TUNNEL, (CYLINDER,), "maccormack"),
        ([8, 16, 16], TUNNEL, (CYLINDER,), "semi-lagrangian"),
    ],
    ids=["tunnel", "corner", "cylinder", "cylinder, first order"],
)
def test_scalars_stay_between_what_is_inside_and_what_enters(cells, boundary, obstacles, advection):
    simulation = fluid(cells, 0.03, boundary, obstacles, advection=advection)
    for _ in range(15):
        simulation.step()
        assert simulation.density.min() >= 0.0
        assert simulation.density.max() <= 1.0 + 1e-12
    assert simulation.density.max() > 0.5


@pytest.mark.parametrize("viscosity", [0.3, 3.0])
def test_a_viscous_flow_to_an_outlet_is_stable(viscosity):
    """Viscosity reaches 12 and 120 cells squared in a step."""
    simulation = fluid([20, 4, 6], 0.1, CHANNEL, advection="maccormack", viscosity=viscosity)
    simulation.velocity = np.random.default_rng(3).uniform(-0.5, 0.5, (6, 4, 20, 3))
    simulation.step(40)
    assert np.abs(simulation.velocity).max() < 1.8


def test_a_viscous_flow_is_the_same_with_both_kinds_of_steps():
    found = []
    for advection in ("maccormack", "semi-lagrangian"):
        simulation = fluid([20, 4, 6], 0.025, CHANNEL, advection=advection, viscosity=0.3)
        simulation.step(60)
        found.append(np.abs(simulation.velocity).max())
    np.testing.assert_allclose(*found, rtol=1e-3)


def test_what_flows_in_flows_out_beside_obstacles_at_the_faces():
    simulation = fluid([16, 12, 12], 0.02, {"all": "free-slip", **TUNNEL}, (BLOCK,))
    simulation.step(3)
    values = simulation.diagnostics
    area = 0.75**2 - 0.375 * 0.75
    np.testing.assert_allclose(values["flow_in"], area, rtol=1e-9)
    np.testing.assert_allclose(values["flow_out"], area, rtol=1e-6)


def test_a_formula_that_fails_later_is_named():
    boundary = {"x-": {"inflow": ["1/(t - 0.04)", 0, 0]}, "x+": "outflow"}
    simulation = fluid([8, 8, 8], 0.02, {"all": "free-slip", **boundary})
    with pytest.raises(NumericalError, match=r"fluid\.boundary\.x-: .* at time 0\.04"):
        simulation.step(5)


@pytest.mark.parametrize("name", ["u_before", "step", "x", "vorticity"])
def test_names_of_other_fields_are_no_names_of_scalars(name):
    with pytest.raises(Exception, match=r"fluid\.scalars"):
        fluid([8, 8, 8], 0.02, "no-slip", scalars=[{"name": name}])
