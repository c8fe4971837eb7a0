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
from hybrid_nbody.files.checkpoint import (
    SHARES,
    checkpoint_path,
    checkpoints,
    share_paths,
    verify,
)
from hybrid_nbody.files.names import CHECKPOINT, STATE_FILES
from hybrid_nbody.files.parts import share_of
from hybrid_nbody.output import hdf5
from hybrid_nbody.output.sealing import RawData, raw_data, write_sealed
from hybrid_nbody.output.sharing import is_shared, own_share
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

        Of a small state the root holds one slab of another rank's rows at a time; of a large one
        each rank writes a share, and copies that.

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
        attributes = self._attributes(model)
        if is_shared(fields, self.communicator):
            self._save_shares(path, fields, attributes)
        else:
            self._save_by_root(path, fields, attributes)
        if self.communicator.is_root:
            self._remove_old(path)
        return path

    def _save_by_root(
        self, path: Path, fields: Sequence[Field], attributes: Mapping[str, object]
    ) -> None:
        """Write a checkpoint whose rows the other ranks send to the root."""
        pieces = {field.name: self._pieces(field) for field in fields}
        if self.communicator.is_root:
            data = {field.name: _data(field, pieces[field.name]) for field in fields}
            write_sealed(path, "checkpoint", data, partial(_describe, fields, attributes), verify)
            return
        for field in fields:
            deque(pieces[field.name], maxlen=0)  # sends them

    def _save_shares(
        self, path: Path, fields: Sequence[Field], attributes: Mapping[str, object]
    ) -> None:
        """Write a checkpoint of which each rank writes a share of the rows, and the root the rest.

        It is there once the root's file has its name.
        """
        own = share_paths(path, self.communicator.size)[self.communicator.rank]
        data = {field.name: raw_data(own_share(field, self.communicator)) for field in fields}
        describe = partial(_describe, fields, attributes)
        digests = self.communicator.gather(write_sealed(own, "state", data, describe))
        if self.communicator.is_root:
            all_of_it = dict(attributes) | {SHARES: json.dumps(digests)}
            write_sealed(
                path, "checkpoint", {}, partial(_describe_shared, path, fields, all_of_it), verify
            )

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
        for share in self.folder.glob(STATE_FILES):
            main = share.name.partition(".")[0].replace("state", "checkpoint")
            if not (self.folder / f"{main}.h5").exists():
                share.unlink(missing_ok=True)


def _describe_shared(
    path: Path, fields: Sequence[Field], attributes: Mapping[str, object], file: h5py.File
) -> None:
    """Add the fields as virtual data sets, made of the shares of all ranks."""
    names = [share.name for share in share_paths(path, len(json.loads(str(attributes[SHARES]))))]
    for field in fields:
        layout = h5py.VirtualLayout(field.shape, field.dtype)
        for rank, name in enumerate(names):
            rows = share_of(field.shape[0], rank, len(names))
            shape = (rows.stop - rows.start, *field.shape[1:])
            if shape[0]:
                layout[rows] = h5py.VirtualSource(name, field.name, shape)
        file.create_virtual_dataset(field.name, layout)
    _describe(fields, attributes, file)


def _data(field: Field, pieces: Iterator[NDArray[Any]]) -> RawData:
    return RawData(field.shape, field.dtype, pieces)


def _describe(fields: Sequence[Field], attributes: Mapping[str, object], file: h5py.File) -> None:
    hdf5.write_header(file, CHECKPOINT, attributes)
    for field in fields:
        hdf5.describe(file[field.name], field.units, field.description)
