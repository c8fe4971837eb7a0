"""External fields: their formulas, orbits in them, and the same function for CPUs and GPUs."""

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support import configs
from support.bodies import make_backend, make_model, whole
from support.nvrtc import compile_to_cubin, oldest_and_newest, words_for
from support.runs import assert_same_run, contents, run

from hybrid_nbody.config.loader import ConfigError
from hybrid_nbody.errors import InputError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.config_external import loaded
from hybrid_nbody.nbody.forces.direct import DirectForce
from hybrid_nbody.nbody.forces.external import with_fields
from hybrid_nbody.nbody.forces.registry import make_direct
from hybrid_nbody.nbody.initial_conditions import plummer
from hybrid_nbody.nbody.kernels import make_fields
from hybrid_nbody.nbody.kernels.fields import potentials
from hybrid_nbody.nbody.kernels.fields.field import ExternalField, Moving
from hybrid_nbody.nbody.kernels.fields.translation import translated
from hybrid_nbody.nbody.kernels.gpu.fields import SOURCE, defines

FIELDS = {
    "uniform": ExternalField(potentials.uniform, (0.1, -0.2, 0.3)),
    "point": ExternalField(potentials.plummer, (1.3, 0.0), (0.3, 0.2, -0.1)),
    "plummer": ExternalField(potentials.plummer, (1.3, 0.7)),
    "hernquist": ExternalField(potentials.hernquist, (1.3, 0.7), (0.1, 0.0, 0.2)),
    "nfw": ExternalField(potentials.nfw, (1.3, 0.7)),
    "logarithmic": ExternalField(potentials.logarithmic, (1.1, 0.4, 0.8)),
    "miyamoto-nagai": ExternalField(potentials.miyamoto_nagai, (1.3, 0.9, 0.2)),
    "bar": ExternalField(potentials.bar, (1.3, 0.9, 0.1, 0.2, 0.7, 0.3), conservative=False),
}
STILL = (0.0, 0.0, 0.0)


def value_of(field, position, time=0.4):
    """Return acceleration and potential of a field, by its function in Python."""
    about = tuple(np.subtract(position, field.centre).tolist())
    return field.function(about, STILL, 1.0, time, field.parameters)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("position", [(0.9, -1.2, 0.5), (-0.2, 0.1, 0.05), (8.0, 3.0, -4.0)])
def test_accelerations_are_gradients_of_potentials(name, position):
    field = FIELDS[name]
    step = 1e-3
    for axis in range(3):
        along = step * np.eye(3)[axis]
        near, far = (
            value_of(field, position + k * along)[3] - value_of(field, position - k * along)[3]
            for k in (1, 2)
        )
        slope = (8 * near - far) / (12 * step)  # of order 4
        scale = np.linalg.norm(value_of(field, position)[:3])
        assert value_of(field, position)[axis] == pytest.approx(-slope, rel=0, abs=1e-8 * scale)


def book_bar(x, y, z):
    """Return the potential of the needle in its frame."""
    angle = 0.7 * 0.4 + 0.3
    along = x * np.cos(angle) + y * np.sin(angle)
    across = y * np.cos(angle) - x * np.sin(angle)
    wide = across**2 + (0.1 + np.sqrt(z**2 + 0.2**2)) ** 2
    near, far = (np.sqrt((along - end) ** 2 + wide) for end in (0.9, -0.9))
    return 1.3 / 1.8 * np.log((along - 0.9 + near) / (along + 0.9 + far))


def radius(x, y, z):
    return np.sqrt(x**2 + y**2 + z**2)


