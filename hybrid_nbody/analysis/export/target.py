"""The file of an export: space is reserved first, then it is written, then it gets its name."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from hybrid_nbody import __version__
from hybrid_nbody.analysis.export.source import Source
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.atomic import reason, written_beside
from hybrid_nbody.files.names import EXPORT

SLACK_BYTES = 1 << 20
"""Bytes for headers, and for the tables of HDF5 and of archives."""


def check_target(target: Path, source: Path, suffixes: Sequence[str], overwrite: bool) -> None:
    """Check that a file may be written.

    Raises
    ------
    InputError
        Its name has a wrong ending, it exists already, or it is the file to be exported.
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
    """Yield the name of a temporary file that replaces `target` if the block succeeds.

    Parameters
    ----------
    target : Path
        The final name.
    size : int
        Bytes that will be written at most, without tables; nothing is written if the disk has no
        space for them.

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
        raise FileError(f"{target}: cannot write the export ({reason(error)})") from error


def _reserve(path: Path, size: int) -> None:
    """Check for space before HDF5 writes, which cannot close a file after a failed write."""
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def mark(file: h5py.File, source: Source) -> None:
    """Store in an HDF5 file that it is an export, and of which run."""
    texts = {"format": EXPORT, "program_version": __version__, "title": source.title}
    texts |= {"units": source.units.text} if source.units else {}
    file.attrs.update(
        {name: np.bytes_(text.encode()) if text else "" for name, text in texts.items()}
    )
