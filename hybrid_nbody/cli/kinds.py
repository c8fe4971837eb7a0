"""The kind of a file, so that a command that takes another says what it was given."""

import re
from contextlib import suppress
from pathlib import Path

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.finding import find_trajectory
from hybrid_nbody.files.hdf5 import SIGNATURE
from hybrid_nbody.files.seals import SEAL_BYTES, is_sealed

CONFIGURATION = "configuration"
CHECKPOINT = "checkpoint"
BODIES = "table of bodies"
LOG = "log"
TRAJECTORY = "trajectory"
FOLDER = "directory of a run"
HDF5 = "HDF5 file"
PICTURE = "picture"
MOVIE = "movie"
PAGE = "web page"
SWEEP = "table of a sweep"
TEXT = "text file"
UNKNOWN = ""

BY_NAME = {"log.txt": LOG, "sweep.csv": SWEEP}

BY_SUFFIX = {
    ".yaml": CONFIGURATION,
    ".yml": CONFIGURATION,
    ".csv": BODIES,
    ".npz": BODIES,
    ".svg": PICTURE,
    ".html": PAGE,
    ".htm": PAGE,
}

BY_FIRST_BYTES = {
    rb"\x89PNG|\xff\xd8\xff|%PDF-|RIFF....WEBP": PICTURE,
    rb"GIF8|....ftyp|\x1aE\xdf\xa3|RIFF....AVI ": MOVIE,
    re.escape(SIGNATURE): HDF5,
}
"""Patterns of the bytes with which files of other programs begin."""

MOST_BYTES = max(SEAL_BYTES, 4096)
"""Bytes at the beginning of a file that are looked at."""

EXAMPLES = "a configuration is YAML; hybrid-nbody examples lists some"

LIKE_YAML = re.compile(rb"""^\s*(\{|[\w'".]+\s*:(\s|$))""", re.MULTILINE)
"""A line that a mapping may have."""


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
        head = file.read(MOST_BYTES)
    for kind in (CHECKPOINT, TRAJECTORY):
        if is_sealed(head[:SEAL_BYTES], kind):
            return kind
    if path.name in BY_NAME:
        return BY_NAME[path.name]
    return _by_first_bytes(head) or BY_SUFFIX.get(path.suffix) or _text_or_unknown(head)


def _by_first_bytes(head: bytes) -> str:
    matching = (kind for start, kind in BY_FIRST_BYTES.items() if re.match(start, head, re.DOTALL))
    return next(matching, UNKNOWN)


def _text_or_unknown(head: bytes) -> str:
    """Return whether a file begins like a text; one that is empty is none."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < MOST_BYTES - 4:  # not in a letter that the last bytes have a part of
            return UNKNOWN
        text = head[: error.start].decode()
    controls = any(ord(letter) < ord(" ") and not letter.isspace() for letter in text)
    return TEXT if text and not controls else UNKNOWN


def _named(kind: str) -> str:
    return f"an {kind}" if kind == HDF5 else f"a {kind}"


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
        **dict.fromkeys((HDF5, PICTURE, MOVIE, PAGE, SWEEP), EXAMPLES),
    }
    if kind == TEXT and not _is_like_yaml(path):
        remedies[TEXT] = EXAMPLES
    if kind in remedies:
        raise InputError(f"{path}: {_named(kind)}, not a configuration; {remedies[kind]}")


def _is_like_yaml(path: Path) -> bool:
    """Return whether a text may be a configuration under another name."""
    with open(path, "rb") as file:
        return LIKE_YAML.search(file.read(MOST_BYTES)) is not None


def require_output(path: Path) -> None:
    """Check that a file may be one that `info` describes: raises `InputError` saying what it is."""
    kind = kind_of(path)
    if kind in (PICTURE, MOVIE, PAGE, SWEEP, LOG):
        raise InputError(f"{path}: a {kind}; {_instead(path)}, or a file of bodies")


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
    is_damaged = kind == TEXT and path.suffix in (".h5", ".hdf5")
    if is_damaged or kind in (*others, FOLDER, TRAJECTORY, HDF5, UNKNOWN):
        return  # the reader of the file says what is wrong with it, if anything is
    is_first_step = kind == CONFIGURATION and not _holds_a_run(path.parent)
    remedy = f"run it first: hybrid-nbody run {path}" if is_first_step else _instead(path)
    raise InputError(f"{path}: {_named(kind)}, not a run; {remedy}")


def _instead(path: Path) -> str:
    """Return what to give in place of a file that may lie beside a run."""
    if _holds_a_run(path.parent):
        return f"give its directory: {path.parent}"
    return "give the directory of a run"
