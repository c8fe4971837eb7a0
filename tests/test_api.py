"""Simulations from Python: the bits of the command line, state that is read and set, callbacks."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.ranks import alone, communicator
from support.runs import contents, run

import hybrid_nbody
from hybrid_nbody import Simulation
from hybrid_nbody.errors import InputError, NumericalError
from hybrid_nbody.nbody.bodies import Bodies
from hybrid_nbody.nbody.initial_conditions import plummer, two_body
from hybrid_nbody.nbody.kernels import reference

__all__ = ["alone", "communicator"]

pytestmark = pytest.mark.filterwarnings("ignore:time.dt. .* is long beside")

CONFIG = """\
model: nbody
bodies: {kind: plummer, n: 60}
gravity: {softening: 0.05}
time: {dt: 1e-2, steps: 20}
compute: {backend: cpu, threads: 1}
output: {directory: OUT, trajectory: {every_steps: 20}, diagnostics: {every_steps: 20}}
"""
COMPUTE = {"backend": "cpu", "threads": 1}


@pytest.fixture
def job(tmp_path):
    """A configuration file."""
    path = tmp_path / "job.yaml"
    path.write_text(CONFIG.replace("OUT", str(tmp_path / "out")))
    return path


def cluster(communicator, number=60, **options):
    """Return a simulation of a Plummer sphere from arrays."""
    bodies = plummer(number, seed=2)
    arrays = (bodies.position, bodies.velocity, bodies.mass)
    given = {"dt": 1e-2, "softening": 0.05, "compute": COMPUTE, "communicator": communicator}
    return Simulation.from_bodies(*arrays, **(given | options))


def test_it_has_the_bits_of_the_command_line(job, alone):
    run("run", job)
    simulation = Simulation(job, communicator=alone)
    assert simulation.run() == "finished"
    found = contents(job.parent / "out")
    np.testing.assert_array_equal(simulation.positions, found["bodies/position"][-1])
    np.testing.assert_array_equal(simulation.velocities, found["bodies/velocity"][-1])
    assert simulation.energy == found["diagnostics/total_energy"][-1]
    assert (simulation.steps, simulation.time) == (20, 0.2)


@pytest.mark.mpi
def test_several_ranks_have_the_bits_of_one(communicator, alone):
    several = cluster(communicator)
    one = cluster(alone)
    for simulation in (several, one):
        simulation.step(5)
    np.testing.assert_array_equal(several.gathered("bodies/position"), one.positions)
    assert several.energy == one.energy
    assert communicator.sum(np.array(len(several.positions))) == 60


@pytest.mark.mpi
def test_only_the_root_needs_the_arrays(communicator):
    bodies = plummer(20, seed=2)
    arrays = (bodies.position, bodies.velocity, bodies.mass)
    given = arrays if communicator.is_root else (None, None, None)
    simulation = Simulation.from_bodies(*given, dt=0.1, communicator=communicator, compute=COMPUTE)
    np.testing.assert_array_equal(simulation.gathered("bodies/position"), bodies.position)
    wrong = arrays[:2] if communicator.is_root else (None, None)
    with pytest.raises(InputError, match="masses: must be an"):
        Simulation.from_bodies(*wrong, [], dt=0.1, communicator=communicator)


def test_what_the_precision_cannot_hold_is_refused_as_on_the_command_line(alone):
    far = np.diag([1e-30, 1.0, 1e30])
    with pytest.raises(InputError, match=r"gravity\.precision: single cannot hold"):
        Simulation.from_bodies(far, far, [1, 1, 1], dt=1, softening=0.1, communicator=alone)


def test_steps_add_up_however_they_are_asked_for(alone):
    whole = cluster(alone)
    parts = cluster(alone, overrides={"gravity.G": 1.0})
    whole.run(steps=10)
    parts.step()
    parts.step(3)
    parts.run(until=0.1)
    np.testing.assert_array_equal(whole.positions, parts.positions)
    assert repr(parts) == "Simulation(model=nbody, t=0.1, steps=10)"
    with pytest.raises(InputError, match=r"at t = 0\.1 already"):
        parts.run(until=0.05)
    with pytest.raises(InputError, match="until or steps, not both"):
        parts.run(until=1, steps=3)


def test_an_orbit_closes_and_goes_back(alone):
    bodies = two_body(eccentricity=0.3)
    period = 2 * np.pi / np.sqrt(2)
    orbit = Simulation.from_bodies(
        bodies.position,
        bodies.velocity,
        bodies.mass,
        dt=period / 2000,
        gravity={"precision": "double"},
        time={"integrator": "yoshida4"},
        compute=COMPUTE,
        communicator=alone,
    )
    orbit.run(until=period)
    np.testing.assert_allclose(orbit.positions, bodies.position, rtol=0, atol=1e-6)
    orbit.velocities = -orbit.velocities
    orbit.run(until=2 * period)
    np.testing.assert_allclose(orbit.positions, bodies.position, rtol=0, atol=1e-11)


def test_the_energy_error_counts_from_the_start_without_being_asked_before(alone):
    asked = cluster(alone)
    unasked = cluster(alone)
    assert asked.diagnostics["relative_energy_error"] == 0
    for simulation in (asked, unasked):
        simulation.step(5)
    error = unasked.diagnostics["relative_energy_error"]
    assert 0 < abs(error) < 1e-3
    assert error == asked.diagnostics["relative_energy_error"]


@pytest.mark.mpi
def test_masses_can_be_set_and_the_motion_follows(communicator, alone):
    heavy = cluster(communicator)
    heavy.step(2)
    heavy.masses = 4 * heavy.masses
    start = cluster(alone)
    start.step(2)
    fresh = cluster(alone, number=60)
    fresh._replace(Bodies(start.positions, start.velocities, 4 * start.masses, start.ids))
    for simulation in (heavy, fresh):
        simulation.step(3)
    np.testing.assert_array_equal(heavy.gathered("bodies/position"), fresh.positions)
    assert heavy.gathered("bodies/mass").sum() == pytest.approx(4, rel=1e-12)
    assert heavy.steps == 5
    with pytest.raises(InputError, match="masses: this rank needs an array of shape"):
        heavy.masses = [1.0]


def test_positions_are_copies_and_can_be_set(alone):
    simulation = cluster(alone)
    before = simulation.positions
    simulation.positions[:] = 0
    np.testing.assert_array_equal(simulation.positions, before)
    simulation.positions = before + 5
    simulation.step(4)
    centre = simulation.masses @ simulation.positions
    np.testing.assert_allclose(centre, [5, 5, 5], rtol=0, atol=1e-6)
    assert abs(simulation.diagnostics["relative_energy_error"]) < 1e-3
    with pytest.raises(
        InputError, match=r"positions: this rank needs an array of shape \(60, 3\) \(got"
    ):
        simulation.positions = before[:3]


def test_functions_are_called_on_their_schedules_and_may_stop(alone):
    simulation = cluster(alone)
    seen = []

    @simulation.every(steps=4)
    def note(it):
        seen.append(it.steps)

    times = []
    simulation.every(time=0.05)(lambda it: times.append(it.steps))
    assert simulation.run(steps=8) == "finished"
    assert seen == [0, 4, 8]
    assert simulation.run(steps=8) == "finished"
    assert seen == [0, 4, 8, 12, 16]
    assert times == [0, 5, 10, 15]
    assert callable(note)

    def late(it):
        return it.time > 0.2

    simulation.stop_when(late)
    assert simulation.run(steps=100) == "late"
    assert simulation.steps == 21
    assert simulation.reason == "step 21, t = 0.21: late holds"
    with pytest.raises(InputError, match="one of steps, time and wall"):
        simulation.every(steps=3, time=1.0)


def test_a_condition_may_say_of_whom_it_holds(alone):
    simulation = cluster(alone)

    def far(it):
        return f"body {it.ids[7]} is far" if it.steps == 3 else ""

    simulation.stop_when(far)
    assert simulation.run(steps=10) == "far"
    assert simulation.reason == "step 3, t = 0.03: body 7 is far"


@pytest.mark.parametrize("size", [1e-15, 1.0, 1e15])
@pytest.mark.parametrize("steps", [0, 3])
def test_positions_of_another_size_are_summed_as_well_as_any(alone, size, steps):
    """Single precision holds lengths in units that are chosen for the bodies."""
    simulation = cluster(alone, softening=0.05 * size, dt=1e-9) if size >= 1 else cluster(alone)
    simulation.step(steps)
    positions, masses = size * simulation.positions, simulation.masses
    simulation.positions = positions
    softening = simulation.config.gravity.softening
    expected = reference.accelerations(positions, masses, softening)
    error = np.abs(simulation.device.accelerations - expected).max()
    assert error < 1e-5 * np.abs(expected).max()
    assert simulation.steps == steps


@pytest.mark.parametrize("others", ["before", "within", "in a thread"])
def test_simulations_in_turn_are_those_by_themselves(alone, backend_name, others):
    """A GPU has one stream that CuPy works on, and Numba one number of threads."""
    compute = {"backend": backend_name}
    number = 3000 if backend_name == "gpu" else 60

    def one(threads):
        return cluster(alone, number, compute=compute | {"threads": threads})

    expected = one(1)
    expected.step(130)
    simulation, other = one(1), one(2)

    if others == "within":
        simulation.every(steps=40)(lambda _: other.step(3))
    for steps in (100, 30):
        if others == "in a thread":
            with ThreadPoolExecutor(1) as pool:
                pool.submit(simulation.step, steps).result()
        else:
            simulation.step(steps)
        if others == "before":
            other.step(steps)
    np.testing.assert_array_equal(simulation.positions, expected.positions)
    np.testing.assert_array_equal(simulation.velocities, expected.velocities)


@pytest.mark.gpu
def test_small_systems_and_simulations_in_turn(alone):
    bodies = plummer(3000, seed=2)
    of_four = [rows.reshape(-1, 3, 3)[:4] for rows in (bodies.position, bodies.velocity)]
    given = (*of_four, np.ones((4, 3)))
    compute = {"backend": "gpu"}
    expected = cluster(alone, 3000, compute=compute)
    expected.step(200)
    simulation = cluster(alone, 3000, compute=compute)
    systems = hybrid_nbody.Systems(*given, dt=1e-4, softening=0.1, backend="gpu")
    for _ in range(2):
        simulation.step(100)
        systems.run(10)
    np.testing.assert_array_equal(simulation.positions, expected.positions)


def test_a_fluid_has_its_density(alone):
    fluid = Simulation(
        model="fluid",
        grid={"cells": 8},
        time={"dt": 0.05},
        compute=COMPUTE,
        communicator=alone,
    )
    fluid.step(2)
    assert fluid.density.shape[-3:] == (8, 8, 8)
    assert "total_density" in fluid.diagnostics
    assert fluid.energy == fluid.diagnostics["kinetic_energy"]


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (([[0, 0]], [[0, 0, 0]], [1]), r"positions: must be a \(1, 3\) array"),
        (([[0, 0, 0]], [[0, 0, np.nan]], [1]), "velocities: every number must be finite"),
        (([], [], []), "masses: must be an"),
    ],
)
def test_wrong_arrays_are_named(alone, arrays, text):
    with pytest.raises(InputError, match=text):
        Simulation.from_bodies(*arrays, dt=0.1, communicator=alone)


def test_wrong_configurations_are_told_as_those_of_files(alone):
    with pytest.raises(InputError, match=r"gravity\.sofening: unknown key; did you mean"):
        cluster(alone, gravity={"sofening": 0.1})
    with pytest.raises(InputError, match="give a configuration file, or the sections"):
        Simulation(communicator=alone)
    with pytest.raises(InputError, match="a configuration cannot hold .* of type complex"):
        cluster(alone, seed=1j)


def test_a_mapping_is_a_configuration(alone):
    sections = {
        "model": "nbody",
        "bodies": {"kind": "plummer", "n": np.int64(20), "offset": np.array([1.0, 2, 3])},
        "gravity": {"softening": 0.1},
        "time": {"dt": 1e-2},
        "compute": COMPUTE,
    }
    given = Simulation(sections, {"bodies.n": 30}, communicator=alone)
    words = Simulation(communicator=alone, **sections)
    assert (len(given.masses), len(words.masses)) == (30, 20)
    np.testing.assert_allclose(words.masses @ words.positions, [1, 2, 3], rtol=0, atol=1e-12)


def test_a_whole_run_in_one_line(job, alone, capsys):
    with hybrid_nbody.run(job, {"time.steps": 10}, communicator=alone) as found:
        assert found.step.tolist() == [0, 10]
    assert "finished at step 10 of 10" in capsys.readouterr().out
    with pytest.raises(InputError, match="holds a run already"):
        hybrid_nbody.run(job, communicator=alone)
    runaway = {"time.dt": 10.0, "time.max_energy_error": 1e-6}
    with pytest.raises(NumericalError, match="the energy ran away"):
        hybrid_nbody.run(job, runaway, overwrite=True, communicator=alone)
    with hybrid_nbody.run(job, overwrite=True, communicator=alone) as found:
        assert found.step.tolist() == [0, 20]


def test_the_package_shows_it():
    assert {"Simulation", "Systems", "run", "escaped", "open_run"} <= set(dir(hybrid_nbody))
    from hybrid_nbody.api import run  # what a module of this name would hide

    assert hybrid_nbody.run is run
    assert hybrid_nbody.Simulation is Simulation
    assert [name for name in dir(hybrid_nbody) if not name.startswith("_")] == sorted(
        set(hybrid_nbody.__all__) - {"__version__"}
    )
