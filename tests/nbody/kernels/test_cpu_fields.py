"""External fields as they are compiled for CPUs."""

import math

import numpy as np
import pytest
from support.bodies import make_backend

from hybrid_nbody.backends.cells.cpu import loaded as load_module
from hybrid_nbody.nbody.kernels import make_fields
from hybrid_nbody.nbody.kernels.fields import potentials
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, Moving
from hybrid_nbody.nbody.kernels.fields.python_text import python_source

PLUMMER = ExternalField(potentials.plummer, (1.3, 0.7))

TILT = 0.25
mass = 77.0  # a number of the module by the name of an argument


def tilted(position, velocity, mass, time, parameters):
    """Return a field that takes a number of its module, and none of its own."""
    x = position[0]
    if x > TILT:
        x = -math.inf if mass > 5 else TILT
    return TILT * x, mass, time, velocity[2]


def test_numbers_of_a_module_are_compiled_in_and_kept_between_starts():
    source = python_source([(tilted, 0), (potentials.plummer, 2)])
    assert "TILT" not in source
    assert "numbers[6], numbers[7]" in source
    fields = [ExternalField(tilted), PLUMMER]
    position = np.array([[0.1, 0, 0], [0.7, 0.2, 0]])
    velocity = np.array([[0, 0, 3.0], [0, 0, 4.0]])
    given = Moving(position, velocity, np.array([1.0, 2.0]))
    between = np.arange(6.0).reshape(2, 3)
    found = np.zeros((2, 3))
    compiled = make_fields(make_backend("cpu"), fields)
    compiled.add(given, 0.5, between, found)
    for body in range(2):
        moving = (tuple(position[body]), tuple(velocity[body]), given.mass[body], 0.5)
        wanted = np.add(*(field.function(*moving, field.parameters) for field in fields))
        np.testing.assert_allclose(found[body], between[body] + wanted[:3], rtol=1e-14)
        assert compiled.potential(given, 0.5)[body] == pytest.approx(wanted[3], rel=1e-14)
    load_module.cache_clear()
    again = load_module(source)
    make_fields(make_backend("cpu"), fields).add(given, 0.5, between, found)
    assert sum(again.fill.stats.cache_hits.values()) == 1
    assert not again.fill.stats.cache_misses
