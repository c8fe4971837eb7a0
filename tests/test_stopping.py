"""Conditions at which runs stop: of whom they tell, where, and how a stopped run goes on."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support import configs
from support.ranks import alone, communicator
from support.runs import contents, run

from hybrid_nbody import Simulation, closest, energy_error, escaped
from hybrid_nbody.backends.cpu import CpuBackend
from hybrid_nbody.conditions import Watch
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.run import open_run
from hybrid_nbody.nbody.initial_conditions import plummer

__all__ = ["alone", "communicator"]

ESCAPE = Path(__file__).parents[1] / "input" / "escape.yaml"
COMPUTE = {"compute.backend": "cpu", "compute.threads": 1}
HERE = [f"--set={key}={value}" for key, value in COMPUTE.items()]


def last_line(result):
    """Return what a run said at its end."""
    return (result.stdout + result.stderr).strip().splitlines()[-1]


def distances(folder):
    """Return how far the bodies are from the origin, in each frame."""
    return np.linalg.norm(contents(folder)["bodies/position"], axis=-1)


def test_a_stop_at_an_escape(tmp_path, alone):
    """When and which body: the last bits of a CPU's sums decide, and grow as the bodies meet."""
    assert len(ESCAPE.read_text().splitlines()) <= 12
    folder = tmp_path / "out"
    first = last_line(run("run", ESCAPE, *HERE, f"--set=output.directory={folder}"))
    step, body = stopped_at(first)
    assert first.startswith(f"stopped at step {step} of 4000, t = {0.05 * step:.4g}, as asked: ")
    assert (distances(folder)[-1] > 10).tolist() == [number == body for number in range(3)]
    assert not (distances(folder)[:-1] > 10).any()
    with open_run(folder) as found:
        assert found.step[-1] == step
    assert (folder / f"checkpoint-{step:010d}.h5").exists()
    assert first in (folder / "log.txt").read_text()

    again = run("resume", folder)
    said = again.stdout + again.stderr
    assert re.search(rf"body {body} is 10\.\d+ from the origin, beyond 10, already", said)
    later, other = stopped_at(last_line(again))
    assert other != body
    assert {body, other} <= set(np.flatnonzero(distances(folder)[-1] > 10).tolist())

    end = later + 20
    on = run("resume", folder, "--set=stop=[]", f"--set=time.steps={end}")
    assert last_line(on).startswith(f"finished at step {end} of {end}")


def stopped_at(line):
    """Return the step at which a run stopped, and the body that had escaped."""
    found = re.match(r"stopped at step (\d+) of 4000, .* as asked: body (\d) is 10\.\d+ from", line)
    return int(found[1]), int(found[2])


def cluster(communicator, number=60, **options):
    """Return a simulation of a Plummer sphere from arrays."""
    bodies = plummer(number, seed=2)
    sections = {"compute": {"backend": "cpu", "threads": 1}, "dt": 1e-2, "softening": 0.05}
    arrays = (bodies.position, bodies.velocity, bodies.mass)
    return Simulation.from_bodies(*arrays, communicator=communicator, **(sections | options))


@pytest.mark.mpi
def test_any_number_of_ranks_stops_at_the_same_state(communicator, alone):
    found = []
    for ranks in (communicator, alone):
        simulation = cluster(ranks)
        simulation.velocities = 2 * simulation.positions  # they fly apart
        farthest = np.linalg.norm(simulation.gathered("bodies/position"), axis=1).max()
        simulation.stop_when(escaped(1.1 * farthest))
        assert simulation.run(steps=30) == "escaped"
        assert 2 < simulation.steps < 30
        found.append((simulation.reason, simulation.gathered("bodies/position").tolist()))
    assert found[0] == found[1]


@pytest.mark.mpi
def test_close_pairs_are_those_of_brute_force(communicator):
    simulation = cluster(communicator)
    position = simulation.gathered("bodies/position")
    apart = np.linalg.norm(position[:, None] - position, axis=-1)
    found = closest(0.2).found(simulation.model, dict)
    every = [(one, other) for one in range(60) for other in range(one + 1, 60)]
    wanted = {pair: apart[pair] for pair in every if apart[pair] < 0.2}
    assert 3 < len(wanted) < 100
    assert found.keys() == wanted.keys()
    for pair, distance in wanted.items():
        assert found[pair] == pytest.approx(distance, rel=1e-14)
    one, other = min(wanted, key=wanted.get)
    text = closest(0.2).words(found)
    assert text.startswith(f"bodies {one} and {other} are ")
    assert text.endswith(f"closer than 0.2 ({len(wanted) - 1} more pairs are closer, too)")
    assert closest(1e-4).found(simulation.model, dict) == {}


class PlacedBodies:
    """Bodies at given positions, as a condition sees them."""

    def __init__(self, position, communicator):
        self.backend = CpuBackend()
        self.communicator = communicator
        self.ids = np.arange(len(position))
        self.position = position

    @property
    def bodies(self):
        return SimpleNamespace(position=self.position)


