"""The directory of a run: claimed by one run, and left untouched by a run that is refused."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybrid_nbody.errors import FileError, HybridNBodyError, InputError
from hybrid_nbody.files.atomic import file_errors, write_whole
from hybrid_nbody.files.checkpoint import checkpoints
from hybrid_nbody.files.log import read_log
from hybrid_nbody.files.names import CHECKPOINT_FILES, STATE_FILES, TRAJECTORY_FILE
from hybrid_nbody.files.parts import PARTS_FOLDER
from hybrid_nbody.files.run import open_run

CONFIG = "config.yaml"
"""Name of the configuration in the directory of a run."""

LOG = "log.txt"
"""Name of the log in the directory of a run."""

DIRECTORY = "output.directory"
"""The key that names the directory."""


def files_of_a_run(folder: Path) -> list[Path]:
    """Return the files of a run that `folder` holds; none without a trajectory or checkpoint."""
    if not folder.is_dir():
        return []
    data = [
        *folder.glob(TRAJECTORY_FILE),
        *(folder / PARTS_FOLDER).glob("*.h5*"),
        *checkpoints(folder),
        *folder.glob(f"{CHECKPOINT_FILES}.part"),
        *folder.glob(f"{STATE_FILES}*"),
    ]
    if not data:
        return []
    others = [folder / name for name in (CONFIG, LOG, f"{CONFIG}.part")]
    earlier = folder.glob(f"{Path(TRAJECTORY_FILE).stem}.until-*.h5")  # frames of other contents
    return [*data, *(path for path in others if path.exists()), *earlier]


def check(folder: Path, overwrite: bool) -> None:
    """Check that a new run may use `folder`, without changing anything.

    Raises
    ------
    InputError
        It holds a run and `overwrite` is not set, is not a directory, or cannot be written.
    """
    check_place(folder)
    with refusal(folder, "used"):
        _check_contents(folder, overwrite)


def check_place(folder: Path, asked_by: str = DIRECTORY) -> None:
    """Check that a folder is there and can be written, or that it can be made.

    Parameters
    ----------
    folder : Path
    asked_by : str, optional
        The key or the option that names it.

    Raises
    ------
    InputError
        It is not a directory, or cannot be written.
    """
    with refusal(folder, "used", asked_by):
        existing = existing_part(folder)
        if not existing.is_dir():
            raise InputError(f"{asked_by}: {existing} is a file, not a directory")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise InputError(f"{asked_by}: {folder} cannot be written: no permission in {existing}")


@contextmanager
def refusal(folder: Path, doing: str, asked_by: str = DIRECTORY) -> Iterator[None]:
    """Turn an error of the operating system into one that names the directory."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{asked_by}: {folder} cannot be {doing}: {reason}") from error


def existing_part(folder: Path) -> Path:
    """Return the deepest part of a path that exists, as the user wrote it if possible."""
    absolute = folder.absolute()
    existing = next(path for path in (absolute, *absolute.parents) if path.exists())
    written = [path for path in (folder, *folder.parents) if path.absolute() == existing]
    return written[0] if written else existing


def _check_contents(folder: Path, overwrite: bool) -> None:
    """Check that nothing in a folder would be lost."""
    if files_of_a_run(folder):
        overwrite = overwrite or failed_at_its_start(folder)
        if not overwrite and not checkpoints(folder):
            raise InputError(
                f"{DIRECTORY}: {folder} holds a run that ended before its first checkpoint, "
                "which cannot be resumed; give --overwrite to replace it, or choose another "
                "directory"
            )
        if not overwrite:
            raise InputError(
                f"{DIRECTORY}: {folder} holds a run already; continue it with "
                f"`hybrid-nbody resume {folder}`, choose another directory, or give --overwrite "
                "to replace it"
            )
        return
    for path in (folder / CONFIG, folder / LOG):
        if path.exists():
            raise InputError(
                f"{DIRECTORY}: {folder} holds no run but {path}, which would be replaced; "
                "choose another directory"
            )


def failed_at_its_start(folder: Path) -> bool:
    """Return whether a run ended with an error and left nothing but its initial state."""
    if checkpoints(folder) or not read_log(folder / LOG).error:
        return False
    try:
        with open_run(folder) as run:
            return not run.step.any() and not run.diagnostics.step.any()
    except HybridNBodyError:
        return False  # what is damaged may hold more


def lock(folder: Path) -> int | None:
    """Make `folder` and lock it for this process until that ends, or until `unlock`.

    Returns
    -------
    int or None
        What `unlock` takes.

    Raises
    ------
    InputError
        Another process is running in it, or it cannot be made.
    """
    with refusal(folder, "made"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(folder, os.O_RDONLY)  # stays open to keep the lock
    except OSError:
        return None
    try:
        _lock(descriptor, folder)
    except InputError:
        os.close(descriptor)
        raise
    return descriptor


def unlock(held: int | None) -> None:
    """Give a directory free again, where this process goes on with other runs."""
    if held is not None:
        os.close(held)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"{folder}: another process is running in this directory; wait for it, or stop it"
        ) from error
    except OSError:
        pass  # some file systems have no locks


def claim(folder: Path, overwrite: bool) -> None:
    """Make `folder` if it does not exist, and remove the files of an earlier run from it.

    Raises
    ------
    InputError
        As `check`; nothing is changed then.
    """
    check(folder, overwrite)
    with refusal(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in files_of_a_run(folder):
            path.unlink()


def write_config(folder: Path, text: str) -> None:
    """Store the resolved configuration."""
    with file_errors(folder / CONFIG, "writing"):
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
        It does not.
    FileError
        It cannot be read, or there is no checkpoint in it.
    """
    with file_errors(folder, "reading the directory"):
        if folder.is_file():
            raise InputError(f"{folder}: a file, not the directory of a run; {_advice(folder)}")
        if not folder.is_dir():
            raise InputError(f"{folder}: no such directory")
        if not files_of_a_run(folder):
            raise InputError(f"{folder}: holds no run of hybrid_nbody")
        if not checkpoints(folder):
            raise FileError(
                f"{folder}: no checkpoint to resume from: the run ended before its first one; "
                "start it again: hybrid-nbody run FILE --overwrite"
            )


def _advice(path: Path) -> str:
    """Return what to do instead of resuming a file."""
    if files_of_a_run(path.parent):
        return f"give its directory: hybrid-nbody resume {path.parent}"
    if path.suffix in (".yaml", ".yml"):
        return f"start it: hybrid-nbody run {path}"
    return f"give a directory that holds {CHECKPOINT_FILES}"


def put_aside(path: Path, aside: Path) -> None:
    """Rename a file, if it exists, to `aside` or to the next name that is free."""
    with file_errors(path, "renaming"):
        if path.exists():
            path.rename(free_name(aside))


def copy_aside(path: Path, aside: Path) -> Path:
    """Copy a file to `aside` or to the next name that is free, and return that name."""
    target = free_name(aside)
    write_whole(target, path.read_bytes(), "copy of the trajectory")
    return target


def free_name(path: Path) -> Path:
    """Return a path, or the next one with a number that is free: ``a.h5``, ``a-2.h5``, …"""
    name = path.stem
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{name}-{number}{path.suffix}")
    return path
