"""What a run writes and shows while it goes on: the actions that the loop's schedules call."""

from pathlib import Path

from hybrid_nbody.output import checkpoint
from hybrid_nbody.output.summary import state_in_words
from hybrid_nbody.output.trajectory import Trajectory
from hybrid_nbody.progress import Progress


class Recorder:
    """Checks, measures, writes and shows the state of a simulation.

    Parameters
    ----------
    simulation : Simulation
        The run.
    guard : Guard
        Stops a run that has gone wrong before it is written.
    trajectory : Trajectory
        An open trajectory.
    folder : Path
        Where checkpoints go.
    header : dict
        What every file says of the run.
    keep : int
        Checkpoints that stay.
    last_step : int
        Step at which the run ends.
    progress : Progress
        Shows the state, on the root alone.
    """

    def __init__(
        self,
        simulation,
        guard,
        trajectory: Trajectory,
        folder: Path,
        header,
        keep,
        last_step,
        progress: Progress,
    ):
        self.simulation = simulation
        self.communicator = simulation.communicator
        self.guard = guard
        self.trajectory = trajectory
        self.progress = progress
        self.folder = folder
        self.header = header
        self.keep = keep
        self.last_step = last_step
        self.first_step = self.saved_step = self.measured_step = None
        self.diagnostics = {}
        self.energy_error = None

    @property
    def model(self):
        """The workload."""
        return self.simulation.model

    def begin(self, saved_step: int | None) -> None:
        """Remember where this part of the run starts, its energy, and which step is saved already."""
        self.first_step = self.model.step
        self.saved_step = saved_step
        self.progress.begin(self.first_step)
        self.check()
        self._checked_diagnostics()

    def check(self) -> None:
        """Check that the state is made of numbers."""
        self.guard.check_numbers()

    def measure(self) -> None:
        """Compute the diagnostics, check the energy and write a row."""
        self.trajectory.write_diagnostics(self.model, self._checked_diagnostics())

    def _checked_diagnostics(self):
        """Return the diagnostics of the present state, whose energy has not run away; computed once a step."""
        if self.measured_step != self.model.step:
            values = self.model.diagnostics()
            self.guard.check_energy(values)
            self.diagnostics = values
            self.measured_step = self.model.step
            self.energy_error = values.get("relative_energy_error")
        return self.diagnostics

    def write_frame(self) -> None:
        """Write a frame."""
        self.trajectory.write_frame(self.model)

    def save(self) -> None:
        """Write a checkpoint of a state known to be good, unless this step has one."""
        if self.model.step != self.saved_step:
            self._checked_diagnostics()
            checkpoint.save(self.folder, self.model, self.header, self.keep, self.communicator)
            self.saved_step = self.model.step

    def show(self) -> None:
        """Show how far the run is."""
        work = self.model.work
        seconds = self.simulation.step_seconds
        rate = work.per_step / seconds if seconds > 0 else 0.0
        details = state_in_words(self.model.time, rate, work.unit, self.energy_error)
        self.progress.update(self.model.step, self.last_step, details)

    def close(self) -> None:
        """Leave the terminal and the trajectory in order."""
        self.progress.close()
        self.trajectory.close()
