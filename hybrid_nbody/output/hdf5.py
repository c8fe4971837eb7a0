"""What the HDF5 files share: headers, data sets, room on the disk, and errors a person can act on."""

import errno
import os
import re
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from hybrid_nbody import __version__
from hybrid_nbody.errors import FileError
from hybrid_nbody.files.names import FORMAT_VERSION

LONGEST_FIXED_TEXT = 60_000
"""Bytes of a text that fits into the head of a data set or file."""

SLACK_BYTES = 1 << 18
"""Room kept for HDF5's own tables beside the data of an event."""

CHUNK_BYTES = 1 << 20
"""Aim for the size of an HDF5 chunk."""

NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file size limit is reached",
}


@contextmanager
def file_errors(path: Path, doing: str):
    """Turn an operating-system or HDF5 error of the block into a `FileError` that names the file and the deed."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises either when a write or a flush fails
        raise FileError(f"{path}: {doing} failed: {reason(error)}") from error


def system_error(error: Exception) -> int | None:
    """Return the operating system's number of an error, which HDF5 may hide in its text; None if there is none."""
    hidden = re.search(r"errno = (\d+)", str(error))
    return getattr(error, "errno", None) or (int(hidden[1]) if hidden else None)


def reason(error: Exception) -> str:
    """Say in a few words why an operation failed."""
    number = system_error(error)
    return NO_ROOM.get(number) or (os.strerror(number) if number else str(error))


def write_header(file: h5py.File, kind: str, header: dict) -> None:
    """Store what a reader must know first as attributes of the file."""
    write_attributes(
        file,
        {"format": kind, "format_version": FORMAT_VERSION, "program_version": __version__} | header,
    )


def write_attributes(item, values: dict) -> None:
    """Store attributes of a file or data set, texts with a fixed length.

    HDF5 keeps texts of variable length in a heap; one flipped bit there can make a reader hang.
    Only there, though, is room for very long ones.
    """
    for name, value in values.items():
        if isinstance(value, str) and len(value.encode()) < LONGEST_FIXED_TEXT:
            fixed = h5py.string_dtype("utf-8", max(1, len(value.encode())))
            item.attrs.create(name, value.encode(), dtype=fixed)
        else:
            item.attrs[name] = value


def text(value) -> str:
    """Return the text of an attribute."""
    return value.decode() if isinstance(value, bytes) else str(value)


def reserve(file: h5py.File, size: int) -> None:
    """Make sure that the file system has room for `size` more bytes before HDF5 touches the file.

    A write that fails half-way would leave HDF5's tables broken; this way a full disk is met while
    the file is whole. The room is taken and given back at once: HDF5 does not know of it, cuts some
    of it off and would leave the rest.

    Raises
    ------
    FileError
        If there is no room; the file is unharmed.
    """
    path = Path(file.filename)
    with file_errors(path, f"making room for {size} bytes"):
        descriptor = os.open(path, os.O_WRONLY)
        end = os.fstat(descriptor).st_size
        try:
            os.posix_fallocate(descriptor, end, size + SLACK_BYTES)
        finally:
            os.ftruncate(descriptor, end)
            os.close(descriptor)


def chunk_shape(shape: tuple[int, ...], dtype) -> tuple[int, ...]:
    """Return the chunk of a data set of rows of `shape`, one row of frames at a time, about `CHUNK_BYTES` large."""
    row_bytes = int(np.prod(shape[1:], dtype=int)) * np.dtype(dtype).itemsize
    pieces = max(1, -(-shape[0] * row_bytes // CHUNK_BYTES))
    return (1, -(-shape[0] // pieces), *shape[1:])  # equal pieces: the last wastes nothing


def growing(
    group, name: str, shape: tuple[int, ...], dtype, units: str, description: str
) -> h5py.Dataset:
    """Create a data set of rows of `shape` to which rows are added one by one."""
    small = int(np.prod(shape, dtype=int)) <= 3
    chunks = (1024, *shape) if small else chunk_shape(shape, dtype)
    dataset = group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=chunks)
    describe(dataset, units, description)
    return dataset


def fixed(file: h5py.File, field) -> h5py.Dataset:
    """Create the data set of a field that is written once."""
    dataset = file.create_dataset(field.name, field.shape, field.dtype)
    describe(dataset, field.units, field.description)
    return dataset


def describe(dataset: h5py.Dataset, units: str, description: str) -> None:
    """Store the meaning of a data set beside it."""
    write_attributes(dataset, {"units": units, "description": description})


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
