"""Writing checkpoints: the complete state in global order, sealed by a digest."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.checkpoint import checkpoint_path, checkpoints, verify
from hybrid_nbody.files.names import CHECKPOINT
from hybrid_nbody.output import hdf5
from hybrid_nbody.output.sealing import RawData, write_sealed
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import slabs
from hybrid_nbody.simulation.model import Field, Model, Role, fields_of

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
        fields = fields_of(model, *SAVED_ROLES)
        pieces = {field.name: self._pieces(field) for field in fields}
        if self.communicator.is_root:
            data = {field.name: _data(field, pieces[field.name]) for field in fields}
            describe = partial(_describe, fields, self._attributes(model))
            write_sealed(path, "checkpoint", data, describe, verify)
            self._remove_old(path)
        else:
            for field in fields:
                deque(pieces[field.name], maxlen=0)  # sends them
        return path

    def _pieces(self, field: Field) -> Iterator[NDArray[Any]]:
        """Yield on the root the rows of a field, in pieces; every rank runs it to its end."""
        for _, rows in slabs(field, self.communicator):
            yield rows

    def _attributes(self, model: Model) -> dict[str, object]:
        state = {"scalars": json.dumps(model.scalars()), "step": model.step, "time": model.time}
        return dict(self.header) | state

    def _remove_old(self, newest: Path) -> None:
        """Remove all but the newest checkpoints up to `newest`; later, damaged ones stay."""
        written = [path for path in checkpoints(self.folder) if path <= newest]
        for path in written[self.keep :]:
            with file_errors(path, "removing"):
                path.unlink(missing_ok=True)


def _data(field: Field, pieces: Iterator[NDArray[Any]]) -> RawData:
    return RawData(field.shape, field.dtype, pieces)


def _describe(fields: Sequence[Field], attributes: Mapping[str, object], file: h5py.File) -> None:
    hdf5.write_header(file, CHECKPOINT, attributes)
    for field in fields:
        hdf5.describe(file[field.name], field.units, field.description)
