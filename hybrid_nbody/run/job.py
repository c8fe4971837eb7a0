"""One run, from its model to its exit code: what happens when, and what is said at the end."""

import math
import time

from hybrid_nbody.config import loader
from hybrid_nbody.config.sections import Every
from hybrid_nbody.errors import STOPPED_EARLY, HybridNBodyError
from hybrid_nbody.output import directory
from hybrid_nbody.output import summary as report
from hybrid_nbody.output import trajectory as trajectories
from hybrid_nbody.output.log import Log
from hybrid_nbody.output.recorder import Recorder
from hybrid_nbody.progress import BarProgress, GrowingPause, LineProgress, Progress
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import Event, Simulation
from hybrid_nbody.simulation.schedule import (
    AtStep,
    Either,
    EverySteps,
    EveryTime,
    EveryWall,
    StopRequested,
)

PROGRESS_SECONDS = 0.2

BALANCE_SECONDS = 20.0
"""Wall-clock time between two looks at the speeds of the ranks."""


class Job:
    """One run, from its model to its exit code.

    Parameters
    ----------
    config : NBodyConfig
        The resolved configuration.
    folder : Path
        The run's directory, claimed.
    model : NBodyModel
        At the state to start from.
    communicator : Communicator
        Every rank calls together.
    log : Log
        Says things on the root.
    started : float
        ``time.monotonic()`` of the program's start.
    signals : StopSignals
        Tells of requests to stop.
    rebalancer : Rebalancer or None
        Shares the work out anew where speeds drift.
    """

    def __init__(self, config, folder, model, communicator, log, started, signals, rebalancer=None):
        self.config = config
        self.folder = folder
        self.rebalancer = rebalancer
        self.communicator = communicator
        self.log = log
        self.last_step = config.time.total_steps
        self.simulation = Simulation(model, communicator, signals, started)
        self.header = self._header()
        self.trajectory = trajectories.Trajectory(folder / trajectories.NAME, communicator)
        self.recorder = self._recorder()
        self._add_events()

    @property
    def model(self):
        """The workload."""
        return self.simulation.model

    def _header(self):
        """Return what every file of the run says of it."""
        return {
            "model": self.config.model,
            "title": self.config.title,
            "config": loader.dump(self.config),
            "ranks": self.communicator.size,
            "backend": self.model.backend.description,
        }

    def _recorder(self):
        guard = Guard(self.simulation, self.communicator, self.config.time.max_energy_error)
        keep = self.config.output.checkpoint.keep if self.config.output.checkpoint else 1
        return Recorder(
            self.simulation,
            guard,
            self.trajectory,
            self.folder,
            self.header,
            keep,
            self.last_step,
            progress_for(self.log),
        )

    def _add_events(self):
        """Say what happens when; what is due together happens in this order."""
        output = self.config.output
        record = self.recorder
        stop = StopRequested(self.config.time.wall_limit or math.inf)
        last = AtStep(self.last_step)
        frame = self._when(output.trajectory)
        measure = self._when(output.diagnostics)
        save = Either(*self._when(output.checkpoint), last, stop)
        self.simulation.events = [
            Event("guard", Either(*frame, *measure, save), record.check),
            Event("diagnostics", Either(*measure, *([last] if measure else [])), record.measure),
            Event("trajectory", Either(*frame, *([last] if frame else [])), record.write_frame),
            Event("checkpoint", save, record.save),
            Event("progress", Either(EveryWall(PROGRESS_SECONDS), last, stop), record.show),
            Event("stop", stop, lambda: self.simulation.stop("stopped")),
            Event("finish", last, lambda: self.simulation.stop("finished")),
        ]
        if self.rebalancer:
            self.simulation.events.append(
                Event("balance", EveryWall(BALANCE_SECONDS), self._rebalance)
            )

    def _rebalance(self):
        """Share the work out anew if that pays, unless the run ends here."""
        if not self.simulation.outcome:
            self.rebalancer.look(self.simulation)

    def _when(self, every: Every | None):
        """Return the schedule of an output section, in a list that is empty if it is switched off."""
        if every is None:
            return []
        if every.every_steps is not None:
            return [EverySteps(every.every_steps)]
        return [EveryTime(every.every_time, self.config.time.dt)]

    def run(self, saved_step: int | None) -> int:
        """Run to the end, or until the run is asked to stop; return the exit code."""
        if self.model.step == self.last_step:
            self.log.say(
                f"nothing left to do at step {self.last_step}; go on with --set time.steps or time.end"
            )
        self.recorder.begin(saved_step)
        self.communicator.only_on_root(
            lambda: directory.write_config(self.folder, self.header["config"])
        )
        first_step = self.model.step
        start = time.perf_counter()
        try:
            outcome = self.simulation.run()
        except HybridNBodyError as error:
            self.recorder.progress.close()
            self.log.note(f"error: {error}")
            raise
        seconds = time.perf_counter() - start
        self.recorder.close()
        self._summarise(outcome, self.model.step - first_step, seconds)
        return 0 if outcome == "finished" else STOPPED_EARLY

    def _summarise(self, outcome, steps, seconds):
        """Say how the run ended, where its time went, and what to do next."""
        rows = report.time_shares(self.simulation.timings, self.model.timings, seconds)
        self.log.say(report.time_table(rows, seconds))
        if steps:
            self.log.say(report.rate_line(self.model.work, steps, seconds))
        if self.recorder.energy_error is not None:
            self.log.say(f"relative energy error {self.recorder.energy_error:+.2e}")
        place = f"step {self.model.step} of {self.last_step}, t = {self.model.time:g}"
        if outcome == "finished":
            self.log.say(f"finished at {place}; output in {self.folder}")
        else:
            signal = self.simulation.signals.received or "a signal to another rank"
            why = signal if self.simulation.signalled else "time.wall_limit"
            self.log.say(
                f"stopped early ({why}) at {place}; continue with: hybrid-nbody resume {self.folder}"
            )
        self.log.close()


def progress_for(log: Log) -> Progress:
    """Return what shows progress on the root: a bar on a terminal, lines elsewhere."""
    if log.console is None:
        return Progress("step")
    if log.console.is_terminal:
        return BarProgress("step", log.console)
    return LineProgress("step", log.say, GrowingPause())
