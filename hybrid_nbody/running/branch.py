"""Starts a run of its own from a state of another run: with another step, softening or end."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hybrid_nbody.config import loader
from hybrid_nbody.config.overrides import key_of
from hybrid_nbody.config.sections import ModelConfig
from hybrid_nbody.errors import InputError
from hybrid_nbody.files.state import Source, StoredState, Wanted, find_state
from hybrid_nbody.output.directory import DIRECTORY
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.shares import RunSetup
from hybrid_nbody.running.continuation import is_among
from hybrid_nbody.running.contract import AnyBuilder
from hybrid_nbody.running.ending import Ending
from hybrid_nbody.running.job import RunContext
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.running.start import acknowledging, begin, open_log, without_numpy_warnings
from hybrid_nbody.simulation.signals import StopSignals

WHOLE = 1e-9
"""How near to a whole number of steps a time is, relative to it."""


@dataclass(frozen=True)
class Branch:
    """A run to start.

    Attributes
    ----------
    config : ModelConfig
        Resolved.
    start : StoredState
        At the step that the new run counts.
    origin : str
        The state that it was, in a line.
    warning : str
        What is lost by it; empty for nothing.
    """

    config: ModelConfig
    start: StoredState
    origin: str
    warning: str


def run_from(
    source: str,
    overrides: Sequence[str],
    overwrite: bool,
    communicator: Communicator,
    started: float,
) -> Ending:
    """Start a run from a checkpoint or frame of another one; return how it ended.

    Time goes on. Steps are counted as if all of them had had the length of the new ones.

    Parameters
    ----------
    source : str
        ``DIR``, ``DIR@step:1200`` or ``DIR@time:3.5``.
    overrides, overwrite, communicator, started
        As in `hybrid_nbody.running.start.run`; the other values are those of the run in DIR.

    Raises
    ------
    InputError
        On every rank, if there is no such state, or the new run cannot start from it.
    NumericalError, FileError
        While running.
    """
    log = open_log(communicator)
    with StopSignals(acknowledging(communicator)) as signals, without_numpy_warnings():
        branch = communicator.on_root(lambda: branch_of(source, overrides))
        folder = Path(branch.config.output.directory)
        context = RunContext(
            folder,
            communicator,
            log,
            started,
            signals,
            origin=branch.origin,
            first_step=branch.start.step,
        )
        log.say(f"from {branch.origin}")
        if branch.warning:
            log.say(f"warning: {branch.warning}")

        def make(builder: AnyBuilder) -> RunSetup[Any]:
            return builder.branched(branch.start)

        return begin(branch.config, context, overwrite, make)


def branch_of(source: str, overrides: Sequence[str]) -> Branch:
    """Return the run that a command asks for; on the root alone.

    Raises
    ------
    InputError, FileError
        As `run_from`.
    """
    wanted = Wanted.read(source)
    state = find_state(wanted)
    before = loader.loads(state.config, str(state.path), models=MODELS)
    kind = MODELS[before.model]
    _refuse_fixed(overrides, kind.fixed)
    sources, warning = ({}, "") if state.frame is None else _sources(state, before)
    config = loader.loads(state.config, str(state.path), overrides, models=MODELS)
    start = replace(state, sources=sources, scalars={**state.scalars, "step": _step(state, config)})
    config = _with_end(before, config, overrides)
    _refuse_an_end_before(config, start)
    config = kind.branched(before, config, state.step)
    config = _in_directory(config, overrides, wanted.folder, state.step)
    return Branch(config, start, state.origin, warning)


def _sources(state: StoredState, before: ModelConfig) -> tuple[Mapping[str, Source], str]:
    """Return where the fields of a state stand in a frame, and a warning."""
    try:
        return MODELS[before.model].sources(before)
    except InputError as error:
        raise InputError(
            f"{state.path}: its frames hold {error}; take one of its checkpoints, which hold "
            "everything"
        ) from error


def _refuse_fixed(overrides: Sequence[str], fixed: Sequence[str]) -> None:
    for override in overrides:
        key = key_of(override)
        if is_among(key, fixed):
            raise InputError(
                f"--set {override}: a run from a state of another one keeps {key.split('[')[0]}: "
                "that is in the state; start a run from a file with it"
            )


def _step(state: StoredState, config: ModelConfig) -> int:
    """Return the number of steps of a configuration up to the time of a state.

    Raises
    ------
    InputError
        It is no whole number.
    """
    steps = state.time / config.time.dt
    nearest = round(steps)
    if abs(steps - nearest) > WHOLE * max(nearest, 1):
        near = state.time / math.ceil(steps)
        raise InputError(
            f"time.dt: {config.time.dt:g} does not divide t = {state.time:g}, at which the run "
            f"would start; take a half, a third, … of the step, or {near!r}"
        )
    return nearest


def _with_end(before: ModelConfig, config: ModelConfig, overrides: Sequence[str]) -> ModelConfig:
    """Return a configuration whose end is at the same time as before, unless one was asked for."""
    keys = [key_of(override) for override in overrides]
    if before.time.steps is None or is_among("time.steps", keys) or is_among("time.end", keys):
        return config
    end = before.time.steps * before.time.dt / config.time.dt
    nearest = round(end)
    steps = nearest if abs(end - nearest) <= WHOLE * max(nearest, 1) else math.ceil(end)
    return config.model_copy(
        update={"time": config.time.model_copy(update={"steps": max(steps, 1)})}
    )


def _refuse_an_end_before(config: ModelConfig, start: StoredState) -> None:
    if config.time.total_steps <= start.step:
        raise InputError(
            f"time: the run would start at t = {start.time:g}, step {start.step}, and end at step "
            f"{config.time.total_steps}; give a later end: --set time.end=..."
        )


def _in_directory(
    config: ModelConfig, overrides: Sequence[str], source: Path, step: int
) -> ModelConfig:
    """Return a configuration with a directory of its own, named by the step if none was given."""
    given = any(key_of(override) == DIRECTORY for override in overrides)
    folder = config.output.directory if given else f"{source}-from-{step}"
    if Path(folder).resolve() == source.resolve():
        raise InputError(
            f"{DIRECTORY}: {folder} is the run to start from, which stays; name another directory"
        )
    output = config.output.model_copy(update={"directory": folder})
    return config.model_copy(update={"output": output})
