"""The kind of a file, so that a command that takes another says what it was given."""

from contextlib import suppress
from pathlib import Path

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.finding import find_trajectory
from hybrid_nbody.files.seals import SEAL_BYTES, is_sealed

CONFIGURATION = "configuration"
CHECKPOINT = "checkpoint"
BODIES = "table of bodies"
LOG = "log"
TRAJECTORY = "trajectory"
FOLDER = "directory of a run"
UNKNOWN = ""

BY_SUFFIX = {".yaml": CONFIGURATION, ".yml": CONFIGURATION, ".csv": BODIES, ".npz": BODIES}


def kind_of(path: Path) -> str:
    """Return the kind of a file or directory; `UNKNOWN` for what is missing or foreign."""
    with suppress(OSError, ValueError):
        if path.is_dir():
            return FOLDER if _holds_a_run(path) else UNKNOWN
        if path.is_file():
            return _kind_of_file(path)
    return UNKNOWN


def _kind_of_file(path: Path) -> str:
    with open(path, "rb") as file:
        head = file.read(SEAL_BYTES)
    for kind in (CHECKPOINT, TRAJECTORY):
        if is_sealed(head, kind):
            return kind
    if path.name == "log.txt":
        return LOG
    return BY_SUFFIX.get(path.suffix, UNKNOWN)


def _holds_a_run(folder: Path) -> bool:
    try:
        find_trajectory(folder)
    except InputError:
        return False
    return True


def require_configuration(path: Path) -> None:
    """Check that a file may be a configuration.

    Raises
    ------
    InputError
        Saying what it is, and what to do with it.
    """
    kind = kind_of(path)
    remedies = {
        FOLDER: f"continue it with: hybrid-nbody resume {path}",
        CHECKPOINT: f"continue its run with: hybrid-nbody resume {path.parent}",
        TRAJECTORY: f"look at it with: hybrid-nbody info {path}",
        LOG: f"look at its run with: hybrid-nbody info {path.parent}",
        BODIES: f"name it in one: bodies: {{kind: file, path: {path.name}}}",
    }
    if kind in remedies:
        raise InputError(f"{path}: a {kind}, not a configuration; {remedies[kind]}")


def require_run(path: Path, *others: str) -> None:
    """Check that a path may be a run: its directory or its trajectory.

    Parameters
    ----------
    path : Path
    *others : str
        Other kinds that will do.

    Raises
    ------
    InputError
        Saying what it is, and what to give instead.
    """
    kind = kind_of(path)
    if kind in (*others, FOLDER, TRAJECTORY, UNKNOWN):
        return
    if _holds_a_run(path.parent):
        remedy = f"give its directory: {path.parent}"
    elif kind == CONFIGURATION:
        remedy = f"run it first: hybrid-nbody run {path}"
    else:
        remedy = "give the directory of a run"
    raise InputError(f"{path}: a {kind}, not a run; {remedy}")
