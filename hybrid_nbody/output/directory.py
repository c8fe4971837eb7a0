"""The directory of a run: refused if it holds another run, and never touched by a run that is refused."""

import fcntl
import os
from pathlib import Path

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.checkpoint import checkpoints
from hybrid_nbody.files.names import CHECKPOINT_FILES
from hybrid_nbody.output import hdf5, trajectory

CONFIG = "config.yaml"
LOG = "log.txt"
ANIMATION = "flat.gif"
"""Of a run that ``flat`` made."""


def files_of_a_run(folder: Path) -> list[Path]:
    """Return the files of a run that `folder` holds."""
    if not folder.is_dir():
        return []
    own = [
        *folder.glob(trajectory.NAME),
        *checkpoints(folder),
        *folder.glob(f"{CHECKPOINT_FILES}.part"),
    ]
    with_own = (CONFIG, LOG, f"{CONFIG}.part", ANIMATION)
    return own + [folder / name for name in with_own if own and (folder / name).exists()]


def check(folder: Path, overwrite: bool) -> None:
    """Check that a new run may use `folder`; changes nothing.

    Raises
    ------
    InputError
        If it holds a run and `overwrite` is not set, is no folder, or cannot be written.
    """
    try:
        _check(folder, overwrite)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"output.directory: {folder} cannot be used: {reason}") from error


def _check(folder, overwrite):
    existing = next(
        path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()
    )
    if not existing.is_dir():
        raise InputError(
            f"output.directory: {_relative(existing, folder)} is a file, not a directory"
        )
    if files_of_a_run(folder) and not overwrite:
        raise InputError(
            f"output.directory: {folder} holds a run already; continue it with `hybrid-nbody resume {folder}`, "
            "choose another directory, or give --overwrite to replace it"
        )
    foreign = [
        folder / name
        for name in (CONFIG, LOG)
        if (folder / name).exists() and not files_of_a_run(folder)
    ]
    if foreign:
        raise InputError(
            f"output.directory: {folder} holds no run but {foreign[0]}, which would be replaced; "
            "choose another directory"
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(
            f"output.directory: {folder} cannot be written: no permission in {_relative(existing, folder)}"
        )


def _relative(existing: Path, folder: Path) -> Path:
    """Return the folder that exists as the person wrote it, where it is part of what they wrote."""
    written = [path for path in (folder, *folder.parents) if path.absolute() == existing]
    return written[0] if written else existing


def lock(folder: Path) -> None:
    """Make `folder` and keep it for this process, until that ends.

    Raises
    ------
    InputError
        If another process is running in it, or it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)  # stays open, and with it the lock
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"{folder}: another process is running in this directory; wait for it, or stop it"
        ) from error
    except (OSError, ValueError) as error:
        if not folder.is_dir():
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"output.directory: {folder} cannot be made: {reason}") from error
        # a file system without locks: go on without


def claim(folder: Path, overwrite: bool) -> None:
    """Remove the files of an earlier run from `folder`, which is made if need be.

    Raises
    ------
    InputError
        As in `check`; nothing is changed then.
    """
    check(folder, overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in files_of_a_run(folder):
            path.unlink()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"output.directory: {folder} cannot be written: {reason}") from error


def write_config(folder: Path, text: str) -> None:
    """Store the resolved configuration."""
    with hdf5.file_errors(folder / CONFIG, "writing"):
        part = folder / f"{CONFIG}.part"
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(folder / CONFIG)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def require_run(folder: Path) -> None:
    """Check that `folder` exists and holds a run.

    Raises
    ------
    InputError
        If it does not.
    FileError
        If it cannot be read.
    """
    with hdf5.file_errors(folder, "reading the directory"):
        if folder.is_file():
            raise InputError(f"{folder}: a file, not the directory of a run; {_meant_by(folder)}")
        if not folder.is_dir():
            raise InputError(f"{folder}: no such directory")
        if not files_of_a_run(folder):
            raise InputError(f"{folder}: holds no run of hybrid_nbody")


def _meant_by(path: Path) -> str:
    """Say what to do in place of resuming a file."""
    if files_of_a_run(path.parent):
        return f"give its directory: hybrid-nbody resume {path.parent}"
    if path.suffix in (".yaml", ".yml"):
        return f"start it: hybrid-nbody run {path}"
    return f"give a directory that holds {CHECKPOINT_FILES}"


def put_aside(path: Path, aside: Path) -> None:
    """Rename a file, if it is there, without replacing another."""
    number = 1
    while aside.exists():
        aside = aside.with_name(f"{path.stem}.damaged-{(number := number + 1)}.h5")
    with hdf5.file_errors(path, "renaming"):
        if path.exists():
            path.rename(aside)
