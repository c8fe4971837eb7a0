"""The file that an export becomes: room for it first, then its contents, then its name."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hybrid_nbody import __version__
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.atomic import written_beside
from hybrid_nbody.files.names import EXPORT

SLACK_BYTES = 1 << 20
"""Room for headers, and for the tables of HDF5 and of archives."""


def check_target(target: Path, source: Path, suffixes, overwrite):
    """Refuse a file that must not be written.

    Raises
    ------
    InputError
        Its name does not end as it should, it exists already, or it is what is to be exported.
    """
    if target.suffix.lower() not in suffixes:
        raise InputError(f"{target}: the name of this format must end in {' or '.join(suffixes)}")
    if target.is_dir():
        raise InputError(f"{target}: a directory; name a file in it")
    if target.exists() and target.samefile(source):
        raise InputError(
            f"{target}: this is the file that is to be exported; choose another --output"
        )
    if target.exists() and not overwrite:
        raise InputError(
            f"{target}: exists already; choose another --output, or replace it with --overwrite"
        )


@contextmanager
def written(target: Path, size: int) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of `target` when all went well, else nothing is left.

    Parameters
    ----------
    target : Path
        Its final name.
    size : int
        Bytes that will be written at most, but for tables; where there is no room for them, nothing
        is begun.

    Raises
    ------
    FileError
        It cannot be written.
    """
    try:
        with written_beside(target) as partial:
            _reserve(partial, size + SLACK_BYTES)
            yield partial
    except (OSError, RuntimeError) as error:  # h5py raises either when a write fails
        raise FileError(f"{target}: cannot write the export ({_reason(error)})") from error


def _reserve(path, size):
    """Meet a full disk, a quota or a limit before HDF5 does: after a write that fails it cannot close its file."""
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _reason(error):
    hidden = re.search(r"errno = (\d+)", str(error))
    number = getattr(error, "errno", None) or (int(hidden[1]) if hidden else None)
    if number == errno.ENOSPC:
        return "the disk is full"
    return os.strerror(number) if number else " ".join(str(error).split())


def mark(file, source):
    """Store in an HDF5 file what it is and what it was made from; it is not one that this program reads again."""
    texts = {"format": EXPORT, "program_version": __version__, "title": source.title}
    file.attrs.update(
        {name: np.bytes_(text.encode()) if text else "" for name, text in texts.items()}
    )
