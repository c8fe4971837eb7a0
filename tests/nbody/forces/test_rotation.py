"""Fields that turn: Jacobi's integral is conserved where all stand still in one turning frame."""

import numpy as np
import pytest
from support.bodies import make_model

from hybrid_nbody.nbody.forces.external import with_fields
from hybrid_nbody.nbody.forces.registry import make_direct
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels.fields import potentials
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, rotation_of

AXIS = (0.4, -0.3, 0.1)


def turning(speed, centre=AXIS):
    """Return a bar that turns."""
    numbers = (1.3, 0.9, 0.1, 0.2, speed, 0.3)
    return ExternalField(potentials.bar, numbers, centre, conservative=False, pattern_speed=speed)


def halo(centre=AXIS):
    """Return a round field."""
    return ExternalField(potentials.hernquist, (1.3, 0.7), centre, is_round=True)


def test_jacobis_integral_is_watched_where_fields_turn_together(alone):
    """It stands still about an axis that is not the origin, while the energy changes."""
    fields = [turning(1.5)]

    def make_force(setup):
        makers = [lambda G, field=field: field for field in fields]
        return with_fields(make_direct(setup), makers, 1.0, setup)

    bodies = plummer(100, seed=5)
    model = make_model(bodies, 1e-2, alone, make_force=make_force, softening=0.1)
    before = model.diagnostics()
    assert before["relative_energy_error"] == 0
    model.advance(100)
    after = model.diagnostics()
    assert abs(after["total_energy"] / before["total_energy"] - 1) > 2e-3
    assert abs(after["jacobi_integral"] / before["jacobi_integral"] - 1) < 1e-4
    change = after["jacobi_integral"] - before["jacobi_integral"]
    expected = change / abs(before["jacobi_integral"])
    np.testing.assert_allclose(after["relative_energy_error"], expected, rtol=1e-12, atol=0)
    assert model.quantities.keys() == after.keys()


@pytest.mark.parametrize(
    "fields",
    [
        [turning(0.7), turning(0.6)],
        [turning(0.7), turning(0.7, (0.0, 0.0, 0.0))],
        [turning(0.7), halo((0.0, 0.0, 0.0))],
        [turning(0.7), ExternalField(potentials.uniform, (0.1, -0.2, 0.3))],
        [halo()],
    ],
)
def test_fields_that_do_not_stand_still_together_have_no_such_integral(fields):
    assert rotation_of(fields) is None


def test_the_kinds_say_which_of_them_are_round(config_of):
    text = """[
        {kind: bar, mass: 1, half_length: 2, height: 0.3, pattern_speed: 0.4},
        {kind: plummer, mass: 1, scale: 1}, {kind: hernquist, mass: 1, scale: 1},
        {kind: nfw, mass: 1, scale: 1}, {kind: point-mass, mass: 1},
        {kind: logarithmic, speed: 1, core: 1},
        {kind: miyamoto-nagai, mass: 1, scale: 1, height: 1},
        {kind: uniform, acceleration: [0, 0, 1]}]"""
    config = config_of("", f"gravity.external={text}")
    fields = [field.made(1.0) for field in config.gravity.external]
    assert rotation_of(fields) == (0.4, 0.0, 0.0)
