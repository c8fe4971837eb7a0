"""What every reader of our HDF5 files shares: opening without a lock, and one line for whatever is wrong."""

import math
import re
import time
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.names import (
    CHECKPOINT,
    CHECKPOINT_FILES,
    EXPORT,
    FORMAT_VERSION,
    TRAJECTORY,
    TRAJECTORY_FILE,
)

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""The first eight bytes of an HDF5 file; in a checkpoint they come after its digest."""

ATTEMPTS = 5
PAUSE = 0.02
"""How often to try, and the seconds between, where a file may be in the middle of a flush."""

RECENT = 2.0
QUIET = 0.01
"""A file touched within RECENT seconds may have a writer; one untouched for QUIET seconds is not in
mid-flush."""


def open_hdf5(path) -> h5py.File:
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


def patiently(path, action, last=None):
    """Return what `action` returns; where it fails on a file that is being written, try again a few times.

    The last attempt is `last`, where that is given.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return action()
        except (OSError, RuntimeError, KeyError):
            if not being_written(path):
                break
            time.sleep(PAUSE)
    return (last or action)()


def check_regular_file(path):
    """Refuse what cannot be opened as a file; a pipe, say, would wait for ever.

    Raises
    ------
    FileError
        Nothing is there, or it is a directory, a pipe or a device.
    """
    path = Path(path)
    if not path.exists():
        raise FileError(f"{path}: no such file")
    if not path.is_file():
        raise FileError(
            f"{path}: {'a directory' if path.is_dir() else 'a pipe or a device'}, not a file"
        )


def being_written(path) -> bool:
    """Whether the file changed within the last moments, so that a writer may hold it open."""
    return abs(time.time() - Path(path).stat().st_mtime) < RECENT


def _open_unlocked(path):
    try:
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        if "file locking" not in str(error):
            raise
        # The writer lives in this very process: HDF5 then wants the same locking from both.
        return h5py.File(path, "r")


@contextmanager
def reading(path):
    """Turn everything that HDF5 raises on a bad file into one line that names the file.

    Raises
    ------
    FileError
        In place of an OSError, or of what h5py makes of damaged metadata.
    """
    try:
        yield
    except PermissionError as error:
        raise FileError(f"{path}: no permission to read it") from error
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise FileError(f"{path}: {_what_is_wrong(path, error)}") from error


def _what_is_wrong(path, error):
    text = " ".join(str(error).split())
    if Path(path).is_file() and Path(path).stat().st_size == 0:
        return f"an empty file; its writer was stopped before the first flush{_way_on(path)}"
    if "file signature not found" in text:
        return "not an HDF5 file"
    if "truncated file" in text:
        wanted = re.search(r"stored_eof = (\d+)", text)
        size = (
            f"{Path(path).stat().st_size} of {wanted[1]}"
            if wanted
            else f"only {Path(path).stat().st_size}"
        )
        return (
            f"truncated, {size} bytes are there; copy it again, or use an older one{_way_on(path)}"
        )
    return f"damaged or unreadable ({text or type(error).__name__})"


def _way_on(path):
    """Return what to do about a trajectory cut short beside which checkpoints lie, nothing about other files."""
    folder = Path(path).parent
    if Path(path).name != TRAJECTORY_FILE or not any(folder.glob(CHECKPOINT_FILES)):
        return ""
    return f"; `hybrid-nbody resume {folder}` sets it aside and goes on from a checkpoint"


