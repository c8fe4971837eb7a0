"""Starts a run, from its configuration or from its newest checkpoint."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_nbody.backends.caches import cache_faults
from hybrid_nbody.backends.heap import keep_freed_memory
from hybrid_nbody.config import loader
from hybrid_nbody.config.faults import printable
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.output import directory
from hybrid_nbody.output.log import Log
from hybrid_nbody.output.terminal import open_console
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.shares import Devices, RunSetup, is_measured
from hybrid_nbody.running.ahead import collect_garbage
from hybrid_nbody.running.amounts import expected_lines
from hybrid_nbody.running.continuation import SavedRun, continue_trajectory, load_saved_run
from hybrid_nbody.running.contract import AnyBuilder
from hybrid_nbody.running.ending import Ending
from hybrid_nbody.running.job import Job, RunContext
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.rebalance import Rebalancer
from hybrid_nbody.simulation.model import Model
from hybrid_nbody.simulation.signals import CTRL_C, StopSignals

PATIENCE = 2.0
"""Seconds of silence before the log says what takes long."""

STOPPING = "finishing the current step and writing a checkpoint"


def open_log(communicator: Communicator) -> Log:
    """Return the log, which is silent on every rank but the root."""
    return Log(open_console() if communicator.is_root else None)


@contextmanager
def preparing(log: Log, builder: AnyBuilder) -> Iterator[None]:
    """Tell a person why the block takes long, if it does: what the builder is doing.

    Garbage is collected from its end on, see `collect_garbage`.
    """
    done = threading.Event()
    watch = threading.Thread(target=_say_what_is_done, args=(log, builder, done), daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()
        collect_garbage()


def _say_what_is_done(log: Log, builder: AnyBuilder, done: threading.Event) -> None:
    """Say what a builder is doing when it has taken a while, each thing once."""
    said = ""
    while not done.wait(PATIENCE):
        if builder.doing != said:
            said = builder.doing
            log.say(said)


def without_numpy_warnings() -> AbstractContextManager[None]:
    """Silence NumPy's warnings of numbers out of range: the guard names the body or cell.

    Without it pages of the program's own lines would come before that.
    """
    return np.errstate(all="ignore")


def acknowledgement(signal_name: str, interrupts: bool) -> str:
    """Return what a person is told when a signal to stop arrives.

    Parameters
    ----------
    signal_name : str
        As `StopSignals.received` names it.
    interrupts : bool
        Whether the next one stops the run at once.
    """
    if signal_name == CTRL_C:
        return f"{CTRL_C}: {STOPPING}; press Ctrl-C again to stop immediately"
    again = "; send it again to stop immediately" if interrupts else ""
    return f"{signal_name}: {STOPPING}{again}"


def acknowledging(communicator: Communicator) -> Callable[[str, bool], None] | None:
    """Return what acknowledges a signal on the root: the current step may take long."""

    def say(signal_name: str, interrupts: bool) -> None:
        line = f"hybrid_nbody: {acknowledgement(signal_name, interrupts)}\n"
        with suppress(OSError):  # in the midst of any other output: straight to where errors go
            os.write(2, line.encode())

    return say if communicator.is_root else None


Make = Callable[[AnyBuilder], RunSetup[Any]]
"""Makes the model of a builder, on all ranks together."""


def _prepared(log: Log, builder: AnyBuilder, make: Make) -> RunSetup[Any]:
    """Return the model that `make` makes of a builder, ready for its steps.

    On a CPU the arrays of a step take the memory that those of the step before have left.
    """
    with preparing(log, builder):
        setup = make(builder)
        setup.placement.backend.finish_compiling()
    if setup.placement.backend.shares_host_memory:
        keep_freed_memory()
    return setup


def introduce(builder: AnyBuilder, setup: RunSetup[Model], log: Log) -> None:
    """Say what runs where."""
    amounts = expected_lines(builder.config, setup.model, builder.communicator)
    for line in (*builder.lines(setup), *amounts):
        log.say(line)
    faults = [fault for found in builder.communicator.gather(cache_faults) for fault in found]
    for fault in dict.fromkeys(faults):
        log.say(f"warning: {fault}")


def rebalancer(builder: AnyBuilder, setup: RunSetup[Model], log: Log) -> Rebalancer | None:
    """Return what shares the rows out again during a run, where shares follow the speed."""
    several = builder.communicator.size > 1
    if several and is_measured(builder.config.compute, setup.placement):
        return Rebalancer(builder, setup, log.say)
    return None


def run(
    path: str | Path,
    overrides: Sequence[str],
    overwrite: bool,
    communicator: Communicator,
    started: float,
    log: Log | None = None,
) -> Ending:
    """Run a configuration from the beginning; return how it ended.

    Parameters
    ----------
    path : str or Path
        The configuration.
    overrides : sequence of str
        ``dotted.key=value`` of ``--set``.
    overwrite : bool
        Whether a run that the output directory holds may be replaced.
    communicator : Communicator
        Every rank calls together.
    started : float
        ``time.monotonic()`` of the program's start.
    log : Log, optional
        Where the run says things; by default on the terminal.

    Raises
    ------
    InputError
        On every rank; nothing was written.
    NumericalError, FileError
        While running.
    """
    log = log or open_log(communicator)
    with StopSignals(acknowledging(communicator)) as signals, without_numpy_warnings():
        config = communicator.on_root(lambda: resolved(path, overrides))
        context = RunContext(Path(config.output.directory), communicator, log, started, signals)
        return begin(config, context, overwrite, _fresh)


def _fresh(builder: AnyBuilder) -> RunSetup[Any]:
    return builder.fresh(builder.communicator.only_on_root(builder.initial))


def begin(config: ModelConfig, context: RunContext, overwrite: bool, make: Make) -> Ending:
    """Run a model from its beginning in a directory of its own; return how it ended.

    Parameters
    ----------
    config : ModelConfig
        The resolved configuration.
    context : RunContext
        The surroundings; the directory is not claimed yet.
    overwrite : bool
        Whether a run that the directory holds may be replaced.
    make : callable
        ``make(builder)`` returns the model at its first step.

    Raises
    ------
    HybridNBodyError
        As `run`.
    """
    communicator = context.communicator
    folder = context.folder
    log = context.log
    builder = MODELS[config.model].builder(config, communicator)
    builder.check()
    communicator.only_on_root(lambda: directory.check(folder, overwrite))
    job = _begun(context, builder, make)  # a run that cannot start does not cost an earlier one
    with _locked(folder, communicator):
        communicator.only_on_root(lambda: directory.claim(folder, overwrite))
        with log.noting_errors(), job.closed_on_errors():
            job.trajectory.create(job.model, job.header)
            communicator.only_on_root(lambda: log.open(folder / directory.LOG))
            return job.run()


def _begun(
    context: RunContext, builder: AnyBuilder, make: Make, saved_step: int | None = None
) -> Job:
    """Return a run at the state to start from, which has been checked; a Ctrl-C interrupts that."""
    log = context.log
    with context.signals.interrupting(context.communicator.size == 1):
        setup = _prepared(log, builder, make)
        introduce(builder, setup, log)
        job = Job(builder.config, context, setup.model, rebalancer(builder, setup, log))
        del setup  # the job's model alone is kept: it may be replaced
        job.begin(saved_step)
    return job


@contextmanager
def _locked(folder: Path, communicator: Communicator) -> Iterator[None]:
    """Keep other processes out of a directory, which is made if need be."""
    held = communicator.only_on_root(lambda: directory.lock(folder))
    try:
        yield
    finally:
        directory.unlock(held)


def build(
    values: dict[str, Any],
    source_name: str,
    communicator: Communicator,
    devices: Devices | None = None,
) -> RunSetup[Any]:
    """Return the model of a configuration at its initial state, to be stepped by the caller.

    Parameters
    ----------
    values : dict
        What a YAML file would hold.
    source_name : str
        What messages name in place of a file.
    communicator : Communicator
        Every rank calls together.
    devices : Devices, optional
        How ranks get their devices.

    Raises
    ------
    InputError
        On every rank.
    """
    config = communicator.on_root(
        lambda: loader.loads(json.dumps(values), source_name, models=MODELS)
    )
    builder = MODELS[config.model].builder(config, communicator, devices)
    builder.check()
    return _fresh(builder)


def resolved(path: str | Path, overrides: Sequence[str]) -> ModelConfig:
    """Return the configuration of a file with all that a restart needs; for the root alone.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    config = loader.load(path, overrides, models=MODELS)
    complete: ModelConfig = MODELS[config.model].resolved(config)
    return complete


