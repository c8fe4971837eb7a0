"""What float32 can hold: refusals, warnings, the default precision, and runs in any units."""

from types import SimpleNamespace

import numpy as np
import pytest
from support import configs
from support.bodies import make_model

from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.build import NBodyBuilder
from hybrid_nbody.nbody.config import Gravity
from hybrid_nbody.nbody.initial_conditions import plummer, two_body
from hybrid_nbody.nbody.kernels.units import Units
from hybrid_nbody.nbody.plan import plan
from hybrid_nbody.nbody.precision_range import check_range, pair_error, warnings_of

SINGLE = Gravity(precision="single", softening=0.01)
MIXED = Gravity(precision="mixed")


def at(*distances, masses=None):
    """Return bodies on a line at distances from the first."""
    position = np.zeros((len(distances) + 1, 3))
    position[1:, 0] = distances
    mass = np.ones(len(position)) if masses is None else np.array(masses, float)
    return Bodies(position, np.zeros_like(position), mass)


# ---- The default ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "precision"),
    [
        ({}, "mixed"),
        ({"softening": 0}, "mixed"),
        ({"softening": 1e-4}, "single"),
        ({"softening": 0.0, "precision": "single"}, "single"),
        ({"softening": 0.1, "precision": "double"}, "double"),
    ],
)
def test_the_default_precision_follows_the_softening(keys, precision):
    assert Gravity(**keys).precision == precision


@pytest.mark.parametrize("softening", ["0.1", None, [1]])
def test_a_softening_that_is_no_number_is_the_only_fault(softening):
    with pytest.raises(ValueError, match="1 validation error for Gravity\nsoftening"):
        Gravity(softening=softening)


# ---- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bodies", "gravity", "fault"),
    [
        (at(1), Gravity(softening=1e-14), "a gravity.softening of 1e-14 beside distances of about"),
        (at(1), Gravity(softening=1e22), "at most 1e.20 of them"),
        (at(1, 2, 3, 4, 1 + 1e-13), MIXED, "two bodies 1.0e-13 apart"),
        (at(1, masses=[1, 1e-40]), SINGLE, "masses from 1.0e-40 to 1.0e.00"),
        (at(1, 2, 3, 4, 5, 1e16), SINGLE, "in an extent of 1.0e.16"),
    ],
)
def test_what_float32_cannot_hold_is_refused(bodies, gravity, fault):
    with pytest.raises(InputError, match=f"{fault}.*take gravity.precision: double"):
        check_range(bodies, gravity)
    check_range(bodies, gravity.model_copy(update={"precision": "double"}))


@pytest.mark.parametrize(
    "bodies",
    [
        plummer(300, seed=1),
        at(1),
        at(),
        at(0, 0),
        at(1, 1e6),
        at(1, masses=[0, 0]),
        at(1, masses=[2e30, 0]),
        at(1.5e3, masses=[2e30, 1e3]),
        at(1, np.nan),
    ],
)
@pytest.mark.parametrize("precision", ["single", "mixed", "double"])
def test_what_it_holds_is_not(bodies, precision):
    for softening in (0.0, 0.01, 1e5):
        check_range(bodies, Gravity(precision=precision, softening=softening))


CONFIG = """
model: nbody
bodies: {bodies}
gravity: {gravity}
time: {time}
compute: {{backend: cpu, threads: 1}}
"""
CLUSTER = "{kind: plummer, n: 50}"


def builder(alone, bodies=CLUSTER, gravity="{}", time="{dt: 1e-3, steps: 10}"):
    """Return the builder of a configuration."""
    text = CONFIG.format(bodies=bodies, gravity=gravity, time=time)
    return NBodyBuilder(configs.loads(text, "test.yaml"), alone)


def test_a_run_and_its_check_refuse_before_they_begin(alone):
    with pytest.raises(InputError, match="gravity.precision: single cannot hold a gravity.soft"):
        builder(alone, gravity="{softening: 1e-13}").initial()
    builder(alone, gravity="{softening: 1e-13, precision: double}").initial()


# ---- Warnings ------------------------------------------------------------------------------------


def test_single_precision_without_softening_is_warned_of_in_check_and_log(alone):
    made = builder(alone, gravity="{precision: single}")
    bodies = made.initial()
    lines = made.lines(made.fresh(bodies))
    warned = [line for line in lines if line.startswith("warning: gravity.precision: single with")]
    assert len(warned) == 1
    told = dict(plan(made.config, bodies, 1).problem)
    assert f"warning: {told['warning']}" == warned[0]


@pytest.mark.parametrize("gravity", ["{}", "{softening: 0.01}", "{precision: double}"])
def test_no_warning_where_the_default_fits(alone, gravity):
    made = builder(alone, gravity=gravity)
    assert "warning" not in dict(plan(made.config, made.initial(), 1).problem)
    assert made.warnings == []


