"""Reading checkpoints: names, digests, contents. `hybrid_nbody.output.checkpoint` writes them."""

import json
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hybrid_nbody.errors import FileError
from hybrid_nbody.files.hdf5 import (
    SIGNATURE,
    attribute,
    attributes,
    check_kind,
    check_regular_file,
    open_hdf5,
    reading,
)
from hybrid_nbody.files.names import CHECKPOINT, CHECKPOINT_FILES, ORIGIN, START
from hybrid_nbody.files.seals import SEAL_BYTES, is_sealed, open_sealed
from hybrid_nbody.files.untrusted import check_own_data

FILE_NAME = re.compile(r"checkpoint-\d{10}\.h5")

READ_BYTES = 4 << 20
"""Bytes read at a time of rows that are not consecutive."""

SHARES = "shares"
"""Attribute of a checkpoint whose rows are in files of the ranks: their digests, in JSON."""

Index = slice | NDArray[np.int64]
"""Global rows: a slice with its start and stop, or their numbers in any order."""


# --- names ----------------------------------------------------------------------------------------


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return the path of the checkpoint of a step."""
    return folder / f"checkpoint-{step:010d}.h5"


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, the newest first."""
    found = (path for path in folder.iterdir() if FILE_NAME.fullmatch(path.name))
    return sorted(found, reverse=True)


def looks_like_checkpoint(head: bytes) -> bool:
    """Return whether a file that starts with `head` is a checkpoint, even with a damaged seal."""
    if is_sealed(head, "trajectory"):
        return False
    return is_sealed(head, "checkpoint") or head[SEAL_BYTES:].startswith(SIGNATURE)


HEAD_BYTES = SEAL_BYTES + len(SIGNATURE)
"""Bytes that `looks_like_checkpoint` needs."""


# --- contents -------------------------------------------------------------------------------------


def open_checkpoint(path: str | Path) -> h5py.File:
    """Open a checkpoint after checking its digest.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    h5py.File
        Open for reading, without a lock.

    Raises
    ------
    FileError
        It is missing, not a checkpoint, damaged, or written by a newer program.
    """
    path = Path(path)
    with ExitStack() as opened:
        file = opened.enter_context(open_sealed(path, "checkpoint"))
        check_kind(file, path, CHECKPOINT)
        shares = _shares(path, file)
        with reading(path):
            check_own_data(file, path, [share.name for share in shares])
        if not shares:
            opened.pop_all()
            return file
    for share, digest in shares.items():
        open_sealed(share, "state", digest).close()
    return _open_with_shares(path)


def share_paths(path: Path, ranks: int) -> list[Path]:
    """Return the paths of the files of a checkpoint of which each rank has written one."""
    name = path.name.partition(".")[0].replace("checkpoint", "state")
    return [path.with_name(f"{name}.{rank + 1}of{ranks}.h5") for rank in range(ranks)]


def _shares(path: Path, file: h5py.File) -> dict[Path, str]:
    """Return the files with the rows of a checkpoint, and their digests; none if it has them."""
    with reading(path):
        digests = json.loads(attribute(file, SHARES, "[]"))
    return dict(zip(share_paths(path, len(digests)), digests, strict=True))


def _open_with_shares(path: Path) -> h5py.File:
    """Open a checkpoint in a way in which HDF5 finds the files beside it."""
    with reading(path):
        return h5py.File(path, "r", locking=False)


def open_state(path: Path) -> h5py.File:
    """Open a checkpoint that has been checked before."""
    file = open_hdf5(path)
    if not _shares(path, file):
        return file
    check_shares(path, file)
    file.close()
    return _open_with_shares(path)


def check_shares(path: Path, file: h5py.File) -> None:
    """Check that all files of an open checkpoint are there still.

    A share that has gone, as an old checkpoint of a run that goes on, reads as zeros or as NaN:
    what was read before this check is right.

    Raises
    ------
    FileError
        One is not.
    """
    for share in _shares(path, file):
        check_regular_file(share)


def verify(path: str | Path) -> None:
    """Check that a checkpoint is whole and can be read; raises `FileError` as `open_checkpoint`."""
    open_checkpoint(path).close()


