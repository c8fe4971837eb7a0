"""One run, from its model to its end: what happens when, and what is said at the end."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_nbody.config import loader
from hybrid_nbody.config.sections import Every, ModelConfig
from hybrid_nbody.errors import FileError, HybridNBodyError
from hybrid_nbody.files.names import ORIGIN, START
from hybrid_nbody.output import directory
from hybrid_nbody.output import summary as report
from hybrid_nbody.output import trajectory as trajectories
from hybrid_nbody.output.checkpoint import CheckpointWriter
from hybrid_nbody.output.limits import Limits
from hybrid_nbody.output.log import Log
from hybrid_nbody.output.recorder import Recorder
from hybrid_nbody.output.turns import short_turns
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.progress import BarProgress, GrowingPause, LineProgress, Progress, SeveralProgress
from hybrid_nbody.running.cores import cores_events
from hybrid_nbody.running.ending import CONDITION, ENDED, FINISHED, SIGNALLED, TIME_LIMIT, Ending
from hybrid_nbody.running.identity import start_of
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.rebalance import Rebalancer
from hybrid_nbody.running.stopping import Stopping
from hybrid_nbody.simulation.guard import Guard
from hybrid_nbody.simulation.loop import Event, TimeLoop
from hybrid_nbody.simulation.model import Model
from hybrid_nbody.simulation.schedule import (
    AfterStart,
    AnyOf,
    AtStep,
    EverySteps,
    EveryTime,
    EveryWallClock,
    Schedule,
    StepSchedule,
    StopRequested,
)
from hybrid_nbody.simulation.signals import StopSignals
from hybrid_nbody.simulation.snapshots import FrameSeries

PROGRESS_SECONDS = 0.2
"""Wall-clock time between two updates of the progress."""

BALANCE_SECONDS = 20.0
"""Wall-clock time between two looks at the speeds of the ranks."""


@dataclass(frozen=True)
class RunContext:
    """The surroundings of a run.

    Attributes
    ----------
    folder : Path
        The run's directory, claimed.
    communicator : Communicator
        Every rank calls together.
    log : Log
        Says things on the root.
    started : float
        ``time.monotonic()`` of the program's start.
    signals : StopSignals
        Tells of requests to stop.
    origin : str
        From which state of which run this one has started; empty if it began by itself.
    first_step : int or None
        At which a frame and a row of diagnostics are written in any case.
    start_digest : str
        What tells the run from others of the same configuration; empty if it begins here.
    """

    folder: Path
    communicator: Communicator
    log: Log
    started: float
    signals: StopSignals
    origin: str = ""
    first_step: int | None = None
    start_digest: str = ""


class Job:
    """One run, from its model to its end.

    Parameters
    ----------
    config : ModelConfig
        The resolved configuration.
    context : RunContext
        Its directory, ranks, log and signals.
    model : Model
        At the state to start from.
    rebalancer : Rebalancer, optional
        Shares the rows out again where speeds drift.

    Attributes
    ----------
    preparation : float
        Seconds from the program's start to the time loop.
    """

    def __init__(
        self,
        config: ModelConfig,
        context: RunContext,
        model: Model,
        rebalancer: Rebalancer | None = None,
    ) -> None:
        self.config = config
        self.folder = context.folder
        self.communicator = context.communicator
        self.log = context.log
        self.rebalancer = rebalancer
        self.origin = context.origin
        first = context.first_step
        self.starts = [] if first is None else [AtStep(first)]
        self.last_step = config.time.total_steps
        self.simulation = TimeLoop(model, context.communicator, context.signals, context.started)
        origin = {ORIGIN: self.origin} if self.origin else {}
        start = {START: context.start_digest or start_of(model, context.communicator)}
        self.header = origin | start | header_of(config, context.communicator, model)
        path = context.folder / trajectories.NAME
        self.trajectory = trajectories.Trajectory(path, context.communicator, self.log.say)
        self.recorder = self._recorder()
        measured = self.recorder.checked_diagnostics
        self.stopping = Stopping(config.conditions, self.simulation, measured)
        self.limits = Limits(model.quantities)
        self.preparation = 0.0
        self._add_events()

    @property
    def model(self) -> Model:
        """Return the model that runs now."""
        return self.simulation.model

    def _recorder(self) -> Recorder:
        guard = Guard(self.simulation, self.communicator, self.config.time.energy_limit)
        keep = self.config.output.checkpoint.keep if self.config.output.checkpoint else 1
        recorder = Recorder(
            self.simulation,
            guard,
            self.trajectory,
            CheckpointWriter(
                self.folder, self.header, keep, self.communicator, self.trajectory.others
            ),
            self.last_step,
            progress_for(self.log),
        )
        recorder.checks_energy = self.config.output.diagnostics is not None
        return recorder

    def _add_events(self) -> None:
        """Say what happens when; events that are due together happen in this order."""
        output = self.config.output
        record = self.recorder
        stop = StopRequested(self.config.time.wall_limit or math.inf)
        last = AtStep(self.last_step)
        ends = [*self.starts, last]
        frame = self._schedules_of(output.trajectory)
        measure = self._schedules_of(output.diagnostics)
        saved = [AfterStart(schedule) for schedule in self._schedules_of(output.checkpoint)]
        save = AnyOf(*saved, last, stop)
        before = [
            *self.stopping.events(measure, self._end_at_condition),
            Event("diagnostics", _and_at_the_ends(measure, ends), record.measure),
        ]
        after = [
            Event("checkpoint", save, record.save),
            Event("limits", AnyOf(*measure, save), self._warn),
            Event("progress", AnyOf(EveryWallClock(PROGRESS_SECONDS), last, stop), record.show),
            *cores_events(self.model.backend, self.log.say),
            Event("stop", stop, lambda: self._end_as(self._early_outcome)),
            Event("finish", last, lambda: self._end_as(FINISHED)),
        ]
        self.simulation.events = [
            Event("guard", AnyOf(*frame, *measure, save), record.check, waits=False),
            *before,
            Event("trajectory", _and_at_the_ends(frame, ends), record.copy_frame, waits=False),
            *after,
        ]
        if frame and self.communicator.size == 1:
            others = AnyOf(*(event.schedule for event in (*before, *after)))
            [schedule] = frame
            series = FrameSeries("trajectory", schedule, others, record.copy_frames)
            self.simulation.series = series
        if self.rebalancer:
            every = EveryWallClock(BALANCE_SECONDS)
            self.simulation.events.append(Event("balance", every, self._rebalance))

    def _end_at_condition(self) -> None:
        """Write the present state, whatever is due, and end the run."""
        self.recorder.check()()
        if self.config.output.diagnostics:
            self.recorder.measure()
        if self.config.output.trajectory:
            self.recorder.copy_frame()()
        self.recorder.save()
        self.recorder.show()
        self.simulation.stop(CONDITION)

    def _warn(self) -> None:
        """Warn of diagnostics that are beyond their limits for the first time."""
        for warning in self.limits.new_warnings(self.recorder.diagnostics):
            self.log.say(warning)

    @property
    def _early_outcome(self) -> str:
        """Return the outcome where the run is stopped early."""
        return SIGNALLED if self.simulation.signalled else TIME_LIMIT

    def _end_as(self, outcome: str) -> None:
        """End the run, by a condition if one is met at this step."""
        self.simulation.stop(CONDITION if self.stopping.happened else outcome)

    def _rebalance(self) -> None:
        """Share the rows out again if that pays, unless the run ends here."""
        if self.rebalancer and not self.simulation.outcome:
            self.rebalancer.look(self.simulation)

    def _schedules_of(self, every: Every | None) -> list[StepSchedule]:
        return schedules_of(every, self.config.time.dt)

    def begin(self, saved_step: int | None) -> None:
        """Check the state to start from; nothing is written.

        Parameters
        ----------
        saved_step : int or None
            The step of the checkpoint from which the run is resumed.

        Raises
        ------
        NumericalError
            On every rank.
        """
        self.recorder.begin(saved_step)
        for text in self.stopping.begin():
            self.log.say(f"{text}, already: the run goes on until it happens anew")

    def run(self) -> Ending:
        """Run to the end, or until the run is asked to stop; within `closed_on_errors`."""
        if self.model.step == self.last_step:
            advice = "to continue, raise time.steps or time.end with --set"
            self.log.say(f"the run is complete at step {self.last_step}; {advice}")
        self.communicator.only_on_root(
            lambda: directory.write_config(self.folder, self.header["config"])
        )
        first_step = self.model.step
        start = time.perf_counter()
        self.preparation = self.simulation.wall_clock()
        with short_turns():
            outcome = self.simulation.run()
        seconds = time.perf_counter() - start
        self.recorder.close()
        return self._summarise(outcome, self.model.step - first_step, seconds)

    @contextmanager
    def closed_on_errors(self) -> Iterator[None]:
        """End the output where an error ends the block: no thread must write any more.

        Where it cannot be written, as on a full disk, the error itself counts.
        """
        try:
            yield
        except BaseException as error:
            self.recorder.progress.close()
            with suppress(FileError):
                self._end_trajectory(error)
            raise

    def _end_trajectory(self, error: BaseException) -> None:
        """Write what is left of the output after an error."""
        if isinstance(error, HybridNBodyError) and error.shared:
            self.trajectory.close()
        else:
            self.trajectory.abandon()

    def _close_log(self, outcome: str) -> None:
        """Close the log; one that was not written matters less than that a run is to be continued.

        Raises
        ------
        FileError
            A line could not be written, of a run that has ended.
        """
        try:
            self.log.close()
        except FileError:
            if outcome in ENDED:
                raise

    def _summarise(self, outcome: str, steps: int, seconds: float) -> Ending:
        """Say how the run ended, where its time went, and what to do next; return how it did."""
        parts = {name: self.model.timings[name] for name in MODELS[self.config.model].timings}
        rows = report.time_shares(self.simulation.timings, parts, seconds)
        rows = [("preparation", self.preparation), *rows]
        self.log.say(report.time_table(rows, self.preparation + seconds))
        if steps:
            self.log.say(report.rate_line(self.model.work, steps, seconds))
        if advice := self._advice_on_ranks(parts):
            self.log.say(advice)
        if self.recorder.energy_error is not None:
            self.log.say(f"relative energy error {self.recorder.energy_error:+.2e}")
        for warning in self.limits.warnings(self.recorder.diagnostics):
            self.log.say(warning)
        ending = self._ending(outcome)
        self.log.say(ending.line)
        self.communicator.only_on_root(lambda: self._close_log(outcome))
        return ending

    def _advice_on_ranks(self, parts: Mapping[str, float]) -> str:
        """Say whether one rank would be faster, where exchanges are measured; all call together."""
        if "exchange" not in parts:
            return ""
        device = self.model.backend.description.partition(", ")[2]  # without its number
        gathered = self.communicator.gather((device, parts["force"], parts["exchange"]))
        devices, forces, exchanges = zip(*gathered, strict=True)
        alike = len(set(devices)) == 1
        return report.advice_on_ranks(forces, exchanges) if alike else ""

    def _ending(self, outcome: str) -> Ending:
        """Return how the run ended, where, and how to go on."""
        at = f"step {self.model.step} of {self.last_step}, t = {self.model.time:g}"
        if outcome == FINISHED:
            return Ending(outcome, f"finished at {at}; output in {self.folder}")
        next_command = f"continue with: hybrid-nbody resume {self.folder}"
        if outcome == CONDITION:
            why = f"as asked: {self.stopping.happened}"
            return Ending(outcome, f"stopped at {at}, {why}; {next_command}")
        return Ending(outcome, f"stopped early ({self._reason(outcome)}) at {at}; {next_command}")

    def _reason(self, outcome: str) -> str:
        """Say why the run was stopped early."""
        if outcome == TIME_LIMIT:
            return "time.wall_limit"
        return self.simulation.signals.received or "a signal to another rank"


def header_of(config: ModelConfig, communicator: Communicator, model: Model) -> dict[str, Any]:
    """Return what every file of a run says of it."""
    return {
        "model": config.model,
        "title": config.title,
        "config": loader.dump(config),
        "ranks": communicator.size,
        "backend": model.backend.description,
        **config.attributes,
    }


def schedules_of(every: Every | None, dt: float) -> list[StepSchedule]:
    """Return the schedule of an output section, in a list that is empty if it is off."""
    if every is None:
        return []
    if every.every_steps is not None:
        return [EverySteps(every.every_steps)]
    assert every.every_time is not None  # the schema asks for exactly one of the two
    return [EveryTime(every.every_time, dt)]


def _and_at_the_ends(schedules: Sequence[Schedule], ends: Sequence[Schedule]) -> Schedule:
    """Return the schedule of an output section with the ends of the run; never, if it is off."""
    return AnyOf(*schedules, *ends) if schedules else AnyOf()


def progress_for(log: Log) -> Progress:
    """Return what shows progress on the root: a bar on a terminal, lines in logs."""
    if log.console is None:
        return Progress("step")
    if log.console.is_terminal:
        in_log = LineProgress("step", log.note, GrowingPause())
        return SeveralProgress(BarProgress("step", log.console), in_log)
    return LineProgress("step", log.say, GrowingPause())
