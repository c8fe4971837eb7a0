"""Reading HDF5 files: opened without a lock, beside a writer, with one line for what is wrong."""

import io
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.names import (
    CHECKPOINT,
    CHECKPOINT_FILES,
    EXPORT,
    FORMAT_VERSION,
    TRAJECTORY,
    TRAJECTORY_FILE,
)
from hybrid_nbody.files.untrusted import check_own_data

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""First eight bytes of an HDF5 file; in a checkpoint they come after its digest."""

ATTEMPTS = 5
"""Number of attempts to read a file that may be in the middle of a flush."""

LAST_ATTEMPTS = 15
"""Number of further attempts, without waiting for a moment in which nobody writes."""

PAUSE = 0.02
"""Seconds between these attempts."""

RECENT = 2.0
"""Seconds after its last change during which a file may have a writer."""

QUIET = 0.01
"""Seconds without a change after which a file is not in the middle of a flush."""

T = TypeVar("T")

Rows = int | slice | tuple[int | slice, ...]
"""Rows of a data set, none of them negative; of a tuple, the first element is that of the rows."""


# --- opening --------------------------------------------------------------------------------------


def open_hdf5(path: str | Path) -> h5py.File:
    """Open an HDF5 file for reading, beside a writer if there is one.

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
        return patiently(path, lambda: _open_unlocked(path))


def patiently(path: str | Path, action: Callable[[], T], last: Callable[[], T] | None = None) -> T:
    """Return the result of `action`, which is repeated if it fails on a file that is being written.

    Parameters
    ----------
    path : str or Path
        The file.
    action : callable
        May raise OSError, RuntimeError or KeyError.
    last : callable, optional
        The last attempts, in place of `action`.
    """
    final = last or action
    for attempt in range(1, ATTEMPTS + LAST_ATTEMPTS):
        try:
            return action() if attempt < ATTEMPTS else final()
        except (OSError, RuntimeError, KeyError):
            if not being_written(path):
                break
        time.sleep(PAUSE)
    return final()


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


def being_written(path: str | Path) -> bool:
    """Return whether a file changed in the last moments, so that a writer may hold it open."""
    return abs(time.time() - Path(path).stat().st_mtime) < RECENT


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


# --- files being written --------------------------------------------------------------------------


class WatchedFile:
    """An HDF5 file that another program may be writing.

    Each read sees the file as it is then, or fails. HDF5 caches the index of a file; mixed with
    later changes of a writer, that gives errors or, worse, zeros. Therefore a file that has changed
    is opened again, and a read waits for a moment without writing. In a file that is written all
    the time there is no such moment: then the rows are only counted.

    Parameters
    ----------
    path : str or Path
        The file; it is opened by `open`.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._file: Any = None
        self._opened = False
        self._opened_at = 0.0
        self._stamp: tuple[int, int, int] | None = None
        self._live = False

    def open(self) -> h5py.File:
        """Open the file, again if it is open already.

        Raises
        ------
        FileError
            As `open_hdf5`.
        """
        self.close()
        self._opened = True
        self._opened_at = time.time()
        self._stamp = self._look()
        self._file = open_hdf5(self.path)
        self._live = being_written(self.path)
        return self._file

    def close(self) -> None:
        """Close the file, if it is open."""
        self._opened = False
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def is_open(self) -> bool:
        """Return whether the file has been opened and not closed since."""
        return self._opened

    def check_open(self) -> None:
        """Check that the file is open.

        Raises
        ------
        ValueError
            It has been closed, or was never opened.
        """
        if not self._opened:
            raise ValueError(f"{self.path} is closed; open it again with open_run")

    @property
    def handle(self) -> h5py.File:
        """Return the open file as it is now.

        Raises
        ------
        ValueError
            It has been closed.
        FileError
            As `open_hdf5`.
        """
        self.check_open()
        return self._file if self._file is not None and self._stamp == self._look() else self.open()

    def read(self, name: str, rows: Rows) -> NDArray[Any]:
        """Read rows of a data set.

        Raises
        ------
        FileError
            The file is damaged, or no longer has such rows.
        """
        self.check_open()
        with reading(self.path):
            return patiently(
                self.path,
                lambda: self._read_now(name, rows),
                lambda: self._read_now(name, rows, settled=False),
            )

    def _read_now(self, name: str, rows: Rows, settled: bool = True) -> NDArray[Any]:
        dataset = self.handle[name]
        first = rows[0] if isinstance(rows, tuple) else rows
        end = first + 1 if isinstance(first, int) else first.stop
        try:
            _check_rows(dataset, dataset.shape[0] if end is None else end, self._live)
            if settled and self._live:
                # The index is now in memory: changes during the read do no harm.
                self._check_settled()
            return np.asarray(dataset[rows])
        except OSError:
            self._stamp = None  # open it again at the next attempt
            raise

    def _check_settled(self) -> None:
        """Raise OSError if the file has changed since, or just before, it was opened."""
        if self._stamp is None or self._stamp != self._look():
            raise OSError("it is being written at this moment")
        changed_at = self._stamp[0] / 1e9
        if self._opened_at - changed_at < QUIET:
            raise OSError("it is being written at this moment")

    def _look(self) -> tuple[int, int, int]:
        """Return time of change, size and inode of the file."""
        with reading(self.path):
            check_regular_file(self.path)
            found = self.path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino


def _check_rows(dataset: h5py.Dataset, end: int, live: bool) -> None:
    """Raise OSError for rows that are not in the file: HDF5 would silently return zeros."""
    if end > dataset.shape[0]:
        raise OSError(
            f"{dataset.name[1:]} has {dataset.shape[0]} rows by now, row {end - 1} is gone"
        )
    if live and dataset.chunks is not None and dataset.ndim:
        # In the middle of a flush the index of a data set may lag behind its length.
        pieces = [
            -(-size // chunk)
            for size, chunk in zip((end, *dataset.shape[1:]), dataset.chunks, strict=True)
        ]
        if dataset.id.get_num_chunks() < math.prod(pieces):
            raise OSError(f"{dataset.name[1:]} is not yet written up to row {end - 1}")


# --- our formats ----------------------------------------------------------------------------------


def check_format(file: h5py.File, path: str | Path, *allowed: str) -> None:
    """Check that a file has one of the `allowed` formats and a version that can be read.

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
    found = _plain(file.attrs.get("format"))
    wanted = allowed[0].split()[-1]
    if found == EXPORT:
        raise FileError(
            f"{path}: an export for other programs, not a {wanted}; give the run it was made from"
        )
    if found not in (TRAJECTORY, CHECKPOINT):
        raise FileError(f"{path}: an HDF5 file, but not one that hybrid_nbody wrote")
    if found not in allowed:
        raise FileError(f"{path}: a {found.split()[-1]}, not a {wanted}")
    _check_version(path, _plain(file.attrs.get("format_version")))
    with reading(path):
        check_own_data(file, path)


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


def _plain(value: Any) -> Any:
    """Return an attribute as a Python value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
