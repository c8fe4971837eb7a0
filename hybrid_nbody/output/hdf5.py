"""Writing HDF5 files: headers, data sets, and disk space checked before a write."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from hybrid_nbody import __version__
from hybrid_nbody.errors import FileError
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.names import FORMAT_VERSION
from hybrid_nbody.simulation.model import Field

LONGEST_FIXED_TEXT = 60_000
"""Bytes of the longest text that fits into the header of a data set or file."""

SLACK_BYTES = 1 << 18
"""Bytes reserved for HDF5's own tables beside the data of an event."""

CHUNK_BYTES = 1 << 20
"""Approximate size of an HDF5 chunk."""

ROWS_PER_CHUNK = 1024
"""Rows in a chunk of a data set whose rows are a few numbers."""

FEW_NUMBERS = 3
"""Numbers in such a row, at most."""


# --- headers --------------------------------------------------------------------------------------


def write_header(file: h5py.File, file_format: str, header: Mapping[str, object]) -> None:
    """Store the format of a file, its version and `header` as attributes of the file."""
    own = {"format": file_format, "format_version": FORMAT_VERSION, "program_version": __version__}
    write_attributes(file, own | dict(header))


def write_attributes(item: Any, values: Mapping[str, object]) -> None:
    """Store attributes of a file or data set, texts with a fixed length.

    HDF5 keeps texts of variable length in a heap, where one flipped bit can make a reader hang.
    Very long texts fit nowhere else.
    """
    for name, value in values.items():
        if isinstance(value, str) and len(value.encode()) < LONGEST_FIXED_TEXT:
            fixed_length = h5py.string_dtype("utf-8", max(1, len(value.encode())))
            item.attrs.create(name, value.encode(), dtype=fixed_length)
        else:
            item.attrs[name] = value


# --- data sets ------------------------------------------------------------------------------------


def growing(group: h5py.Group, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> h5py.Dataset:
    """Create a data set without rows, to which rows of `shape` are added one by one."""
    few = int(np.prod(shape, dtype=int)) <= FEW_NUMBERS
    chunks = (ROWS_PER_CHUNK, *shape) if few else chunk_shape(shape, dtype)
    return group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=chunks)


def fixed(file: h5py.File, field: Field) -> h5py.Dataset:
    """Create the data set of a field that is written once."""
    dataset = file.create_dataset(field.name, field.shape, field.dtype)
    describe(dataset, field.units, field.description)
    return dataset


def write_rows(dataset: h5py.Dataset, start: int, rows: NDArray[Any]) -> None:
    """Write rows of a data set through to the file: HDF5 does not tell what fails when it closes.

    It is called within `writing`.
    """
    dataset[start : start + len(rows)] = rows
    dataset.flush()


def describe(dataset: h5py.Dataset, units: str, description: str) -> None:
    """Store the units and the meaning of a data set beside it."""
    write_attributes(dataset, {"units": units, "description": description})


def chunk_shape(shape: tuple[int, ...], dtype: DTypeLike) -> tuple[int, ...]:
    """Return chunks of about `CHUNK_BYTES` for a data set with rows of `shape`.

    A chunk is a part of one row. All parts are equally large, so that the last wastes nothing.
    """
    bytes_per_entry = int(np.prod(shape[1:], dtype=int)) * np.dtype(dtype).itemsize
    parts = max(1, -(-shape[0] * bytes_per_entry // CHUNK_BYTES))
    return (1, -(-shape[0] // parts), *shape[1:])


# --- failures -------------------------------------------------------------------------------------


@contextmanager
def writing(path: Path, doing: str) -> Iterator[None]:
    """Turn an error of a write into one that names the file, as `file_errors` does.

    HDF5 fails again whenever something of a file that it could not write is closed, and h5py prints
    a page on each; the error that is raised here says it all.
    """
    try:
        with file_errors(path, doing):
            yield
    except FileError:
        sys.unraisablehook = _ignoring_hdf5(sys.unraisablehook)
        sys.excepthook = _ignoring_broken_ids(sys.excepthook)
        raise


def _ignoring_hdf5(hook: Callable[[Any], object]) -> Callable[[Any], None]:
    def unraisable(found: Any) -> None:
        if "h5py" not in str(found.object):
            hook(found)

    return unraisable


def _ignoring_broken_ids(hook: Callable[..., object]) -> Callable[..., None]:
    def uncaught(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        if "decrement id ref count" not in str(error):
            hook(kind, error, traceback)

    return uncaught


# --- the disk -------------------------------------------------------------------------------------


def reserve(file: h5py.File, size: int) -> None:
    """Check that the file system has space for `size` more bytes before HDF5 changes the file.

    A write that fails half-way would leave HDF5's tables broken; this way a full disk is noticed
    while the file is whole. The space is allocated and freed at once, because HDF5 does not know of
    it: it would cut some of it off and leave the rest.

    Raises
    ------
    FileError
        There is no space; the file is unharmed.
    """
    path = Path(file.filename)
    with file_errors(path, f"reserving {size} bytes"):
        descriptor = os.open(path, os.O_WRONLY)
        end = os.fstat(descriptor).st_size
        try:
            os.posix_fallocate(descriptor, end, size + SLACK_BYTES)
        finally:
            os.ftruncate(descriptor, end)
            os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
