"""The output of a run while it goes on: the actions of the time loop's events."""

from collections.abc import Callable, Mapping
from typing import Any

from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.output.summary import state_in_words
from hybrid_nbody.output.trajectory import Trajectory
from hybrid_nbody.progress import Progress
from hybrid_nbody.simulation.guard import ENERGY_ERROR, Checked, Guard
from hybrid_nbody.simulation.loop import Later, TimeLoop
from hybrid_nbody.simulation.model import Model
from hybrid_nbody.simulation.snapshots import Snapshots


class Recorder:
    """Checks, measures, writes and shows the state of a simulation.

    Parameters
    ----------
    simulation : TimeLoop
        The run.
    guard : Guard
        Stops a run that has gone wrong before it is written.
    trajectory : Trajectory
        An open trajectory.
    checkpoints : CheckpointWriter
        Writes the checkpoints.
    last_step : int
        Step at which the run ends.
    progress : Progress
        Shows the state, on the root alone.

    Attributes
    ----------
    checks_energy : bool
        Whether the energy is checked at the start and before each checkpoint. A run without
        diagnostics does not: to compute the energy may take as long as many steps.
    saved_step, measured_step : int or None
        Latest step with a checkpoint, and with computed diagnostics.
    energy_error : float or None
        Relative energy error of the latest diagnostics, if the model has one.
    """

    def __init__(
        self,
        simulation: TimeLoop,
        guard: Guard,
        trajectory: Trajectory,
        checkpoints: CheckpointWriter,
        last_step: int,
        progress: Progress,
    ):
        self.simulation = simulation
        self.guard = guard
        self.trajectory = trajectory
        self.checkpoints = checkpoints
        self.last_step = last_step
        self.progress = progress
        self.checks_energy = True
        self.saved_step: int | None = None
        self.measured_step: int | None = None
        self.diagnostics: Mapping[str, Any] = {}
        self.energy_error: float | None = None

    @property
    def model(self) -> Model:
        """Return the model, which an event may have replaced."""
        model: Model = self.simulation.model
        return model

    def begin(self, saved_step: int | None) -> None:
        """Check the initial state of this part of the run.

        Parameters
        ----------
        saved_step : int or None
            The step of the checkpoint from which the run is resumed.
        """
        self.saved_step = saved_step
        self.progress.begin(self.model.step)
        self.guard.check_numbers()
        self._check_energy()

    def check(self) -> Later:
        """Start to check that the state is finite; return what takes the answer."""
        return self.guard.start_check()

    def measure(self) -> None:
        """Compute the diagnostics, check the energy and write a row."""
        self.trajectory.write_diagnostics(self.model, self.checked_diagnostics())

    def _check_energy(self) -> None:
        """Check the energy of the current state, where the run measures it and the model has one.

        Other diagnostics are computed for rows alone: some are means since the row before.
        """
        if self.checks_energy and ENERGY_ERROR in self.model.quantities:
            self.checked_diagnostics()

    def checked_diagnostics(self) -> Mapping[str, Any]:
        """Return the diagnostics of the current state, computed once a step, its energy checked."""
        if self.measured_step != self.model.step:
            values: Mapping[str, Any] = self.model.diagnostics()
            self.guard.check_energy(values)
            self.diagnostics = values
            self.measured_step = self.model.step
            self.energy_error = values.get(ENERGY_ERROR)
        return self.diagnostics

    def copy_frame(self) -> Later:
        """Copy a frame; return what writes it."""
        return self.trajectory.copy_frame(self.model)

    def copy_frames(self, snapshots: Snapshots) -> Later:
        """Check copies of the state and make frames of them; return what writes the good ones."""
        look = self.guard.start_check_of(snapshots)
        add = self.trajectory.copy_frames(snapshots)
        return lambda: self._add_good(look(), add)

    def _add_good(self, checked: Checked, add: Callable[[int], None]) -> None:
        """Write the frames before the first bad one."""
        add(checked.good)
        self.guard.accept(checked)

    def save(self) -> None:
        """Write a checkpoint after checking the energy, unless this step has one."""
        if self.model.step != self.saved_step:
            self._check_energy()
            self._save()
            self.saved_step = self.model.step

    def _save(self) -> None:
        """Write a checkpoint behind the steps, if memory has space for a copy of the state.

        It follows all frames and rows before it: a run that is resumed from it writes none of
        these again. The one before it is done first, so that there is never more than one copy.
        Small states do not wait: of those in the queue only the oldest and the newest are written.
        """
        if self.checkpoints.is_small(self.model):
            self.trajectory.then(self.checkpoints.copy(self.model), self.checkpoints.keep)
            return
        if not self.checkpoints.has_space_for_copy(self.model):
            self.trajectory.flush()
            self.checkpoints.save(self.model)
            return
        self.trajectory.wait_for_actions()
        self.trajectory.then(self.checkpoints.copy(self.model))

    def show(self) -> None:
        """Show how far the run is."""
        work = self.model.work
        seconds = self.simulation.step_seconds
        rate = work.per_step / seconds if seconds > 0 else 0.0
        details = state_in_words(self.model.time, rate, work.unit, self.energy_error)
        self.progress.update(self.model.step, self.last_step, details)

    def close(self) -> None:
        """Close the progress display and the trajectory."""
        self.progress.close()
        self.trajectory.close()
