"""Carries a run out, from its configuration or from its newest checkpoint on."""

import json
import os
import threading
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hybrid_nbody.config import loader
from hybrid_nbody.errors import DamagedFileError, InputError
from hybrid_nbody.files.checkpoint import load_newest
from hybrid_nbody.output import directory
from hybrid_nbody.output.log import Log
from hybrid_nbody.output.terminal import open_console
from hybrid_nbody.parallel.exchange import choose_transport
from hybrid_nbody.parallel.placement import place
from hybrid_nbody.parallel.shares import is_measured
from hybrid_nbody.run.job import Job
from hybrid_nbody.run.models import BUILDERS, MODELS
from hybrid_nbody.run.rebalance import Rebalancer
from hybrid_nbody.simulation.signals import StopSignals


def open_log(communicator) -> Log:
    """Return the log; only the root's says anything."""
    return Log(open_console() if communicator.is_root else None)


PATIENCE = 2.0
"""Seconds without a word before a person is told what is going on."""


@contextmanager
def preparing(log: Log):
    """Say, where it takes long, what it may be."""
    text = "still preparing; the first run on a machine compiles its kernels, for up to a minute"
    timer = threading.Timer(PATIENCE, log.say, [text])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _acknowledging(communicator):
    """Return a function that tells a person that a signal has come: what is in hand may take long."""

    def say(name):
        more = ", once more at once" if name == "SIGINT" else ""
        line = f"hybrid_nbody: {name}: ends when the work in hand is done{more}\n"
        with suppress(OSError):  # in the midst of any other output: straight to where errors go
            os.write(2, line.encode())

    return say if communicator.is_root else None


def introduce(builder, built, log: Log) -> None:
    """Say what runs where."""
    for line in builder.lines(built):
        log.say(line)


def rebalancer(builder, built, log: Log) -> Rebalancer | None:
    """Return what shares the work out anew during a run, where shares follow the speed of several ranks."""
    several = builder.communicator.size > 1
    return (
        Rebalancer(builder, built, log.say)
        if several and is_measured(builder.config, built.placement)
        else None
    )


def run(path, overrides: Sequence[str], overwrite: bool, communicator, started: float) -> int:
    """Run a configuration from the beginning; return the exit code.

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

    Raises
    ------
    InputError
        On every rank; nothing was written.
    NumericalError, FileError
        While running.
    """
    log = open_log(communicator)
    with StopSignals(_acknowledging(communicator)) as signals:
        config = communicator.on_root(lambda: _resolved(path, overrides))
        builder = BUILDERS[config.model](config, communicator)
        builder.check()
        folder = Path(config.output.directory)
        communicator.only_on_root(lambda: directory.check(folder, overwrite))
        with preparing(log):
            built = builder.fresh(communicator.only_on_root(builder.initial))
        introduce(builder, built, log)
        communicator.only_on_root(lambda: directory.lock(folder))
        communicator.only_on_root(lambda: directory.claim(folder, overwrite))
        job = Job(
            config,
            folder,
            built.model,
            communicator,
            log,
            started,
            signals,
            rebalancer(builder, built, log),
        )
        del built  # the job's model alone is kept: it may be replaced
        job.trajectory.create(job.model, job.header)
        log.open(folder / directory.LOG)
        return job.run(saved_step=None)


def build(values: dict, source_name: str, communicator, connect=choose_transport, place=place):
    """Return the model of a configuration at its initial state, and where it runs, for those who step it themselves.

    Parameters
    ----------
    values : dict
        What a YAML file would hold.
    source_name : str
        What messages name in the place of a file.
    communicator : Communicator
        Every rank calls together.
    connect, place : callable, optional
        Return what carries the exchange, and where the ranks compute, in the place of
        `choose_transport` and `place`.

    Returns
    -------
    Built

    Raises
    ------
    InputError
        On every rank.
    """
    config = communicator.on_root(
        lambda: loader.loads(json.dumps(values), source_name, models=MODELS)
    )
    builder = BUILDERS[config.model](config, communicator, connect, place)
    builder.check()
    return builder.fresh(communicator.only_on_root(builder.initial))


def _resolved(path, overrides):
    config = loader.load(path, overrides, models=MODELS)
    return BUILDERS[config.model].resolved(config)


def resume(folder: Path, overrides: Sequence[str], communicator, started: float) -> int:
    """Continue a run from its newest checkpoint that is whole; return the exit code.

    Parameters
    ----------
    folder : Path
        The run's directory.
    overrides, communicator, started
        As in `run`; only the keys that a builder calls `changeable` can be overridden.

    Raises
    ------
    InputError, FileError
        On every rank; nothing was changed.
    """
    log = open_log(communicator)
    with StopSignals(_acknowledging(communicator)) as signals:
        config, saved, warnings = communicator.on_root(lambda: _saved_run(folder, overrides))
        builder = BUILDERS[config.model](config, communicator)
        builder.check()
        with preparing(log):
            built = builder.restored(saved)
        model = built.model
        for warning in warnings:
            log.say(f"warning: {warning}; the checkpoint before it is used")
        introduce(builder, built, log)
        log.say(
            f"resuming {folder} at step {model.step}, t = {model.time:g}, from {saved.path.name}"
        )
        job = Job(
            config,
            folder,
            model,
            communicator,
            log,
            started,
            signals,
            rebalancer(builder, built, log),
        )
        del built, model  # the job's model alone is kept: it may be replaced
        log.open(folder / directory.LOG)
        _continue_trajectory(job)
        return job.run(saved_step=job.model.step)


def _saved_run(folder, overrides):
    """Return configuration, checkpoint and warnings of a run to be resumed."""
    directory.require_run(folder)
    directory.lock(folder)
    saved, warnings = load_newest(folder)
    _refuse_changed_physics(
        overrides,
        BUILDERS[loader.loads(saved.config, str(saved.path), models=MODELS).model].changeable,
    )
    config = loader.loads(saved.config, str(saved.path), overrides, models=MODELS)
    config = config.model_copy(
        update={"output": config.output.model_copy(update={"directory": str(folder)})}
    )
    if config.time.total_steps < saved.scalars["step"]:
        raise InputError(
            f"time: the run is at step {saved.scalars['step']:.0f} already, past the end asked for "
            f"({config.time.total_steps} steps); give a later time.end or time.steps"
        )
    return config, saved, warnings


def _refuse_changed_physics(overrides, changeable):
    for override in overrides:
        key = override.split("=")[0].strip()
        if not any(key == name or key.startswith(f"{name}.") for name in changeable):
            raise InputError(
                f"--set {override}: a resumed run can only change {', '.join(changeable)}"
            )


def _continue_trajectory(job):
    """Cut the trajectory back to the checkpoint; a damaged one is kept aside, and a new one begun."""
    if not job.communicator.on_root(job.trajectory.path.exists):
        job.log.say(f"warning: {job.trajectory.path} is gone; a new trajectory begins here")
        job.trajectory.create(job.model, job.header)
        return
    try:
        job.trajectory.reopen(job.model, job.header)
    except DamagedFileError as error:
        aside = job.trajectory.path.with_suffix(".damaged.h5")
        job.log.say(
            f"warning: {error}; it is kept as {aside.name}, and a new trajectory begins here"
        )
        job.communicator.only_on_root(lambda: directory.put_aside(job.trajectory.path, aside))
        job.trajectory.create(job.model, job.header)