BOOKS = {
    "uniform": lambda x, y, z: -0.1 * x + 0.2 * y - 0.3 * z,
    "point": lambda x, y, z: -1.3 / radius(x, y, z),
    "plummer": lambda x, y, z: -1.3 / np.sqrt(radius(x, y, z) ** 2 + 0.7**2),
    "hernquist": lambda x, y, z: -1.3 / (radius(x, y, z) + 0.7),
    "nfw": lambda x, y, z: -1.3 * np.log(1 + radius(x, y, z) / 0.7) / radius(x, y, z),
    "logarithmic": lambda x, y, z: 0.605 * np.log(x**2 + y**2 + (z / 0.8) ** 2 + 0.4**2),
    "miyamoto-nagai": lambda x, y, z: (
        -1.3 / np.sqrt(x**2 + y**2 + (0.9 + np.sqrt(z**2 + 0.2**2)) ** 2)
    ),
    "bar": book_bar,
}
"""Potentials about the centres as the books have them, for complex numbers."""


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_those_of_the_books(name):
    """The slope of a potential is its imaginary part at a position of imaginary step."""
    field = FIELDS[name]
    for position in np.random.default_rng(2).normal(size=(100, 3)):
        about = position - field.centre
        *acceleration, potential = value_of(field, position)
        assert potential == pytest.approx(BOOKS[name](*about), rel=1e-12, abs=1e-13)
        slopes = [BOOKS[name](*(about + 1e-30j * axis)).imag / 1e-30 for axis in np.eye(3)]
        np.testing.assert_allclose(acceleration, np.negative(slopes), rtol=1e-9, atol=1e-12)


def test_series_near_the_centre_of_a_halo_meet_the_formula():
    gm, a = 1.3, 0.7
    for r in (0.999e-3 * a, 1.001e-3 * a):
        found = potentials.nfw((r, 0.0, 0.0), STILL, 1.0, 0.0, (gm, a))
        s = np.longdouble(r) / np.longdouble(a)
        enclosed = np.log1p(s) - s / (1 + s)
        assert found[0] == pytest.approx(float(-gm * enclosed / r**2), rel=1e-9)
        assert found[3] == pytest.approx(float(-gm / a * np.log1p(s) / s), rel=1e-12)


@pytest.mark.parametrize("name", ["hernquist", "plummer", "nfw", "point"])
def test_the_centre_itself_pulls_nowhere(name):
    values = value_of(FIELDS[name], FIELDS[name].centre)
    assert values[:3] == (0.0, 0.0, 0.0)
    assert math.isfinite(values[3])


# ---- Orbits --------------------------------------------------------------------------------------


def made(field, G):
    return field


def model_in(fields, bodies, dt, communicator, **options):
    """Return a model of bodies in some fields."""

    def make_force(setup):
        makers = [partial(made, field) for field in fields]
        return with_fields(make_direct(setup), makers, 1.0, setup)

    return make_model(bodies, dt, communicator, make_force=make_force, **options)


START = (0.9, 0.1, 0.2)
SPEED = (-0.1, 0.8, 0.15)


GROUPS = {
    "galaxy": ["uniform", "plummer", "hernquist", "nfw", "logarithmic", "miyamoto-nagai"],
    "bar": ["bar"],
    "point": ["point"],
}
"""Fields that are compiled together."""


@pytest.mark.parametrize("group", GROUPS)
def test_orbits_are_those_of_another_program(group, alone):
    fields = [FIELDS[name] for name in GROUPS[group]]
    body = Bodies(np.array([START]), np.array([SPEED]), np.ones(1))
    model = model_in(fields, body, 2.5e-4, alone, integrator="yoshida4")
    model.advance(3200)
    exact = solve_ivp(
        lambda t, y: [*y[3:], *np.sum([value_of(f, y[:3], t)[:3] for f in fields], axis=0)],
        (0, 0.8),
        [*START, *SPEED],
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
    ).y[:, -1]
    np.testing.assert_allclose(whole(model, "bodies/position")[0], exact[:3], rtol=0, atol=1e-8)
    np.testing.assert_allclose(whole(model, "bodies/velocity")[0], exact[3:], rtol=0, atol=1e-8)


@pytest.mark.mpi
@pytest.mark.parametrize("integrator", ["leapfrog", "yoshida4"])
def test_bits_do_not_depend_on_the_ranks(communicator, alone, integrator):
    bodies = plummer(101, seed=4)
    fields = [FIELDS["hernquist"], FIELDS["bar"], FIELDS["nfw"]]
    options = {"integrator": integrator, "softening": 0.05}
    weights = [1.0 + rank for rank in range(communicator.size)]
    several = model_in(fields, bodies, 1e-2, communicator, weights=weights, **options)
    one = model_in(fields, bodies, 1e-2, alone, **options)
    for model in (several, one):
        model.advance(5)
    for name in ("bodies/position", "bodies/velocity"):
        np.testing.assert_array_equal(whole(several, name), whole(one, name))
    assert several.diagnostics() == one.diagnostics()


