"""Writing checkpoints: the complete state in global order, sealed by a digest."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.checkpoint import USER_BLOCK, checkpoint_path, checkpoints, seal, verify
from hybrid_nbody.files.names import CHECKPOINT
from hybrid_nbody.output import hdf5
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import write_slabs
from hybrid_nbody.simulation.model import Model, Role, fields_of

SAVED_ROLES = (Role.FRAME, Role.STATIC, Role.INTERNAL)
"""Roles of the fields that together are the complete state."""


@dataclass(frozen=True)
class CheckpointWriter:
    """Writes the checkpoints of a run.

    Attributes
    ----------
    folder : Path
        The run's directory.
    header : mapping
        Attributes of every file of the run.
    keep : int
        Number of checkpoints that are kept, at least 1.
    communicator : Communicator
        Every rank calls together.
    """

    folder: Path
    header: Mapping[str, object]
    keep: int
    communicator: Communicator

    def save(self, model: Model) -> Path:
        """Write a checkpoint, verify it, put it in place, then remove all but the newest `keep`.

        The root holds one slab of another rank's rows at a time, whatever the number of bodies.

        Returns
        -------
        Path
            The checkpoint.

        Raises
        ------
        FileError
            On the root, if writing or reading back failed; earlier checkpoints are untouched.
        """
        path = checkpoint_path(self.folder, model.step)
        part = path.with_suffix(".h5.part")
        file = None
        with self._removed_on_failure(part):
            if self.communicator.is_root:
                with hdf5.writing(path, "writing the checkpoint"):
                    file = _create(part, model, self.header)
            for field in fields_of(model, *SAVED_ROLES):
                write_slabs(field, self.communicator, partial(_write_rows, file, path, field.name))
            if self.communicator.is_root:
                _put_in_place(file, part, path)
                self._remove_old(path)
        return path

    @contextmanager
    def _removed_on_failure(self, part: Path) -> Iterator[None]:
        """Remove the half-written file if the block fails."""
        try:
            yield
        except BaseException:
            if self.communicator.is_root:
                with suppress(OSError):
                    part.unlink()
            raise

    def _remove_old(self, newest: Path) -> None:
        """Remove all but the newest checkpoints up to `newest`; later, damaged ones stay."""
        written = [path for path in checkpoints(self.folder) if path <= newest]
        for path in written[self.keep :]:
            with file_errors(path, "removing"):
                path.unlink(missing_ok=True)


def _create(part: Path, model: Model, header: Mapping[str, object]) -> h5py.File:
    """Create the file with the data sets of the state, still empty."""
    fields = fields_of(model, *SAVED_ROLES)
    file = h5py.File(part, "w", userblock_size=USER_BLOCK)
    hdf5.reserve(file, sum(field.total_bytes for field in fields))
    state = {"scalars": json.dumps(model.scalars()), "step": model.step, "time": model.time}
    hdf5.write_header(file, CHECKPOINT, dict(header) | state)
    for field in fields:
        hdf5.fixed(file, field)
    return file


def _write_rows(file: h5py.File, path: Path, name: str, start: int, rows: NDArray[Any]) -> None:
    with hdf5.writing(path, f"writing {name}"):
        hdf5.write_rows(file[name], start, rows)


def _put_in_place(file: h5py.File, part: Path, path: Path) -> None:
    """Seal the file, bring it to the disk, read it back and give it its name."""
    with hdf5.writing(path, "writing the checkpoint"):
        file.close()
        with open(part, "rb+") as handle:
            handle.write(seal(part))
            handle.flush()
            os.fsync(handle.fileno())
        verify(part)
        os.replace(part, path)
        hdf5.sync_folder(path.parent)
