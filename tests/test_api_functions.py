"""Functions of a script as forces: they are in the configuration with their source."""

import math

import numpy as np
import pytest
from support.ranks import alone, communicator

from hybrid_nbody import Simulation
from hybrid_nbody.api.functions import source_of
from hybrid_nbody.errors import InputError

__all__ = ["alone", "communicator"]

RATE = 2.0


def shaken(position, velocity, mass, time, parameters):
    """Pull along x."""
    return parameters[0] * math.sin(RATE * time), 0.0, 0.0, 0.0


def spring(strength):
    """Return a field that pulls to the plane x = 0."""

    def pull(position, velocity, mass, time, parameters):
        x = position[0]
        return -strength * x, 0.0, 0.0, 0.5 * strength * x**2

    return pull


def falling(communicator, function, **keys):
    """Return one body at rest in a field."""
    field = {"kind": "python", "function": function} | keys
    return Simulation.from_bodies(
        [[1.0, 0, 0]],
        [[0.0, 0, 0]],
        [1.0],
        dt=1e-3,
        softening=0.1,
        gravity={"external": [field]},
        compute={"backend": "cpu", "threads": 1},
        communicator=communicator,
    )


def test_a_function_moves_bodies_and_is_saved_with_them(alone, tmp_path):
    simulation = falling(alone, spring(4.0))
    assert simulation.energy == 2.0
    simulation.save(tmp_path / "saved")
    simulation.run(until=math.pi / 4)
    exact = [[math.cos(2 * simulation.time), 0, 0]]
    np.testing.assert_allclose(simulation.positions, exact, rtol=0, atol=2e-6)
    again = Simulation.resume(tmp_path / "saved", communicator=alone)
    again.run(steps=simulation.steps)
    np.testing.assert_array_equal(again.positions, simulation.positions)


def test_numbers_around_a_function_go_with_it(alone):
    text = source_of(shaken)
    assert text.startswith("import math\nRATE = 2.0\n")
    simulation = falling(alone, shaken, parameters=[0.1], conserves_energy=False)
    assert simulation.config.gravity.external[0].source == text
    assert "strength = 3" in source_of(spring(3))
    assert "strength = 3.5\n" in source_of(spring(np.float64(3.5)))
    assert "strength = 4\n" in source_of(spring(np.int32(4)))
    assert "strength = float('inf')" in source_of(spring(math.inf))


def unknown(position, velocity, mass, time, parameters):
    return np.sin(position[0]), 0.0, 0.0, 0.0


@pytest.mark.parametrize(
    ("function", "keys", "text"),
    [
        (lambda *_: (0, 0, 0, 0), {}, "must be made by def, without decorators"),
        (np.sin, {}, "the source of <ufunc 'sin'> cannot be read"),
        (unknown, {}, r"<source \w+>:4: cannot translate np.sin\(position\[0\]\)"),
        (shaken, {"path": "own.py"}, "cannot be given together with path"),
        ("missing", {"source": "x = 1"}, "source has no function missing; it has: none"),
        ("broken", {"source": "def broken(:"}, "source raised SyntaxError"),
    ],
)
def test_what_does_not_do_is_named(alone, function, keys, text):
    with pytest.raises(InputError, match=text):
        falling(alone, function, **keys)