def check_readable(path: Path) -> None:
    """Check that HDF5 can open a checkpoint whose digest has been computed just now.

    Raises
    ------
    FileError
        It cannot, or a share is missing.
    """
    with open_state(path) as file, reading(path):
        check_kind(file, path, CHECKPOINT)
        _number_of_rows(file)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was whole when it was opened.

    Attributes
    ----------
    path : Path
        The file.
    config : str
        The configuration under which it was written, as YAML.
    number : int
        Rows of every field, over all ranks: bodies, or planes of a grid.
    scalars : mapping of str to float
        The state that all ranks share, as `Model.scalars` returned it.
    origin : str
        From which state of which other run this one has started; empty if it began by itself.
    start : str
        What tells it from runs of the same configuration; empty if that is not known.
    """

    path: Path
    config: str
    number: int
    scalars: Mapping[str, float]
    origin: str = ""
    start: str = ""

    @property
    def step(self) -> int:
        """Return the step of the state."""
        return int(self.scalars["step"])

    def rows(self, name: str, index: Index) -> NDArray[Any]:
        """Return the global rows `index` of a field, in that order; each rank reads its own.

        Raises
        ------
        FileError
            The file is gone or damaged, or has no such field.
        """
        with reading(self.path), open_state(self.path) as file:
            if name not in file:
                raise FileError(f"{self.path}: a part of the state is missing: {name}")
            found = _read_rows(file[name], index)
            check_shares(self.path, file)
            return found


def _read_rows(dataset: h5py.Dataset, index: Index) -> NDArray[Any]:
    """Return rows of a data set in the order of `index`; the file is read in pieces, forwards."""
    if isinstance(index, slice):
        return np.asarray(dataset[index])
    rows = np.empty((len(index), *dataset.shape[1:]), dataset.dtype)
    order = np.argsort(index)
    numbers = index[order]
    row_bytes = rows.nbytes // max(len(rows), 1)
    step = max(1, READ_BYTES // max(row_bytes, 1))
    for first in range(0, len(dataset), step):
        start, stop = np.searchsorted(numbers, (first, first + step))
        if start < stop:
            piece = dataset[numbers[start] : numbers[stop - 1] + 1]
            rows[order[start:stop]] = piece[numbers[start:stop] - numbers[start]]
    return rows


def load_checkpoint(path: Path) -> Checkpoint:
    """Return a checkpoint after checking its digest; its rows are read when they are asked for.

    Raises
    ------
    FileError
        As `open_checkpoint`, or a part of the state is missing.
    """
    with open_checkpoint(path) as file, reading(path):
        found = attributes(file)
        scalars = json.loads(found["scalars"])
        origin = str(found.get(ORIGIN, ""))
        start = str(found.get(START, ""))
        return Checkpoint(path, found["config"], _number_of_rows(file), scalars, origin, start)


def load_newest(folder: Path) -> tuple[Checkpoint, list[str]]:
    """Return the newest checkpoint that is whole, and a warning for each later name that is not it.

    The step inside a checkpoint counts, not that of its name.

    Raises
    ------
    FileError
        None is whole; the message says what is wrong with each.
    """
    warnings: list[str] = []
    found: list[Checkpoint] = []
    for path in checkpoints(folder):
        try:
            saved = load_checkpoint(path)
        except FileError as error:
            warnings.append(str(error))
            continue
        found.append(saved)
        if saved.path == checkpoint_path(folder, saved.step):
            break
        warnings.append(misnamed(saved.path, saved.step))
    if found:
        return max(found, key=lambda saved: saved.step), warnings
    if not warnings:
        raise FileError(
            f"{folder}: no checkpoint to resume from: there is no {CHECKPOINT_FILES} in it"
        )
    raise FileError("\n  ".join([f"{folder}: no checkpoint to resume from", *warnings]))


def misnamed(path: Path, step: int) -> str:
    """Return the warning on a checkpoint that was given the name of another step."""
    return f"{path}: it holds step {step}, which is not the step of its name"


def _number_of_rows(file: h5py.File) -> int:
    """Return the length of the first axis, which all data sets have in common."""
    number = file.visititems(
        lambda name, item: len(item) if isinstance(item, h5py.Dataset) else None
    )
    if number is None:
        raise KeyError("no data set in it")
    return int(number)
