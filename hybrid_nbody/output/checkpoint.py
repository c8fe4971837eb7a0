"""Checkpoints: the complete state in global order with a digest, never half-written under their name."""

import json
import os
import re
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.names import (
    CHECKPOINT,
    CHECKPOINT_FILES,
    FORMAT_VERSION,
    USER_BLOCK,
    check_seal,
    seal,
)
from hybrid_nbody.output import hdf5
from hybrid_nbody.parallel.rows import Index, slab_rows, write_slabs
from hybrid_nbody.simulation.model import Role, fields_of

PATTERN = re.compile(r"checkpoint-\d{10}\.h5")

SAVED_ROLES = (Role.FRAME, Role.STATIC, Role.INTERNAL)
"""Together they are the complete state."""


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return the path of the checkpoint of a step."""
    return folder / f"checkpoint-{step:010d}.h5"


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, the newest first."""
    return sorted((path for path in folder.iterdir() if PATTERN.fullmatch(path.name)), reverse=True)


def save(folder: Path, model, header: dict, keep: int, communicator) -> Path:
    """Write a checkpoint, verify it, put it in place, then drop all but the newest `keep`.

    The root holds one slab of another rank's rows at a time, whatever the number of bodies.
    Collective.

    Raises
    ------
    FileError
        On the root, if writing or reading back failed; earlier checkpoints are untouched.
    """
    path = checkpoint_path(folder, model.step)
    part = path.with_suffix(".h5.part")
    file = None
    with _removed_on_failure(part, communicator):
        if communicator.is_root:
            with hdf5.file_errors(path, "writing the checkpoint"):
                file = _create(part, model, header)
        for field in fields_of(model, *SAVED_ROLES):
            write_slabs(
                field,
                communicator,
                lambda start, rows, name=field.name: _put(file, path, name, start, rows),
            )
        if communicator.is_root:
            _put_in_place(file, part, path)
            _prune(path, keep)
    return path


@contextmanager
def _removed_on_failure(part, communicator):
    """Take the half-written file away if the block fails."""
    try:
        yield
    except BaseException:
        if communicator.is_root:
            with suppress(OSError):
                part.unlink()
        raise


def _prune(path, keep):
    """Drop all but the newest `keep` checkpoints up to the one just written; later ones are damaged: left alone."""
    written = [other for other in checkpoints(path.parent) if other <= path]
    for old in written[keep:]:
        with hdf5.file_errors(old, "removing"):
            old.unlink(missing_ok=True)


def _create(part, model, header):
    fields = fields_of(model, *SAVED_ROLES)
    file = h5py.File(part, "w", userblock_size=USER_BLOCK)
    hdf5.reserve(file, sum(field.total_bytes for field in fields))
    state = {"scalars": json.dumps(model.scalars()), "step": model.step, "time": model.time}
    hdf5.write_header(file, CHECKPOINT, header | state)
    for field in fields:
        hdf5.fixed(file, field)
    return file


def _put(file, path, name, start, rows):
    with hdf5.file_errors(path, f"writing {name}"):
        file[name][start : start + len(rows)] = rows


def _put_in_place(file, part, path):
    with hdf5.file_errors(path, "writing the checkpoint"):
        file.close()
        with open(part, "rb+") as handle:
            handle.write(seal(part))
            handle.flush()
            os.fsync(handle.fileno())
        verify(part)
        os.replace(part, path)
        hdf5.sync_folder(path.parent)


def verify(path: Path) -> None:
    """Check that a checkpoint is whole and can be read by this version.

    Raises
    ------
    FileError
        If it cannot be read, is not ours, or its contents do not match its digest.
    """
    with hdf5.file_errors(path, "reading"):
        check_seal(path)
        with h5py.File(path, "r", locking=False) as file:
            if file.attrs["format_version"] > FORMAT_VERSION:
                writer = hdf5.text(file.attrs["program_version"])
                raise FileError(f"{path}: written by a newer version of hybrid_nbody ({writer})")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint found whole.

    Attributes
    ----------
    path : Path
    config : str
        The configuration it was written under, as YAML.
    number : int
        Rows in all: bodies, or planes of a grid.
    scalars : mapping of str to float
        The state that all ranks share.
    """

    path: Path
    config: str
    number: int
    scalars: Mapping[str, float]

    def rows(self, name: str, index: Index) -> np.ndarray:
        """Return the global rows `index` of a field, in that order; each rank reads its own."""
        with _readable(self.path), h5py.File(self.path, "r", locking=False) as file:
            return _read_rows(file[name], index)


def _read_rows(dataset: h5py.Dataset, index: Index) -> np.ndarray:
    """Return rows of a data set in the order of `index`; the file is read slab by slab."""
    if isinstance(index, slice):
        return dataset[index]
    rows = np.empty((len(index), *dataset.shape[1:]), dataset.dtype)
    order = np.argsort(index)
    numbers = index[order]
    step = slab_rows(rows.nbytes // max(len(rows), 1))
    for first in range(0, len(dataset), step):
        start, stop = np.searchsorted(numbers, (first, first + step))
        if start < stop:
            slab = dataset[numbers[start] : numbers[stop - 1] + 1]
            rows[order[start:stop]] = slab[numbers[start:stop] - numbers[start]]
    return rows


def load_newest(folder: Path) -> tuple[Checkpoint, list[str]]:
    """Return the newest checkpoint that is whole, and a warning for each newer one that is not. For the root alone.

    Raises
    ------
    FileError
        If none is whole, with what was tried.
    """
    tried = []
    for path in checkpoints(folder):
        try:
            verify(path)
            return _open(path), tried
        except FileError as error:
            tried.append(str(error))
    if not tried:
        raise FileError(
            f"{folder}: no checkpoint to resume from: there is no {CHECKPOINT_FILES} in it"
        )
    raise FileError("\n  ".join([f"{folder}: no checkpoint to resume from", *tried]))


@contextmanager
def _readable(path):
    """Turn whatever h5py raises on a file that is gone, or lacks something, into a `FileError`."""
    try:
        with hdf5.file_errors(path, "reading"):
            yield
    except (KeyError, ValueError) as error:
        raise FileError(f"{path}: lacks a part of the state: {error}") from error


def _open(path):
    with _readable(path), h5py.File(path, "r", locking=False) as file:
        scalars = json.loads(hdf5.text(file.attrs["scalars"]))
        return Checkpoint(path, hdf5.text(file.attrs["config"]), _number_of_rows(file), scalars)


def _number_of_rows(file):
    """Return the length of the first axis, along which ranks share every data set out: that of any of them."""
    number = file.visititems(
        lambda name, item: len(item) if isinstance(item, h5py.Dataset) else None
    )
    if number is None:
        raise KeyError("no data set in it")
    return number
