"""Writing checkpoints: the complete state in global order, sealed by a digest."""

import dataclasses
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import h5py
import numpy as np

from hybrid_nbody.downloads import Download
from hybrid_nbody.errors import FileError
from hybrid_nbody.files.atomic import file_errors
from hybrid_nbody.files.checkpoint import (
    SHARES,
    check_readable,
    checkpoint_path,
    checkpoints,
    share_paths,
)
from hybrid_nbody.files.memory import available_memory
from hybrid_nbody.files.names import CHECKPOINT, CHECKPOINT_FILES, STATE_FILES
from hybrid_nbody.files.parts import share_of
from hybrid_nbody.files.seals import stated_digest
from hybrid_nbody.output import hdf5
from hybrid_nbody.output.sealing import RawData, write_sealed
from hybrid_nbody.output.sharing import (
    OtherRanks,
    all_on_root,
    is_shared,
    own_rows,
    own_share,
)
from hybrid_nbody.parallel.communicator import Communicator
from hybrid_nbody.parallel.rows import Rows, slabs
from hybrid_nbody.simulation.model import SAVED_ROLES, Field, Model, fields_of

SMALL_BYTES = 1 << 20
"""Size of a state of which a run does not wait until the last one is written."""

COPIED_SHARE = 0.5
"""Part of the memory available that the copy of a state may take."""

Write = Callable[[], None]
"""Writes what a rank owes of a checkpoint, without MPI: in any thread, at any time later."""


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
    others : OtherRanks
        Waits for the files of other ranks.
    """

    folder: Path
    header: Mapping[str, object]
    keep: int
    communicator: Communicator
    others: OtherRanks = dataclasses.field(default_factory=OtherRanks)

    def is_small(self, model: Model) -> bool:
        """Return whether the root writes a state alone, and some copies may wait for the disk."""
        fields = fields_of(model, *SAVED_ROLES)
        return _bytes_of(fields) <= SMALL_BYTES and not is_shared(fields, self.communicator)

    def has_space_for_copy(self, model: Model) -> bool:
        """Return on every rank whether the memory of the root has space for a copy of the state."""
        size = _bytes_of(fields_of(model, *SAVED_ROLES))
        return self.communicator.on_root(lambda: size <= COPIED_SHARE * available_memory())

    def copy(self, model: Model) -> Write:
        """Return a function that writes a checkpoint of the state as it is now.

        Of a small state the root holds the copy; of a large one each rank holds a share. The
        function writes a checkpoint, reads it back, puts it in place, and then removes all but the
        newest `keep`.

        Raises
        ------
        FileError
            By the function, if writing or reading back failed; earlier checkpoints are untouched.
        """
        fields = fields_of(model, *SAVED_ROLES)
        if is_shared(fields, self.communicator):
            own, complete = self._copy_of_shares(model, fields)
            return partial(_one_after_the_other, own, complete)
        copies = {field.name: all_on_root(field, self.communicator) for field in fields}
        if not self.communicator.is_root:
            return _write_nothing
        data = {
            field.name: RawData(field.shape, field.dtype, _once_there(copies[field.name]))
            for field in fields
        }
        return partial(self._write, model.step, data, self._description(model, fields))

    def save(self, model: Model) -> Path:
        """Write a checkpoint now, and return its path; of a small state nothing is copied.

        Raises
        ------
        FileError
            On every rank, if writing or reading back failed on any.
        """
        fields = fields_of(model, *SAVED_ROLES)
        if is_shared(fields, self.communicator):
            own, complete = self._copy_of_shares(model, fields)
            self.communicator.together(own)  # of a share that is not written nobody waits
            self.communicator.together(complete)
        else:
            self.communicator.together(partial(self._save_by_root, model, fields))
        return checkpoint_path(self.folder, model.step)

    def _save_by_root(self, model: Model, fields: Sequence[Field]) -> None:
        """Write a checkpoint whose rows the other ranks send to the root, a slab at a time.

        They send all of them, also where the root cannot write.
        """
        pieces = {field.name: _rows(slabs(field, self.communicator)) for field in fields}
        try:
            if self.communicator.is_root:
                data = {
                    field.name: RawData(field.shape, field.dtype, pieces[field.name])
                    for field in fields
                }
                self._write(model.step, data, self._description(model, fields))
        except FileError:
            _exhaust(pieces.values())
            raise
        _exhaust(pieces.values())

    def _copy_of_shares(self, model: Model, fields: Sequence[Field]) -> tuple[Write, Write]:
        """Return what writes this rank's share, and what then names all shares, on the root."""
        paths = share_paths(checkpoint_path(self.folder, model.step), self.communicator.size)
        own = paths[self.communicator.rank]
        # One that a killed run has left must not be taken for that of this run.
        self.communicator.together(partial(_remove, own))
        data = {field.name: self._share_data(field) for field in fields}
        write = partial(_write_share, own, data, self._description(model, fields))
        if not self.communicator.is_root:
            return write, _write_nothing
        return write, partial(self._complete, model.step, fields, self._attributes(model))

    def _share_data(self, field: Field) -> RawData:
        """Begin a copy of the rows of a field that this rank writes; return their data."""
        rows = own_rows(field, self.communicator)
        copy = own_share(field, self.communicator)
        return RawData((rows.stop - rows.start, *field.shape[1:]), field.dtype, _once_there(copy))

    def _complete(
        self, step: int, fields: Sequence[Field], attributes: Mapping[str, object]
    ) -> None:
        """Write, once all shares are there, the checkpoint, which is then whole."""
        path = checkpoint_path(self.folder, step)
        paths = share_paths(path, self.communicator.size)
        self.others.wait_for(paths)
        digests = [stated_digest(share, "state") for share in paths]
        all_of_it = dict(attributes) | {SHARES: json.dumps(digests)}
        self._write(step, {}, partial(_describe_shared, path, fields, all_of_it))

    def _write(
        self, step: int, data: Mapping[str, RawData], describe: Callable[[h5py.File], None]
    ) -> None:
        """Write a checkpoint, and remove the oldest."""
        path = checkpoint_path(self.folder, step)
        write_sealed(path, "checkpoint", data, describe, check_readable)
        self._remove_old(path)

    def _description(self, model: Model, fields: Sequence[Field]) -> Callable[[h5py.File], None]:
        return partial(_describe, fields, self._attributes(model))

    def _attributes(self, model: Model) -> dict[str, object]:
        state = {"scalars": json.dumps(model.scalars()), "step": model.step, "time": model.time}
        return dict(self.header) | state

    def _remove_old(self, newest: Path) -> None:
        """Remove all but the newest checkpoints up to `newest`; later, damaged ones stay."""
        written = [path for path in checkpoints(self.folder) if path <= newest]
        for path in written[self.keep :]:
            _remove(path)
        for share in self.folder.glob(STATE_FILES):
            whole = _checkpoint_of(share)
            if whole < newest and not whole.exists():  # of a later one shares may come first
                share.unlink(missing_ok=True)
        for pattern in (CHECKPOINT_FILES, STATE_FILES):
            for partial_file in self.folder.glob(f"{pattern}.part"):  # of a run that was killed
                if _checkpoint_of(partial_file) <= newest:
                    partial_file.unlink(missing_ok=True)


