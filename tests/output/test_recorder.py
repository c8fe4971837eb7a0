"""What the loop calls: a state that has gone wrong is never written over one that is good."""

import time
from dataclasses import replace
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from support.ranks import RowsModel

from hybrid_nbody.errors import NumericalError
from hybrid_nbody.files.checkpoint import checkpoints
from hybrid_nbody.files.listing import load_listing
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.output.recorder import Recorder
from hybrid_nbody.output.summary import with_prefix
from hybrid_nbody.output.trajectory import NAME, Trajectory
from hybrid_nbody.progress import Progress
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.schedule import AnyOf, AtStep, EverySteps

pytestmark = pytest.mark.mpi


class NoSignals:
    """Nobody asks to stop."""

    received = ""


class RunawayModel(RowsModel):
    """A model whose relative energy error is 0.01 a step, and is counted."""

    measured = 0

    def advance(self, steps):
        super().advance(steps)
        time.sleep(1e-3 * steps)

    def diagnostics(self):
        self.measured += 1
        return super().diagnostics() | {"relative_energy_error": 0.01 * self.step}

    quantities = RowsModel.quantities | {
        "relative_energy_error": RowsModel.quantities["total_energy"]
    }


class Shown(Progress):
    """A progress that keeps what it is given."""

    def __init__(self):
        self.states, self.begun, self.closed = [], [], False
        super().__init__("step")

    def begin(self, done=0):
        self.begun.append(done)

    def update(self, done, total, details=""):
        self.states.append((done, total, details))

    def close(self):
        self.closed = True


@pytest.fixture
def recorder(communicator, shared_tmp_path):
    """Return a function that makes a recorder over a model at its initial state."""

    def make(limit=0.1, model=None, keep=2, last_step=100):
        model = model or RunawayModel(6, communicator)
        simulation = TimeLoop(model, communicator, NoSignals(), time.monotonic())
        trajectory = Trajectory(shared_tmp_path / NAME, communicator)
        trajectory.create(model, {})
        guard = Guard(simulation, communicator, limit)
        progress = Shown() if communicator.is_root else Progress("step")
        return Recorder(
            simulation,
            guard,
            trajectory,
            CheckpointWriter(shared_tmp_path, {"config": "c"}, keep, communicator),
            last_step,
            progress,
        )

    return make


def steps_saved(recorder):
    """Return the steps of the checkpoints, the newest first."""
    recorder.trajectory.flush()
    return [int(path.stem.split("-")[1]) for path in checkpoints(recorder.checkpoints.folder)]


def frames_of(recorder):
    """Return the steps of the frames."""
    recorder.trajectory.flush()
    path = recorder.trajectory.path
    return recorder.trajectory.communicator.on_root(
        lambda: load_listing(path).frames["step"].tolist()
    )


def run(recorder, diagnostics):
    """Save every three steps up to step 30."""
    simulation = recorder.simulation
    save = AnyOf(EverySteps(3), AtStep(30))
    simulation.events = [
        Event("guard", save, recorder.check, waits=False),
        Event("diagnostics", AnyOf(*diagnostics), recorder.measure),
        Event("checkpoint", save, recorder.save),
        Event("finish", AtStep(30), lambda: simulation.stop("finished")),
    ]
    recorder.begin(None)
    return simulation.run()


@pytest.mark.parametrize(
    "diagnostics", [[], [EverySteps(5)], [EverySteps(3)]], ids=["none", "others", "the same"]
)
def test_a_runaway_energy_is_never_saved(recorder, diagnostics):
    recorder = recorder()
    with pytest.raises(NumericalError, match="the energy ran away") as caught:
        run(recorder, diagnostics)
    assert caught.value.shared
    assert recorder.model.step == 12
    assert steps_saved(recorder) == [9, 6]
    recorder.close()


def test_a_run_without_diagnostics_measures_nothing(recorder):
    recorder = recorder()
    recorder.checks_energy = False
    assert run(recorder, []) == "finished"
    assert recorder.model.measured == 0
    assert recorder.energy_error is None
    assert steps_saved(recorder) == [30, 27]
    recorder.close()


def test_a_model_without_energy_is_measured_for_rows_alone(recorder, communicator):
    class Counting(RowsModel):
        measured = ()

        def diagnostics(self):
            self.measured = (*self.measured, self.step)
            return super().diagnostics()

    recorder = recorder(model=Counting(6, communicator))
    assert run(recorder, [EverySteps(5)]) == "finished"
    assert recorder.model.measured == (0, 5, 10, 15, 20, 25, 30)
    recorder.close()


