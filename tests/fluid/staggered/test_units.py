"""The staggered fluid in other units of time and of density: the same flow."""

from functools import cache

import numpy as np
import pytest
from support.configs import loads
from support.fluids import state
from support.ranks import alone

from hybrid_nbody.running.models import MODELS

__all__ = ["alone"]

CONFIG = """\
model: fluid
grid: {{cells: [12, 8, 8]}}
fluid:
  viscosity: {rate}
  diffusion: {rate}
  buoyancy: {buoyancy}
  vorticity_confinement: {confinement}
  advection: maccormack
  dtype: {dtype}
  boundary: {{all: no-slip, {faces}}}
{obstacles}
sources:
  events:
    - {{steps: [0, 3], density: {density}, sphere: {{centre: [6, 3, 4], radius: 2}}}}
    - {{step: 1, velocity: [{speed}, 0, {speed}], sphere: {{centre: [6, 5, 4], radius: 2}}}}
time: {{{time}, steps: 4}}
compute: {{backend: cpu, threads: 1}}
"""

SCENES = {
    "lid": {"faces": "y+: {{moving: [{speed}, 0, 0]}}", "time": "dt: {dt}"},
    "tunnel": {
        "faces": "x-: {{inflow: [{speed}, 0, 0], density: {density}}}, x+: outflow",
        "time": "dt_max: {dt}, cfl: 0.5",
        "obstacles": "obstacles: [{{sphere: {{centre: [0.5, 0.35, 0.33], radius: 0.15}}}}]",
    },
}


@cache
def flowing(ranks, scene, dtype, time=1.0, density=1.0, slow=1.0):
    """Return a fluid after four steps, in units that are so many times smaller.

    Its velocities and forces are `slow` of those of the scene.
    """
    numbers = {
        "rate": 1e-3 / time,
        "buoyancy": 0.4 * slow / time**2 / density,
        "confinement": 2.0 / time,
        "speed": 0.7 * slow / time,
        "density": density,
        "dt": 0.05 * time,
        "dtype": dtype,
        "obstacles": "",
    }
    made = {key: text.format(**numbers) for key, text in SCENES[scene].items()}
    config = loads(CONFIG.format(**numbers | made), "fluid.yaml")
    builder = MODELS["fluid"].builder(config, ranks)
    model = builder.fresh(builder.initial()).model
    model.advance(4)
    return model


def scaled(model, time=1.0, density=1.0):
    """Return the state in the first units."""
    units = {"state/density": 1 / density, "state/pressure": time**2}
    fields = {name: array for name, array in state(model).items() if name.startswith("state/")}
    return {name: units.get(name, time) * array for name, array in fields.items()}


@pytest.mark.parametrize(
    ("scene", "dtype", "units"),
    [
        ("lid", "float32", (2.0**30, 1.0)),
        ("lid", "float64", (2.0**-30, 2.0**20)),
        ("tunnel", "float32", (2.0**-30, 2.0**20)),
    ],
)
def test_powers_of_two_give_the_same_bits(alone, scene, dtype, units):
    """But for numbers that are too small to have all digits."""
    here = scaled(flowing(alone, scene, dtype))
    there = scaled(flowing(alone, scene, dtype, *units), *units)
    for name, values in here.items():
        np.testing.assert_allclose(there[name], values, rtol=0, atol=1e-37, err_msg=name)


def test_other_units_give_the_same_numbers(alone):
    units = 31557600.0, 1e-3
    here = scaled(flowing(alone, "lid", "float64"))
    there = scaled(flowing(alone, "lid", "float64", *units), *units)
    for name, values in here.items():
        atol = 1e-9 * np.abs(values).max()
        np.testing.assert_allclose(there[name], values, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("density", [2.0**-95, 2.0**95])
def test_a_scalar_far_from_one_spreads_as_any_other(alone, density):
    """Conjugate gradients multiply its changes by one another."""
    here = scaled(flowing(alone, "lid", "float32"))["state/density"]
    there = scaled(flowing(alone, "lid", "float32", density=density), density=density)
    np.testing.assert_allclose(there["state/density"], here, rtol=0, atol=1e-12)


def test_a_flow_that_hardly_moves_is_as_viscous_as_any_other(alone):
    """So slow that nothing is carried: the flow is proportional to what sets it going."""
    speeds = 2.0**-40, 2.0**-80
    flows = [flowing(alone, "lid", "float32", slow=slow) for slow in speeds]
    for name in ("state/u", "state/v", "state/w"):
        here, there = (state(model)[name] / slow for model, slow in zip(flows, speeds, strict=True))
        assert np.abs(here).max() > 1e-2
        np.testing.assert_allclose(there, here, rtol=0, atol=2e-6)
    energies = [model.diagnostics()["kinetic_energy"] for model in flows]
    assert energies[1] == pytest.approx(energies[0] * 2.0**-80, rel=1e-5)
