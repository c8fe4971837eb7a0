"""Numbers of a configuration whose squares the grid cannot hold."""

import pytest
from support import configs

from hybrid_nbody.config.loader import ConfigError

START = "model: fluid\ngrid: {cells: 10}\ntime: {dt: 1, steps: 4}\n"
EVENT = "sources: {events: [{step: 0, %s}]}\n"
BALL = "obstacles: [{sphere: {centre: [0.5, 0.5, 0.5], radius: 0.1}, %s}]\n"
SCALAR = "fluid: {scalars: [{name: heat, %s}]}\n"
FLUID = "fluid: {%s}\n"
KEYS = {
    "sources.events[0].velocity": (EVENT % "velocity: [0, -NUMBER, 0]", 1e15),
    "obstacles[0].velocity": (BALL % "velocity: [NUMBER, 0, 0]", 1e15),
    "obstacles[0].rotation": (BALL % "rotation: [0, 0, -NUMBER]", 1e9),
    "fluid.viscosity": (FLUID % "viscosity: NUMBER", 1e13),
    "fluid.diffusion": (FLUID % "diffusion: NUMBER", 1e13),
    "fluid.vorticity_confinement": (FLUID % "vorticity_confinement: NUMBER", 1e15),
    "fluid.scalars[0].diffusion": (SCALAR % "diffusion: NUMBER", 1e13),
}
"""For each key a text, and the largest number on a grid of 10 cells with steps of 1."""


@pytest.mark.parametrize("key", KEYS)
def test_the_largest_number_is_taken_and_a_larger_one_is_not(key):
    text, most = KEYS[key]
    configs.loads(START + text.replace("NUMBER", f"{0.99 * most:.2e}"), "x.yaml")
    with pytest.raises(ConfigError, match=r"must be at most (1|9)e\+\d\d in magnitude") as caught:
        configs.loads(START + text.replace("NUMBER", f"{1.01 * most:.2e}"), "x.yaml")
    assert f": {key}: " in str(caught.value)