def resume(
    folder: Path,
    overrides: Sequence[str],
    communicator: Communicator,
    started: float,
    log: Log | None = None,
) -> Ending:
    """Continue a run from its newest checkpoint that is whole; return how it ended.

    Parameters
    ----------
    folder : Path
        The run's directory.
    overrides, communicator, started, log
        As in `run`; only the keys that a model calls `changeable` can be overridden.

    Raises
    ------
    InputError, FileError
        On every rank; nothing was changed but the log, which notes an error of the preparation.
    """
    log = log or open_log(communicator)
    communicator.only_on_root(lambda: _require_run(folder))
    with (
        StopSignals(acknowledging(communicator)) as signals,
        without_numpy_warnings(),
        _locked(folder, communicator),
    ):
        saved = communicator.on_root(lambda: _saved_run(folder, overrides))
        checkpoint = saved.checkpoint
        builder = MODELS[saved.config.model].builder(saved.config, communicator)
        builder.check()
        context = RunContext(
            folder,
            communicator,
            log,
            started,
            signals,
            origin=checkpoint.origin,
            start_digest=checkpoint.start,
        )
        communicator.only_on_root(lambda: log.open(folder / directory.LOG))
        with log.noting_errors():
            return _resumed(context, builder, saved)


def _resumed(context: RunContext, builder: AnyBuilder, saved: SavedRun) -> Ending:
    """Continue a run from a checkpoint; return how it ended."""
    log = context.log
    name = saved.checkpoint.path.name
    for warning in saved.warnings:
        log.say(f"warning: {warning}; resuming from {name}")
    job = _begun(
        context, builder, lambda builder: builder.restored(saved.checkpoint), saved.checkpoint.step
    )
    at = f"step {job.model.step}, t = {job.model.time:g}"
    log.say(f"resuming {context.folder} at {at}, from {name}")
    with job.closed_on_errors():
        continue_trajectory(job, saved.before)
        return job.run()


def _saved_run(folder: Path, overrides: Sequence[str]) -> SavedRun:
    """Return the newest state of a run to resume, which stays in its directory."""
    saved = load_saved_run(folder, overrides)
    output = saved.config.output.model_copy(update={"directory": str(folder)})
    config = saved.config.model_copy(update={"output": output})
    _refuse_an_end_in_the_past(config, saved.checkpoint.step)
    return saved._replace(config=config)


def _require_run(folder: Path) -> None:
    """Check that a directory holds a run, and that files of the run can hold its name."""
    directory.require_run(folder)
    name = os.fspath(folder)
    if printable(name) != name:
        raise InputError(
            f"{printable(name)}: the name of the directory is not text in one line of UTF-8; "
            "rename it, then resume it"
        )


def _refuse_an_end_in_the_past(config: ModelConfig, step: int) -> None:
    if config.time.total_steps < step:
        raise InputError(
            f"time: the run is at step {step} already, past the end asked for "
            f"({config.time.total_steps} steps); give a later time.end or time.steps"
        )