def test_energy_counts_fields_and_is_not_watched_where_it_changes(alone):
    bodies = plummer(100, seed=5)
    steady = model_in([FIELDS["plummer"]], bodies, 1e-3, alone, softening=0.1)
    energy = steady.diagnostics()["total_energy"]
    steady.advance(400)
    after = steady.diagnostics()
    assert abs(after["relative_energy_error"]) < 1e-5
    exact = sum(value_of(FIELDS["plummer"], x)[3] for x in bodies.position) / 100
    without = make_model(bodies, 1e-3, alone, softening=0.1).diagnostics()["total_energy"]
    assert energy == pytest.approx(without + exact, rel=1e-12)
    bar = ExternalField(potentials.bar, FIELDS["bar"].parameters, conservative=False)
    changing = model_in([bar], bodies, 1e-3, alone, softening=0.1)
    assert "relative_energy_error" not in changing.diagnostics()
    assert "relative_energy_error" not in changing.quantities


def test_the_force_between_bodies_may_depend_on_the_time(alone, monkeypatch):
    """And need not conserve the energy, as one that somebody has registered."""
    times = []
    monkeypatch.setattr(DirectForce, "at", lambda force, time: times.append(time))
    monkeypatch.setattr(DirectForce, "conserves_energy", False)
    model = model_in([FIELDS["plummer"]], plummer(10, seed=5), 1e-3, alone, softening=0.1)
    model.force.at(7.0)
    assert times[-1] == 7.0
    assert not model.force.conserves_energy


# ---- One function for both devices ---------------------------------------------------------------


def drag(position, velocity, mass, time, parameters):
    """Return a drag, and nothing beyond a radius: what a user may write."""
    x, y, z = position
    strength = parameters[0] / mass
    if math.sqrt(x**2 + y**2 + z**2) > parameters[1] and not time < 0:
        strength *= 0.0
    pull = -strength if velocity[0] != 0 else 0.0
    return pull * velocity[0], pull * velocity[1], pull * velocity[2], 0.0


def test_every_function_compiles_for_gpus():
    fields = [*FIELDS.values(), ExternalField(drag, (0.2, 3.0))]
    options = words_for(defines(fields), ())
    assert compile_to_cubin(SOURCE.read_text(), options, oldest_and_newest()[-1])


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*FIELDS, "drag", "all"])
def test_gpus_and_cpus_agree(name):
    known = FIELDS | {"drag": ExternalField(drag, (0.2, 3.0))}
    fields = list(known.values()) if name == "all" else [known[name]]
    random = np.random.default_rng(3)
    bodies = [random.standard_normal((1000, 3)), random.standard_normal((1000, 3))]
    bodies.append(random.uniform(1, 2, 1000))
    found = []
    for device in ("cpu", "gpu"):
        backend = make_backend(device)
        moving = Moving(*(backend.upload(array) for array in bodies))
        sums = make_fields(backend, fields)
        out = backend.zeros((1000, 3), "f8")
        sums.add(moving, 0.7, moving.velocity, out)
        potential = sums.potential(moving, 0.7)
        sums.kick(moving.velocity, out, 0.1)
        found.append([backend.download(array) for array in (out, potential, moving.velocity)])
    for cpu, gpu in zip(*found, strict=True):
        np.testing.assert_allclose(gpu, cpu, rtol=1e-12, atol=1e-12)


def loop(position, velocity, mass, time, parameters):
    for _ in range(3):
        mass = mass + 1
    return 0.0, 0.0, 0.0, mass


def unknown(position, velocity, mass, time, parameters):
    return np.sin(position[0]), 0.0, 0.0, 0.0


def short(position, velocity, mass, time, parameters):
    a, b = parameters
    return a, b, 0.0, 0.0


def open_end(position, velocity, mass, time, parameters):
    if mass > 1:
        return 0.0, 0.0, 0.0, 0.0
    mass = 2


def lost(position, velocity, mass, time, parameters):
    return missing, 0.0, 0.0, 0.0  # noqa: F821


