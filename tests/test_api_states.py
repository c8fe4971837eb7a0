"""Simulations from Python: other bodies, saves, arrays in place, pictures and notebooks."""

import base64
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support.ranks import alone, communicator
from support.runs import contents, run

from hybrid_nbody import Simulation
from hybrid_nbody.api import notebook
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.nbody.initial_conditions import plummer

__all__ = ["alone", "communicator"]

pytestmark = pytest.mark.filterwarnings("ignore:time.dt. .* is long beside")

BODIES = plummer(40, seed=5)


def cluster(communicator, rows=slice(None), **options):
    """Return a simulation of some bodies of a Plummer sphere."""
    arrays = (BODIES.position[rows], BODIES.velocity[rows], BODIES.mass[rows])
    sections = {"compute": {"backend": "cpu", "threads": 1}, "dt": 1e-2, "softening": 0.05}
    return Simulation.from_bodies(*arrays, communicator=communicator, **(sections | options))


@pytest.mark.mpi
def test_added_bodies_are_as_those_of_the_start(communicator):
    whole = cluster(communicator)
    grown = cluster(communicator, slice(30))
    last = slice(30, None)
    added = grown.add(BODIES.position[last], BODIES.velocity[last], BODIES.mass[last])
    assert added.tolist() == list(range(30, 40))
    for simulation in (whole, grown):
        simulation.step(3)
    for name in ("position", "velocity", "mass", "id"):
        found = grown.gathered(f"bodies/{name}")
        np.testing.assert_array_equal(found, whole.gathered(f"bodies/{name}"))


@pytest.mark.mpi
def test_without_removed_bodies_the_others_go_on_at_their_time(communicator):
    simulation = cluster(communicator)
    simulation.step(3)
    before = simulation.gathered("bodies/position")
    simulation.remove([3, 8])
    others = np.delete(np.arange(40), [3, 8])
    np.testing.assert_array_equal(simulation.gathered("bodies/id"), others)
    np.testing.assert_array_equal(simulation.gathered("bodies/position"), before[others])
    assert (simulation.steps, simulation.time) == (3, 0.03)
    simulation.step()
    assert simulation.steps == 4
    with pytest.raises(InputError, match="remove: there is no body 8"):
        simulation.remove([1, 8])
    with pytest.raises(InputError, match="remove: one body must be left"):
        simulation.remove(others)


@pytest.mark.mpi
def test_a_save_goes_on_to_the_same_bits(communicator, alone, tmp_path):
    folder = communicator.broadcast(tmp_path) / "saved"
    straight = cluster(communicator)
    straight.step(8)
    first = cluster(communicator)
    first.step(5)
    assert first.save(folder).name == "checkpoint-0000000005.h5"
    second = Simulation.resume(folder, communicator=communicator)
    assert (second.steps, second.dt) == (5, 0.01)
    second.step(3)
    positions = straight.gathered("bodies/position")
    np.testing.assert_array_equal(second.gathered("bodies/position"), positions)
    second.save(folder)
    assert [path.name for path in folder.glob("check*.h5")] == ["checkpoint-0000000008.h5"]
    with pytest.raises(InputError, match=r"holds a later state, checkpoint-0000000008\.h5"):
        first.save(folder)


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"time.dt": 0.5}, r"^resume: time\.dt=0\.5: a resumed run can only change .*time\.steps"),
        ({"time": {"integrator": "hermite4"}}, "^resume: time.*: a resumed run can only change"),
        ({"output.directory": "b"}, r"^resume: output\.directory=.*: a resumed run stays in its"),
    ],
)
def test_a_saved_state_goes_on_under_the_same_laws(alone, tmp_path, overrides, text):
    cluster(alone).save(tmp_path)
    with pytest.raises(InputError, match=text):
        Simulation.resume(tmp_path, overrides, alone)
    assert Simulation.resume(tmp_path, {"compute.threads": 2}, alone).steps == 0


def test_the_command_line_goes_on_from_a_save_and_the_other_way(alone, tmp_path):
    simulation = cluster(alone)
    simulation.step(5)
    simulation.save(tmp_path / "saved")
    run("resume", tmp_path / "saved", "--set=time.steps=8")
    found = contents(tmp_path / "saved")["bodies/position"][-1]
    simulation.step(3)
    np.testing.assert_array_equal(simulation.positions, found)
    again = Simulation.resume(tmp_path / "saved", {"time.steps": 9}, alone)
    np.testing.assert_array_equal(again.positions, found)
    assert again.run() == "finished"
    assert again.steps == 9
    with pytest.raises(InputError, match="holds a run with a trajectory"):
        simulation.save(tmp_path / "saved")
    with pytest.raises((InputError, FileError), match="no such directory"):
        Simulation.resume(tmp_path / "nowhere", communicator=alone)