def _bytes_of(fields: Sequence[Field]) -> int:
    return sum(field.total_bytes for field in fields)


def _checkpoint_of(path: Path) -> Path:
    """Return the checkpoint to which a share, or a file that is not complete, belongs."""
    name = path.name.partition(".")[0].replace("state", "checkpoint")
    return path.with_name(f"{name}.h5")


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
        missing = np.nan if field.dtype.kind == "f" else None
        file.create_virtual_dataset(field.name, layout, fillvalue=missing)
    _describe(fields, attributes, file)


def _write_share(
    path: Path, data: Mapping[str, RawData], describe: Callable[[h5py.File], None]
) -> None:
    write_sealed(path, "state", data, describe)


def _remove(path: Path) -> None:
    with file_errors(path, "removing"):
        path.unlink(missing_ok=True)


def _write_nothing() -> None:
    """Do what a rank has to do for a file that the root writes."""


def _one_after_the_other(first: Write, second: Write) -> None:
    first()
    second()


def _exhaust(pieces: Iterable[Iterator[Rows]]) -> None:
    """Send, or receive, what is left of some fields."""
    for rows in pieces:
        deque(rows, maxlen=0)


def _once_there(copy: Download) -> Iterator[Rows]:
    yield copy.rows()


def _rows(pieces: Iterator[tuple[int, Rows]]) -> Iterator[Rows]:
    for _, rows in pieces:
        yield rows


def _describe(fields: Sequence[Field], attributes: Mapping[str, object], file: h5py.File) -> None:
    hdf5.write_header(file, CHECKPOINT, attributes)
    for field in fields:
        hdf5.describe(file[field.name], field.units, field.description)
