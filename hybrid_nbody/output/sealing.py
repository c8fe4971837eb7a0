"""Writing sealed HDF5 files: whole, synced, and named only then."""

import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.seals import SEAL_BYTES, WHOLE, algorithm_for, digest_of, seal_block


@dataclass(frozen=True)
class RawData:
    """The numbers of one data set, which are written past HDF5.

    Attributes
    ----------
    shape : tuple of int
        Of the data set.
    dtype : numpy.dtype
        Of the data set.
    pieces : iterable of ndarray
        Its rows, in order, in as many pieces as is convenient.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pieces: Iterable[NDArray[Any]]


def raw_data(values: NDArray[Any]) -> RawData:
    """Return the data of an array."""
    return RawData(values.shape, values.dtype, [values])


def write_sealed(
    path: Path,
    kind: str,
    data: Mapping[str, RawData],
    describe: Callable[[h5py.File], None],
    check: Callable[[Path], None] | None = None,
) -> str:
    """Write a sealed file under a temporary name, sync it, and give it its name.

    Parameters
    ----------
    path : Path
        The file; one of that name is replaced.
    kind : str
        What it is: a checkpoint, trajectory, head or part.
    data : mapping of str to RawData
        Its data sets, by name.
    describe : callable
        Adds attributes, and virtual data sets, to the open file.
    check : callable, optional
        Raises FileError if the file, still under its temporary name, is not as it should be.

    Returns
    -------
    str
        The digest of its contents.

    Raises
    ------
    FileError
        It cannot be written, or fails the check; an earlier file of that name stays as it was.
    """
    partial = path.with_suffix(".h5.part")
    tables = SparseFile()
    offsets = _lay_out(tables, data, describe)
    with _removed_on_failure(partial), file_errors(path, f"writing the {kind}"):
        with open(partial, "wb+", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, tables.size)
            for offset, piece in tables.pieces:
                _write_at(file, offset, piece)
            for name, offset in offsets.items():
                _write_pieces(file, offset, data[name].pieces)
            digest = _digest_beside_sync(file, partial)
            _write_at(file, 0, seal_block(partial, kind, digest))
            os.fsync(file.fileno())
        if check:
            check(partial)
        os.replace(partial, path)
        sync_folder(path.parent)
    return digest


def _digest_beside_sync(file: io.FileIO, path: Path) -> str:
    """Return the digest of a file; a long one is brought to the disk meanwhile."""
    algorithm = algorithm_for(path)
    if algorithm == WHOLE:
        return digest_of(path, algorithm)
    with ThreadPoolExecutor(1) as beside:
        digest = beside.submit(digest_of, path, algorithm)
        os.fsync(file.fileno())
        return digest.result()


class SparseFile(io.RawIOBase):
    """A file in memory that holds only what was written to it: the tables of an HDF5 file.

    Attributes
    ----------
    pieces : list of (int, bytes)
        What was written, each with its place; later ones count.
    size : int
        Bytes of the file.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[tuple[int, bytes]] = []
        self.size = 0
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def truncate(self, size: int | None = None) -> int:
        self.size = self._position if size is None else size
        return self.size

    def write(self, data: Any) -> int:
        content = bytes(data)
        self.pieces.append((self._position, content))
        self._position += len(content)
        self.size = max(self.size, self._position)
        return len(content)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))
        first = self._position
        for place, piece in self.pieces:
            start = max(place, first)
            stop = min(place + len(piece), first + len(view))
            if start < stop:
                view[start - first : stop - first] = piece[start - place : stop - place]
        self._position += len(view)
        return len(view)


def _lay_out(
    tables: SparseFile, data: Mapping[str, RawData], describe: Callable[[h5py.File], None]
) -> dict[str, int]:
    """Make the HDF5 file but for its data; return where the data of each data set begins."""
    with h5py.File(tables, "w", userblock_size=SEAL_BYTES) as file:
        offsets = {name: _reserve(file, name, found) for name, found in data.items()}
        describe(file)
    return {name: offset for name, offset in offsets.items() if offset is not None}


def _reserve(file: h5py.File, name: str, data: RawData) -> int | None:
    """Create a data set in one piece of the file; return where it begins, None if it is empty."""
    space = h5py.h5s.create_simple(data.shape)
    number = h5py.h5t.py_create(data.dtype, logical=True)
    dataset = h5py.h5d.create(
        file.id, name.encode(), number, space, dcpl=_in_one_piece(), lcpl=_with_groups()
    )
    return int(dataset.get_offset()) if math.prod(data.shape) else None


@cache
def _in_one_piece() -> Any:
    """Return the properties of a data set that has its place at once, and is filled past HDF5."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return properties


@cache
def _with_groups() -> Any:
    """Return the properties of a link that makes the groups in its name."""
    properties = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    properties.set_create_intermediate_group(True)
    return properties


def _write_pieces(file: io.FileIO, offset: int, pieces: Iterable[NDArray[Any]]) -> None:
    """Write arrays one after the other at a place of a file."""
    for piece in pieces:
        numbers = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
        _write_at(file, offset, numbers.data)
        offset += piece.nbytes


def _write_at(file: io.FileIO, offset: int, data: bytes | memoryview) -> None:
    """Write all bytes at a place of a file."""
    file.seek(offset)
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


@contextmanager
def _removed_on_failure(partial: Path) -> Iterator[None]:
    """Remove the half-written file if the block fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_files(folder: Path, paths: Iterable[Path]) -> None:
    """Remove files of a folder for good; those that are gone already do not matter.

    Raises
    ------
    FileError
        One cannot be removed.
    """
    with file_errors(folder, "removing files"):
        for path in paths:
            path.unlink(missing_ok=True)
        sync_folder(folder)