def test_a_softening_below_what_single_precision_resolves_is_warned_of():
    bodies = plummer(1000, seed=2)
    assert not warnings_of(bodies, Gravity(softening=1e-3))
    (found,) = warnings_of(bodies, Gravity(softening=1e-6))
    assert "wrong by about" in found
    bodies.position[1] = bodies.position[0] + [1e-6, 0, 0]
    assert not warnings_of(bodies, Gravity(softening=1e-3))
    assert len(warnings_of(bodies, Gravity(softening=0.0, precision="single"))) == 2
    assert not warnings_of(bodies, Gravity(softening=0.0, precision="mixed"))


def test_the_error_of_the_closest_pair_is_of_the_right_size():
    """A pair 1e-6 apart, about 1 from the origin of its chunk, is rounded by up to 6e-8."""
    bodies = plummer(200, seed=3)
    bodies.position[0] = [1.0, 1.0, 1.0]
    bodies.position[1] = [1.0 + 1e-6, 1.0, 1.0]
    assert 0.01 < pair_error(bodies, 0.0) < 0.5
    assert pair_error(bodies, 1e-3) < 1e-3


# ---- Runs in any units ---------------------------------------------------------------------------


def advanced(alone, precision, bodies, gravity, time):
    """Return the diagnostics of a run at its beginning and end."""
    law = "{" + f"{gravity}, precision: {precision}" + "}"
    made = builder(alone, bodies, law, time)
    model = made.fresh(made.initial()).model
    first = model.diagnostics()
    model.advance(made.config.time.total_steps)
    return first, model.diagnostics()


@pytest.mark.parametrize("precision", ["single", "mixed"])
def test_a_cold_sphere_in_metres_collapses(alone, precision):
    """In float32 of these units every force of it is zero."""
    bodies = "{kind: cold-sphere, n: 64, mass: 1000, radius: 3.086e16}"
    case = (bodies, "G: 1.327e20, softening: 3e15", "{dt: 1e11, steps: 80}")
    first, last = advanced(alone, precision, *case)
    _, true = advanced(alone, "double", *case)
    assert true["half_mass_radius"] < 0.9 * first["half_mass_radius"]
    assert last["half_mass_radius"] == pytest.approx(true["half_mass_radius"], rel=1e-4)


@pytest.mark.parametrize("precision", ["single", "mixed"])
def test_an_orbit_in_metres_keeps_its_energy(alone, precision):
    """Two stars of one and half a solar mass, a parsec apart, for two revolutions."""
    bodies = "{kind: two-body, masses: [1, 0.5], semi_major_axis: 3.086e16, eccentricity: 0.3}"
    first, last = advanced(alone, precision, bodies, "G: 1.327e20", "{dt: 1.2e12, steps: 4000}")
    assert first["total_energy"] == pytest.approx(-1.327e20 * 0.5 / (2 * 3.086e16), rel=1e-6)
    assert abs(last["relative_energy_error"]) < 1e-5


def test_a_tight_binary_in_a_cluster_keeps_its_separation(alone):
    """Ten of its orbits; float32 about a local origin changes it by several percent."""
    cluster = plummer(60, seed=7)
    pair = two_body((0.5 / 60, 0.5 / 60), 1e-5)
    place = np.array([0.3, 0.2, -0.1])
    bodies = Bodies(
        np.vstack([pair.position + place, cluster.position]),
        np.vstack([pair.velocity, cluster.velocity]),
        np.append(pair.mass, cluster.mass),
    )
    period = 2 * np.pi * np.sqrt(1e-15 * 60)
    model = make_model(bodies, period / 300, alone, precision="mixed")
    for _ in range(60):
        model.advance(50)
        position = model.backend.download(model.bodies.position)
        separation = np.linalg.norm(position[1] - position[0])
        assert separation == pytest.approx(1e-5, rel=2e-3)


# ---- Restarts ------------------------------------------------------------------------------------


def saved(model, **scalars):
    """Return the state of a model as a checkpoint holds it, with other numbers."""
    rows = {name: field.host(0, field.rows) for name, field in model.fields().items()}
    return SimpleNamespace(
        number=model.number,
        scalars=model.scalars() | scalars,
        rows=lambda name, index: rows[name][index],
    )


def test_a_restart_has_the_units_of_the_start(alone):
    made = builder(alone, gravity="{softening: 0.01}")
    model = made.fresh(made.initial()).model
    units = model.pair_force.units
    assert Units.of_scalars(model.scalars()) == units
    kept = Units(units.length * 4, units.mass * 2, units.speed * 8)
    again = made.restored(saved(model, **kept.scalars())).model
    assert again.pair_force.units == kept
    model.advance(3)
    again.advance(3)
    np.testing.assert_array_equal(again.bodies.position, model.bodies.position)


def test_a_checkpoint_without_units_gets_those_of_its_bodies(alone):
    made = builder(alone, gravity="{softening: 0.01}")
    model = made.fresh(made.initial()).model
    older = saved(model)
    older.scalars = {
        name: value for name, value in older.scalars.items() if not name.startswith("unit_")
    }
    again = made.restored(older).model
    assert again.pair_force == model.pair_force