def test_any_energy_is_saved_where_there_is_no_limit(recorder):
    recorder = recorder(limit=None)
    assert run(recorder, []) == "finished"
    assert steps_saved(recorder) == [30, 27]
    assert recorder.energy_error == pytest.approx(0.3, rel=1e-12, abs=0)
    recorder.close()


def test_the_energy_of_a_step_is_computed_once(recorder):
    recorder = recorder(limit=None)
    run(recorder, [EverySteps(6)])
    assert recorder.model.measured == 11  # steps 0, 3 … 30, whether for a row or for a checkpoint
    recorder.close()


def test_a_step_that_is_saved_already_is_not_saved_again(recorder, monkeypatch):
    recorder = recorder()
    saved = []
    writer = SimpleNamespace(
        is_small=lambda model: False,
        has_space_for_copy=lambda model: False,
        save=lambda model: saved.append(model.step),
    )
    monkeypatch.setattr(recorder, "checkpoints", writer)
    recorder.begin(saved_step=5)
    for step in (5, 5, 6, 6, 5):
        recorder.model.at(step)
        recorder.save()
    assert saved == [6, 5]
    recorder.close()


def test_a_row_of_a_runaway_energy_is_not_written(recorder):
    recorder = recorder()
    recorder.begin(None)
    recorder.measure()
    recorder.model.at(50)
    with pytest.raises(NumericalError):
        recorder.measure()
    assert (recorder.energy_error, recorder.measured_step) == (0.0, 0)
    recorder.copy_frame()()
    recorder.close()
    recorder.simulation.communicator.barrier()
    with h5py.File(recorder.trajectory.path, "r", locking=False) as file:
        assert file["diagnostics/step"][:].tolist() == [0]
        assert file["step"][:].tolist() == [50]


def test_the_state_of_the_run_is_shown_on_the_root_alone(recorder, communicator):
    recorder = recorder(limit=None, last_step=40)
    recorder.begin(None)
    recorder.show()
    simulation = recorder.simulation
    simulation.events = [Event("stop", AtStep(20), lambda: simulation.stop("stopped"))]
    simulation.run()
    recorder.measure()
    recorder.show()
    recorder.close()
    if not communicator.is_root:
        assert type(recorder.progress) is Progress
        return
    assert recorder.progress.begun[-1] == 0
    rate = with_prefix(100.0 / simulation.step_seconds)
    assert recorder.progress.states == [
        (0, 40, "t = 0  dE/E +0.0e+00"),
        (20, 40, f"t = 10  {rate}interactions/s  dE/E +2.0e-01"),
    ]
    assert recorder.progress.closed


# ---- A device that works while the host goes on --------------------------------------------------


class AheadModel(RowsModel):
    """A model whose device answers once it has been given the next steps; one step is bad."""

    runs_ahead = True
    bad_step = 6

    def queue(self, steps):
        self.advance(steps)
        return lambda: 1e-3 * steps

    @property
    def backend(self):
        return self

    def fields(self):
        found = super().fields()
        position = found["bodies/position"]
        return found | {position.name: replace(position, array=np.zeros((position.rows, 3)))}

    def start_look(self, *arrays):
        sizes = [array.size for array in arrays]
        found = [0 if self.step == self.bad_step and size else size for size in sizes]
        return lambda: found


def test_a_frame_is_not_written_before_its_state_is_known_to_be_good(recorder, communicator):
    recorder = recorder(model=AheadModel(6, communicator))
    simulation = recorder.simulation
    simulation.events = [
        Event("guard", EverySteps(2), recorder.check, waits=False),
        Event("trajectory", EverySteps(2), recorder.copy_frame, waits=False),
        Event("finish", AtStep(30), lambda: simulation.stop("finished")),
    ]
    recorder.begin(None)
    with pytest.raises(NumericalError, match=r"step 6 .* position of body 0 is not a finite") as it:
        simulation.run()
    assert "the state was good at step 4" in str(it.value)
    assert recorder.model.step > 6  # the device had more steps already
    recorder.close()
    assert frames_of(recorder) == [0, 2, 4]


def test_a_frame_comes_before_a_checkpoint_of_its_step(recorder, communicator):
    recorder = recorder(model=AheadModel(6, communicator))
    simulation = recorder.simulation
    written = []

    def save():
        written.extend(frames_of(recorder))
        recorder.save()

    simulation.events = [
        Event("guard", EverySteps(2), recorder.check, waits=False),
        Event("trajectory", EverySteps(2), recorder.copy_frame, waits=False),
        Event("checkpoint", AtStep(4), save),
        Event("finish", AtStep(4), lambda: simulation.stop("finished")),
    ]
    recorder.begin(None)
    simulation.run()
    assert written == [0, 2, 4]
    assert steps_saved(recorder) == [4]
    recorder.close()
