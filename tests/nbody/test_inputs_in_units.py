"""The inputs of the package in other units: runs have the errors that they have in their own."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import configs

from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.starting import on_all_ranks

INPUT = Path(__file__).parents[2] / "input"
SOLAR_MASS, PARSEC = 1.989e30, 3.086e16  # in SI

INPUTS = {
    "plummer": ["bodies.n=100", "time.dt=1e-2"],
    "six_bodies": ["time.dt=1e-2"],
    "flat": ["bodies.n=100"],
    "two_galaxies": ["bodies[0].n=50", "bodies[1].n=50"],
    # so few bodies directly: other tests compile the tree and compare it
    "merger": ["bodies[0].n=50", "bodies[1].n=50", "time.dt=1e-2", "gravity.solver=auto"],
    "collapse": ["bodies.n=100", "time.dt=1e-2"],
    "disc": ["bodies.n=100"],
    "escape": ["time.integrator=leapfrog", "time.accuracy=0.01", "time.dt=1e-2"],
}

LENGTHS = ("scale", "height", "core", "half_length", "width")
"""Keys of external fields that are lengths."""

# What a unit of length and one of mass of an input become, and the gravitational constant there.
SYSTEMS = {
    "SI": (PARSEC, 1000 * SOLAR_MASS, 6.674e-11),
    "CGS": (100 * PARSEC, 1e6 * SOLAR_MASS, 6.674e-8),
    "solar masses, pc, km/s": (1.0, 1000.0, 4.301e-3),
    "solar masses, metres": (PARSEC, 1000.0, 1.327e20),
}
NATURAL = (1.0, 1.0, None)


@cache
def final_positions(alone, name, precision, system):
    """Return where the bodies of an input are after 20 steps in some units, in its own."""
    path = INPUT / f"{name}.yaml"
    few = ["compute={backend: cpu, threads: 1}", "time.steps=20", *INPUTS[name]]
    own = NBodyBuilder(configs.load(path, few), alone)
    length, mass, constant = system
    G = own.config.gravity.G if constant is None else constant
    speed = np.sqrt(G / own.config.gravity.G * mass / length)
    units = (
        f"gravity.G={G!r}",
        f"gravity.softening={length * own.config.gravity.softening!r}",
        f"time.dt={float(own.config.time.dt * length / speed)!r}",
        f"gravity.precision={precision}",
    )
    fields = in_units(own.config.gravity.external or (), length, mass, speed)
    made = NBodyBuilder(configs.load(path, [*few, *units, *fields]), alone)
    source = on_all_ranks(own.initial(), alone)
    start = source.rows(0, len(source))
    bodies = Bodies(length * start.position, speed * start.velocity, mass * start.mass)
    model = made.fresh(bodies).model
    model.advance(20)
    return model.bodies.position / length - start.position


def in_units(fields, length, mass, speed):
    """Return a setting that turns external fields into other units, if there are any."""
    units = dict.fromkeys(LENGTHS, length) | {"mass": mass, "speed": speed}
    units |= {"pattern_speed": speed / length}
    scaled = [
        {
            key: value * float(units[key]) if key in units else value
            for key, value in field.model_dump(mode="json").items()
        }
        for field in fields
    ]
    return [f"gravity.external={json.dumps(scaled)}"] if scaled else []


def error(alone, name, precision, system):
    """Return the rms error of the ways that bodies have gone, relative to the rms way."""
    true = final_positions(alone, name, "double", NATURAL)
    found = final_positions(alone, name, precision, system)
    return np.sqrt(np.mean((found - true) ** 2) / np.mean(true**2))


@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", INPUTS)
def test_errors_are_the_same(alone, name, system, precision):
    """Of rounding, whose size is the same and whose bits are not: four times as much is allowed.

    In the disc bodies move alike, by fields that are summed in float64: 1e-9 is allowed.
    """
    own = error(alone, name, precision, NATURAL)
    assert own < 1e-5
    rounding = 1e-9 if name == "disc" else 1e-12
    assert error(alone, name, precision, SYSTEMS[system]) < 4 * own + rounding


def test_every_input_of_bodies_is_here():
    found = {path.stem for path in INPUT.glob("*.yaml") if "model: nbody" in path.read_text()}
    assert found == set(INPUTS)
