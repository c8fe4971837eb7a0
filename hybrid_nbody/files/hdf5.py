"""Reading HDF5 files: opened without a lock, with one line for what is wrong."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.names import (
    CHECKPOINT,
    CHECKPOINT_FILES,
    EXPORT,
    FORMAT_VERSION,
    HEAD,
    PART,
    TRAJECTORY,
    TRAJECTORY_FILE,
)
from hybrid_nbody.files.untrusted import check_own_data

OURS = (TRAJECTORY, CHECKPOINT, HEAD, PART)
"""Formats of our files."""

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""First eight bytes of an HDF5 file; in a checkpoint they come after its digest."""

Rows = int | slice | tuple[int | slice, ...]
"""Rows of a data set, none of them negative; of a tuple, the first element is that of the rows."""


# --- opening --------------------------------------------------------------------------------------


def open_hdf5(path: str | Path) -> h5py.File:
    """Open an HDF5 file for reading.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    h5py.File
        Open for reading, without a lock: a reader must never stop the run that it looks at.

    Raises
    ------
    FileError
        The file is missing, empty, truncated, not HDF5 or not readable.
    """
    with reading(path):
        check_regular_file(path)
        return _open_unlocked(path)


def check_regular_file(path: str | Path) -> None:
    """Check that a path is that of a regular file; opening a pipe could wait for ever.

    Raises
    ------
    FileError
        There is nothing at `path`, or a directory, a pipe or a device.
    """
    path = Path(path)
    if not path.exists():
        raise FileError(f"{path}: no such file")
    if not path.is_file():
        found = "a directory" if path.is_dir() else "a pipe or a device"
        raise FileError(f"{path}: {found}, not a file")


def _open_unlocked(path: str | Path) -> h5py.File:
    """Open a file that HDF5 takes for no other open file, and never locks.

    HDF5 makes all that open a file in one process share it, and demands the same locking and the
    same rights of them: a person could neither open a run with h5py beside us, nor we one that the
    same process writes.
    """
    return h5py.File(_WholeReads(path), "r")


class _WholeReads(io.FileIO):
    """A file whose reads return all that was asked for: h5py takes what is missing for zeros.

    HDF5 holds the only reference while it is open.
    """

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view):
            number = super().readinto(view[done:])
            if not number:
                raise OSError(f"truncated file: it ends {len(view) - done} bytes too early")
            done += number
        return done

    def __del__(self) -> None:
        self.close()


# --- errors ---------------------------------------------------------------------------------------


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn every error of HDF5 on a bad file into one line that names the file.

    Raises
    ------
    FileError
        In place of an OSError, or of the errors of h5py on damaged metadata.
    """
    try:
        yield
    except PermissionError as error:
        raise FileError(f"{path}: no permission to read it") from error
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise FileError(f"{path}: {_what_is_wrong(Path(path), error)}") from error


def _what_is_wrong(path: Path, error: Exception) -> str:
    """Return in plain words why HDF5 cannot read a file, and what to do."""
    text = " ".join(str(error).split())
    size = path.stat().st_size if path.is_file() else -1
    if size == 0:
        return f"an empty file; its writer was stopped before the first flush{_advice(path)}"
    if "file signature not found" in text:
        return "not an HDF5 file"
    if "truncated file" in text:
        wanted = re.search(r"stored_eof = (\d+)", text)
        there = f"{size} of {wanted[1]}" if wanted else f"only {size}"
        return (
            f"truncated, {there} bytes are there; copy it again, or use an older one{_advice(path)}"
        )
    return f"damaged or unreadable ({text or type(error).__name__})"


def _advice(path: Path) -> str:
    """Return what to do about a trajectory cut short that has checkpoints beside it."""
    folder = path.parent
    if path.name != TRAJECTORY_FILE or not any(folder.glob(CHECKPOINT_FILES)):
        return ""
    way = f"`hybrid-nbody resume {folder}` continues from the newest checkpoint"
    return f"; {way} and keeps this file as {path.stem}.damaged.h5"


# --- our formats ----------------------------------------------------------------------------------


def check_format(file: h5py.File, path: str | Path, *allowed: str) -> None:
    """Check that a file has one of the `allowed` formats, and that all its data is in it.

    Parameters
    ----------
    file : h5py.File
        An open file.
    path : str or Path
        Its name in the message.
    *allowed : str
        Allowed values of the attribute ``format``.

    Raises
    ------
    FileError
        The file is foreign, of another format or of a later version, or leads into other files.
    """
    check_kind(file, path, *allowed)
    with reading(path):
        check_own_data(file, path)


def check_kind(file: h5py.File, path: str | Path, *allowed: str) -> None:
    """Check that a file has one of the `allowed` formats and a version that can be read.

    Raises
    ------
    FileError
        The file is foreign, of another format or of a later version.
    """
    found = _plain(file.attrs.get("format"))
    wanted = allowed[0].split()[-1]
    if found == EXPORT:
        raise FileError(
            f"{path}: an export for other programs, not a {wanted}; give the run it was made from"
        )
    if found not in OURS:
        raise FileError(f"{path}: an HDF5 file, but not one that hybrid_nbody wrote")
    if found not in allowed:
        raise FileError(f"{path}: a {found.split()[-1]}, not a {wanted}")
    _check_version(path, _plain(file.attrs.get("format_version")))


def _check_version(path: str | Path, version: object) -> None:
    if not isinstance(version, int) or version < 1:
        raise FileError(
            f"{path}: damaged; its format_version is {version!r}, not a whole number from 1"
        )
    if version > FORMAT_VERSION:
        raise FileError(
            f"{path}: written in format version {version}; this hybrid_nbody reads up to version "
            f"{FORMAT_VERSION}, update it"
        )


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a file, group or data set as plain Python values."""
    return {name: _plain(value) for name, value in node.attrs.items()}


def attribute(node: Any, name: str, default: Any = None) -> Any:
    """Return one attribute as a plain Python value, `default` if there is none of the name."""
    return _plain(node.attrs.get(name, default))


def _plain(value: Any) -> Any:
    """Return an attribute as a Python value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
