"""A force and an integrator from outside the package do all that those of the package do.

A uniform field g beside the pair force makes the centre of mass fall freely, x + v t + g t^2 / 2,
and leaves the motion about it as it is; RK4 has order 4.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from support import configs, extensions
from support.bodies import make_model, whole
from support.command import ROOT
from support.extensions import FIELD, RK4, TILTED, TiltedForce
from support.forked import run_fast
from support.ranks import same_bits
from support.runs import assert_same_run, contents

from hybrid_nbody.cli.main import main
from hybrid_nbody.config.loader import ConfigError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.forces.registry import FORCES, ForceKind
from hybrid_nbody.nbody.forces.registry import register as register_force
from hybrid_nbody.nbody.initial_conditions import plummer, random_box, two_body
from hybrid_nbody.nbody.integrators.registry import INTEGRATORS
from hybrid_nbody.nbody.integrators.registry import register as register_integrator

PERIOD = 2 * np.pi / np.sqrt(2)
"""Of two unit masses at distance 1."""

SCHEMES = ("leapfrog", "yoshida4", "hermite4", "rk4")

SCRIPT = Path(extensions.__file__)
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([ROOT, str(SCRIPT.parents[1])])}

CONFIG = """\
model: nbody
title: A cluster that falls
bodies: {kind: plummer, n: 120}
gravity: {solver: tilted, softening: 0.05, precision: double}
time: {dt: 1e-2, steps: 60, integrator: rk4}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 5}
  checkpoint: {every_steps: 20, keep: 2}
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register both in the tables, for one test."""
    monkeypatch.setitem(FORCES, "tilted", TILTED)
    monkeypatch.setitem(INTEGRATORS, "rk4", RK4)


def falling(bodies, dt, communicator, integrator, **options):
    """Return a model of bodies in the field."""
    return make_model(
        bodies, dt, communicator, integrator=integrator, make_force=TiltedForce, **options
    )


# --- the physics --------------------------------------------------------------------------------


@pytest.mark.mpi
@pytest.mark.parametrize("integrator", SCHEMES)
def test_the_centre_of_mass_falls_freely(communicator, integrator):
    """Every scheme of order 2 or more is exact for it."""
    bodies = plummer(200, 1)
    moving = Bodies(bodies.position, bodies.velocity + [0.1, 0.2, 0.3], bodies.mass)
    model = falling(moving, 0.01, communicator, integrator, softening=0.05)
    model.advance(40)
    expected = np.array([0.1, 0.2, 0.3]) * model.time + FIELD * model.time**2 / 2
    found = model.diagnostics()["center_of_mass"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.mpi
@pytest.mark.parametrize("integrator", SCHEMES)
def test_the_motion_about_the_centre_is_that_without_the_field(communicator, integrator):
    bodies = two_body(eccentricity=0.3)
    options = {"integrator": integrator, "accuracy": 1e-4}
    with_field = falling(bodies, PERIOD / 400, communicator, **options)
    without = make_model(bodies, PERIOD / 400, communicator, **options)
    for model in (with_field, without):
        model.advance(100)
    first, second = (
        whole(model, "bodies/position") - model.diagnostics()["center_of_mass"]
        for model in (with_field, without)
    )
    atol = 1e-6 if integrator == "hermite4" else 1e-12  # its substeps follow from a + g
    np.testing.assert_allclose(first, second, rtol=0, atol=atol)


def test_the_energy_of_the_field_counts(alone):
    """The bodies gain M g^2 t^2 / 2 of kinetic energy, and lose as much of potential energy."""
    model = falling(plummer(100, 2), 1e-3, alone, "rk4", softening=0.1)
    before = model.diagnostics()
    model.advance(300)
    after = model.diagnostics()
    gain = FIELD @ FIELD * model.time**2 / 2
    assert after["kinetic_energy"] - before["kinetic_energy"] == pytest.approx(gain, abs=0.02)
    assert gain > 0.05
    assert abs(after["relative_energy_error"]) < 1e-9


def test_rk4_is_of_order_four(alone):
    """On a Kepler orbit that falls; the error is that of the coordinates about the centre."""
    bodies = two_body(eccentricity=0.5)
    errors = []
    for steps in (600, 1200):
        model = falling(bodies, PERIOD / steps, alone, "rk4")
        model.advance(steps)
        about = whole(model, "bodies/position") - model.diagnostics()["center_of_mass"]
        errors.append(np.abs(about - bodies.position).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, rel=0, abs=0.15)
    assert errors[1] < 1e-6


def test_a_step_of_rk4_costs_four_forces(alone):
    model = falling(plummer(10, 1), 1e-3, alone, "rk4", softening=0.1)
    assert model.work.per_step == 4 * 10**2
    model.advance(3)
    assert model.timings["force"] > 0


# --- ranks and restarts -------------------------------------------------------------------------


def state_of(model):
    """Return positions and velocities of all bodies."""
    return [whole(model, f"bodies/{name}") for name in ("position", "velocity")]


@pytest.mark.mpi
@pytest.mark.parametrize("integrator", SCHEMES)
@pytest.mark.parametrize("precision", ["single", "double"])
def test_any_number_of_ranks_gives_the_bits_of_one(communicator, alone, integrator, precision):
    options = {"integrator": integrator, "precision": precision, "softening": 0.05}
    weights = [rank + 1.0 for rank in range(communicator.size)]
    shared = falling(plummer(150, 3), 1e-2, communicator, weights=weights, **options)
    single = falling(plummer(150, 3), 1e-2, alone, **options)
    for model in (shared, single):
        model.advance(8)
    for found, expected in zip(state_of(shared), state_of(single), strict=True):
        assert same_bits(found, expected)
    assert shared.diagnostics() == single.diagnostics()


@pytest.mark.mpi
@pytest.mark.parametrize("integrator", SCHEMES)
def test_a_restored_model_goes_on_with_the_same_bits(communicator, integrator):
    bodies, elsewhere = plummer(80, 5), random_box(80, 6)
    options = {"integrator": integrator, "precision": "single", "softening": 0.05}
    model = falling(bodies, 1e-2, communicator, **options)
    model.advance(5)
    saved = {name: whole(model, name) for name in model.fields()}
    other = falling(
        Bodies(elsewhere.position, elsewhere.velocity, bodies.mass), 1e-2, communicator, **options
    )
    other.restore(lambda name: saved[name][other.exchange.own], model.scalars())
    for each in (model, other):
        each.advance(7)
    for found, expected in zip(state_of(other), state_of(model), strict=True):
        assert same_bits(found, expected)


# --- the command line ---------------------------------------------------------------------------


def with_extensions(*arguments):
    """Run a command of the script that registers both; return what it printed."""
    result = run_fast([SCRIPT, *arguments], environment=ENVIRONMENT, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def on_ranks(mpirun, ranks, *arguments):
    """Run a command of the script on several ranks; return what it printed."""
    result = mpirun(ranks, SCRIPT, *arguments, env=ENVIRONMENT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_a_run_that_is_resumed_on_other_ranks_has_the_bits_of_one_that_was_not(tmp_path, mpirun):
    """Two ranks, then one, against one rank all the way."""
    config = tmp_path / "tilted.yaml"
    config.write_text(CONFIG.replace("OUT", str(tmp_path / "once")))
    text = with_extensions("run", config)
    assert "rk4" in text
    assert "tilted gravity" in text
    parts = ["--set", f"output.directory={tmp_path / 'parts'}"]
    on_ranks(mpirun, 2, "run", config, *parts, "--set", "time.steps=30")
    assert "at step 30" in with_extensions("resume", tmp_path / "parts", "--set", "time.steps=60")
    assert_same_run(tmp_path / "parts", tmp_path / "once")
    rows = contents(tmp_path / "once")
    centre = rows["diagnostics/center_of_mass"]
    expected = FIELD * rows["diagnostics/time"][:, None] ** 2 / 2
    np.testing.assert_allclose(centre, expected, rtol=0, atol=1e-13)
    assert np.abs(rows["diagnostics/relative_energy_error"]).max() < 1e-5


def test_check_counts_the_forces_of_a_registered_integrator(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("tilted.yaml").write_text(CONFIG.replace("OUT", "out"))
    assert main(["check", "tilted.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"  work         {4 * 120**2 * 60:.3g} interactions" in lines


# --- the tables ---------------------------------------------------------------------------------


def fault_of(text, key, value):
    """Return what is wrong with a configuration in which a value is changed."""
    with pytest.raises(ConfigError) as caught:
        configs.loads(text, "tilted.yaml", [f"{key}={value}"])
    return str(caught.value)


def test_registered_names_are_allowed_and_told():
    config = configs.loads(CONFIG, "tilted.yaml")
    assert (config.gravity.solver, config.time.integrator) == ("tilted", "rk4")
    text = fault_of(CONFIG, "time.integrator", "rk5")
    assert "one of leapfrog, yoshida4, hermite4, euler, rk4; did you mean" in text
    assert "must be one of direct, fmm, tilted" in fault_of(CONFIG, "gravity.solver", "tree")


def test_what_is_not_registered_is_refused(monkeypatch):
    monkeypatch.delitem(FORCES, "tilted")
    assert "gravity.solver: must be one of direct, fmm, auto (got 'tilted')" in fault_of(
        CONFIG, "seed", 2
    )


def test_an_integrator_that_needs_jerks_refuses_a_force_without(monkeypatch):
    monkeypatch.setitem(FORCES, "tilted", ForceKind(TiltedForce))
    text = fault_of(CONFIG, "time.integrator", "hermite4")
    assert "needs the time derivatives of accelerations, which gravity.solver: tilted" in text


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="there is a force of the name 'tilted' already"):
        register_force("tilted", TILTED)
    with pytest.raises(ValueError, match="there is an integrator of the name 'rk4' already"):
        register_integrator("rk4", RK4)
