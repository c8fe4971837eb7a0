"""The trajectory of a resumed run: cut back to the checkpoint and continued, or begun anew."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hybrid_nbody.config import loader
from hybrid_nbody.config.overrides import key_of
from hybrid_nbody.config.sections import Every, ModelConfig
from hybrid_nbody.errors import DamagedFileError, HybridNBodyError, InputError
from hybrid_nbody.files.checkpoint import Checkpoint, load_newest
from hybrid_nbody.files.listing import load_listing
from hybrid_nbody.files.names import START, TRAJECTORY_FILE
from hybrid_nbody.files.parts import heads_in, parts_folder
from hybrid_nbody.files.run import open_run
from hybrid_nbody.output import directory
from hybrid_nbody.output.cutting import DIAGNOSTICS, FRAMES
from hybrid_nbody.running.contract import AnyKind
from hybrid_nbody.running.job import Job, schedules_of
from hybrid_nbody.running.models import MODELS
from hybrid_nbody.simulation.schedule import Clock

WHERE = {"directory", "trajectory", "diagnostics", "checkpoint"}
"""Keys of ``output`` that do not change what a frame holds; of ``trajectory`` some keys do."""

WHEN = {"every_steps", "every_time"}
"""Keys of ``output.trajectory`` that do not."""


def continue_trajectory(job: Job, saved: ModelConfig) -> None:
    """Cut the trajectory back to the checkpoint.

    One with frames of other contents is kept, as is a damaged one, and a new one begun.

    Parameters
    ----------
    job : Job
        At the state of the checkpoint.
    saved : ModelConfig
        The configuration in the checkpoint.

    Raises
    ------
    FileError
        On every rank, if a file cannot be read, renamed or written.
    """
    path = job.trajectory.path
    if not job.communicator.on_root(lambda: _is_there(path)):
        job.log.say(f"warning: {path} is gone; a new trajectory begins here")
        job.trajectory.create(job.model, job.header)
        return
    without = rows_of_an_old_end(saved, job.config, job.model.step)
    try:
        if job.communicator.on_root(lambda: _holds_other_frames(path, job.config)):
            _begin_other_frames(job, without)
        else:
            job.trajectory.reopen(job.model, job.header, without)
    except DamagedFileError as error:
        _begin_after_damage(job, error)


class SavedRun(NamedTuple):
    """The newest state of a run to go on from.

    Attributes
    ----------
    checkpoint : Checkpoint
    before : ModelConfig
        The configuration in it.
    config : ModelConfig
        The same with what replaces keys of it.
    warnings : sequence of str
        Of newer checkpoints that cannot be read.
    """

    checkpoint: Checkpoint
    before: ModelConfig
    config: ModelConfig
    warnings: Sequence[str]


def load_saved_run(folder: Path, overrides: Sequence[str], option: str = "--set ") -> SavedRun:
    """Return the newest state in a directory, which goes on under the same laws.

    Parameters
    ----------
    folder : Path
    overrides : sequence of str
        ``dotted.key=value``.
    option : str, optional
        What a person has given them with.

    Raises
    ------
    InputError
        It is of another run than the trajectory beside it, or would be one.
    FileError
        There is none that is whole.
    """
    checkpoint, warnings = load_newest(folder)
    source = str(checkpoint.path)
    before = loader.loads(checkpoint.config, source, models=MODELS)
    refuse_another_run(checkpoint, before)
    refuse_changed_physics(folder, overrides, MODELS[before.model], option)
    config = loader.loads(checkpoint.config, source, overrides, models=MODELS)
    return SavedRun(checkpoint, before, config, warnings)


def refuse_another_run(checkpoint: Checkpoint, saved: ModelConfig) -> None:
    """Refuse a checkpoint of another run than the trajectory beside it.

    Keys that a resumed run may change are not compared, nor is a trajectory that cannot be read.

    Parameters
    ----------
    checkpoint : Checkpoint
    saved : ModelConfig
        The configuration in it.

    Raises
    ------
    InputError
        It differs from that of the trajectory, or the run began with another state.
    """
    path = checkpoint.path.with_name(TRAJECTORY_FILE)
    try:
        header = load_listing(path).header
        other = loader.loads(str(header.get("config", "")), str(path), models=MODELS)
    except HybridNBodyError:
        return
    here = loader.dotted_values(saved)
    there = loader.dotted_values(other)
    changeable = MODELS[saved.model].changeable
    for key in sorted({*here, *there}):
        if here.get(key) != there.get(key) and not is_among(key, changeable):
            raise _another_run(checkpoint, path, key)
    if checkpoint.start and header.get(START, checkpoint.start) != checkpoint.start:
        raise _another_run(checkpoint, path, "the state that it began with")


def refuse_changed_physics(
    folder: Path, overrides: Sequence[str], kind: AnyKind, option: str = "--set "
) -> None:
    """Refuse to resume a run with other values of keys that make it another run.

    Parameters
    ----------
    folder : Path
        The run's directory.
    overrides : sequence of str
        ``dotted.key=value``.
    kind : ModelKind
        Of the model.
    option : str, optional
        What a person has given them with.

    Raises
    ------
    InputError
    """
    for override in overrides:
        given = f"{option}{override}"
        key = key_of(override)
        if key == directory.DIRECTORY:
            raise InputError(
                f"{given}: a resumed run stays in its directory; to move the run, rename "
                "that directory while the run is stopped"
            )
        if not is_among(key, kind.changeable):
            allowed = ", ".join(kind.changeable)
            branch = f"; start a run of its own: hybrid-nbody run --from {folder} --set {override}"
            remedy = "" if is_among(key, kind.fixed) else branch
            raise InputError(f"{given}: a resumed run can only change {allowed}{remedy}")


def _another_run(checkpoint: Checkpoint, path: Path, what: str) -> InputError:
    """Return the error of a checkpoint that does not belong to a trajectory."""
    return InputError(
        f"{checkpoint.path}: belongs to another run than {path.name}, as {what} shows; put one of "
        "the two aside, and resume again"
    )


def is_among(key: str, names: Sequence[str]) -> bool:
    """Return whether a key of the configuration is one of some, or within one of them."""
    return any(key == name or key.startswith((f"{name}.", f"{name}[")) for name in names)


def rows_of_an_old_end(saved: ModelConfig, config: ModelConfig, step: int) -> list[str]:
    """Return of what a row was written at a step only because the run was to end there.

    A run that was to go on from the beginning has no such row: a resumed one removes it.

    Parameters
    ----------
    saved, config : ModelConfig
        The configuration in the checkpoint, and that of the resumed run.
    step : int
        The step of the checkpoint.

    Returns
    -------
    list of str
        `FRAMES`, `DIAGNOSTICS`, both or none.
    """
    if step != saved.time.total_steps or step == config.time.total_steps:
        return []
    sections = {
        FRAMES: (saved.output.trajectory, config.output.trajectory),
        DIAGNOSTICS: (saved.output.diagnostics, config.output.diagnostics),
    }
    return [prefix for prefix, both in sections.items() if not _any_due(both, config.time.dt, step)]


def _any_due(sections: Iterable[Every | None], dt: float, step: int) -> bool:
    """Return whether a section of the output has something due at a step."""
    schedules = [schedule for every in sections for schedule in schedules_of(every, dt)]
    return any(schedule.due(Clock(step)) for schedule in schedules)


def _is_there(path: Path) -> bool:
    """Return whether there is a trajectory, or parts of one."""
    return path.exists() or bool(heads_in(parts_folder(path)))


def _holds_other_frames(path: Path, config: ModelConfig) -> bool:
    """Return whether the frames of a file hold other contents than those of a run will."""
    try:
        with open_run(path) as run:
            text = str(run.attributes.get("config", ""))
        earlier = loader.loads(text, str(path), models=MODELS)
    except HybridNBodyError:
        return False  # what is wrong with it is said when it is opened for writing
    return _contents_of_frames(earlier) != _contents_of_frames(config)


def _contents_of_frames(config: ModelConfig) -> dict[str, Any]:
    """Return the keys that say what a frame holds; without frames, their defaults."""
    output = config.output
    frames = output.trajectory or type(output).model_fields["trajectory"].default
    return output.model_dump(exclude=WHERE) | frames.model_dump(exclude=WHEN)


def _begin_other_frames(job: Job, without: list[str]) -> None:
    """Keep the frames so far under another name; diagnostics stay in one piece."""
    path = job.trajectory.path
    step = job.model.step
    earlier = job.communicator.on_root(lambda: job.trajectory.cut(step, without))
    until = path.with_name(f"{path.stem}.until-{step:010d}{path.suffix}")
    aside = job.communicator.on_root(lambda: directory.copy_aside(path, until))
    job.log.say(
        f"frames hold other contents from here on: {path.name} begins anew, "
        f"and those so far are kept as {aside.name}"
    )
    job.trajectory.begin_series(job.model, job.header, earlier)


def _begin_after_damage(job: Job, error: DamagedFileError) -> None:
    path = job.trajectory.path
    aside = path.with_suffix(".damaged.h5")
    kept = f"it is kept as {aside.name}, and a new trajectory begins here"
    job.log.say(f"warning: {error}; {kept}")
    job.communicator.only_on_root(lambda: directory.put_aside(path, aside))
    job.trajectory.create(job.model, job.header)