def other(position, velocity):
    return 0.0, 0.0, 0.0, 0.0


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (loop, "a field may assign, branch with if, and return; nothing else"),
        (unknown, r"cannot translate np.sin\(position\[0\]\); take functions of math"),
        (short, "parameters has 3 components, not 2"),
        (open_end, "a field returns ax, ay, az, potential on every path"),
        (lost, "missing is neither set before nor a number of the module"),
        (other, r"a field takes the arguments \(position, velocity, mass, time, parameters\)"),
    ],
)
def test_what_cannot_be_translated_is_named_with_its_line(function, reason):
    with pytest.raises(InputError, match=rf"test_external\.py:\d+: {reason}"):
        translated(function, "f", 3)


# ---- Whole runs ----------------------------------------------------------------------------------

CONFIG = """\
model: nbody
bodies: {kind: plummer, n: 60, offset: [2, 0, 0], velocity: [0, 0.6, 0]}
gravity:
  softening: 0.1
  solver: fmm
  accuracy: 3e-3
  external:
    - {kind: python, path: own.py, function: wind, parameters: [0.02]}
time: {dt: 1e-2, steps: 40}
compute: {backend: cpu, threads: 1}
output:
  directory: OUT
  trajectory: {every_steps: 10}
  diagnostics: {every_steps: 10}
  checkpoint: {every_steps: 20}
"""

OWN = """\
import math

RATE = 2.0

def wind(position, velocity, mass, time, parameters):
    return parameters[0] * math.sin(RATE * time), 0.0, 0.0, 0.0

number = 3
"""


@pytest.fixture
def job(tmp_path):
    """A configuration with a field of one's own beside it."""
    (tmp_path / "own.py").write_text(OWN)
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG.replace("OUT", str(tmp_path / "out")))
    return path


def test_a_resumed_run_has_the_same_bits(job):
    """By a tree, which compares errors with the last accelerations between bodies."""
    run("run", job)
    again = job.parent / "again"
    run("run", job, "--set", f"output.directory={again}", "--set", "time.steps=20")
    run("resume", again, "--set", "time.steps=40")
    assert_same_run(again, job.parent / "out")
    assert "diagnostics/relative_energy_error" in contents(again)


def test_what_is_wrong_with_a_function_of_ones_own(job):
    path = job.parent / "own.py"
    assert loaded(path, "wind").__name__ == "wind"
    with pytest.raises(InputError, match=r"own\.py has no function breeze"):
        loaded(path, "breeze")
    with pytest.raises(InputError, match="has no function number; it has: wind"):
        loaded(path, "number")
    path.write_text("def wind(:")
    with pytest.raises(InputError, match=r"own\.py raised SyntaxError"):
        loaded(path, "wind")


def test_a_run_and_its_check_name_what_cannot_be_compiled(job):
    path = job.parent / "own.py"
    path.write_text(OWN.replace("math.sin(RATE * time)", "np.sin(time)"))
    for command in ("check", "run"):
        error = run(command, job, check=2).stderr
        assert "own.py:6: cannot translate np.sin(time); take functions of math" in error
    assert not (job.parent / "out").exists()


def test_schemes_that_need_jerks_are_refused(job):
    text = Path(job).read_text().replace("steps: 40", "steps: 40, integrator: hermite4")
    with pytest.raises(ConfigError, match=r"hermite4|gravity\.external"):
        configs.loads(text, "job.yaml")


@pytest.mark.parametrize("integrator", ["euler", "leapfrog", "yoshida4"])
def test_a_restart_after_any_step_has_the_same_bits(alone, integrator):
    """The drifts of a step add up to its length but for rounding, which a fast bar shows."""
    fast = ExternalField(potentials.bar, (1.3, 0.9, 0.1, 0.2, 70.0, 0.3), conservative=False)
    options = {"softening": 0.05, "integrator": integrator}
    model, other = (model_in([fast], plummer(40, 5), 0.1, alone, **options) for _ in range(2))
    for _ in range(30):
        saved = {name: whole(model, name) for name in model.fields()}
        other.restore(saved.__getitem__, model.scalars())
        for each in (model, other):
            each.advance(1)
        velocities = [whole(each, "bodies/velocity") for each in (model, other)]
        np.testing.assert_array_equal(*velocities)