def test_arrays_on_the_device_are_those_of_the_bodies(alone):
    set_whole = cluster(alone)
    in_place = cluster(alone)
    assert isinstance(in_place.device.positions, np.ndarray)
    in_place.device.velocities[:] *= 2
    in_place.device.positions[3] += 1
    in_place.device.changed()
    positions = set_whole.positions
    positions[3] += 1
    set_whole.velocities = 2 * set_whole.velocities
    set_whole.positions = positions
    np.testing.assert_array_equal(in_place.device.accelerations, set_whole.device.accelerations)
    for simulation in (set_whole, in_place):
        simulation.step(2)
    np.testing.assert_array_equal(in_place.device.positions, set_whole.positions)


@pytest.mark.gpu
def test_arrays_on_a_gpu_are_written_there(alone):
    import cupy

    simulation = cluster(alone, compute={"backend": "gpu"})
    assert isinstance(simulation.device.positions, cupy.ndarray)
    centre = simulation.positions.mean(axis=0)
    simulation.device.positions[:] += cupy.array([0, 0, 5.0])
    simulation.device.changed()
    simulation.step(2)
    moved = cupy.asnumpy(simulation.device.positions).mean(axis=0) - centre
    np.testing.assert_allclose(moved, [0, 0, 5], rtol=0, atol=0.1)


def test_figures_are_those_of_the_model(alone):
    simulation = cluster(alone)
    figure = simulation.plot()
    assert len(figure.axes) >= 3
    assert simulation.plot("snapshot").axes
    with pytest.raises(InputError, match="no picture of kind 'profile'; there are energies"):
        simulation.plot("profile")
    with pytest.raises(InputError, match="no tracks of a single state: "):
        simulation.plot("tracks")


def test_a_notebook_shows_a_picture_and_a_bar(alone, monkeypatch):
    simulation = cluster(alone)
    text, picture = re.fullmatch(
        r'<div>(.*)</div><img src="data:image/png;base64,(.*)">', simulation._repr_html_()
    ).groups()
    assert text == "Simulation(model=nbody, t=0, steps=0)"
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    assert len(picture) < 100_000

    shown = []
    handle = SimpleNamespace(update=shown.append)
    displays = SimpleNamespace(
        HTML=str, display=lambda bar, display_id: shown.append(bar) or handle
    )
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.setattr(notebook, "FIRST_SECONDS", 0.0)
    simulation.run(steps=20)
    assert shown[0].startswith('<progress value="0" max="20"></progress> step 0/20  t = 0')
    assert shown[-1].startswith('<progress value="20" max="20"></progress> step 20/20  t = 0.2')

    shell.kernel = None
    del shell.kernel
    shown.clear()
    simulation.run(steps=5)
    assert shown == []


# ---- What cannot be ------------------------------------------------------------------------------


def test_what_is_set_by_a_wrong_name_is_refused(alone):
    simulation = cluster(alone)
    with pytest.raises(InputError, match=r"^position: .*, velocity; did you mean 'positions'\?"):
        simulation.position = simulation.positions
    with pytest.raises(AttributeError, match="^softening: a simulation has nothing of this name"):
        simulation.softening = 9.0

    class Own(Simulation):
        """A class of a user's own, which keeps what it likes."""

    arrays = (BODIES.position, BODIES.velocity, BODIES.mass)
    own = Own.from_bodies(*arrays, dt=1e-2, softening=0.05, communicator=alone)
    own.history = [3]
    assert own.history == [3]


@pytest.mark.parametrize("call", ["run", "step"])
def test_a_function_that_a_run_calls_cannot_go_on_with_it(alone, call):
    simulation = cluster(alone)
    again = {"run": lambda it: it.run(steps=3), "step": lambda it: it.step()}[call]
    simulation.every(steps=2)(again)
    with pytest.raises(InputError, match=f"^{call}: called by a function that the simulation"):
        simulation.run(steps=10)
    assert simulation.steps == 0
    simulation._events.clear()
    assert simulation.run(steps=10) == "finished"
    assert simulation.steps == 10