class WatchedFile:
    """An HDF5 file that another program may be writing: each read sees the file as it is by then, or fails.

    HDF5 keeps what it has read of a file's index. Mixed with what a writer has changed since, or is
    just changing, that gives errors or, worse, zeros. So a file that has changed is opened anew,
    and a read waits for a moment without writing; only where none comes, in a file that is written
    all the time, it makes do with counting rows.
    """

    def __init__(self, path):
        self.path = Path(path)
        self._file = None
        self._opened = False
        self._opened_at = 0.0
        self._stamp = None
        self._live = False

    def open(self) -> h5py.File:
        """Open the file, anew if it is open already.

        Raises
        ------
        FileError
            As `open_hdf5`.
        """
        self.close()
        self._opened, self._opened_at, self._stamp = True, time.time(), self._look()
        self._file = open_hdf5(self.path)
        self._live = being_written(self.path)
        return self._file

    def close(self):
        """Close the file; closing twice is fine."""
        self._opened = False
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def is_open(self) -> bool:
        """Whether it was opened and not closed since."""
        return self._opened

    def check_open(self):
        """Refuse to read after `close`.

        Raises
        ------
        ValueError
            It has been closed, or was never opened.
        """
        if not self._opened:
            raise ValueError(f"{self.path} is closed; open it again with open_run")

    @property
    def handle(self) -> h5py.File:
        """The open file as it is now.

        Raises
        ------
        ValueError
            It has been closed.
        FileError
            As `open_hdf5`.
        """
        self.check_open()
        return self._file if self._file is not None and self._stamp == self._look() else self.open()

    def read(self, name, rows) -> np.ndarray:
        """Read rows of a data set.

        Parameters
        ----------
        name : str
            The data set.
        rows : int, slice or tuple of them
            Which rows, none of them negative; of a tuple the first is that of the rows.

        Raises
        ------
        FileError
            The file is damaged, or it has no such rows any more.
        """
        self.check_open()
        with reading(self.path):
            return patiently(
                self.path,
                lambda: self._read_now(name, rows),
                lambda: self._read_now(name, rows, settled=False),
            )

    def _read_now(self, name, rows, settled=True):
        dataset = self.handle[name]
        first = rows[0] if isinstance(rows, tuple) else rows
        end = first + 1 if isinstance(first, int) else first.stop
        try:
            _check_rows(dataset, dataset.shape[0] if end is None else end, self._live)
            if settled and self._live:
                # by now the index is in memory: what is written during the read does no harm
                self._check_settled()
            return dataset[rows]
        except OSError:
            self._stamp = None  # open it anew at the next attempt
            raise

    def _check_settled(self):
        if self._stamp != self._look() or self._opened_at - self._stamp[0] / 1e9 < QUIET:
            raise OSError("it is being written at this moment")

    def _look(self):
        with reading(self.path):
            check_regular_file(self.path)
            found = self.path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino


def _check_rows(dataset, end, live):
    """Refuse rows that are not in the file, of which HDF5 makes nothing or zeros without a word."""
    if end > dataset.shape[0]:
        raise OSError(
            f"{dataset.name[1:]} has {dataset.shape[0]} rows by now, row {end - 1} is gone"
        )
    if live and dataset.chunks is not None and dataset.ndim:
        # The index of a data set in the middle of a flush may lag behind its length.
        pieces = [
            -(-size // chunk)
            for size, chunk in zip((end, *dataset.shape[1:]), dataset.chunks, strict=True)
        ]
        if dataset.id.get_num_chunks() < math.prod(pieces):
            raise OSError(f"{dataset.name[1:]} is not yet written up to row {end - 1}")


def check_format(file, path, *allowed):
    """Refuse a file that we did not write, that is of another kind, or that a newer program wrote.

    Parameters
    ----------
    file : h5py.File
        An open file.
    path : str or Path
        Its name in the message.
    *allowed : str
        The values of the attribute ``format`` that will do.

    Raises
    ------
    FileError
        The file is foreign, of another kind or of a later version.
    """
    found = _plain(file.attrs.get("format"))
    if found == EXPORT:
        raise FileError(
            f"{path}: an export for other programs, not a {allowed[0].split()[-1]}; take what it was made from"
        )
    if found not in (TRAJECTORY, CHECKPOINT):
        raise FileError(f"{path}: an HDF5 file, but not one that hybrid_nbody wrote")
    if found not in allowed:
        raise FileError(f"{path}: a {found.split()[-1]}, not a {allowed[0].split()[-1]}")
    _check_version(path, _plain(file.attrs.get("format_version")))


def _check_version(path, version):
    if not isinstance(version, int) or version < 1:
        raise FileError(
            f"{path}: damaged; its format_version is {version!r}, not a whole number from 1"
        )
    if version > FORMAT_VERSION:
        raise FileError(
            f"{path}: written in format version {version}; this hybrid_nbody reads up to version {FORMAT_VERSION}, "
            "update it"
        )


def attributes(node) -> dict:
    """Return the attributes of a file, group or data set as plain Python values."""
    return {name: _plain(value) for name, value in node.attrs.items()}


def _plain(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
