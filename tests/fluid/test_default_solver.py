"""The solver of the collocated grid by default: exact enough, and whatever the units of time."""

from functools import partial

import numpy as np
import pytest
from support.configs import loads
from support.fluids import state
from support.ranks import alone

from hybrid_nbody.running.models import MODELS

__all__ = ["alone"]

CONFIG = """\
model: fluid
grid: {{cells: [32, 24, 20]}}
fluid:
  {{grid: collocated, viscosity: {viscosity}, diffusion: {viscosity}, buoyancy: {buoyancy},
   dtype: {dtype}}}
solver: {{{solver}}}
sources:
  events:
    - {{steps: [0, 4], density: 2, sphere: {{centre: [15.5, 6, 9], radius: 4}}}}
    - {{step: 0, velocity: [{speed}, 0, {speed}], sphere: {{centre: [12, 12, 9], radius: 3}}}}
time: {{dt: {dt}, steps: 5}}
compute: {{backend: cpu, threads: 1}}
"""
EXACT = "tolerance: 1e-12, max_iterations: 30"
RELAXED = "method: red-black, max_iterations: 40, tolerance: 1e-3"


def flowing(ranks, steps=5, solver="", dtype="float32", unit=1.0):
    """Return a fluid after some steps, in a unit of time that is so many times shorter."""
    text = CONFIG.format(
        viscosity=1e-3 / unit, buoyancy=0.5 / unit**2, speed=0.7 / unit, dt=0.1 * unit,
        solver=solver, dtype=dtype,
    )  # fmt: skip
    return advanced(loads(text, "fluid.yaml"), ranks, steps)


def advanced(config, ranks, steps):
    """Return the fluid of a configuration after some steps."""
    builder = MODELS["fluid"].builder(config, ranks)
    model = builder.fresh(builder.initial()).model
    model.advance(steps)
    return model


def velocity(model, unit=1.0):
    return unit * np.stack([state(model)[f"state/{name}"] for name in "uvw"]).astype("f8")


def test_a_step_is_as_if_solved_exactly(alone):
    """Twenty relaxations left a fifth of the largest velocity."""
    model = flowing(alone, steps=1)
    exact = velocity(flowing(alone, steps=1, solver=EXACT, dtype="float64"))
    error = np.abs(velocity(model) - exact).max() / np.abs(exact).max()
    assert error < 2e-4
    assert 0 < model.diagnostics()["poisson_residual"] <= 1e-4


def test_no_more_divergence_is_left_than_by_an_exact_solution(alone):
    found = flowing(alone).diagnostics()["divergence_after"]
    exact = flowing(alone, solver=EXACT, dtype="float64").diagnostics()["divergence_after"]
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=0)


@pytest.mark.parametrize("solver", ["", RELAXED], ids=["default", "red-black"])
@pytest.mark.parametrize("unit", [2.0**30, 2.0**-20])
def test_other_units_of_time_give_the_same_bits(alone, solver, unit):
    """Where numbers scale by powers of two."""
    here = flowing(alone, solver=solver)
    there = flowing(alone, solver=solver, unit=unit)
    assert (velocity(there, unit) == velocity(here)).all()
    assert (state(there)["state/density"] == state(here)["state/density"]).all()
    assert there.kernels.statistics() == here.kernels.statistics()


@pytest.mark.parametrize("unit", [31557600.0, 1e-9])
def test_other_units_of_time_give_the_same_numbers(alone, unit):
    exact = partial(flowing, alone, solver="", dtype="float64")
    here = exact()
    there = exact(unit=unit)
    atol = 1e-9 * np.abs(velocity(here)).max()
    np.testing.assert_allclose(velocity(there, unit), velocity(here), rtol=0, atol=atol)


@pytest.mark.parametrize("cells", [[3, 3, 3], [4, 3, 64], [64, 5, 3]])
@pytest.mark.parametrize("boundary", ["free-slip", "no-slip", "periodic"])
def test_every_grid_can_be_solved(alone, cells, boundary):
    cells = [number + number % 2 for number in cells] if boundary == "periodic" else cells
    text = CONFIG.format(
        viscosity=1e-3, buoyancy=0.5, speed=0.7, dt=0.1, solver="", dtype="float32"
    )
    changes = [f"grid.cells={cells}", f"fluid.boundary={boundary}"]
    changes.append("sources.events=[{step: 0, velocity: [1, 2, 3], cell: [1, 1, 1]}]")
    model = advanced(loads(text, "fluid.yaml", changes), alone, steps=2)
    assert model.diagnostics()["poisson_residual"] <= 1e-4