@pytest.mark.parametrize("far", [1e200, 1.5e308])
def test_pairs_are_found_among_bodies_whose_distances_or_squares_overflow(alone, far):
    near = np.random.default_rng(1).uniform(-1, 1, (60, 3))
    position = np.concatenate([near, [[far, 0, 0], [-far, 0, 0], [-far, 0, 0]]])
    found = closest(0.2).found(PlacedBodies(position, alone), dict)
    expected = closest(0.2).found(PlacedBodies(near, alone), dict)
    assert len(expected) > 3
    assert found == expected | {(61, 62): 0.0}


@pytest.mark.gpu
def test_a_gpu_finds_what_a_cpu_finds(alone):
    on_host = cluster(alone)
    on_gpu = cluster(alone, compute={"backend": "gpu"})
    for condition in (escaped(1.5), closest(0.2)):
        found = condition.found(on_gpu.model, dict)
        wanted = condition.found(on_host.model, dict)
        assert len(wanted) > 3
        assert found.keys() == wanted.keys()
        assert list(found.values()) == pytest.approx(list(wanted.values()), rel=1e-14)


def test_a_condition_tells_once_until_it_has_ceased():
    far = {}
    condition = SimpleNamespace(
        found=lambda model, measured: dict(far), words=lambda found: str(list(found))
    )
    watch = Watch(condition)
    told = []
    for now in ({}, {(3,)}, {(3,)}, {(3,), (1,), (0,)}, {(3,)}, {}, {(3,)}):
        far = dict.fromkeys(now, 1.0)
        told.append(watch.look(None, dict))
    assert told == ["", "[(3,)]", "", "[(0,), (1,)]", "", "", "[(3,)]"]


def test_a_simulation_says_what_holds_already_and_stops_anew(alone):
    simulation = cluster(alone)
    radii = np.sort(np.linalg.norm(simulation.positions, axis=1))
    with pytest.warns(UserWarning, match="from the origin, beyond .* already: it stops when"):
        simulation.stop_when(escaped(radii[-3:].mean()))
    simulation.step()
    assert (simulation.outcome, simulation.reason) == ("finished", "")
    simulation.positions = 2 * simulation.positions
    assert simulation.run(steps=5) == "escaped"
    assert simulation.steps == 1
    assert simulation.run(steps=5) in ("finished", "escaped")
    assert simulation.steps > 1


def test_a_run_stops_at_an_error_of_the_energy(tmp_path, alone):
    rough = {"time.dt": 0.3, "time.integrator": "euler", "stop": [{"energy_error": 1e-3}]}
    given = COMPUTE | rough | {"output.diagnostics.every_steps": 3, "output.trajectory": None}
    simulation = Simulation(ESCAPE, given | {"time.accuracy": 0.01}, alone)
    assert simulation.run() == "energy_error"
    assert simulation.steps % 3 == 0
    error = simulation.diagnostics["relative_energy_error"]
    assert abs(error) > 1e-3
    assert f"the relative energy error is {error:.3g}, beyond 0.001" in simulation.reason


def test_looks_are_as_far_apart_as_the_configuration_says(alone):
    compute = {"compute.threads": 1, "compute.backend": "cpu"}
    often = Simulation(ESCAPE, compute, alone)
    seldom = Simulation(ESCAPE, compute | {"stop": [{"escape": 10, "every_steps": 7}]}, alone)
    assert often.run() == seldom.run() == "escaped"
    assert seldom.steps == -(-often.steps // 7) * 7


def test_conditions_are_for_models_that_can_meet_them(alone):
    sections = {"grid": {"cells": 8}, "time": {"dt": 0.05}, "compute": {"backend": "cpu"}}
    fluid = Simulation(model="fluid", communicator=alone, **sections)
    with pytest.raises(InputError, match="stop: closest: this model has no bodies"):
        fluid.stop_when(closest(0.1))
    with pytest.raises(InputError, match="does not conserve its energy"):
        fluid.stop_when(energy_error(0.1))
    with pytest.raises(InputError, match=r"escaped: radius: must be a number greater than 0"):
        escaped(-1)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (["stop=[{esape: 1}]"], r"stop\[0\]\.esape: unknown key; did you mean 'escape'"),
        (["stop=[{escape: 1, closest: 1}]"], "give exactly one of escape, closest and energy_er"),
        (["stop={escape: 1}"], "stop: must be a list of conditions"),
        (["stop=[{energy_error: 0.2}]"], r"must be less than time\.max_energy_error = 0\.1"),
        (
            ["stop=[{energy_error: 1e-3, every_steps: 2}]"],
            r"stop\[0\]\.every_steps: is for escape and closest",
        ),
        (
            ["stop=[{energy_error: 1e-3}]", "output.diagnostics=null"],
            r"stop\[0\]\.energy_error: is looked at with output\.diagnostics",
        ),
    ],
)
def test_wrong_conditions_are_named(settings, text):
    with pytest.raises(InputError, match=text):
        configs.load(ESCAPE, settings)
